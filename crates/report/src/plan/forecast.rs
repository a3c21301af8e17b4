//! The result of `brimful plan forecast`: predicted arrivals, the date when they reach a limit, and the costs of server
//! configurations.

use super::requests;
use crate::format::{fact, figure, number, percent, rate, table, without_control_characters, words, wrap};
use brimful_core::JsonSchema;
use brimful_forecast::cost::{CostRow, CostTable};
use brimful_forecast::{Backtest, Crossing, Forecast, ForecastPoint, PeakBasis, Scale, Timestamp, TrendKind};
use serde::Serialize;

/// Identifier of the document's schema, and the value of [`Forecasted::schema`].
pub const SCHEMA: &str = "brimful.forecast/1";

/// Maximum number of rows in the table of predicted peaks.
const ROWS: usize = 12;

/// A forecast of arrivals.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Forecasted {
    /// Identifier of the document's schema: always [`SCHEMA`].
    pub schema: String,
    /// A sentence with the date when arrivals reach the limit. If configurations were compared, it also names the
    /// recommended one.
    pub headline: String,
    /// The limit of the arrival rate, if one was given.
    pub limit: Option<Limit>,
    /// The date when arrivals reach the limit.
    pub crossing: Option<Crossing>,
    /// The predicted arrivals.
    #[serde(flatten)]
    pub forecast: Forecast,
    /// The comparison of configurations, if some were given.
    pub cost: Option<CostTable>,
}

/// An arrival rate that must not be reached, such as the server's capacity.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Limit {
    /// Arrivals per second.
    pub rate: f64,
    /// The reason why this rate is the limit, as a text for people.
    pub reason: String,
}

impl Forecasted {
    /// Creates the document of a forecast and writes its headline.
    pub fn new(forecast: Forecast, limit: Option<(Limit, Crossing)>, cost: Option<CostTable>) -> Forecasted {
        let arrivals = headline(&forecast, limit.as_ref());
        let headline = cost.as_ref().map_or(String::new(), |cost| answer(cost) + " ") + &arrivals;
        let (limit, crossing) = limit.unzip();
        Forecasted { schema: SCHEMA.to_owned(), headline, limit, crossing, forecast, cost }
    }
}

/// Names the cheapest configuration that surely has enough capacity and, if it is cheaper, the cheapest one that
/// probably has.
fn answer(cost: &CostTable) -> String {
    let months = format!("{} months", (cost.months * 10.0).round() / 10.0);
    let priced = |name: &String| {
        let row = cost.rows.iter().find(|row| row.configuration.name == *name);
        row.map_or_else(
            || name.clone(),
            |row| format!("{name} ({} a month)", number(Some(row.configuration.price_per_month))),
        )
    };
    match (cost.cheapest_safe.as_ref(), cost.cheapest.as_ref()) {
        (Some(safe), Some(likely)) if safe != likely => {
            format!("Cheapest that surely lasts {months}: {}; that likely does: {}.", priced(safe), priced(likely))
        }
        (Some(safe), _) => format!("Cheapest that surely lasts {months}: {}.", priced(safe)),
        (None, Some(likely)) => format!("None surely lasts {months}; cheapest that likely does: {}.", priced(likely)),
        (None, None) => format!("None of the configurations lasts {months}."),
    }
}

fn headline(forecast: &Forecast, limit: Option<&(Limit, Crossing)>) -> String {
    let horizon = day(forecast.history.time(forecast.history.rates.len() + forecast.points.len()));
    let Some((limit, crossing)) = limit else {
        let season = forecast.seasons.iter().copied().max().unwrap_or(1);
        let last = forecast.points.iter().rev().take(season).map(|point| point.likely).fold(0.0, f64::max);
        let last = last * forecast.peak.factor;
        let now = requests(forecast.present_peak_rate);
        return format!("Arrivals peak at {now} now and at {} by {horizon}, likely.", requests(last));
    };
    let reach = format!("{} ({})", requests(limit.rate), limit.reason);
    match (crossing.already, crossing.likely, crossing.earliest) {
        (true, Some(since), _) => format!("Arrivals already reached {reach} on {}.", day(since)),
        (_, Some(likely), earliest) => {
            let before = earliest.map_or(String::new(), |date| format!(", hardly before {}", day(date)));
            let after = match crossing.latest {
                Some(date) => format!(" and hardly after {}", day(date)),
                None => format!(", or only after {horizon}"),
            };
            format!("Arrivals reach {reach} around {}{before}{after}.", day(likely))
        }
        (_, None, Some(earliest)) => {
            format!("Arrivals hardly reach {reach} before {horizon}; at the earliest on {}.", day(earliest))
        }
        (_, None, None) => format!("Arrivals do not reach {reach} before {horizon}."),
    }
}

