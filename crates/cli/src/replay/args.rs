//! The flags of `brimful replay`.

use crate::exit::UsageError;
use crate::flags::{DetailArgs, HdrArgs, OutputArgs, RequestArgs};
use brimful_accesslog::replay::{MapRule, Options};
use brimful_core::Nanos;
use brimful_workload::Speed;
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  $ brimful replay /var/log/nginx/access.log http://127.0.0.1:8080/ --speed 2x
  $ brimful replay access.log http://127.0.0.1:8080/ --against-flat";

/// `brimful replay`.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    next_help_heading = "Replay",
    override_usage = "brimful replay [OPTIONS] <LOG>... <URL>"
)]
pub struct ReplayArgs {
    /// Access logs: files, compressed or not, patterns, or - for stdin; those of several servers are merged by time. And
    /// the server's URL, like http://127.0.0.1:8080/; its path is not asked for
    #[arg(required = true, value_name = "LOG… URL", help_heading = None)]
    pub places: Vec<String>,
    /// The log's gaps divided by this, like 2x; 0.5x is half as fast
    #[arg(long, value_name = "FACTOR", default_value = "1x")]
    pub speed: Speed,
    /// The same requests at a constant rate, the log's mean times --speed
    #[arg(long)]
    pub flatten: bool,
    /// Both, one after the other, and what the difference is: what the log's bursts cost the server
    #[arg(long, conflicts_with = "flatten")]
    pub against_flat: bool,
    /// End after this time
    #[arg(short, long, value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// A format by name, or as the server's own configuration writes it [default: found out]
    #[arg(long, value_name = "FORMAT")]
    pub format: Vec<String>,
    /// Send requests of these methods; others change something on most servers [default: GET,HEAD]
    #[arg(long, value_name = "METHOD,…", value_delimiter = ',')]
    pub methods: Vec<String>,
    /// Ask for other paths: what begins with /old/ begins with /new/ instead (repeatable)
    #[arg(long, value_name = "/OLD/=/NEW/")]
    pub map: Vec<MapRule>,
    /// Make a file of each answer's size below this document root, and ask for it in place of what the log names
    #[arg(long, value_name = "DIR", conflicts_with = "map")]
    pub fileset: Option<PathBuf>,
    /// Sort requests that are out of order within this time of the log
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub sort_within: Nanos,
    /// Cut pauses between calls that are longer than this, like 10s
    #[arg(long, value_name = "TIME", value_parser = pause)]
    pub max_gap: Option<Nanos>,
    /// Requests and connections.
    #[command(flatten)]
    pub request: RequestArgs,
    /// Histograms for other tools.
    #[command(flatten)]
    pub hdr: HdrArgs,
    /// Output.
    #[command(flatten)]
    pub output: OutputArgs,
    /// How much of a Record is shown.
    #[command(flatten)]
    pub detail: DetailArgs,
}

/// Reads a pause, of which there is some.
fn pause(text: &str) -> Result<Nanos, String> {
    match text.parse::<Nanos>() {
        Ok(Nanos::ZERO) => Err("a pause of 0 s would make all calls at once: give one like 10s".to_owned()),
        Ok(pause) => Ok(pause),
        Err(error) => Err(error.to_string()),
    }
}

impl ReplayArgs {
    /// The logs, and the server's URL: the one word that is a URL, else the last.
    pub fn logs_and_url(&self) -> Result<(Vec<String>, &str), UsageError> {
        let is_url = |word: &&String| word.contains("://");
        let mut urls = self.places.iter().filter(is_url);
        let url = match (urls.next(), urls.next()) {
            (Some(url), None) => url,
            (Some(first), Some(second)) => {
                return Err(UsageError(format!("one server is asked: give either {first} or {second}")));
            }
            _ => self.places.last().filter(|_| self.places.len() > 1).ok_or_else(|| {
                UsageError("a log and a server are needed: brimful replay access.log http://127.0.0.1:8080/".to_owned())
            })?,
        };
        let logs: Vec<String> = self.places.iter().filter(|place| *place != url).cloned().collect();
        if logs.is_empty() {
            return Err(UsageError(format!("which log is to be replayed? brimful replay access.log {url}")));
        }
        Ok((logs, url))
    }

    /// The logs.
    pub fn logs(&self) -> Vec<String> {
        self.logs_and_url().map(|(logs, _)| logs).unwrap_or_default()
    }

    /// How the logs become calls, `flattened` to this rate in calls per second if given.
    pub fn replay_options(&self, flattened: Option<f64>) -> Options {
        let mut options = Options {
            speed: self.speed.get(),
            flattened,
            window_ns: i64::try_from(self.sort_within.0).unwrap_or(i64::MAX),
            max_gap_ns: self.max_gap.map(|gap| gap.0),
            map: self.map.clone(),
            fileset: self.fileset.clone(),
            ..Options::default()
        };
        if !self.methods.is_empty() {
            options.methods.clone_from(&self.methods);
        }
        options
    }
}
