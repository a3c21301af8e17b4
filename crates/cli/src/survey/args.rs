//! The flags of `brimful survey`.

use crate::flags::values::{MaxConnections, parse_max_connections, parse_share};
use crate::flags::{OutputArgs, RequestArgs};
use brimful_core::cpus::CpuList;
use brimful_core::units::Count;
use brimful_core::{Nanos, SloSpec};
use brimful_monitor::ProcessSelector;
use brimful_survey::Change;
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  $ brimful survey --demo
  $ brimful survey http://127.0.0.1:8080/ --slo 'p99<50ms'
  $ brimful survey http://127.0.0.1:8080/ --cpus 1 --server-cpus 0
  $ brimful survey http://shop.example/ --watch-from shop.example:7411 --max-load 30%";

/// Arguments of `brimful survey`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, next_help_heading = "Survey")]
pub struct SurveyArgs {
    /// The server, like http://127.0.0.1:8080/index.html
    #[arg(required_unless_present = "demo", conflicts_with = "demo", help_heading = None)]
    pub url: Option<String>,
    /// Survey the built-in reference server, and reveal its random service demands at the end
    #[arg(long)]
    pub demo: bool,
    /// An objective, like 'p99<50ms' or 'CLASS:mean<1s' (repeatable) [default: p99<10x]
    ///
    /// The measure is a percentile, the mean, or `errors`, as in 'errors<1%'. The survey predicts and measures the
    /// highest rate at which it is met in the long run. 10x is ten times the value at light load. Calls without an
    /// expected answer count as slower than any limit.
    #[arg(long, value_name = "OBJECTIVE")]
    pub slo: Vec<SloSpec>,
    /// Test the model at more loads, with another mix and with bursts; takes about 40 s longer
    #[arg(long)]
    pub thorough: bool,
    /// Duration of a test load at a low rate, which determines all other durations
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub level: Nanos,
    /// Be gentle: load the server with at most this share of its capacity on average, like 30%
    ///
    /// Loads above this share are predicted, but not measured.
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub max_load: Option<f64>,
    /// Be gentle: delay the calls of other clients by at most about this time, like 50ms
    ///
    /// Loads that would delay them longer are predicted, but not measured.
    #[arg(long, value_name = "TIME")]
    pub max_delay: Option<Nanos>,
    /// Open loops: use at most N connections, or unlimited [default: 32 per CPU of the server]
    ///
    /// The default is larger if responses take long, and never exceeds what the server serves at a time. A call waits while
    /// all connections are in use. With `unlimited`, each such call opens another connection, as a crowd of users does.
    #[arg(long, value_name = "N", value_parser = parse_max_connections, help_heading = "Connections")]
    #[arg(hide_short_help = true)]
    pub max_connections: Option<MaxConnections>,
    /// At the end, predict a change of the server, make it, measure, and undo it, like quota=50%
    ///
    /// quota=50% limits the server's processes to half of its CPUs, with a control group. By default nothing is changed,
    /// except that --demo --thorough tries quota=50% if permissions allow it.
    #[arg(long, value_name = "CHANGE", conflicts_with_all = ["watch_from", "black_box"])]
    pub what_if: Option<Change>,
    /// The server's program, with its children (repeatable) [default: what listens on the port]
    ///
    /// A name, a pid, port:80 or cgroup:PATH.
    #[arg(long, value_name = "PROGRAM", help_heading = "Watching")]
    pub process: Vec<ProcessSelector>,
    /// Pin the server to these CPUs during the survey, like 0-1 [default: do not pin; --demo: the first CPU]
    #[arg(long, value_name = "LIST", help_heading = "Watching")]
    pub server_cpus: Option<CpuList>,
    /// Observe only the server's responses: only capacity and response times are predicted
    #[arg(long, conflicts_with_all = ["demo", "process", "server_cpus"], help_heading = "Watching")]
    pub black_box: bool,
    /// Watch the server on another host, through `brimful watch --serve` there
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["demo", "process", "server_cpus", "black_box"])]
    #[arg(help_heading = "Watching")]
    pub watch_from: Option<String>,
    /// Token of --watch-from, in a file that only you can read [default: BRIMFUL_TOKEN in the environment]
    #[arg(long, value_name = "FILE", requires = "watch_from", help_heading = "Watching", hide_short_help = true)]
    pub token_file: Option<PathBuf>,
    /// Use TLS for --watch-from, and trust the certificates in this file
    #[arg(long, value_name = "FILE", requires = "watch_from", help_heading = "Watching", hide_short_help = true)]
    pub watch_ca: Option<PathBuf>,
    /// Flags for requests and connections.
    #[command(flatten)]
    pub request: RequestArgs,
    /// Generate the load from N processes, or from several hosts with --address, if one process is too slow
    ///
    /// The processes are a fleet: see docs/fleet.md (needs the Python package). If this host has enough CPUs,
    /// --threads 2 --cpus 2-3 is simpler.
    #[arg(long, value_name = "N", conflicts_with = "demo", help_heading = "Engine", hide_short_help = true)]
    pub shards: Option<Count>,
    /// The Ray cluster that runs the shards: auto, HOST:6379 or ray://HOST:10001 [default: this host]
    #[arg(long, value_name = "ADDRESS", requires = "shards", help_heading = "Engine", hide_short_help = true)]
    pub address: Option<String>,
    /// Shards on each node of the cluster [default: 1]
    #[arg(long, value_name = "N", requires = "address", help_heading = "Engine", hide_short_help = true)]
    pub shards_per_node: Option<Count>,
    /// File to write the HTML report to [default: brimful-survey-TIME.html in this directory]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// Append the survey to this file, one line of JSON per survey, for `brimful history`
    #[arg(long, value_name = "FILE", help_heading = "Output", hide_short_help = true)]
    pub record_to: Option<PathBuf>,
    /// Show all loads, demands and intervals; the report and the JSON document always have them
    #[arg(long, help_heading = "Output")]
    pub full: bool,
    /// Flags for the output of results.
    #[command(flatten)]
    pub output: OutputArgs,
}
