//! Every flag, once: clap makes parsing and `--help` of it.

mod values;

use crate::characterize::args::{CharacterizeArgs, FilesetArgs};
use crate::choosers::{self, ChooserArgs};
use crate::exit::UsageError;
use crate::module::args::ModuleArgs;
use crate::plan::args::PlanArgs;
use crate::replay::ReplayArgs;
use crate::sessions::SessionArgs;
use crate::testbed::args::{InsideArgs, TestbedArgs};
use crate::trace::MOST_PRINTED;
use brimful_core::cpus::CpuList;
use brimful_core::tls::{Tls, TlsVersion};
use brimful_core::units::Count;
use brimful_core::workload::{Stage, Workload};
use brimful_core::{Bytes, Nanos, Rate, Slo};
use brimful_engine::{Cidr, Close, Engine};
use brimful_http::Version;
use brimful_monitor::{Duty, GroupName, NetNamespace, ProcessSelector};
use brimful_run::FleetClock;
use brimful_survey::{Change, GUARDIAN};
use brimful_testbed::INSIDE;
use brimful_workload::{Shard, Speed};
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::SystemTime;
pub use values::{Arrivals, Header, IntervalOf, MixList};
use values::{
    arrivals, clock_offset, close, duty, engine, header, http_version, instant, interval, local_address, mix, shard,
    tls_version,
};

/// Tells how much traffic a web server can take, where its time goes, and what it will need next.
#[derive(Debug, Parser)]
#[command(name = "brimful", version, max_term_width = 100)]
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
    /// Put a surveyed server back on its CPUs at the end of stdin, from where it is told of them
    #[command(name = GUARDIAN, hide = true)]
    PutBack,
    /// Be the first process of a test bed's command
    #[command(name = INSIDE, hide = true)]
    Inside(InsideArgs),
}

/// `brimful survey`.
#[derive(Debug, Args)]
pub struct SurveyArgs {
    /// The server, like http://127.0.0.1:8080/index.html
    #[arg(required_unless_present = "demo", conflicts_with = "demo")]
    pub url: Option<String>,
    /// Survey the built-in reference server, whose demands are drawn anew and compared at the end
    #[arg(long)]
    pub demo: bool,
    /// The server's program, with its children: a name, a pid, port:80 or cgroup:PATH (repeatable) [default: who listens on the
    /// port]
    #[arg(long, value_name = "PROGRAM")]
    pub process: Vec<ProcessSelector>,
    /// See the server on another host through `brimful watch --serve` there
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["demo", "process", "server_cpus", "black_box"])]
    pub watch_from: Option<String>,
    /// The token that `brimful watch --serve` has, in a file that nobody else can read [default: the environment's BRIMFUL_TOKEN]
    #[arg(long, value_name = "FILE", requires = "watch_from")]
    pub token_file: Option<PathBuf>,
    /// Connect to it by TLS, and trust the certificates in this file
    #[arg(long, value_name = "FILE", requires = "watch_from")]
    pub watch_ca: Option<PathBuf>,
    /// See nothing of the server but its answers: capacity and response times are then all that is predicted
    #[arg(long, conflicts_with_all = ["demo", "process", "server_cpus"])]
    pub black_box: bool,
    /// Keep the server on these CPUs meanwhile, like 0 or 0,2-3 [default: leave it; --demo: the first]
    #[arg(long, value_name = "LIST")]
    pub server_cpus: Option<CpuList>,
    /// Length of a held-out level of light load; the whole survey takes some 45 times as long
    #[arg(long, value_name = "TIME", default_value = "3s")]
    pub level: Nanos,
    /// Be gentle: load the server by no more than this share of what it can take, on average, like 30%; only levels below it
    /// are measured then
    #[arg(long, value_name = "SHARE", value_parser = crate::plan::args::share)]
    pub max_load: Option<f64>,
    /// Be gentle: let nobody else's call wait longer than about this for ours, like 50ms; only gentle levels are measured
    /// then
    #[arg(long, value_name = "TIME")]
    pub max_delay: Option<Nanos>,
    /// In the end, predict what a change of the server does, make it, measure, and undo it: quota=50% lets the server's
    /// processes use half of its CPUs, by a control group [default: none; --demo: quota=50% where that may be done]
    #[arg(long, value_name = "CHANGE", conflicts_with_all = ["watch_from", "black_box"])]
    pub what_if: Option<Change>,
    /// Where to write the HTML report [default: brimful-survey-TIME.html here]
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// What to request and how.
    #[command(flatten)]
    pub request: RequestArgs,
    /// How results are shown.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `brimful load`.
