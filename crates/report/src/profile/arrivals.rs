//! The part of a profile's report about arrivals: small charts by hour, by weekday and over time, and the arrival rates
//! as CSV.

use super::{apart, foreign, lasting, pace, said};
use crate::format::{NAME_COLUMN_WIDTH, width, wrap};
use brimful_core::moments::mean;
use brimful_core::profile::{Arrivals, Profile};
use brimful_core::quantity::{count, percent};
use brimful_forecast::Timestamp;

/// Number of free columns to the right of a chart.
const MARGIN: usize = 8;
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
const LEVELS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const HOURS: usize = 24;

/// All charts of arrivals. A chart with too little data is left out.
pub(super) fn text(profile: &Profile) -> String {
    let arrivals = &profile.arrivals;
    apart([by_hour(profile) + &over_time(arrivals) + &seconds(profile), grid(arrivals) + &busy_hours(profile)])
}

/// A chart of the requests in each second around the busiest second of the peak window (Menascé et al. 1999, Fig. 10).
fn seconds(profile: &Profile) -> String {
    let Some(series) = &profile.arrivals.seconds else { return String::new() };
    let columns = width() - NAME_COLUMN_WIDTH - MARGIN;
    let busiest = (0..series.counts.len()).max_by_key(|second| (series.counts[*second], usize::MAX - second));
    let from = busiest.unwrap_or(0).saturating_sub(columns / 2).min(series.counts.len().saturating_sub(columns));
    let shown: Vec<f64> = series.counts.iter().skip(from).take(columns).map(|n| *n as f64).collect();
    let Some((mean, most)) = mean(&shown).zip(shown.iter().copied().reduce(f64::max)) else { return String::new() };
    if shown.len() < 2 {
        return String::new();
    }
    let start = series.from.parse::<Timestamp>().ok();
    let at = start.map_or(String::new(), |start| format!(" from {}", start.plus_seconds(from as i64)));
    let legend = format!(
        "requests in each second{at}, around the busiest second of the peak window: {} on average, at most {}",
        pace(mean),
        count(most as u64)
    );
    said("by second", &sparkline(&shown)) + &wrap(&legend, NAME_COLUMN_WIDTH)
}

/// Names the hours of the week in which arrival rates are regularly high.
fn busy_hours(profile: &Profile) -> String {
    let Some(busy) = &profile.arrivals.busy_hours else { return String::new() };
    let what = format!(
        "{}: {} on average, {} in all other hours; this explains {} of the variance among the hours of the week",
        foreign(&busy.name, 40),
        pace(busy.rate),
        pace(busy.other_rate),
        percent(busy.explained)
    );
    said("busy hours", &what)
}

fn by_hour(profile: &Profile) -> String {
    let counts = &profile.arrivals.by_hour;
    let all: f64 = counts.iter().map(|n| *n as f64).sum();
    let Some((busiest, most)) = counts.iter().enumerate().max_by_key(|(hour, n)| (**n, usize::MAX - hour)) else {
        return String::new();
    };
    if all == 0.0 || counts.len() != HOURS {
        return String::new();
    }
    let chart = sparkline(&counts.iter().map(|n| *n as f64).collect::<Vec<_>>());
    let zone = foreign(&profile.timezone, 40);
    said("by hour", &format!("{chart} 0 to 23 o'clock, {zone}; most at {busiest}, {}", percent(*most as f64 / all)))
}

fn over_time(arrivals: &Arrivals) -> String {
    if arrivals.rates.len() < 2 {
        return String::new();
    }
    let per_column = arrivals.rates.len().div_ceil(width() - NAME_COLUMN_WIDTH - MARGIN);
    let means: Vec<f64> = arrivals.rates.chunks(per_column).filter_map(mean).collect();
    let step = lasting(arrivals.step_s as f64 * per_column as f64);
    let highest = arrivals.rates.iter().copied().fold(0.0, f64::max);
    let within = lasting(arrivals.step_s as f64);
    let legend = format!("in steps of {step}; at most {} in {within}", pace(highest));
    said("over time", &sparkline(&means)) + &wrap(&legend, NAME_COLUMN_WIDTH)
}

