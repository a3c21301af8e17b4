//! The flags of `brimful load`.

use super::choosers::ChooserArgs;
use super::levels::SweepArgs;
use super::sessions::SessionArgs;
use crate::flags::values::{
    Arrivals, MaxConnections, parse_arrivals, parse_clock_offset, parse_instant, parse_max_connections, parse_method,
    parse_shard, parse_time, parse_warm_up,
};
use crate::flags::{DetailArgs, HdrArgs, OutputArgs, RequestArgs};
use brimful_core::units::Count;
use brimful_core::workload::{RequestClass, Stage};
use brimful_core::{Nanos, Rate, Slo, StopCondition};
use brimful_monitor::ProcessSelector;
use brimful_run::{FleetClock, WarmUp};
use brimful_workload::{Shard, Speed};
use clap::Args;
use std::path::PathBuf;
use std::time::SystemTime;

/// Upper bound of `--print`. It limits memory, because the calls are kept until they are printed.
const MAX_PRINTED_CALLS: u64 = 10_000;
/// Upper bound of `--repeat`.
const MAX_REPETITIONS: u64 = 1000;

const EXAMPLES: &str = "\
Examples:
  $ brimful load http://127.0.0.1:8080/ --rate 1000 -d 30s --slo 'p99<50ms'   # open loop
  $ brimful load http://127.0.0.1:8080/ -c 64 -t 2 -d 30s                     # closed loop, as wrk and oha have it
  $ brimful load http://127.0.0.1:8080/ --stage 30s:100 --stage 1m:100        # ramps, as k6 has them
  $ brimful load http://127.0.0.1:8080/a --rate 50 -X POST -b @order.json -H 'Content-Type: application/json' --watch";