#[derive(Debug, Args)]
pub struct LoadArgs {
    /// The server, like http://127.0.0.1:8080/index.html
    pub url: String,
    /// Open loop: this many calls per second, whatever the server does
    #[arg(short = 'R', long, value_name = "CALLS/S", allow_hyphen_values = true)]
    pub rate: Option<Rate>,
    /// Closed loop: this many clients, each waiting for its answer before it calls again
    #[arg(long, value_name = "N", conflicts_with_all = ["rate", "arrivals", "stages", "speed"])]
    pub clients: Option<Count>,
    /// Time between an answer and the client's next call
    #[arg(long, value_name = "TIME", default_value = "0s", conflicts_with_all = ["rate", "s_clients", "stages"])]
    pub think: Nanos,
    /// S-Clients: this many connection attempts always under way, one call each, whatever the server does; each is given up after
    /// --connect-timeout
    #[arg(long, value_name = "D", conflicts_with_all = ["rate", "clients", "arrivals", "stages", "speed"])]
    pub s_clients: Option<Count>,
    /// How calls of an open loop are spaced: constant, poisson, uniform:SPREAD (gaps within this share of their mean),
    /// steps:RATE@TIME,… (one rate after another), onoff:A,B[,PERIOD] (for a share B of each PERIOD at A times the mean rate),
    /// mmpp:A,B,TIME (such bursts at random, of this mean length), selfsimilar:H[,pareto] (of this Hurst parameter), trace:FILE
    /// (one instant in seconds per line)
    #[arg(long, value_name = "PROCESS", default_value = "constant", value_parser = arrivals)]
    pub arrivals: Arrivals,
    /// Go to this rate over this time, from the one before it; the first from --rate or 0 (repeatable)
    #[arg(long = "stage", value_name = "TIME:CALLS/S")]
    pub stages: Vec<Stage>,
    /// Begin the calls of an open loop only once in so much time, like 1ms, all that have come due together: cheap at high
    /// rates. Calls are up to that late, and the lateness is reported
    #[arg(long, value_name = "TIME", conflicts_with_all = ["clients", "s_clients"])]
    pub tick: Option<Nanos>,
    /// Divide the gaps of a trace by this, like 2x
    #[arg(long, value_name = "FACTOR")]
    pub speed: Option<Speed>,
    /// Sessions in place of single calls.
    #[command(flatten)]
    pub sessions: SessionArgs,
    /// First find this client's maximum, the highest load of which a server on this host answers no more when two generators
    /// share it; a load beyond it is then invalid. Without a load that is all. Takes some 10 s
    #[arg(long)]
    pub calibrate: bool,
    /// For how long [default: 10s, or until --requests are made]
    #[arg(short, long, value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// At most this many calls
    #[arg(short = 'n', long, value_name = "N")]
    pub requests: Option<Count>,
    /// Make part I of N of this load, as N processes with the same other flags do, here or on other hosts; `brimful merge` makes one
    /// Record of theirs
    #[arg(long, value_name = "I/N", value_parser = shard, requires = "seed")]
    pub shard: Option<Shard>,
    /// Start at this instant, like 2026-03-01T14:00:00Z or seconds since 1970
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub start_at: Option<SystemTime>,
    /// How far this host's clock is ahead of the one by which --start-at is, and to within what that is known, like 1.2ms/300us
    /// or -15us/300us
    #[arg(long, value_name = "TIME/ERROR", value_parser = clock_offset, requires = "start_at", allow_hyphen_values = true)]
    pub clock_ahead: Option<FleetClock>,
    /// Keep the Record of what has been seen so far in this file, once a second, and the whole Record in the end: it outlives this
    /// process, and `brimful merge` takes it
    #[arg(long, value_name = "FILE", requires = "shard")]
    pub keep: Option<PathBuf>,
    /// Stop, as by Ctrl-C, when stdin ends: so does a shard whose starter is no more
    #[arg(long)]
    pub until_stdin_ends: bool,
    /// HTTP method
    #[arg(short, long, default_value = "GET", conflicts_with = "workload")]
    pub method: String,
    /// Request body
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, conflicts_with = "workload")]
    pub data: String,
    /// What is requested besides one URL.
    #[command(flatten)]
    pub choosers: ChooserArgs,
    /// Watch the server on this host meanwhile: its kernel, its port, and the program that listens there
    #[arg(long)]
    pub watch: bool,
    /// Watch this program instead, with its children: a name, a pid, port:80 or cgroup:PATH (repeatable)
    #[arg(long, value_name = "PROGRAM")]
    pub process: Vec<ProcessSelector>,
    /// Use no eBPF to watch, even where it is allowed
    #[arg(long)]
    pub no_ebpf: bool,
    /// Watch the server on another host meanwhile, through `brimful watch --serve` there
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["watch", "process", "no_ebpf"])]
    pub watch_from: Option<String>,
    /// The token that `brimful watch --serve` has, in a file that nobody else can read [default: the environment's BRIMFUL_TOKEN]
    #[arg(long, value_name = "FILE", requires = "watch_from")]
    pub token_file: Option<PathBuf>,
    /// Connect to it by TLS, and trust the certificates in this file
    #[arg(long, value_name = "FILE", requires = "watch_from")]
    pub watch_ca: Option<PathBuf>,
    /// An objective for response times, like 'p99<50ms', 'mean<1s' or 'CLASS:p99.9<200ms': exit 1 where it is missed; a call that
    /// failed is slower than any limit (repeatable)
    #[arg(long, value_name = "OBJECTIVE")]
    pub slo: Vec<Slo>,
    /// What of the calls is shown.
    #[command(flatten)]
    pub look: LookArgs,
    /// What to request and how.
    #[command(flatten)]
    pub request: RequestArgs,
    /// How results are shown.
    #[command(flatten)]
    pub output: OutputArgs,
    /// How much of a Record is shown.
    #[command(flatten)]
    pub detail: DetailArgs,
}

