//! The flags of `brimful plan`.

pub mod site;

use super::result::ResultArgs;
use crate::access_logs::parse_zone;
use crate::flags::values::parse_share;
use brimful_core::slo::Slo;
use brimful_core::{Nanos, Rate};
use brimful_forecast::ForecastMethod;
use brimful_forecast::{Unit, Zone};
use brimful_model::{Change, Client, Method, NewClass};
use clap::{Args, Subcommand};
use jiff::tz::TimeZone;
use site::{AttributionChoice, SiteArgs};
use std::path::PathBuf;

/// Arguments of `brimful plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The subcommand: solve, what-if, calibrate or forecast.
    #[command(subcommand)]
    pub command: PlanCommand,
}

/// The subcommands of `brimful plan`.
#[derive(Debug, Subcommand)]
pub enum PlanCommand {
    /// Solve a queueing model: throughput, response time, utilization, and where it saturates
    Solve(SolveArgs),
    /// Predict the effect of changes: faster or more servers, more or other load; a range gives a curve
    WhatIf(WhatIfArgs),
    /// Fit a model to Records of several loads, or to access logs and utilizations
    Calibrate(CalibrateArgs),
    /// Forecast arrivals from their history: when they exceed a limit, and which configuration can serve them
    Forecast(ForecastArgs),
}

const SOLVE_EXAMPLES: &str = "\
Examples:
  $ brimful plan solve model.json";

/// Arguments of `brimful plan solve`.
#[derive(Debug, Args)]
#[command(after_help = SOLVE_EXAMPLES)]
pub struct SolveArgs {
    /// The model, and the method that solves it.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Simulate the model as well, and show both solutions side by side
    #[arg(long)]
    pub simulate: bool,
    /// Seed of the simulation
    #[arg(long, value_name = "N", default_value = "1", requires = "simulate")]
    pub seed: u64,
    /// Flags for the destinations of the result.
    #[command(flatten)]
    pub result: ResultArgs,
}

const WHAT_IF_EXAMPLES: &str = "\
Examples:
  $ brimful plan what-if model.json --set cpu.servers=4 --slo 'p99<200ms'";

/// Arguments of `brimful plan what-if`.
#[derive(Debug, Args)]
#[command(after_help = WHAT_IF_EXAMPLES)]
pub struct WhatIfArgs {
    /// The model to change, and the method that solves it.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Change the model (repeatable): STATION.speed=1.5x, .servers=4, .demand=0.5x, .background=20%, .scheduling=fcfs,
    /// .scv=1, .interruptions=2/s, .interruption_length=20ms; CLASS.rate=+30%, .population=200, .think=3s, .priority=0;
    /// STATION.CLASS.demand=12ms; rate=2x for all classes. A range gives a curve: 50..150, 1x..4x:13 (with 13 points),
    /// 1x..16x:9:log
    #[arg(long, value_name = "CHANGE")]
    pub set: Vec<Change>,
    /// Add a class, like 'batch:rate=50,cpu=2ms,disk=1ms' or 'crawler:rate=5,like=page' (repeatable)
    #[arg(long, value_name = "NAME:KEY=VALUE,…")]
    pub add_class: Vec<NewClass>,
    /// Add clients that request a class, each over its own link, like 'page:speed=128kbps,size=45.5KB,rtt=200ms' (repeatable)
    #[arg(long, value_name = "CLASS:KEY=VALUE,…")]
    pub client: Vec<Client>,
    /// Show up to which load an objective is met, like 'p95<200ms', 'mean<1s', 'page:p99<50ms' or 'cpu.utilization<70%'
    /// (repeatable); exit code 1 if the model misses it already
    #[arg(long, value_name = "OBJECTIVE")]
    pub slo: Vec<Slo>,
    /// Write the curve to a file as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Flags for the destinations of the result.
    #[command(flatten)]
    pub result: ResultArgs,
}

const FORECAST_EXAMPLES: &str = "\
Examples:
  $ brimful plan forecast rates.csv --model model.json --slo 'p99<200ms'";

