//! The flags of `brimful load`.

use super::choosers::ChooserArgs;
use super::sessions::SessionArgs;
use crate::flags::values::{
    Arrivals, MaxConnections, arrivals, clock_offset, instant, max_connections, method, shard, time,
};
use crate::flags::{DetailArgs, HdrArgs, OutputArgs, RequestArgs};
use brimful_core::units::Count;
use brimful_core::workload::{Class, Stage};
use brimful_core::{Nanos, Rate, Slo};
use brimful_monitor::ProcessSelector;
use brimful_run::FleetClock;
use brimful_workload::{Shard, Speed};
use clap::Args;
use std::path::PathBuf;
use std::time::SystemTime;

/// Upper bound of `--print`: printed calls are kept in memory.
const MAX_PRINTED_CALLS: u64 = 10_000;

const EXAMPLES: &str = "\
Examples:
  $ brimful load http://127.0.0.1:8080/ --rate 1000 -d 30s --slo 'p99<50ms'   # open loop
  $ brimful load http://127.0.0.1:8080/ -c 64 -t 2 -d 30s                     # closed loop, as wrk and oha have it
  $ brimful load http://127.0.0.1:8080/ --stage 30s:100 --stage 1m:100        # ramps, as k6 has them
  $ brimful load http://127.0.0.1:8080/a --rate 50 -X POST -b @order.json -H 'Content-Type: application/json' --watch";