/// What of the calls is shown.
#[derive(Debug, Args)]
pub struct LookArgs {
    /// Print what was sent and received, and when, on stderr: for the first N calls, and for the first failure of each kind
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST_PRINTED))]
    pub print: Option<u64>,
    /// Write the same for every call to this file, one line of JSON each; its disk has to keep up with the load
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

/// `brimful merge`.
#[derive(Debug, Args)]
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
    /// How results are shown.
    #[command(flatten)]
    pub output: OutputArgs,
    /// How much of a Record is shown.
    #[command(flatten)]
    pub detail: DetailArgs,
}

/// What `survey` and `load` have in common.
#[derive(Debug, Args)]
pub struct RequestArgs {
    /// Request classes and their mix, from a TOML file; the URL then gives host and port only
    #[arg(long, value_name = "FILE")]
    pub workload: Option<PathBuf>,
    /// Other shares for the workload's classes, like light=0.7,heavy=0.3
    #[arg(long, value_name = "CLASS=SHARE,…", requires = "workload", value_parser = mix)]
    pub mix: Option<MixList>,
    /// Extra header field, like 'Accept: text/html' (repeatable)
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header)]
    pub headers: Vec<Header>,
    /// Header field whose value is stored and shown as •••, as those of Authorization, Proxy-Authorization, Cookie, X-Api-Key and
    /// X-Auth-Token are (repeatable)
    #[arg(long = "secret-header", value_name = "NAME")]
    pub secret_headers: Vec<String>,
    /// HTTP version
    #[arg(long, default_value = "1.1", value_parser = http_version())]
    pub http: Version,
    /// Take any certificate of an https:// server, and check neither it nor who has its key
    #[arg(long, conflicts_with = "ca")]
    pub insecure: bool,
    /// Trust the certificates in this PEM file, in place of this host's store
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Show this client's certificate to a server that asks for one: a PEM file, with the certificates that lead to its authority
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// That certificate's private key, a PEM file
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Resume TLS sessions: a new connection uses a ticket of an earlier one, as a browser's do [default: every handshake is a full
    /// one]
    #[arg(long)]
    pub tls_resume: bool,
    /// The oldest version of TLS to speak
    #[arg(long, value_name = "VERSION", value_parser = tls_version())]
    pub tls_min: Option<TlsVersion>,
    /// Ask for the server by this name, and expect it in its certificate [default: the URL's host]
    #[arg(long, value_name = "NAME")]
    pub sni: Option<String>,
    /// A new connection for every call [default: keep connections alive]
    #[arg(long, conflicts_with = "calls_per_connection")]
    pub new_connection: bool,
    /// Close a connection after this many calls
    #[arg(long, value_name = "N")]
    pub calls_per_connection: Option<Count>,
    /// Have up to this many calls under way on one connection: one behind the other, or on as many streams of HTTP/2, of
    /// which the server may allow fewer
    #[arg(long, value_name = "N", default_value = "1", visible_alias = "streams")]
    pub pipeline: Count,
    /// Who closes a connection after its last call
    #[arg(long, default_value = "server", value_parser = close())]
    pub close: Close,
    /// Give up a connection attempt after this time, and free its port [default: 3s; for clients of a closed loop the kernel's own
    /// time, as it tries again by itself]
    #[arg(long, value_name = "TIME")]
    pub connect_timeout: Option<Nanos>,
    /// Give up a call when its answer is not whole this long after it was sent
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub timeout: Nanos,
    /// Connect from these addresses of this host in turn, like 127.0.0.0/28: each has ports of its own
    #[arg(long, value_name = "CIDR")]
    pub source_ip: Option<Cidr>,
    /// Send buffer of each socket (SO_SNDBUF) [default: the kernel's]
    #[arg(long, value_name = "SIZE")]
    pub send_buffer: Option<Bytes>,
    /// Receive buffer of each socket (SO_RCVBUF) [default: the kernel's]
    #[arg(long, value_name = "SIZE")]
    pub receive_buffer: Option<Bytes>,
    /// How sockets are driven
    #[arg(long, default_value = "auto", value_parser = engine())]
    pub engine: Engine,
    /// Threads of the generator [default: one per CPU of --cpus, else 1]
    #[arg(short, long, value_name = "N")]
    pub threads: Option<Count>,
    /// CPUs for the generator, like 1 or 2-3 [default: any; survey --demo: the second]
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// Seed of all randomness [default: from the clock, and recorded]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// How results are shown.
#[derive(Debug, Args)]
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
    #[arg(long)]
    pub full: bool,
}