/// Formats the document as text that ends in a newline.
pub fn text(forecasted: &Forecasted) -> String {
    let parts = [
        wrap(&forecasted.headline, 0),
        points(&forecasted.forecast),
        forecasted.cost.as_ref().map_or_else(String::new, cost),
        notes(&forecasted.forecast),
    ];
    without_control_characters(&parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n"))
}

/// A table of predicted peak rates in periods of equal length. A period is at least one season (such as a day), because
/// peaks of shorter periods would show the season rather than the trend.
fn points(forecast: &Forecast) -> String {
    let columns = [
        words("peak from", 0),
        figure("likely", 2, None),
        figure("from", 3, Some("80 %")),
        figure("to", 1, None),
        figure("from", 3, Some("95 %")),
        figure("to", 1, None),
    ];
    let season = forecast.seasons.iter().copied().max().unwrap_or(1).max(1);
    let stretch = forecast.points.len().div_ceil(ROWS).max(1).div_ceil(season) * season;
    let row = |stretch: &[ForecastPoint]| {
        let peak = |of: fn(&ForecastPoint) -> f64| {
            rate(Some(stretch.iter().map(of).fold(0.0, f64::max) * forecast.peak.factor))
        };
        let figures: [fn(&ForecastPoint) -> f64; 5] =
            [|p| p.likely, |p| p.lower80, |p| p.upper80, |p| p.lower95, |p| p.upper95];
        std::iter::once(moment(stretch[0].time, forecast.history.step_s)).chain(figures.map(peak)).collect()
    };
    table(&columns, &forecast.points.chunks(stretch).map(row).collect::<Vec<_>>())
}

fn cost(cost: &CostTable) -> String {
    let columns = [
        words("configuration", 0),
        figure("price", 2, Some("a month")),
        figure("holds", 2, Some("")),
        figure("headroom", 2, None),
        words("until", 2),
        words("surely until", 2),
        figure("now", 2, Some("per million")),
        figure("full", 2, None),
        words("", 2),
    ];
    let row = |row: &CostRow| {
        let until = |date: fn(&Crossing) -> Option<Timestamp>| match &row.crossing {
            None => "-".to_owned(),
            Some(crossing) if crossing.already => "too small".to_owned(),
            Some(crossing) => date(crossing).map_or("beyond".to_owned(), day),
        };
        let name = &row.configuration.name;
        let mark = match (cost.cheapest.as_ref() == Some(name), cost.cheapest_safe.as_ref() == Some(name)) {
            (_, true) => "cheapest, surely",
            (true, false) => "cheapest, likely",
            _ => "",
        };
        vec![
            name.clone(),
            number(Some(row.configuration.price_per_month)),
            rate(row.capacity),
            percent(row.headroom),
            until(|crossing| crossing.likely),
            until(|crossing| crossing.earliest),
            number(row.cost_per_million_now),
            number(row.cost_per_million_at_capacity),
            mark.to_owned(),
        ]
    };
    let asked = format!("Configurations, asked to last {} months:", number(Some(cost.months)));
    wrap(&asked, 0) + &table(&columns, &cost.rows.iter().map(row).collect::<Vec<_>>())
}

fn notes(forecast: &Forecast) -> String {
    let history = &forecast.history;
    let steps = history.rates.len();
    let mut past = format!(
        "{steps} steps of {} from {} to {}, {}",
        step(history.step_s),
        day(history.start),
        day(history.time(steps.saturating_sub(1))),
        history.zone
    );
    let bridged: usize = history.bridged.iter().map(|gap| gap.steps).sum();
    if bridged > 0 {
        past += &format!("; {bridged} were missing and are interpolated");
    }
    if history.out_of_order > 0 {
        past += &format!("; {} were out of order and are sorted", history.out_of_order);
    }
    let mut text = fact("history", &past);
    let peak = match forecast.peak.basis {
        PeakBasis::Given => "as given",
        PeakBasis::Learnt => "as on one day in twenty",
        PeakBasis::Unknown => "for what happens within a step is not known",
    };
    let now = format!(
        "{} on average over the last week, {} at its peak; a step's peak is taken as {} times its mean, {peak}",
        rate(Some(forecast.present_rate)),
        rate(Some(forecast.present_peak_rate)),
        number(Some(forecast.peak.factor))
    );
    text += &fact("now", &now);
    text += &fact("trend", &trend(forecast));
    if let Some(backtest) = &forecast.backtest {
        let tried = format!(
            "from {} earlier points, up to {} steps ahead: {} of what came was within the 80 % interval, {} within the 95 % \
             interval{}{}",
            backtest.origins,
            backtest.horizon_steps,
            percent(Some(backtest.coverage80)),
            percent(Some(backtest.coverage95)),
            if forecast.widening > 1.0 {
                format!("; they were widened {} times", number(Some(forecast.widening)))
            } else {
                String::new()
            },
            skill(forecast, backtest)
        );
        text += &fact("back-test", &tried);
    }
    for note in &forecast.notes {
        text += &fact("beware", note);
    }
    text
}

/// Compares the errors of the forecast method with those of the seasonal naive method, which repeats the last season.
/// Empty if the forecast uses the seasonal naive method itself.
fn skill(forecast: &Forecast, backtest: &Backtest) -> String {
    match (forecast.trend, backtest.mase, backtest.naive_mase) {
        (TrendKind::SeasonalNaive, ..) | (_, None, _) | (_, _, None) => String::new(),
        (_, Some(error), Some(naive)) => {
            let again = if forecast.seasons.is_empty() { "value" } else { "season" };
            format!("; its mean error was {} of that of repeating the last {again}", percent(Some(error / naive)))
        }
    }
}

fn trend(forecast: &Forecast) -> String {
    let kind = match forecast.trend {
        TrendKind::Constant => "the mean of all",
        TrendKind::Level => "a level that moves",
        TrendKind::Line => "a straight line",
        TrendKind::Autoregressive => "a straight line, and deviations that fade",
        TrendKind::Drift => "a level that moves and a steady slope",
        TrendKind::Local => "a level and a slope that move",
        TrendKind::Damped => "a level and a slope that fades",
        TrendKind::MovingAverage => "the mean of the last steps",
        TrendKind::SeasonalNaive if forecast.seasons.is_empty() => "the last value again",
        TrendKind::SeasonalNaive => "the last season again",
    };
    let scale = match forecast.scale {
        Scale::Linear => "",
        Scale::Log => ", growth and swings in proportion",
    };
    let growth = forecast
        .growth_per_month
        .map_or(String::new(), |g| format!("{}{} a month, ", if g >= 0.0 { "+" } else { "" }, percent(Some(g))));
    let seasons = match forecast.seasons.as_slice() {
        [] => "no season".to_owned(),
        lengths => {
            format!("seasons of {} steps", lengths.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and "))
        }
    };
    format!("{growth}{kind}{scale}; {seasons}")
}

/// Formats the length of a time series' steps, which is given in seconds.
fn step(seconds: u32) -> String {
    match seconds {
        86_400 => "a day".to_owned(),
        3600 => "an hour".to_owned(),
        60 => "a minute".to_owned(),
        s => format!("{s} s"),
    }
}

fn day(time: Timestamp) -> String {
    time.date()
}

/// Formats a time as a date; with the time of day if the steps are shorter than a day.
fn moment(time: Timestamp, step_s: u32) -> String {
    let text = time.to_string();
    match text.split_once('T') {
        Some((day, clock)) if step_s < 86_400 => format!("{day} {}", clock.get(..5).unwrap_or(clock)),
        _ => day(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_the_cheapest_that_lasts() {
        let said = |safe: Option<&str>, likely: Option<&str>| {
            let [cheapest_safe, cheapest] = [safe, likely].map(|name| name.map(str::to_owned));
            answer(&CostTable {
                months: 17.96,
                present_rate: 1.0,
                present_peak_rate: 2.0,
                horizon_months: 23.0,
                cheapest,
                cheapest_safe,
                rows: Vec::new(),
            })
        };
        assert_eq!(said(Some("a"), Some("a")), "Cheapest that surely lasts 18 months: a.");
        assert_eq!(said(Some("a"), Some("b")), "Cheapest that surely lasts 18 months: a; that likely does: b.");
        assert_eq!(said(None, Some("b")), "None surely lasts 18 months; cheapest that likely does: b.");
        assert_eq!(said(None, None), "None of the configurations lasts 18 months.");
    }
}
