//! The flags of `brimful plan`.

use super::result::ResultArgs;
use crate::access_logs::zone;
use crate::flags::values::share;
use brimful_core::slo::Slo;
use brimful_core::{Nanos, Rate};
use brimful_estimate::calibrate::Attribution;
use brimful_forecast::ForecastMethod;
use brimful_forecast::{Unit, Zone};
use brimful_model::{Change, Client, Method, NewClass};
use clap::{Args, Subcommand, ValueEnum};
use jiff::tz::TimeZone;
use std::path::PathBuf;

/// `brimful plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// What to plan.
    #[command(subcommand)]
    pub command: PlanCommand,
}

/// The steps of planning.
#[derive(Debug, Subcommand)]
pub enum PlanCommand {
    /// Solve a queueing model: throughput, response time, utilization, and where it saturates
    Solve(SolveArgs),
    /// Change a model: faster or more servers, more or other load; along a range it gives a curve
    WhatIf(WhatIfArgs),
    /// Make a model of what runs at several loads measured
    Calibrate(CalibrateArgs),
    /// Forecast arrivals from their history: when they are too many, and which configuration holds them
    Forecast(ForecastArgs),
}

const SOLVE_EXAMPLES: &str = "\
Examples:
  $ brimful plan solve model.json";

/// `brimful plan solve`.
#[derive(Debug, Args)]
#[command(after_help = SOLVE_EXAMPLES)]
pub struct SolveArgs {
    /// What to solve and how.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Simulate the model as well, and show the means of both side by side
    #[arg(long)]
    pub simulate: bool,
    /// Seed of the simulation
    #[arg(long, value_name = "N", default_value = "1", requires = "simulate")]
    pub seed: u64,
    /// Where the result goes.
    #[command(flatten)]
    pub result: ResultArgs,
}

const WHAT_IF_EXAMPLES: &str = "\
Examples:
  $ brimful plan what-if model.json --set cpu.servers=4 --slo 'p99<200ms'";

/// `brimful plan what-if`.
#[derive(Debug, Args)]
#[command(after_help = WHAT_IF_EXAMPLES)]
pub struct WhatIfArgs {
    /// What to change and how to solve it.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Change what there is (repeatable): STATION.speed=1.5x, .servers=4, .demand=0.5x, .background=20%, .scheduling=fcfs, .scv=1;
    /// CLASS.rate=+30%, .population=200, .think=3s, .priority=0; STATION.CLASS.demand=12ms; rate=2x of all classes. A range gives
    /// a curve: 50..150, 1x..4x:13 (in so many points), 1x..16x:9:log
    #[arg(long, value_name = "CHANGE")]
    pub set: Vec<Change>,
    /// Add a class, like 'batch:rate=50,cpu=2ms,disk=1ms' or 'crawler:rate=5,like=page' (repeatable)
    #[arg(long, value_name = "NAME:KEY=VALUE,…")]
    pub add_class: Vec<NewClass>,
    /// Add clients who request a class over a line of their own, like 'page:speed=128kbps,size=45.5KB,rtt=200ms' (repeatable)
    #[arg(long, value_name = "CLASS:KEY=VALUE,…")]
    pub client: Vec<Client>,
    /// An objective, like 'p95<200ms', 'mean<1s', 'page:p99<50ms' or 'cpu.utilization<70%' (repeatable): up to which load it is met;
    /// exit code 1 if it is missed already
    #[arg(long, value_name = "OBJECTIVE")]
    pub slo: Vec<Slo>,
    /// Write a curve to a file as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Where the result goes.
    #[command(flatten)]
    pub result: ResultArgs,
}

const FORECAST_EXAMPLES: &str = "\
Examples:
  $ brimful plan forecast rates.csv --model model.json --slo 'p99<200ms'";

