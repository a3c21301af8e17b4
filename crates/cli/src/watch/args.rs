//! The flags of `brimful watch`.

use crate::flags::values::{GroupInterval, parse_duty, parse_interval, parse_local_address, parse_time};
use brimful_core::Nanos;
use brimful_core::cpus::CpuList;
use brimful_core::units::Count;
use brimful_monitor::{DutyCycle, GroupName, NetNamespace, ProcessSelector};
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  $ brimful watch nginx
  $ brimful watch -p 80,443 --requests
  $ brimful watch --port 80 --once --json
  $ brimful watch nginx --port 80 --prometheus 9477 --log /var/log/brimful";

/// Arguments of `brimful watch`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, next_help_heading = "Watching")]
pub struct WatchArgs {
    /// Programs to watch, as with --process, like nginx
    #[arg(value_name = "PROGRAM", help_heading = None)]
    pub programs: Vec<ProcessSelector>,
    /// Watch this TCP port: its listening sockets and its connections (repeatable, or 80,443)
    #[arg(short, long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), value_delimiter = ',')]
    pub port: Vec<u16>,
    /// Watch this program, with its children (repeatable) [default: what listens on --port]
    ///
    /// A name, a pid, port:80, cgroup:PATH or a systemd unit.
    #[arg(long, value_name = "PROGRAM")]
    pub process: Vec<ProcessSelector>,
    /// Measure requests at the sockets of --port: their waiting and response times [default: 20%]
    ///
    /// Works with any server. Tracepoints are attached for SHARE of the time; the default costs the server about 1 % of its
    /// throughput.
    #[arg(long, value_name = "SHARE", value_parser = parse_duty, num_args = 0..=1, require_equals = true, default_missing_value = "20%")]
    pub requests: Option<DutyCycle>,
    /// Sampling interval, like 1s, or of one group, like process=5s (repeatable) [default: 1s]
    #[arg(long, value_name = "[GROUP=]TIME", value_parser = parse_interval, value_delimiter = ',')]
    pub interval: Vec<GroupInterval>,
    /// End after this time; a bare number is seconds [default: at Ctrl-C]
    #[arg(short, long, value_name = "TIME", value_parser = parse_time)]
    pub duration: Option<Nanos>,
    /// End after this many intervals
    #[arg(short = 'n', long, value_name = "N")]
    pub count: Option<Count>,
    /// Watch for one interval, then show every metric
    #[arg(long, conflicts_with_all = ["duration", "count"])]
    pub once: bool,
    /// Groups to read: kernel, process, network, connections, module, requests
    ///
    /// The default is all except requests.
    #[arg(long, value_name = "GROUP,…", value_delimiter = ',', hide_short_help = true)]
    pub groups: Vec<GroupName>,
    /// Read this shared-memory file of a Server Module (repeatable) [default: those of the programs]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub module: Vec<PathBuf>,
    /// Show only these CPUs, like 0 or 0,2-3
    #[arg(long, value_name = "LIST", hide_short_help = true)]
    pub cpus: Option<CpuList>,
    /// Network namespace: a name from `ip netns`, or a pid in it [default: the server's]
    #[arg(long, value_name = "NAME|PID", hide_short_help = true)]
    pub netns: Option<NetNamespace>,
    /// Watch without eBPF, even if it is allowed
    #[arg(long, hide_short_help = true)]
    pub no_ebpf: bool,
    /// Flags for access from other hosts.
    #[command(flatten)]
    pub remote: RemoteAccessArgs,
    /// Append the metrics to one file per group in this directory, one line of JSON per interval
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub log: Option<PathBuf>,
    /// Print the `server` object of a Record as JSON at the end, and nothing else
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Also write the `server` object of a Record to FILE; if FILE is -, to stdout, with all other output on stderr
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Print the tables of the WebMonitor paper (1997) at the end, and nothing else
    #[arg(long, conflicts_with_all = ["json", "once"], hide_short_help = true, help_heading = "Output")]
    pub paper_tables: bool,
    /// Show nothing until the end
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
}

/// Flags for access to the metrics from other programs and hosts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Serving")]
pub struct RemoteAccessArgs {
    /// Serve /metrics to Prometheus at this address, like 9477 (from this host only) or 0.0.0.0:9477
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = parse_local_address)]
    pub prometheus: Option<SocketAddr>,
    /// Accept this name of this host in requests for /metrics (repeatable) [default: localhost, the host's name]
    ///
    /// IP addresses are always accepted. Other names are refused, because a web page could read the metrics by DNS
    /// rebinding.
    #[arg(long, value_name = "NAME", requires = "prometheus", hide_short_help = true)]
    pub prometheus_host: Vec<String>,
    /// Serve samples to `brimful load --watch-from` on other hosts
    ///
    /// Write a port like 7411 to serve this host only (for an SSH tunnel) or, with TLS, an address like 0.0.0.0:7411.
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = parse_local_address, conflicts_with = "once", hide_short_help = true)]
    pub serve: Option<SocketAddr>,
    /// Token of --serve, in a file that only you can read [default: BRIMFUL_TOKEN, or a new one]
    ///
    /// BRIMFUL_TOKEN is read from the environment. A new token is printed.
    #[arg(long, value_name = "FILE", requires = "serve", hide_short_help = true)]
    pub token_file: Option<PathBuf>,
    /// Use TLS for --serve, with the certificate in this file
    #[arg(long, value_name = "FILE", requires_all = ["serve", "tls_key"], hide_short_help = true)]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate, in a file that only you can read
    #[arg(long, value_name = "FILE", requires = "tls_cert", hide_short_help = true)]
    pub tls_key: Option<PathBuf>,
}