/// Arguments of `brimful load`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, next_help_heading = "Load")]
pub struct LoadArgs {
    /// The server, like http://127.0.0.1:8080/index.html
    #[arg(help_heading = None)]
    pub url: String,
    /// Open loop: this many calls per second, whatever the server does
    ///
    /// Connections are opened as they are needed, and the response time of a call counts from when it was due.
    #[arg(short = 'R', long, value_name = "CALLS/S", allow_hyphen_values = true, aliases = ["rps", "qps"])]
    pub rate: Option<Rate>,
    /// Closed loop: this many clients, each of which calls again after its response
    ///
    /// Without any flag that defines the load, there are 10 clients. A client that cannot connect retries after 10 ms, then
    /// 20 ms and so on up to a second. Each client has a connection, so more clients than the descriptor limit allows are
    /// refused at the start.
    #[arg(short, long, value_name = "N", conflicts_with_all = ["rate", "arrivals", "stages", "speed"])]
    #[arg(aliases = ["connections", "vus"])]
    pub clients: Option<Count>,
    /// Duration, like 30s or 30 [default: 10s, or until --requests end]
    #[arg(short, long, value_name = "TIME", value_parser = parse_time, short_alias = 'z')]
    pub duration: Option<Nanos>,
    /// Make at most this many calls
    #[arg(short = 'n', long, value_name = "N", alias = "iterations")]
    pub requests: Option<Count>,
    /// Time between a response and the client's next call [default: 0s]
    #[arg(long, value_name = "TIME", default_value = "0s", hide_default_value = true)]
    #[arg(conflicts_with_all = ["rate", "stages"])]
    pub think: Nanos,
    /// Arrival process of an open loop's calls: poisson, onoff:…, trace:FILE, …
    ///
    /// constant; poisson; uniform:SPREAD (gaps within this share of their mean); steps:RATE@TIME,… (one rate after another);
    /// onoff:A,B[,PERIOD] (A times the mean rate during a share B of each PERIOD); mmpp:A,B,TIME (such bursts at random
    /// times, of mean length TIME); selfsimilar:H[,pareto] (with Hurst parameter H); trace:FILE (due times in seconds, one
    /// per line)
    #[arg(long, value_name = "PROCESS", default_value = "constant", value_parser = parse_arrivals)]
    pub arrivals: Arrivals,
    /// Change the rate linearly to this rate within this time (repeatable)
    ///
    /// The first stage starts at --rate, or at 0, and each further one at the rate of the stage before it.
    #[arg(long = "stage", value_name = "TIME:CALLS/S")]
    pub stages: Vec<Stage>,
    /// Objective, like 'p99<50ms' or 'CLASS:mean<1s': exit code 1 if missed (repeatable)
    ///
    /// A call that failed, or got status 5xx or 429, counts as slower than any limit. --expect-status lists the statuses
    /// that count as success instead.
    #[arg(long, value_name = "OBJECTIVE")]
    pub slo: Vec<Slo>,
    /// Make the same load first and leave it out of all figures
    ///
    /// It lasts for this time or, with `auto`, until response times are steady. It warms up just-in-time compilers and
    /// caches. `auto` detects by MSER-5 (White 1997) when the median response time no longer changes, in 5 s to 60 s.
    #[arg(long, value_name = "auto|TIME", value_parser = parse_warm_up, hide_short_help = true)]
    #[arg(conflicts_with_all = ["stages", "speed", "shard", "start_at", "sweep", "sweep_clients"])]
    pub warm_up: Option<WarmUp>,
    /// Make the load N times (a Record each: run-1.json, …), and print means with their spread over the runs
    #[arg(long, value_name = "N", hide_short_help = true, value_parser = clap::value_parser!(u64).range(2..=MAX_REPETITIONS))]
    #[arg(conflicts_with_all = ["shard", "start_at", "sweep", "sweep_clients", "keep", "print", "trace", "hdr", "html"])]
    #[arg(conflicts_with_all = ["calibrate", "client_limit_only", "warm_up"])]
    pub repeat: Option<u64>,
    /// End the load when this is true, like 'p99>1s for 5s' or 'errors>5%' (repeatable)
    ///
    /// The exit code is then 1, and the Record says which condition ended the load. The condition must be met in every
    /// second for as long as `for` says [default: 5s]. Calls that still wait for a response count, too. Each part of
    /// a load with --shard judges its own calls.
    #[arg(long, value_name = "CONDITION", hide_short_help = true)]
    pub stop_when: Vec<StopCondition>,
    /// S-Clients: keep this many connection attempts pending, with one call each
    ///
    /// D attempts stay pending even if the server accepts slowly; each attempt is abandoned after --connect-timeout
    /// (Banga & Druschel 1997). With --think, a client pauses after each connection. With --rate, --stage or a trace,
    /// attempts begin by that schedule, at most D at a time.
    #[arg(long, value_name = "D", conflicts_with_all = ["clients"])]
    #[arg(hide_short_help = true)]
    pub s_clients: Option<Count>,
    /// Flags for a sweep: loads at rising rates or numbers of clients.
    #[command(flatten)]
    pub sweep: SweepArgs,
    /// Divide the gaps of a trace by this factor, like 2x
    #[arg(long, value_name = "FACTOR", hide_short_help = true)]
    pub speed: Option<Speed>,
    /// Start calls only once per TIME, like 1ms: uses less CPU at high rates, but calls start late
    ///
    /// For open loops. All calls that have become due since the last tick start together, up to TIME late. The lateness is
    /// reported.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["clients", "s_clients"], hide_short_help = true)]
    pub tick: Option<Nanos>,
    /// First measure the highest load that this client can generate (takes about 10 s)
    ///
    /// It is the load at which two generators together get no more responses from a server on this host than one does. A
    /// higher load is then invalid. Without flags for a load, only this is measured.
    #[arg(long, hide_short_help = true)]
    pub calibrate: bool,
    /// Accepted because wrk has it: percentiles of response times are always shown
    #[arg(long, hide = true)]
    pub latency: bool,
    /// Flags for sessions instead of single calls.
    #[command(flatten)]
    pub sessions: SessionArgs,
    /// Flags for the method and the content of a call.
    #[command(flatten)]
    pub call: CallArgs,
    /// Open loop: use at most N connections, for which calls wait [default: unlimited]
    ///
    /// Like a proxy or another client with a connection pool. A call waits while all connections are in use, and the wait
    /// is part of its response time. With `unlimited`, such a call opens another connection, as a crowd of users does.
    #[arg(long, value_name = "N", value_parser = parse_max_connections, help_heading = "Connections")]
    #[arg(conflicts_with_all = ["clients", "s_clients"], hide_short_help = true)]
    pub max_connections: Option<MaxConnections>,
    /// Flags for requests of more than one URL.
    #[command(flatten)]
    pub choosers: ChooserArgs,
    /// Flags for requests and connections.
    #[command(flatten)]
    pub request: RequestArgs,
    /// Flags for the monitor of the server.
    #[command(flatten)]
    pub monitor: MonitorArgs,
    /// Flags for one load from several generators.
    #[command(flatten)]
    pub distributed: DistributedLoadArgs,
    /// Flags that select the calls to print or to trace.
    #[command(flatten)]
    pub tracing: TracingArgs,
    /// Write the result as an HTML page to this file
    #[arg(long, value_name = "FILE", help_heading = "Output", hide_short_help = true)]
    pub html: Option<PathBuf>,
    /// Append the run to this file, one line of JSON per run, for `brimful history`
    ///
    /// The line has the Record without its histograms, its intervals and the data that `merge` needs.
    #[arg(long, value_name = "FILE", help_heading = "Output", hide_short_help = true)]
    #[arg(conflicts_with_all = ["sweep", "sweep_clients", "shard", "client_limit_only"])]
    pub record_to: Option<PathBuf>,
    /// Flags for histograms in the formats of other tools.
    #[command(flatten)]
    pub hdr: HdrArgs,
    /// Flags for the output of results.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Flags for the amount of detail of a Record.
    #[command(flatten)]
    pub detail: DetailArgs,
}

