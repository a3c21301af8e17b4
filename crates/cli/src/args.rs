//! Every flag, once: clap makes parsing and `--help` of it.

use crate::characterize::args::{CharacterizeArgs, FilesetArgs};
use crate::choosers::{self, ChooserArgs};
use crate::exit::UsageError;
use crate::module::args::ModuleArgs;
use crate::plan::args::PlanArgs;
use crate::replay::ReplayArgs;
use crate::sessions::SessionArgs;
use crate::trace::MOST_PRINTED;
use brimful_core::cpus::CpuList;
use brimful_core::tls::{Tls, TlsVersion};
use brimful_core::units::{Count, ParseUnitError};
use brimful_core::workload::{Stage, Workload};
use brimful_core::{Bytes, Nanos, Rate, Slo};
use brimful_engine::{Cidr, Close, Engine};
use brimful_http::Version;
use brimful_monitor::{Duty, GroupName, Intervals, NetNamespace, ProcessSelector};
use brimful_survey::{Change, GUARDIAN};
use brimful_workload::{ArrivalsError, Process, Shard, Speed};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use jiff::Timestamp;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

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
    /// Plan by a queueing model: solve it, change it, calibrate it, forecast
    Plan(Box<PlanArgs>),
    /// Run the reference server, whose service demands are known
    Target(Box<TargetArgs>),
    /// Show what this host allows, and the command that mends each shortfall
    Doctor(DoctorArgs),
    /// Put a surveyed server back on its CPUs at the end of stdin, from where it is told of them
    #[command(name = GUARDIAN, hide = true)]
    PutBack,
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
    /// Records that `brimful load --shard I/N --out FILE` wrote, one of each shard; - is stdin
    #[arg(value_name = "RECORD", required = true)]
    pub records: Vec<PathBuf>,
    /// How results are shown.
    #[command(flatten)]
    pub output: OutputArgs,
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

/// When calls of an open loop are due.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// Of a process with a mean rate.
    Process(Process),
    /// At the instants in this file.
    Trace(PathBuf),
}

/// How often one group is read, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalOf(pub Option<GroupName>, pub Nanos);

/// A field of every request's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub name: String,
    pub value: String,
    /// As it stands in the command line.
    pub written: String,
}

/// Shares of classes.
#[derive(Clone, Debug, PartialEq)]
pub struct MixList(pub Vec<(String, f64)>);

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

/// HTTP versions.
fn http_version() -> impl TypedValueParser<Value = Version> {
    one_of([
        ("1.0", "HTTP/1.0", Version::Http10),
        ("1.1", "HTTP/1.1", Version::Http11),
        ("2", "HTTP/2: agreed on by TLS (ALPN) or, for http:// URLs, by prior knowledge", Version::Http2),
    ])
}

/// Versions of TLS.
fn tls_version() -> impl TypedValueParser<Value = TlsVersion> {
    one_of([("1.2", "TLS 1.2 or 1.3", TlsVersion::V12), ("1.3", "TLS 1.3", TlsVersion::V13)])
}

/// Who closes.
fn close() -> impl TypedValueParser<Value = Close> {
    one_of([
        ("server", "The server, asked by `Connection: close`; it keeps the TIME_WAIT", Close::Server),
        ("fin", "This side, by FIN", Close::Fin),
        ("rst", "This side, by RST; cheap, and the server sees an error", Close::Rst),
    ])
}

/// I/O engines.
fn engine() -> impl TypedValueParser<Value = Engine> {
    one_of([
        ("auto", "io_uring where it may be used, else epoll", Engine::Auto),
        ("uring", "io_uring", Engine::Uring),
        ("epoll", "epoll", Engine::Epoll),
    ])
}