/// `brimful watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Watch this TCP port: its listening sockets and its connections (repeatable)
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Vec<u16>,
    /// Watch this program, with its children: a name, a pid, port:80, cgroup:PATH or a systemd unit (repeatable) [default: who
    /// listens on --port]
    #[arg(long, value_name = "PROGRAM")]
    pub process: Vec<ProcessSelector>,
    /// Read this file of a Server Module, whoever writes it (repeatable) [default: those of the watched programs]
    #[arg(long, value_name = "FILE")]
    pub module: Vec<PathBuf>,
    /// Groups of figures to read: kernel, process, network, connections, module, requests [default: all but requests]
    #[arg(long, value_name = "GROUP,…", value_delimiter = ',')]
    pub groups: Vec<GroupName>,
    /// Measure requests at the sockets of --port, whatever server it is: how long they wait for it and how long it takes. Costs
    /// the server some 1 % of its throughput, by tracepoints attached for a SHARE of the time [default: 20%]
    #[arg(long, value_name = "SHARE", value_parser = duty, num_args = 0..=1, require_equals = true, default_missing_value = "20%")]
    pub requests: Option<Duty>,
    /// How often, like 1s; of one group, like process=5s (repeatable) [default: 1s]
    #[arg(long, value_name = "[GROUP=]TIME", value_parser = interval, value_delimiter = ',')]
    pub interval: Vec<IntervalOf>,
    /// End after this time [default: at Ctrl-C]
    #[arg(short, long, value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// End after this many intervals
    #[arg(short = 'n', long, value_name = "N")]
    pub count: Option<Count>,
    /// Watch for one interval, then show every figure
    #[arg(long, conflicts_with_all = ["duration", "count"])]
    pub once: bool,
    /// Append each group's figures to a file of its own in this directory, one line of JSON for each interval
    #[arg(long, value_name = "DIR")]
    pub log: Option<PathBuf>,
    /// Let Prometheus fetch /metrics from this address, like 9477 (from this host only) or 0.0.0.0:9477
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = local_address)]
    pub prometheus: Option<SocketAddr>,
    /// Let `brimful load --watch-from` on other hosts take samples here, at an address like 7411 (for an SSH tunnel to this host) or,
    /// with TLS, 0.0.0.0:7411
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = local_address, conflicts_with = "once")]
    pub serve: Option<SocketAddr>,
    /// The token that they have to have, in a file that nobody else can read [default: the environment's BRIMFUL_TOKEN, or a new
    /// one, which is said]
    #[arg(long, value_name = "FILE", requires = "serve")]
    pub token_file: Option<PathBuf>,
    /// Serve by TLS, with the certificate in this file
    #[arg(long, value_name = "FILE", requires_all = ["serve", "tls_key"])]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's private key, in a file that nobody else can read
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Look at these CPUs only, like 0 or 0,2-3
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// Network namespace of network and ports: a name of `ip netns`, or the pid of a process in it [default: the server's]
    #[arg(long, value_name = "NAME|PID")]
    pub netns: Option<NetNamespace>,
    /// Use no eBPF, even where it is allowed
    #[arg(long)]
    pub no_ebpf: bool,
    /// Print the `server` object of a Record as JSON at the end, and nothing else
    #[arg(long)]
    pub json: bool,
    /// Print what was seen as the tables of WebMonitor's results (1997) have it, at the end, and nothing else
    #[arg(long, conflicts_with_all = ["json", "once"])]
    pub paper_tables: bool,
    /// Write that object to a file as well; - is stdout, and stderr has the rest then
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Show nothing until the end
    #[arg(short, long)]
    pub quiet: bool,
}