/// `brimful load`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, next_help_heading = "Load")]
pub struct LoadArgs {
    /// The server, like http://127.0.0.1:8080/index.html
    #[arg(help_heading = None)]
    pub url: String,
    /// Open loop: this many calls per second, whatever the server does
    ///
    /// Connections are opened as they are needed, and a call is timed from when it was due.
    #[arg(short = 'R', long, value_name = "CALLS/S", allow_hyphen_values = true, aliases = ["rps", "qps"])]
    pub rate: Option<Rate>,
    /// Closed loop: this many clients, each waiting for its answer before its next call
    ///
    /// Where nothing says how calls come, there are 10 of them. One that cannot connect tries again after 10 ms, then 20 ms
    /// and so on up to a second. Each holds a connection: what the descriptor limit cannot hold is refused at the start.
    #[arg(short, long, value_name = "N", conflicts_with_all = ["rate", "arrivals", "stages", "speed"])]
    #[arg(aliases = ["connections", "vus"])]
    pub clients: Option<Count>,
    /// For how long, like 30s or 30 [default: 10s, or until --requests are made]
    #[arg(short, long, value_name = "TIME", value_parser = time, short_alias = 'z')]
    pub duration: Option<Nanos>,
    /// At most this many calls
    #[arg(short = 'n', long, value_name = "N", alias = "iterations")]
    pub requests: Option<Count>,
    /// Time between an answer and the client's next call [default: 0s]
    #[arg(long, value_name = "TIME", default_value = "0s", hide_default_value = true)]
    #[arg(conflicts_with_all = ["rate", "s_clients", "stages"])]
    pub think: Nanos,
    /// Spacing of an open loop's calls: poisson, onoff:…, trace:FILE, …
    ///
    /// constant; poisson; uniform:SPREAD (gaps within this share of their mean); steps:RATE@TIME,… (one rate after another);
    /// onoff:A,B[,PERIOD] (for a share B of each PERIOD at A times the mean rate); mmpp:A,B,TIME (such bursts at random, of
    /// this mean length); selfsimilar:H[,pareto] (of this Hurst parameter); trace:FILE (one instant in seconds per line)
    #[arg(long, value_name = "PROCESS", default_value = "constant", value_parser = arrivals)]
    pub arrivals: Arrivals,
    /// Go to this rate over this time, from the one before it (repeatable)
    ///
    /// The first begins at --rate, or at 0.
    #[arg(long = "stage", value_name = "TIME:CALLS/S")]
    pub stages: Vec<Stage>,
    /// An objective, like 'p99<50ms' or 'CLASS:mean<1s': exit code 1 if missed (repeatable)
    ///
    /// A call that failed, or was answered 5xx or 429, counts as slower than any limit; --expect-status says which
    /// statuses are expected instead.
    #[arg(long, value_name = "OBJECTIVE")]
    pub slo: Vec<Slo>,
    /// S-Clients: this many connection attempts always under way, one call each
    ///
    /// Whatever the server does; each is given up after --connect-timeout (Banga & Druschel 1997).
    #[arg(long, value_name = "D", conflicts_with_all = ["rate", "clients", "arrivals", "stages", "speed"])]
    #[arg(hide_short_help = true)]
    pub s_clients: Option<Count>,
    /// Divide the gaps of a trace by this, like 2x
    #[arg(long, value_name = "FACTOR", hide_short_help = true)]
    pub speed: Option<Speed>,
    /// Begin calls only once per TIME, like 1ms: cheap at high rates, and a little late
    ///
    /// All that have come due meanwhile are begun together. Open loops only; calls are up to that late, and the lateness is reported.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["clients", "s_clients"], hide_short_help = true)]
    pub tick: Option<Nanos>,
    /// First find the load at which this client is the limit itself (some 10 s)
    ///
    /// The highest load of which a server on this host answers no more when two generators share it; a load beyond it is then
    /// invalid. Without a load that is all.
    #[arg(long, hide_short_help = true)]
    pub calibrate: bool,
    /// Taken as wrk has it: the distribution of response times is always shown
    #[arg(long, hide = true)]
    pub latency: bool,
    /// Sessions in place of single calls.
    #[command(flatten)]
    pub sessions: SessionArgs,
    /// What a call is.
    #[command(flatten)]
    pub call: CallArgs,
    /// Open loop: calls wait for one of at most N connections [default: unlimited]
    ///
    /// As through a proxy or another client with a pool of connections. A call that finds all of them taken waits for one, and
    /// that counts in its response time. Unlimited is a crowd of users: each such call opens a connection more.
    #[arg(long, value_name = "N", value_parser = max_connections, help_heading = "Connections")]
    #[arg(conflicts_with_all = ["clients", "s_clients"], hide_short_help = true)]
    pub max_connections: Option<MaxConnections>,
    /// What is requested besides one URL.
    #[command(flatten)]
    pub choosers: ChooserArgs,
    /// What to request and how.
    #[command(flatten)]
    pub request: RequestArgs,
    /// The server's side.
    #[command(flatten)]
    pub watched: WatchedArgs,
    /// One load from several generators.
    #[command(flatten)]
    pub part: PartArgs,
    /// What of the calls is shown.
    #[command(flatten)]
    pub look: LookArgs,
    /// Write the run as an HTML page to this file, to look at and to hand on
    #[arg(long, value_name = "FILE", help_heading = "Output", hide_short_help = true)]
    pub html: Option<PathBuf>,
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

/// What a call of one class is.
#[derive(Debug, Args)]
#[command(next_help_heading = "Request")]
pub struct CallArgs {
    /// HTTP method [default: GET, with --data POST]
    #[arg(short, long, conflicts_with = "workload", value_parser = method, short_alias = 'X')]
    pub method: Option<String>,
    /// Request body: text, @FILE for the content of a file, @- for stdin
    #[arg(long, value_name = "TEXT|@FILE", conflicts_with = "workload", alias = "body", short_alias = 'b')]
    pub data: Option<String>,
    /// Follow up to N redirects, one after another, within the server
    ///
    /// The calls that follow are counted apart. The client, or the session, waits for the last answer. Redirects to another server are counted, and not followed.
    #[arg(long, value_name = "N", alias = "max-redirects", hide_short_help = true)]
    pub follow: Option<Count>,
}

impl CallArgs {
    /// Has the calls of a class be as the flags say.
    pub fn apply(&self, class: &mut Class) {
        let method = if self.data.is_some() { "POST" } else { "GET" };
        self.method.as_deref().unwrap_or(method).clone_into(&mut class.method);
        match self.data.as_deref().map(|data| (data, data.strip_prefix('@'))) {
            Some((_, Some(file))) => file.clone_into(&mut class.body_file),
            Some((text, None)) => text.clone_into(&mut class.body),
            None => {}
        }
    }
}

/// Who watches the server.
#[derive(Debug, Args)]
#[command(next_help_heading = "Watching")]
pub struct WatchedArgs {
    /// Watch the server on this host: its kernel, its port, and the program that listens there
    #[arg(long)]
    pub watch: bool,
    /// Watch this program instead: a name, a pid, port:80 or cgroup:PATH (repeatable)
    #[arg(long, value_name = "PROGRAM", hide_short_help = true)]
    pub process: Vec<ProcessSelector>,
    /// Use no eBPF to watch, even where it is allowed
    #[arg(long, hide_short_help = true)]
    pub no_ebpf: bool,
    /// Watch the server on another host, through `brimful watch --serve` there
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["watch", "process", "no_ebpf"], hide_short_help = true)]
    pub watch_from: Option<String>,
    /// Its token, in a file that nobody else can read [default: environment's BRIMFUL_TOKEN]
    #[arg(long, value_name = "FILE", requires = "watch_from", hide_short_help = true)]
    pub token_file: Option<PathBuf>,
    /// Connect to it by TLS, and trust the certificates in this file
    #[arg(long, value_name = "FILE", requires = "watch_from", hide_short_help = true)]
    pub watch_ca: Option<PathBuf>,
}

