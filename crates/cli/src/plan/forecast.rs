//! `brimful plan forecast`: predicts when arrivals exceed a limit, and which configurations can serve them.

use super::args::ForecastArgs;
use super::model;
use super::result::ResultFiles;
use crate::access_logs::{describe_line_counts, log_error};
use crate::documents::{display_name, read_text};
use crate::exit::{Exit, MissedObjectiveError};
use crate::output::{OutFile, print_note};
use anyhow::Context;
use brimful_accesslog as accesslog;
use brimful_accesslog::read::ReadOptions;
use brimful_core::model::Model;
use brimful_core::slo::{Measure, Slo};
use brimful_forecast::MONTH_S;
use brimful_forecast::cost::{Configuration, CostTable, SizedConfiguration, cost_table, parse_configurations};
use brimful_forecast::{Forecast, ForecastOptions, Series, Unit, crossing, forecast};
use brimful_model::{Change, LoadLimit, Method, ModelError, Scenario, headroom, saturation_rate};
use brimful_report::plan::forecast::{Forecasted, Limit, text};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Number of bytes at the beginning of a file from which it is detected whether the file is an access log or a table.
const HEAD_BYTES: u64 = 65_536;

/// Forecasts the arrivals. Prints the forecast, and writes the files that the flags name.
pub fn main(args: &ForecastArgs) -> anyhow::Result<Exit> {
    let places = ResultFiles::open(&args.result)?;
    let csv = OutFile::create_optional(args.csv.as_deref(), "--csv")?;
    let model = args.model.as_deref().map(model::read).transpose()?;
    let series = history(args)?;
    let options = ForecastOptions {
        horizon_s: args.horizon.as_secs_f64(),
        seasons: seasons(&args.season),
        method: args.method,
        peak_to_mean: args.peak_to_mean,
    };
    let found = forecast(&series, &options)?;
    let limit = limit(args, model.as_ref())?;
    let limit = limit.map(|limit| crossing(&found, limit.rate).map(|crossing| (crossing, limit))).transpose()?;
    let cost = cost(args, model.as_ref(), &found)?;
    let forecasted = Forecasted::new(found, limit.map(|(crossing, limit)| (limit, crossing)), cost);
    let written = csv.map_or(Ok(()), |file| {
        file.commit(&match &forecasted.cost {
            Some(cost) => cost.to_csv(),
            None => forecasted.forecast.to_csv(),
        })
    });
    places.deliver("forecast", &forecasted, || text(&forecasted))?;
    written?;
    let is_exceeded = forecasted.crossing.is_some_and(|crossing| crossing.already);
    Ok(if is_exceeded { Exit::MissedObjective } else { Exit::Ok })
}

/// The history of arrivals: a table, or the requests in access logs.
fn history(args: &ForecastArgs) -> anyhow::Result<Series> {
    let zone = args.timezone.as_ref();
    match args.series.as_slice() {
        [table] if !is_log(table) => {
            let text = read_text(table)?;
            Series::parse(&text, args.unit, zone).with_context(|| display_name(table))
        }
        logs => {
            let paths: Vec<String> = logs.iter().map(|path| path.to_string_lossy().into_owned()).collect();
            let found =
                accesslog::history::count_requests(&paths, ReadOptions::default(), &mut |_| {}).map_err(log_error)?;
            print_note(&describe_line_counts(&found.read.lines));
            Ok(Series::parse(&found.to_csv(), Unit::Counts, zone)?)
        }
    }
}

/// Whether a file begins like an access log. Stdin (`-`) is always a table.
fn is_log(path: &Path) -> bool {
    let mut head = Vec::new();
    let opened = File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    opened.is_ok() && accesslog::history::is_log(&head)
}

/// The lengths of seasons (repeating patterns) from `--season`, in time steps of the history; `None` to detect them.
/// `--season 0` means that there are no seasons.
fn seasons(given: &[usize]) -> Option<Vec<usize>> {
    (!given.is_empty()).then(|| given.iter().copied().filter(|length| *length > 0).collect())
}

/// The limit for the arrival rate; `None` if no limit is known.
fn limit(args: &ForecastArgs, model: Option<&Model>) -> anyhow::Result<Option<Limit>> {
    if let Some(limit) = args.limit {
        return Ok(Some(Limit { rate: limit.0, reason: "the given limit".to_owned() }));
    }
    let Some(model) = model else { return Ok(None) };
    let (rate, reason) = capacity(args, model)?;
    match rate {
        Some(rate) if rate.is_finite() => Ok(Some(Limit { rate, reason })),
        Some(_) => Ok(None),
        None => Err(MissedObjectiveError(format!(
            "the model misses the objective {reason} even without load: use an objective that it can meet, or a faster model"
        ))
        .into()),
    }
}

/// The rate up to which a model meets all objectives, and the objective that is missed first. The rate is `None` if an
/// objective is missed even without load.
fn capacity(args: &ForecastArgs, model: &Model) -> Result<(Option<f64>, String), ModelError> {
    let mut objectives = args.slo.clone();
    objectives.extend(args.max_utilization.map(|limit| Slo { measure: Measure::Utilization { station: None }, limit }));
    if objectives.is_empty() {
        let (rate, station) = saturation_rate(model)?;
        return Ok((Some(rate), format!("{station} saturates")));
    }
    let mut lowest = f64::INFINITY;
    let mut missed_first = String::new();
    for slo in &objectives {
        let until = match headroom(model, Method::Auto, slo)?.until {
            LoadLimit::Never => return Ok((None, slo.to_string())),
            LoadLimit::Always => continue,
            LoadLimit::Rate(rate) => rate,
            LoadLimit::Population(_) => {
                return Err(ModelError::Inconsistent(
                    "a forecast needs a model with arrivals: give its classes `type = \"open\"` and a rate".into(),
                ));
            }
        };
        if until < lowest {
            lowest = until;
            missed_first = slo.to_string();
        }
    }
    Ok((Some(lowest), missed_first))
}

/// The configurations with their prices, and the time for which each can serve the forecast arrivals; `None` if no
/// configurations are given.
fn cost(args: &ForecastArgs, model: Option<&Model>, forecast: &Forecast) -> anyhow::Result<Option<CostTable>> {
    let (Some(path), Some(model)) = (&args.configurations, model) else { return Ok(None) };
    let name = || display_name(path);
    let configurations = parse_configurations(&read_text(path)?).with_context(name)?;
    let size = |configuration: Configuration| {
        let changes = configuration.set.iter().map(|change| change.parse()).collect::<Result<Vec<Change>, _>>()?;
        let changed = Scenario { changes, ..Scenario::default() }.apply(model)?;
        let (capacity, _) = capacity(args, &changed)?;
        Ok::<_, ModelError>(SizedConfiguration { configuration, capacity })
    };
    let sized = configurations.into_iter().map(size).collect::<Result<Vec<_>, _>>().with_context(name)?;
    let months = args.months.unwrap_or_else(|| args.horizon.as_secs_f64() / MONTH_S);
    Ok(Some(cost_table(&sized, forecast, months)?))
}
