//! The flags of `brimful survey`.

use crate::flags::values::{MaxConnections, max_connections, share};
use crate::flags::{OutputArgs, RequestArgs};
use brimful_core::Nanos;
use brimful_core::cpus::CpuList;
use brimful_core::units::Count;
use brimful_monitor::ProcessSelector;
use brimful_survey::Change;
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  $ brimful survey --demo
  $ brimful survey http://127.0.0.1:8080/ --cpus 1 --server-cpus 0
  $ brimful survey http://shop.example/ --watch-from shop.example:7411 --max-load 30%";

/// `brimful survey`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, next_help_heading = "Survey")]
pub struct SurveyArgs {
    /// The server, like http://127.0.0.1:8080/index.html
    #[arg(required_unless_present = "demo", conflicts_with = "demo", help_heading = None)]
    pub url: Option<String>,
    /// Survey the built-in reference server, whose demands are drawn anew and compared at the end
    #[arg(long)]
    pub demo: bool,
    /// Length of a held-out level of light load; how long the whole takes is said at the start
    #[arg(long, value_name = "TIME", default_value = "3s")]
    pub level: Nanos,
    /// Be gentle: load the server by no more than this share of its capacity on average, like 30%
    ///
    /// Only levels below it are measured then.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub max_load: Option<f64>,
    /// Be gentle: let nobody else's call wait longer than about this for ours, like 50ms
    ///
    /// Only gentle levels are measured then.
    #[arg(long, value_name = "TIME")]
    pub max_delay: Option<Nanos>,
    /// Open levels: at most N connections, or unlimited [default: 32 per CPU of the server]
    ///
    /// Never more than the server serves at a time, and more where its answers take long. Calls that find all of them taken
    /// wait for one. Unlimited opens a connection more for each such call, as a crowd of users does.
    #[arg(long, value_name = "N", value_parser = max_connections, help_heading = "Connections")]
    #[arg(hide_short_help = true)]
    pub max_connections: Option<MaxConnections>,
    /// In the end predict what a change does, make it, measure, and undo it, like quota=50%
    ///
    /// quota=50% lets the server's processes use half of its CPUs, by a control group. By default there is none; with --demo it
    /// is quota=50% where that may be done.
    #[arg(long, value_name = "CHANGE", conflicts_with_all = ["watch_from", "black_box"])]
    pub what_if: Option<Change>,
    /// The server's program, with its children (repeatable) [default: who listens on the port]
    ///
    /// A name, a pid, port:80 or cgroup:PATH.
    #[arg(long, value_name = "PROGRAM", help_heading = "Watching")]
    pub process: Vec<ProcessSelector>,
    /// Keep the server on these CPUs meanwhile, like 0-1 [default: leave it; --demo: the first]
    #[arg(long, value_name = "LIST", help_heading = "Watching")]
    pub server_cpus: Option<CpuList>,
    /// See nothing of the server but its answers: only capacity and response times are predicted
    #[arg(long, conflicts_with_all = ["demo", "process", "server_cpus"], help_heading = "Watching")]
    pub black_box: bool,
    /// See the server on another host through `brimful watch --serve` there
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["demo", "process", "server_cpus", "black_box"])]
    #[arg(help_heading = "Watching")]
    pub watch_from: Option<String>,
    /// Its token, in a file that nobody else can read [default: environment's BRIMFUL_TOKEN]
    #[arg(long, value_name = "FILE", requires = "watch_from", help_heading = "Watching", hide_short_help = true)]
    pub token_file: Option<PathBuf>,
    /// Connect to it by TLS, and trust the certificates in this file
    #[arg(long, value_name = "FILE", requires = "watch_from", help_heading = "Watching", hide_short_help = true)]
    pub watch_ca: Option<PathBuf>,
    /// What to request and how.
    #[command(flatten)]
    pub request: RequestArgs,
    /// Load the server from so many processes, or hosts with --address, when one is too slow
    ///
    /// They are a fleet's: see docs/fleet.md (needs the Python package). --threads 2 --cpus 2-3 is enough where the CPUs of
    /// this host are.
    #[arg(long, value_name = "N", conflicts_with = "demo", help_heading = "Engine", hide_short_help = true)]
    pub shards: Option<Count>,
    /// The Ray cluster to run them on: auto, HOST:6379 or ray://HOST:10001 [default: this host]
    #[arg(long, value_name = "ADDRESS", requires = "shards", help_heading = "Engine", hide_short_help = true)]
    pub address: Option<String>,
    /// So many of them on each node of the cluster [default: 1]
    #[arg(long, value_name = "N", requires = "address", help_heading = "Engine", hide_short_help = true)]
    pub shards_per_node: Option<Count>,
    /// Where to write the HTML report [default: brimful-survey-TIME.html here]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// How results are shown.
    #[command(flatten)]
    pub output: OutputArgs,
}