/// One load made by several processes or hosts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Engine")]
pub struct PartArgs {
    /// Make part I of N of this load; `brimful merge` joins the parts' Records
    ///
    /// N processes with the same other flags, here or on other hosts, make the whole.
    #[arg(long, value_name = "I/N", value_parser = shard, requires = "seed", hide_short_help = true)]
    pub shard: Option<Shard>,
    /// Start at this instant, like 2026-03-01T14:00:00Z or seconds since 1970
    #[arg(long, value_name = "TIME", value_parser = instant, hide_short_help = true)]
    pub start_at: Option<SystemTime>,
    /// How far this host's clock is ahead of that of --start-at, like 1.2ms/300us
    ///
    /// And to within what that is known: 1.2ms/300us, or -15us/300us where it is behind.
    #[arg(long, value_name = "TIME/ERROR", value_parser = clock_offset, requires = "start_at", hide_short_help = true)]
    #[arg(allow_hyphen_values = true)]
    pub clock_ahead: Option<FleetClock>,
    /// Keep the Record of what has been seen so far in this file, once a second
    ///
    /// And the whole Record in the end. The file outlives this process; `brimful merge` takes those of shards.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub keep: Option<PathBuf>,
    /// Only find what this client can offer (--calibrate), for the load that shards are to make of it.
    #[arg(long, requires = "calibrate", conflicts_with = "shard", hide = true)]
    pub client_limit_only: bool,
    /// What was found of this client so.
    #[arg(long, value_name = "RATE", conflicts_with = "calibrate", hide = true)]
    pub client_max: Option<Rate>,
    /// Stop, as by Ctrl-C, when stdin ends: so does a shard whose starter is no more.
    #[arg(long, hide = true)]
    pub until_stdin_ends: bool,
    /// Length of the intervals in which the course is kept from its start: what a survey asks a fleet for.
    #[arg(long, value_name = "TIME", default_value = "1s", hide = true)]
    pub interval: Nanos,
    /// Connections of the whole load that are open before it begins: the same.
    #[arg(long, value_name = "N", default_value = "0", hide = true)]
    pub warm_connections: u64,
}

/// What of the calls is shown.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct LookArgs {
    /// Print what was sent and received of the first N calls, and of the first failures
    ///
    /// And when, on stderr: for the first N calls, and for the first failure of each kind.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_PRINTED_CALLS))]
    pub print: Option<u64>,
    /// Write the same of every call to this file, one line of JSON each
    ///
    /// Its disk has to keep up with the load.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub trace: Option<PathBuf>,
}