/// Arguments of `brimful plan forecast`.
#[derive(Debug, Args)]
#[command(after_help = FORECAST_EXAMPLES)]
pub struct ForecastArgs {
    /// The history: CSV of time and value in equal steps, like days or hours, or a JSON array of such pairs; `-` is stdin.
    /// Or access logs, compressed or not, in any order, whose requests per hour are counted
    #[arg(required = true, value_name = "SERIES")]
    pub series: Vec<PathBuf>,
    /// Unit of the values: counts (arrivals within a step) or rates (arrivals per second)
    #[arg(long, value_name = "UNIT", default_value = "counts", value_parser = unit)]
    pub unit: Unit,
    /// Time zone of days: a name like Europe/Berlin, or an offset from UTC like +01:00 [default: the offset of the history's
    /// times, else UTC]
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    pub timezone: Option<Zone>,
    /// How far to forecast
    #[arg(long, value_name = "TIME", default_value = "180d")]
    pub horizon: Nanos,
    /// Length of a season in steps, like 7 days, or 24 and 168 hours (repeatable; 0 for none) [default: detected]
    #[arg(long, value_name = "N")]
    pub season: Vec<usize>,
    /// How to extrapolate: auto, line, smoothing:ALPHA or moving-average:N
    #[arg(long, value_name = "METHOD", default_value = "auto")]
    pub method: ForecastMethod,
    /// Ratio of the peak rate to the mean rate within a step [default: from the history if days are forecast from shorter
    /// steps, else 1]
    #[arg(long, value_name = "X")]
    pub peak_to_mean: Option<f64>,
    /// Limit of the arrival rate, in arrivals per second
    #[arg(long, value_name = "RATE", conflicts_with_all = ["model", "slo", "max_utilization"])]
    pub limit: Option<Rate>,
    /// A model; the limit is the rate at which it saturates or first misses an objective
    #[arg(long, value_name = "MODEL")]
    pub model: Option<PathBuf>,
    /// An objective, like 'p95<200ms' (repeatable)
    #[arg(long, value_name = "OBJECTIVE", requires = "model")]
    pub slo: Vec<Slo>,
    /// Maximum utilization of any station, like 70%
    #[arg(long, value_name = "SHARE", requires = "model", value_parser = parse_share)]
    pub max_utilization: Option<f64>,
    /// Compare configurations: CSV with name, price (per month) and set (changes as for what-if --set), or TOML
    #[arg(long, value_name = "FILE", requires = "model")]
    pub configurations: Option<PathBuf>,
    /// Months for which a configuration should suffice [default: the horizon]
    #[arg(long, value_name = "N", requires = "configurations")]
    pub months: Option<f64>,
    /// Write the forecast to a file as CSV; with --configurations, write their table
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Flags for the destinations of the result.
    #[command(flatten)]
    pub result: ResultArgs,
}

const CALIBRATE_EXAMPLES: &str = "\
Examples:
  $ brimful plan calibrate low.json middle.json high.json --out model.json
  $ brimful plan calibrate --log access.log --utilization sar.txt --attribution cpu=size --alone empty.json";

/// Arguments of `brimful plan calibrate`.
#[derive(Debug, Args)]
#[command(after_help = CALIBRATE_EXAMPLES)]
pub struct CalibrateArgs {
    /// Records of one server, which `brimful load --watch --out` writes: of several loads, of each class alone, and of the
    /// idle server
    #[arg(required_unless_present = "log")]
    pub records: Vec<PathBuf>,
    /// Access log to use instead of Records (repeatable); requires --utilization
    #[arg(long, value_name = "LOG", conflicts_with_all = ["records", "html"])]
    pub log: Vec<PathBuf>,
    /// Log format: a name, or the format string of the server's configuration (repeatable) [default: detected]
    #[arg(long, value_name = "FORMAT", requires = "log", conflicts_with = "records")]
    pub format: Vec<String>,
    /// Utilization of resources over time: CSV with a header like time,cpu,disk and the time at which each step begins; or
    /// the output of sar -u, sar -d, sadf -d, mpstat, pidstat, iostat -x -t or vmstat -t; or a Record; or kernel.jsonl of
    /// `brimful watch --log`
    #[arg(long, value_name = "FILE", requires = "log", conflicts_with = "records")]
    pub utilization: Option<PathBuf>,
    /// Time zone of times in --utilization that have none: a name like Europe/Berlin, or an offset from UTC like +01:00
    /// [default: the offset of the logs' times, else UTC]
    #[arg(long, value_name = "ZONE", requires = "utilization", conflicts_with = "records", value_parser = parse_zone, allow_hyphen_values = true)]
    pub timezone: Option<TimeZone>,
    /// CPUs that the server can use at once [default: all that were watched, or those in the file of
    /// --utilization, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub servers: Option<u32>,
    /// How to divide the cost of classes that the data cannot separate. With Records: requests (equally, the default) or
    /// bytes. With --log a rule for all resources, or for some, like cpu=size,disk1=requests: regression, line (a request and
    /// each byte cost the same), size (the cost without a body, and the rest by bytes), bytes, requests, or the name of the
    /// only class that uses the resource [default: auto]
    #[arg(long, value_name = "[RESOURCE=]RULE,…", value_delimiter = ',')]
    pub attribution: Vec<AttributionChoice>,
    /// Flags that apply to access logs only.
    #[command(flatten)]
    pub site: SiteArgs,
    /// Print the whole calibration as JSON, and nothing else
    #[arg(long)]
    pub json: bool,
    /// Write the model to a file, for `brimful plan solve` and `what-if`; with -, to stdout, and everything else to stderr
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write an HTML page with charts to a file as well
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Arguments that select a model and the method that solves it.
#[derive(Debug, Args)]
pub struct ModelArgs {
    /// The model in JSON or TOML, or a document that contains one, like a survey; `-` is stdin
    pub model: PathBuf,
    /// How to solve it: auto, exact, erlang, seidmann, schweitzer, linearizer or simulation
    #[arg(long, value_name = "METHOD", default_value = "auto")]
    pub method: Method,
}

fn unit(text: &str) -> Result<Unit, String> {
    match text {
        "counts" => Ok(Unit::Counts),
        "rates" => Ok(Unit::Rates),
        _ => Err("use `counts` for arrivals within a step, or `rates` for arrivals per second".to_owned()),
    }
}