/// `brimful target`.
#[derive(Debug, Args)]
pub struct TargetArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub listen: std::net::SocketAddr,
    /// Request classes, each NAME=STEPS or NAME=STEPS/SIZE, served at /NAME; the first also at /. STEPS is a CPU time,
    /// or several of these joined by +: a CPU time, work:TIME (a fixed amount of memory access, arithmetic and system
    /// calls that took TIME at the start), lock:TIME (CPU time under a lock that all requests share), sleep:TIME,
    /// read:SIZE (from a file, past the page cache) [default: light=200us,heavy=2ms/16KiB, unless there is --work]
    #[arg(long, value_name = "CLASSES")]
    pub service: Option<String>,
    /// Request classes made of fixed work: as --service, but a time alone means work:TIME, and cpu:TIME is CPU time.
    /// With --service, these classes follow those
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
    /// Requests that may be served at once, as by PHP-FPM's processes or a pool of connections to a database; the
    /// others wait, each with its worker [default: as many as there are workers]
    #[arg(long, value_name = "N")]
    pub pool: Option<Count>,
    /// Requests served a second; those above are answered 429, as by a gateway that limits its clients [default: all]
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

/// `brimful doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,
}

impl RequestArgs {
    /// The workload of `--workload` and `--mix`, if there is one.
    pub fn workload(&self) -> anyhow::Result<Option<Workload>> {
        let Some(path) = &self.workload else { return Ok(None) };
        let usage = |message: String| UsageError(format!("{}: {message}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| usage(error.to_string()))?;
        let mut workload: Workload = toml::from_str(&text).map_err(|error| usage(error.to_string()))?;
        choosers::read(&mut workload).map_err(|error| usage(error.to_string()))?;
        if let Some(MixList(mix)) = &self.mix {
            workload.set_mix(mix).map_err(|error| UsageError(format!("--mix: {error}")))?;
        }
        Ok(Some(workload))
    }

    /// How TLS is asked for: by the workload, unless flags say otherwise.
    pub fn tls(&self, workload: Option<&Tls>) -> Tls {
        let said = workload.cloned().unwrap_or_default();
        Tls {
            resume: said.resume || self.tls_resume,
            minimum: self.tls_min.unwrap_or(said.minimum),
            sni: self.sni.clone().or(said.sni),
            insecure: said.insecure && self.ca.is_none() || self.insecure,
        }
    }

    /// The first flag that only https:// URLs have a use for, if one was given.
    pub fn tls_flag(&self) -> Option<&'static str> {
        let flags = [
            ("--insecure", self.insecure),
            ("--ca", self.ca.is_some()),
            ("--cert", self.cert.is_some()),
            ("--tls-resume", self.tls_resume),
            ("--tls-min", self.tls_min.is_some()),
            ("--sni", self.sni.is_some()),
        ];
        flags.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }

    /// The CPUs of the generator.
    pub fn cpus(&self) -> Vec<usize> {
        self.cpus.as_ref().map(|list| list.0.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_flags_are_consistent() {
        Cli::command().debug_assert();
    }
}