/// Flags for the method and the content of a class's calls.
#[derive(Debug, Args)]
#[command(next_help_heading = "Request")]
pub struct CallArgs {
    /// HTTP method [default: GET, with --data POST]
    #[arg(short, long, conflicts_with = "workload", value_parser = parse_method, short_alias = 'X')]
    pub method: Option<String>,
    /// Request body: text, @FILE for the content of a file, @- for stdin
    #[arg(long, value_name = "TEXT|@FILE", conflicts_with = "workload", alias = "body", short_alias = 'b')]
    pub data: Option<String>,
    /// Follow up to N redirects in a row, within the same server
    ///
    /// Calls that follow redirects are counted separately. The client or session waits for the last response. Redirects to
    /// another server are counted, but not followed.
    #[arg(long, value_name = "N", alias = "max-redirects", hide_short_help = true)]
    pub follow: Option<Count>,
}

impl CallArgs {
    /// Applies the flags for the method and the content of calls to a request class.
    pub fn apply(&self, class: &mut RequestClass) {
        let method = if self.data.is_some() { "POST" } else { "GET" };
        self.method.as_deref().unwrap_or(method).clone_into(&mut class.method);
        match self.data.as_deref().map(|data| (data, data.strip_prefix('@'))) {
            Some((_, Some(file))) => file.clone_into(&mut class.body_file),
            Some((text, None)) => text.clone_into(&mut class.body),
            None => {}
        }
    }
}

/// Flags for the monitor of the server, on this host or another one.
#[derive(Debug, Args)]
#[command(next_help_heading = "Watching")]
pub struct MonitorArgs {
    /// Watch the server on this host: the kernel, its port, and the program that listens there
    #[arg(long)]
    pub watch: bool,
    /// Watch this program: a name, a pid, port:80 or cgroup:PATH (repeatable)
    #[arg(long, value_name = "PROGRAM", hide_short_help = true)]
    pub process: Vec<ProcessSelector>,
    /// Watch without eBPF, even if it is allowed
    #[arg(long, hide_short_help = true)]
    pub no_ebpf: bool,
    /// Watch the server on another host, through `brimful watch --serve` there
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["watch", "process", "no_ebpf"], hide_short_help = true)]
    pub watch_from: Option<String>,
    /// Token of --watch-from, in a file that only you can read [default: BRIMFUL_TOKEN in the environment]
    #[arg(long, value_name = "FILE", requires = "watch_from", hide_short_help = true)]
    pub token_file: Option<PathBuf>,
    /// Use TLS for --watch-from, and trust the certificates in this file
    #[arg(long, value_name = "FILE", requires = "watch_from", hide_short_help = true)]
    pub watch_ca: Option<PathBuf>,
}

/// Flags for one load that several processes or hosts generate.
#[derive(Debug, Args)]
#[command(next_help_heading = "Engine")]
pub struct DistributedLoadArgs {
    /// Generate part I of N of this load; `brimful merge` merges the Records of the parts
    ///
    /// N processes, here or on other hosts, generate the whole load if all their other flags are the same.
    #[arg(long, value_name = "I/N", value_parser = parse_shard, requires = "seed", hide_short_help = true)]
    pub shard: Option<Shard>,
    /// Start at this instant, like 2026-03-01T14:00:00Z or seconds since 1970
    #[arg(long, value_name = "TIME", value_parser = parse_instant, hide_short_help = true)]
    pub start_at: Option<SystemTime>,
    /// Time by which this host's clock is ahead of the clock of --start-at, and its error, like 1.2ms/300us
    ///
    /// If this host's clock is behind, the time is negative: -15us/300us.
    #[arg(long, value_name = "TIME/ERROR", value_parser = parse_clock_offset, requires = "start_at", hide_short_help = true)]
    #[arg(allow_hyphen_values = true)]
    pub clock_ahead: Option<FleetClock>,
    /// Once a second, write the Record of the calls so far to this file
    ///
    /// At the end, the file has the whole Record. It remains if this process is killed, and `brimful merge` accepts it.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub keep: Option<PathBuf>,
    /// Only measure the client's limit (--calibrate), for the load that the shards will make.
    #[arg(long, requires = "calibrate", conflicts_with = "shard", hide = true)]
    pub client_limit_only: bool,
    /// Highest rate that this client can generate, as an earlier --calibrate measured it.
    #[arg(long, value_name = "RATE", conflicts_with = "calibrate", hide = true)]
    pub client_max: Option<Rate>,
    /// Stop as if by Ctrl-C when stdin ends: the process that started this shard has ended.
    #[arg(long, hide = true)]
    pub until_stdin_ends: bool,
    /// Length of the intervals of the time series; a survey sets it for its fleet.
    #[arg(long, value_name = "TIME", default_value = "1s", hide = true)]
    pub interval: Nanos,
    /// Connections of the whole load that are opened before it starts; a survey sets it for its fleet.
    #[arg(long, value_name = "N", default_value = "0", hide = true)]
    pub warm_connections: u64,
}

/// Flags that select the calls to print or to trace.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct TracingArgs {
    /// Print what the first N calls and the first failures sent and received
    ///
    /// With times, on stderr: of the first N calls, and of the first failure of each kind.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_PRINTED_CALLS))]
    pub print: Option<u64>,
    /// Write what each call sent and received to this file, one line of JSON per call
    ///
    /// The disk must keep up with the load.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub trace: Option<PathBuf>,
}
