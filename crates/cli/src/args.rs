//! Every flag, once: clap makes parsing and `--help` of it.

pub mod examples;
pub mod given;
mod habits;
mod help;
mod load;
mod request;
mod values;
mod watch;

use crate::characterize::args::{CharacterizeArgs, FilesetArgs};
use crate::hdr::HdrArgs;
use crate::module::args::ModuleArgs;
use crate::plan::args::PlanArgs;
use crate::replay::ReplayArgs;
use crate::testbed::args::{InsideArgs, TestbedArgs};
use brimful_core::cpus::CpuList;
use brimful_core::units::Count;
use brimful_core::{Nanos, Slo};
use brimful_monitor::ProcessSelector;
use brimful_survey::{Change, GUARDIAN_COMMAND};
use brimful_testbed::INIT_COMMAND;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
pub use help::{Flags, command, parse};
pub use load::{LoadArgs, LookArgs, WatchedArgs};
pub use request::RequestArgs;
use std::ffi::OsString;
use std::path::PathBuf;
use values::max_connections;
pub use values::{Arrivals, IntervalOf, MaxConnections};
pub use watch::WatchArgs;

/// Tells how much traffic a web server can take, where its time goes, and what it will need next.
#[derive(Debug, Parser)]
#[command(name = "brimful", version, max_term_width = 120, after_help = examples::BRIMFUL)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find out what a server can take: calibrate, predict, measure, report
    Survey(Box<SurveyArgs>),
    /// Generate one load and report it
    Load(Box<LoadArgs>),
    /// Do what httperf does, by its own options and with its own report: see `brimful httperf --help`
    Httperf,
    /// Make one Record of those of the shards of a load
    Merge(Box<MergeArgs>),
    /// Drive a server with what its access logs say was asked for, at the times that they say
    Replay(Box<ReplayArgs>),
    /// Watch a server: its programs, its port, the network and the machine
    Watch(Box<WatchArgs>),
    /// Let nginx or Apache say where a request's time goes inside it
    Module(ModuleArgs),
    /// Find out from access logs what a site's traffic is like, and the load that has it
    Characterize(Box<CharacterizeArgs>),
    /// Make the files that the requests of a Workload ask for
    Fileset(FilesetArgs),
    /// Make one load from many machines or processes: see `brimful fleet --help` (needs the Python package)
    #[command(disable_help_flag = true)]
    Fleet {
        /// Passed on
        #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Plan by a queueing model: solve it, change it, calibrate it, forecast
    Plan(Box<PlanArgs>),
    /// Run the reference server, whose service demands are known
    Target(Box<TargetArgs>),
    /// Run a command among a server and clients on this machine, with delay, loss and rate between them
    Testbed(Box<TestbedArgs>),
    /// Show what this host allows, and the command that mends each shortfall
    Doctor(DoctorArgs),
    /// Write what a shell needs to complete commands and flags to stdout
    Completions(CompletionsArgs),
    /// Write man pages of all commands
    Man(ManArgs),
    /// Put a surveyed server back on its CPUs at the end of stdin, from where it is told of them
    #[command(name = GUARDIAN_COMMAND, hide = true)]
    PutBack,
    /// Be the first process of a test bed's command
    #[command(name = INIT_COMMAND, hide = true)]
    Inside(InsideArgs),
}

/// `brimful survey`.
#[derive(Debug, Args)]
#[command(after_help = examples::SURVEY, next_help_heading = "Survey")]
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
    #[arg(long, value_name = "SHARE", value_parser = crate::plan::args::share)]
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

/// `brimful merge`.
#[derive(Debug, Args)]
#[command(after_help = examples::MERGE)]
pub struct MergeArgs {
    /// Records that `brimful load --shard I/N` wrote by --out or --keep, one of each shard; - is stdin
    #[arg(value_name = "RECORD", required = true)]
    pub records: Vec<PathBuf>,
    /// Shard I was lost before it had seen anything, and has no Record: its share of the load was missing (repeatable)
    #[arg(long, value_name = "I")]
    pub lost: Vec<u64>,
    /// An objective for the response times of the whole load, as --slo of `brimful load` (repeatable)
    #[arg(long, value_name = "OBJECTIVE")]
    pub slo: Vec<Slo>,
    /// Histograms for other tools.
    #[command(flatten)]
    pub hdr: HdrArgs,
    /// How results are shown.
    #[command(flatten)]
    pub output: OutputArgs,
    /// How much of a Record is shown.
    #[command(flatten)]
    pub detail: DetailArgs,
}