/// One of several values, each with its name and what it means.
fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    values: [(&'static str, &'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let names = values.map(|(name, help, _)| PossibleValue::new(name).help(help));
    let value = move |given: String| values.iter().find(|(name, ..)| *name == given).map(|(.., value)| *value);
    PossibleValuesParser::new(names).try_map(move |given| value(given).ok_or("there is no such value"))
}

/// Reads `1/4`.
fn shard(text: &str) -> Result<Shard, String> {
    let numbers = text.split_once('/').and_then(|(i, n)| Some((i.parse::<u64>().ok()?, n.parse::<u64>().ok()?)));
    match numbers {
        Some((i, n)) if (1..=n).contains(&i) && n <= 1 << 20 => Ok(Shard { index: i - 1, count: n }),
        _ => Err(format!("`{text}` is no part of a load: write it like 1/4, up to 4/4")),
    }
}

/// Reads RFC 3339, with any offset, and seconds since 1970.
fn instant(text: &str) -> Result<SystemTime, String> {
    let since_1970 = || SystemTime::UNIX_EPOCH.checked_add(Duration::try_from_secs_f64(text.parse().ok()?).ok()?);
    let at = text.parse::<Timestamp>().ok().map(SystemTime::from).or_else(since_1970);
    at.ok_or_else(|| format!("`{text}` is no instant: write it like 2026-03-01T14:00:00Z or 1772373600.5"))
}

fn arrivals(text: &str) -> Result<Arrivals, ArrivalsError> {
    match text.strip_prefix("trace:") {
        Some(file) => Ok(Arrivals::Trace(file.into())),
        None => text.parse().map(Arrivals::Process),
    }
}

/// Reads `1s` and `process=5s`.
fn interval(text: &str) -> Result<IntervalOf, String> {
    let (group, time) = match text.split_once('=') {
        Some((group, time)) => (Some(group.parse()?), time),
        None => (None, text),
    };
    let interval: Nanos = time.parse().map_err(|error: ParseUnitError| error.to_string())?;
    match Intervals::every(interval).shortest() == Some(interval) {
        true => Ok(IntervalOf(group, interval)),
        false => Err(format!("an interval of {interval} cannot be kept: choose one from 10ms to 1h")),
    }
}

/// Reads `20%` and `0.2`.
fn duty(text: &str) -> Result<Duty, String> {
    let share = crate::plan::args::share(text)?;
    Duty::of_share(share).ok_or_else(|| format!("`{text}` is less than 0.1%: choose a larger share"))
}

/// Reads `9477`, `:9477` and `0.0.0.0:9477`; without an address only this host is served.
fn local_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text).parse();
    let address = port.map(|port| SocketAddr::from(([127, 0, 0, 1], port))).or_else(|_| text.parse());
    address.map_err(|_| format!("`{text}` is no address: write it like 9477, 127.0.0.1:9477 or [::1]:9477"))
}

fn mix(text: &str) -> Result<MixList, String> {
    let share = |item: &str| {
        let (name, share) = item.split_once('=')?;
        Some((name.trim().to_owned(), share.trim().parse().ok()?))
    };
    let shares: Option<Vec<_>> = text.split(',').map(share).collect();
    shares.map(MixList).ok_or_else(|| format!("`{text}` is not a mix: write it like light=0.7,heavy=0.3"))
}

fn header(text: &str) -> Result<Header, String> {
    let (name, value) =
        text.split_once(':').ok_or_else(|| format!("`{text}` is not a header: write it like 'Accept: text/html'"))?;
    Ok(Header { name: name.trim().to_owned(), value: value.trim().to_owned(), written: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_flags_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn parts_and_instants() {
        assert_eq!(shard("2/4"), Ok(Shard { index: 1, count: 4 }));
        for text in ["", "1", "0/2", "3/2", "1/0", "-1/2", "a/b", "1/2/3", "1/99999999"] {
            assert!(shard(text).is_err(), "{text}");
        }
        let at = |seconds: f64| Ok(SystemTime::UNIX_EPOCH + Duration::from_secs_f64(seconds));
        assert_eq!(instant("1772373600.5"), at(1_772_373_600.5));
        assert_eq!(instant("2026-03-01T14:00:00.5Z"), at(1_772_373_600.5));
        assert_eq!(instant("2026-03-01T15:00:00+01:00"), at(1_772_373_600.0));
        for text in ["", "now", "2026-03-01", "2026-03-01T14:00:00", "-1", "NaN", "inf", "1e300"] {
            assert!(instant(text).is_err(), "{text}");
        }
    }

    #[test]
    fn mixes_and_headers() {
        assert_eq!(mix("a=1, b=0.5"), Ok(MixList(vec![("a".to_owned(), 1.0), ("b".to_owned(), 0.5)])));
        assert!(mix("a").is_err() && mix("a=x").is_err());
        let field = Header { name: "A".to_owned(), value: "b: c".to_owned(), written: "A: b: c".to_owned() };
        assert_eq!(header("A: b: c"), Ok(field));
        assert!(header("A").is_err());
    }

    #[test]
    fn intervals_and_addresses() {
        assert_eq!(interval("500ms"), Ok(IntervalOf(None, Nanos::from_millis(500))));
        assert_eq!(interval("process=5s"), Ok(IntervalOf(Some(GroupName::Process), Nanos::from_secs(5))));
        for (text, message) in
            [("0s", "10ms"), ("2h", "1h"), ("disk=1s", "kernel, process"), ("process=", "duration"), ("5", "500ms")]
        {
            assert!(interval(text).unwrap_err().contains(message), "{text}");
        }
        for (text, address) in [
            ("9477", "127.0.0.1:9477"),
            (":9477", "127.0.0.1:9477"),
            ("0.0.0.0:9477", "0.0.0.0:9477"),
            ("[::1]:9477", "[::1]:9477"),
        ] {
            assert_eq!(local_address(text), Ok(address.parse().unwrap()));
        }
        assert!(local_address("localhost").is_err() && local_address("70000").is_err());
    }
}
