//! The flags of `brimful replay`.

use crate::exit::UsageError;
use crate::flags::{DetailArgs, HdrArgs, OutputArgs, RequestArgs};
use brimful_accesslog::replay::{Options, PathRule};
use brimful_core::Nanos;
use brimful_workload::Speed;
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  $ brimful replay /var/log/nginx/access.log http://127.0.0.1:8080/ --speed 2x
  $ brimful replay access.log http://127.0.0.1:8080/ --against-flat";

/// Arguments of `brimful replay`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, next_help_heading = "Replay")]
#[command(override_usage = "brimful replay [OPTIONS] <LOG>... <URL>")]
pub struct ReplayArgs {
    /// Access logs, and the server's URL, like http://127.0.0.1:8080/, whose path is not used. Logs are files, compressed or
    /// not, patterns, or - for stdin; logs of several servers are merged by time
    #[arg(required = true, value_name = "LOG… URL", help_heading = None)]
    pub logs_and_url: Vec<String>,
    /// Divide the log's gaps by this factor, like 2x; 0.5x is half as fast
    #[arg(long, value_name = "FACTOR", default_value = "1x")]
    pub speed: Speed,
    /// Make the requests at a constant rate: the log's mean rate times --speed
    #[arg(long)]
    pub flatten: bool,
    /// Run twice, as logged and at a constant rate, and compare: the difference is the cost of the log's bursts
    #[arg(long, conflicts_with = "flatten")]
    pub against_flat: bool,
    /// End after this time
    #[arg(short, long, value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// Log format: a name, or the format string of the server's configuration [default: detected]
    #[arg(long, value_name = "FORMAT")]
    pub format: Vec<String>,
    /// Send only requests with these methods; others than the default may change data on the server [default: GET,HEAD]
    #[arg(long, value_name = "METHOD,…", value_delimiter = ',')]
    pub methods: Vec<String>,
    /// Change paths: those that begin with /OLD/ begin with /NEW/ instead (repeatable)
    #[arg(long, value_name = "/OLD/=/NEW/")]
    pub map: Vec<PathRule>,
    /// Create a file of each response's size in this document root, and request that file instead of the log's path
    #[arg(long, value_name = "DIR", conflicts_with = "map")]
    pub fileset: Option<PathBuf>,
    /// Sort requests that are out of order by up to this time of the log
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub sort_within: Nanos,
    /// Shorten longer pauses between calls to this time, like 10s
    #[arg(long, value_name = "TIME", value_parser = pause)]
    pub max_gap: Option<Nanos>,
    /// Flags for requests and connections.
    #[command(flatten)]
    pub request: RequestArgs,
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

/// Parses the length of a pause, which must be longer than 0 s.
fn pause(text: &str) -> Result<Nanos, String> {
    match text.parse::<Nanos>() {
        Ok(Nanos::ZERO) => Err("with pauses of 0 s, all calls would be made at once: give a time like 10s".to_owned()),
        Ok(pause) => Ok(pause),
        Err(error) => Err(error.to_string()),
    }
}

impl ReplayArgs {
    /// The logs, and the server's URL: the only argument that is a URL, or else the last argument.
    pub fn logs_and_url(&self) -> Result<(Vec<String>, &str), UsageError> {
        let is_url = |word: &&String| word.contains("://");
        let mut urls = self.logs_and_url.iter().filter(is_url);
        let url = match (urls.next(), urls.next()) {
            (Some(url), None) => url,
            (Some(first), Some(second)) => {
                return Err(UsageError(format!("only one server can be loaded: give either {first} or {second}")));
            }
            _ => self.logs_and_url.last().filter(|_| self.logs_and_url.len() > 1).ok_or_else(|| {
                UsageError("a log and a server are needed: brimful replay access.log http://127.0.0.1:8080/".to_owned())
            })?,
        };
        let logs: Vec<String> = self.logs_and_url.iter().filter(|log| *log != url).cloned().collect();
        if logs.is_empty() {
            return Err(UsageError(format!("a log is missing: brimful replay access.log {url}")));
        }
        Ok((logs, url))
    }

    /// The paths and patterns of the logs, without the server's URL.
    pub fn logs(&self) -> Vec<String> {
        self.logs_and_url().map(|(logs, _)| logs).unwrap_or_default()
    }

    /// Options for turning logs into calls. With `constant_rate`, the calls are due at this rate in calls per second;
    /// otherwise at the times of the log.
    pub fn replay_options(&self, constant_rate: Option<f64>) -> Options {
        let mut options = Options {
            speed: self.speed.get(),
            constant_rate,
            window_ns: i64::try_from(self.sort_within.0).unwrap_or(i64::MAX),
            max_gap_ns: self.max_gap.map(|gap| gap.0),
            path_rules: self.map.clone(),
            fileset: self.fileset.clone(),
            ..Options::default()
        };
        if !self.methods.is_empty() {
            options.methods.clone_from(&self.methods);
        }
        options
    }
}