/// `brimful plan forecast`.
#[derive(Debug, Args)]
#[command(after_help = FORECAST_EXAMPLES)]
pub struct ForecastArgs {
    /// The history: CSV of time and value in equal steps, like days or hours, or a JSON array of such pairs; `-` is stdin.
    /// Or access logs, compressed or not, in any order: their requests per hour
    #[arg(required = true, value_name = "SERIES")]
    pub series: Vec<PathBuf>,
    /// What its values are: counts (arrivals within a step) or rates (per second)
    #[arg(long, value_name = "UNIT", default_value = "counts", value_parser = unit)]
    pub unit: Unit,
    /// Whose days to count: a name like Europe/Berlin, or an offset from UTC like +01:00 [default: the offset that the
    /// history's times are written with, else UTC]
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    pub timezone: Option<Zone>,
    /// How far to look
    #[arg(long, value_name = "TIME", default_value = "180d")]
    pub horizon: Nanos,
    /// Length of a season in steps, like 7 of days, 24 and 168 of hours (repeatable; 0 for none) [default: what is found]
    #[arg(long, value_name = "N")]
    pub season: Vec<usize>,
    /// How to extrapolate: auto, line, smoothing:ALPHA or moving-average:N
    #[arg(long, value_name = "METHOD", default_value = "auto")]
    pub method: ForecastMethod,
    /// The highest rate within a step over its mean [default: from a history finer than days, else 1]
    #[arg(long, value_name = "X")]
    pub peak_to_mean: Option<f64>,
    /// The arrivals per second that are too many
    #[arg(long, value_name = "RATE", conflicts_with_all = ["model", "slo", "max_utilization"])]
    pub limit: Option<Rate>,
    /// The model that says how many are too many: where it saturates, or misses an objective
    #[arg(long, value_name = "MODEL")]
    pub model: Option<PathBuf>,
    /// An objective, like 'p95<200ms' (repeatable)
    #[arg(long, value_name = "OBJECTIVE", requires = "model")]
    pub slo: Vec<Slo>,
    /// How busy any station may be, like 70%
    #[arg(long, value_name = "SHARE", requires = "model", value_parser = share)]
    pub max_utilization: Option<f64>,
    /// Compare configurations: CSV with name, price (a month) and set (changes of the model, as of what-if), or TOML
    #[arg(long, value_name = "FILE", requires = "model")]
    pub configurations: Option<PathBuf>,
    /// Months that a configuration should last [default: the horizon]
    #[arg(long, value_name = "N", requires = "configurations")]
    pub months: Option<f64>,
    /// Write the forecast to a file as CSV; with --configurations their table
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Where the result goes.
    #[command(flatten)]
    pub result: ResultArgs,
}

const CALIBRATE_EXAMPLES: &str = "\
Examples:
  $ brimful plan calibrate low.json middle.json high.json --out model.json";

/// `brimful plan calibrate`.
#[derive(Debug, Args)]
#[command(after_help = CALIBRATE_EXAMPLES)]
pub struct CalibrateArgs {
    /// Records of one server, which `brimful load --watch --out` writes: several loads, each class alone, and one of the
    /// server idle
    #[arg(required_unless_present = "log")]
    pub records: Vec<PathBuf>,
    /// An access log in place of Records, with --utilization (repeatable): requests of each class in each step of time
    #[arg(long, value_name = "LOG", conflicts_with_all = ["records", "html"])]
    pub log: Vec<PathBuf>,
    /// A format of the logs by name, or as the server's own configuration writes it (repeatable) [default: found out]
    #[arg(long, value_name = "FORMAT", requires = "log")]
    pub format: Vec<String>,
    /// How busy what was when: CSV with a header like time,cpu,disk, times of when each step begins; or what sar -u, sar -d,
    /// sadf -d, mpstat, pidstat, iostat -x -t or vmstat -t print; or a Record; or kernel.jsonl of `brimful watch --log`
    #[arg(long, value_name = "FILE", requires = "log")]
    pub utilization: Option<PathBuf>,
    /// Whose clocks the times in --utilization are that are written without a zone: a name like Europe/Berlin, or an offset
    /// from UTC like +01:00 [default: the offset that the logs are written with, else UTC]
    #[arg(long, value_name = "ZONE", requires = "utilization", value_parser = zone, allow_hyphen_values = true)]
    pub timezone: Option<TimeZone>,
    /// CPUs that the server can use at once [default: all that were watched; with --log, as many as --utilization tells of, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub servers: Option<u32>,
    /// How classes that the runs cannot tell apart share what they cost
    #[arg(long, value_enum, default_value = "requests")]
    pub attribution: SharedBy,
    /// Print all that was found as JSON, and nothing else
    #[arg(long)]
    pub json: bool,
    /// Write the model to a file, for `brimful plan solve` and `what-if`; - is stdout, and stderr has the rest then
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write a page with charts to a file as well
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Rules of proportion.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum SharedBy {
    /// Every request alike
    Requests,
    /// In proportion to the bytes sent
    Bytes,
}

impl From<SharedBy> for Attribution {
    fn from(rule: SharedBy) -> Attribution {
        match rule {
            SharedBy::Requests => Attribution::Requests,
            SharedBy::Bytes => Attribution::Bytes,
        }
    }
}

/// A model, and the way to solve it.
#[derive(Debug, Args)]
pub struct ModelArgs {
    /// The model in JSON or TOML, or a document that holds one, like a survey's; `-` is stdin
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