/// A chart of the mean arrival rate by weekday (rows) and hour (columns). Empty if the log has requests on only one day
/// of the week.
fn grid(arrivals: &Arrivals) -> String {
    let rows = &arrivals.by_weekday_and_hour;
    let days_seen = arrivals.by_weekday.iter().filter(|n| **n > 0).count();
    if days_seen < 2 || rows.len() != DAYS.len() || rows.iter().any(|row| row.len() != HOURS) {
        return String::new();
    }
    let highest = rows.iter().flatten().copied().filter(|x| x.is_finite()).fold(0.0, f64::max);
    let all: f64 = arrivals.by_weekday.iter().map(|n| *n as f64).sum();
    // Each hour has two characters if the chart then fits the line, otherwise one.
    let characters = if width() < NAME_COLUMN_WIDTH + 2 * HOURS + MARGIN { 1 } else { 2 };
    let shades = |row: &[f64]| row.iter().map(|x| shade(*x, highest, characters)).collect::<String>();
    let quarters = [0, 6, 12].map(|hour| format!("{hour:<0$}", characters * HOURS / 4)).concat();
    let mut text = format!("{:NAME_COLUMN_WIDTH$}{quarters}18\n", "");
    for ((day, row), requests) in DAYS.iter().zip(rows).zip(&arrivals.by_weekday) {
        text += &format!("{day:<NAME_COLUMN_WIDTH$}{}  {:>6}\n", shades(row), percent(*requests as f64 / all));
    }
    let [none, .., darkest] = SHADES;
    let none = if none == ' ' { "blank".to_owned() } else { none.to_string() };
    let legend =
        format!("mean rate of each hour, 0 ({none}) to {} ({darkest}), and each day's requests", pace(highest));
    text + &wrap(&legend, NAME_COLUMN_WIDTH)
}

/// Returns the shade for a value, repeated `characters` times. The highest value has the darkest shade.
fn shade(x: f64, highest: f64, characters: usize) -> String {
    let shade = SHADES.get(level(x, highest, SHADES.len() - 1)).copied().unwrap_or(' ');
    shade.to_string().repeat(characters)
}

/// Draws a bar chart in one line, one character per value. A dot stands for zero.
pub(super) fn sparkline(figures: &[f64]) -> String {
    let highest = figures.iter().copied().filter(|x| x.is_finite()).fold(0.0, f64::max);
    let bar = |x: &f64| LEVELS.get(level(*x, highest, LEVELS.len() - 1)).copied().unwrap_or('?');
    figures.iter().map(bar).collect()
}

/// Scales a value to an integer: 0 for zero, otherwise 1 to `most`, in proportion to the highest value.
fn level(x: f64, highest: f64, most: usize) -> usize {
    if x > 0.0 && highest > 0.0 { ((x / highest * most as f64).ceil() as usize).clamp(1, most) } else { 0 }
}

/// The number of requests in each second of the peak window as CSV; `None` if these numbers are unknown.
pub fn seconds_csv(profile: &Profile) -> Option<String> {
    let series = profile.arrivals.seconds.as_ref()?;
    let from = series.from.parse::<Timestamp>().ok()?;
    let row = |(second, n): (i64, &u64)| format!("{},{n}\n", from.plus_seconds(second));
    Some("time,requests\n".to_owned() + &(0..).zip(&series.counts).map(row).collect::<String>())
}

/// The mean arrival rates over time as CSV, for spreadsheets and for `brimful plan forecast --unit rates`.
pub fn csv(profile: &Profile) -> String {
    let arrivals = &profile.arrivals;
    let from = arrivals.from.parse::<Timestamp>().ok();
    let row = |(i, per_s): (usize, &f64)| {
        let seconds = i64::try_from(arrivals.step_s.saturating_mul(i as u64)).unwrap_or(i64::MAX);
        let time = from.map_or_else(|| seconds.to_string(), |from| from.plus_seconds(seconds).to_string());
        format!("{time},{per_s}\n")
    };
    "time,requests_per_second\n".to_owned() + &arrivals.rates.iter().enumerate().map(row).collect::<String>()
}