/// How results are shown.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Print the whole document as JSON, and nothing else
    #[arg(long)]
    pub json: bool,
    /// Write the JSON document to a file as well; - is stdout, and stderr has the rest then
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// No progress on stderr
    #[arg(short, long)]
    pub quiet: bool,
}

/// How much of a Record is shown to people.
#[derive(Clone, Copy, Debug, Args)]
pub struct DetailArgs {
    /// Show every figure: httperf's groups, and all times side by side
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    pub full: bool,
}

/// `brimful target`.
#[derive(Debug, Args)]
#[command(after_help = examples::TARGET)]
pub struct TargetArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub listen: std::net::SocketAddr,
    /// Request classes, NAME=STEPS[/SIZE],…, each served at /NAME, like light=200us,heavy=2ms/16KiB
    ///
    /// The first is served at / as well. STEPS is a CPU time,
    /// or several of these joined by +: a CPU time, work:TIME (a fixed amount of memory access, arithmetic and system
    /// calls that took TIME at the start), lock:TIME (CPU time under a lock that all requests share), sleep:TIME,
    /// read:SIZE (from a file, past the page cache) [default: light=200us,heavy=2ms/16KiB, unless there is --work]
    #[arg(long, value_name = "CLASSES")]
    pub service: Option<String>,
    /// Request classes made of fixed work
    ///
    /// As --service, but a time alone means work:TIME, and cpu:TIME is CPU time. With --service, these classes follow
    /// those.
    #[arg(long, value_name = "CLASSES")]
    pub work: Option<String>,
    /// Distribution of the times of a class's steps about what was asked for
    #[arg(long, value_name = "NAME", default_value = "deterministic")]
    pub distribution: String,
    /// Worker threads
    #[arg(long, value_name = "N", default_value = "1")]
    pub workers: Count,
    /// Length of the listen queue
    #[arg(long, value_name = "N", default_value = "511")]
    pub backlog: Count,
    /// Requests that may be served at once; the others wait [default: as many as there are workers]
    ///
    /// As by PHP-FPM's processes or a pool of connections to a database. Each waits with its worker.
    #[arg(long, value_name = "N")]
    pub pool: Option<Count>,
    /// Requests served a second; those above are answered 429 [default: all]
    ///
    /// As by a gateway that limits its clients.
    #[arg(long, value_name = "N")]
    pub rate_limit: Option<Count>,
    /// Directory of the file that read steps read: 67 MB, gone at the end [default: TMPDIR or /var/tmp]
    #[arg(long, value_name = "DIR")]
    pub read_dir: Option<PathBuf>,
    /// CPUs to keep the workers on, in turn
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// Seed of random demands
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// End when the process that started this one ends
    #[arg(long, hide = true)]
    pub with_parent: bool,
}

/// `brimful completions`.
#[derive(Debug, Args)]
#[command(after_help = examples::COMPLETIONS)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// `brimful man`.
#[derive(Debug, Args)]
#[command(after_help = examples::MAN)]
pub struct ManArgs {
    /// Where to write them: brimful.1, brimful-load.1, …
    pub dir: PathBuf,
}

/// `brimful doctor`.
#[derive(Debug, Args)]
#[command(after_help = examples::DOCTOR, next_help_heading = "Output")]
pub struct DoctorArgs {
    /// Only these, like descriptors or io_uring [default: all]
    #[arg(value_name = "TOPIC", help_heading = None, value_parser = crate::doctor::topic)]
    pub topics: Vec<String>,
    /// Print one shell script that mends every shortfall that a command can mend
    #[arg(long, conflicts_with = "json")]
    pub script: bool,
    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,
}
