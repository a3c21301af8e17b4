//! The flags of `brimful characterize`.

use super::filter::{StatusRange, UrlPattern};
use crate::access_logs::parse_zone;
use brimful_accesslog::profile::SizeRanges;
use brimful_core::Nanos;
use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  $ brimful characterize '/var/log/nginx/access.log*'
  $ brimful characterize access.log --out workload.toml";

/// Arguments of `brimful characterize`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CharacterizeArgs {
    /// Access logs in any order, of one or several servers: files, compressed or not, rotated sets, and patterns like
    /// '/var/log/nginx/access.log*'; - is stdin
    #[arg(value_name = "LOG", required_unless_present = "list_formats")]
    pub logs: Vec<String>,
    /// Log format: one of --list-formats, an Apache LogFormat or an nginx log_format (repeatable) [default: detected]
    #[arg(long, value_name = "FORMAT")]
    pub format: Vec<String>,
    /// Read the formats from the server's configuration, like /etc/nginx/nginx.conf
    #[arg(long, value_name = "FILE")]
    pub format_from: Option<PathBuf>,
    /// List the names of the known formats
    #[arg(long)]
    pub list_formats: bool,
    /// Time window from which classes, burstiness and the Workload are taken, like 2026-03-01T14:00/2026-03-01T15:00 or in
    /// RFC 3339 [default: the busiest]
    #[arg(long, value_name = "FROM/TO", conflicts_with = "window")]
    pub peak: Option<String>,
    /// Length of the busiest window to search for, in whole minutes
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = window)]
    pub window: u64,
    /// Time zone of hours and days, and of times in flags: a name like Europe/Berlin, or an offset from UTC like +01:00
    /// [default: the offset of the logs' timestamps, else UTC]
    #[arg(long, value_name = "ZONE", value_parser = parse_zone, allow_hyphen_values = true)]
    pub timezone: Option<TimeZone>,
    /// What to do with requests of robots, which are recognized by their User-Agent
    #[arg(long, value_enum, value_name = "POLICY", default_value = "keep")]
    pub robots: RobotPolicy,
    /// Number of request classes [default: chosen from the sizes of responses]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub classes: Option<u16>,
    /// Upper bounds of classes by size of the response, like 0,1k,10k,100k, instead of classes that the sizes suggest
    #[arg(long, value_name = "BYTES,…", conflicts_with_all = ["classes", "classes_by"])]
    pub size_classes: Option<SizeRanges>,
    /// Criterion that separates classes: size (of responses), url:NAME=PATTERN,… (* in a pattern matches anything; all other
    /// URLs are one more class), status or vhost
    #[arg(long, value_name = "WHAT", default_value = "size", value_parser = classes_by)]
    pub classes_by: ClassCriterion,
    /// Length of the pause that ends a client's session
    #[arg(long, value_name = "TIME", default_value = "30m")]
    pub session_gap: Nanos,
    /// Do not detect sessions, which takes time and memory
    #[arg(long, conflicts_with = "session_gap")]
    pub no_sessions: bool,
    /// How the Workload's calls arrive: in sessions, or one by one in an arrival process with the log's bursts [default: in
    /// sessions if the log has enough of them]
    #[arg(long, value_enum, value_name = "HOW")]
    pub load: Option<ArrivalUnit>,
    /// Skip requests before this time, like 2026-03-01, 2026-03-01T14:00 or in RFC 3339
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Skip requests at this time or later
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Keep only requests with these statuses, like 2xx,304 or 400-499; !404 skips a status
    #[arg(long, value_name = "STATUS,…", value_delimiter = ',')]
    pub filter_status: Vec<StatusRange>,
    /// Keep only requests for these URLs, like '/shop/*'; '!/health*' skips URLs (repeatable)
    #[arg(long, value_name = "PATTERN")]
    pub filter_url: Vec<UrlPattern>,
    /// Compare with a profile that --json or --out wrote; exit code 1 if they are not alike
    #[arg(long, value_name = "PROFILE")]
    pub against: Option<PathBuf>,
    /// Print the whole document as JSON, and nothing else
    #[arg(long)]
    pub json: bool,
    /// Write a file as well: NAME.toml is the Workload, NAME.csv has the rates over time, and any other name the JSON
    /// document; with -, to stdout, and everything else to stderr
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write the requests in each second of the peak window to a file, as CSV
    #[arg(long, value_name = "FILE")]
    pub seconds: Option<PathBuf>,
    /// Write an HTML page with charts to a file as well
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Show no progress on stderr
    #[arg(short, long)]
    pub quiet: bool,
}

/// The treatment of requests of robots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RobotPolicy {
    /// Treat them like all other requests
    Keep,
    /// Skip them
    Drop,
    /// Skip all other requests
    Only,
}

/// The way in which the Workload's calls arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ArrivalUnit {
    /// In sessions: users arrive and request pages with their embedded objects
    Sessions,
    /// One by one
    Requests,
}

/// The criterion that separates request classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassCriterion {
    /// By the size of the response, in bytes.
    Size,
    /// By URL: pairs of a class name and the URL pattern of that class.
    Url(Vec<(String, String)>),
    /// By the status of the response.
    Status,
    /// By the virtual host.
    Host,
}

/// Parses the length of a window, in whole minutes. Returns seconds.
fn window(text: &str) -> Result<u64, String> {
    const LONGEST_S: u64 = 366 * 86_400;
    let length: Nanos = text.parse().map_err(|error: brimful_core::units::ParseUnitError| error.to_string())?;
    match length.0.is_multiple_of(60_000_000_000) && (60..=LONGEST_S).contains(&(length.0 / 1_000_000_000)) {
        true => Ok(length.0 / 1_000_000_000),
        false => {
            Err(format!("a window has a length of whole minutes, up to a year: write 15m or 1h instead of `{text}`"))
        }
    }
}

fn classes_by(text: &str) -> Result<ClassCriterion, String> {
    let pattern = |item: &str| {
        let (name, pattern) = item.split_once('=')?;
        let name = name.trim();
        let pattern = pattern.trim();
        (!name.is_empty() && !pattern.is_empty()).then(|| (name.to_owned(), pattern.to_owned()))
    };
    match (text, text.strip_prefix("url:")) {
        ("size", _) => Ok(ClassCriterion::Size),
        ("status", _) => Ok(ClassCriterion::Status),
        ("vhost" | "host", _) => Ok(ClassCriterion::Host),
        (_, Some(list)) => {
            let patterns: Option<Vec<_>> = list.split(',').map(pattern).collect();
            patterns.map(ClassCriterion::Url).ok_or_else(|| {
                format!("`{text}` does not define classes by URL: write it like 'url:images=*.png,search=/search*'")
            })
        }
        _ => Err(format!("`{text}` is not a criterion of classes: use size, url:NAME=PATTERN,…, status or vhost")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_whole_minutes() {
        assert_eq!((window("1h"), window("90s").is_err(), window("15m")), (Ok(3600), true, Ok(900)));
        for text in ["", "0s", "30s", "1", "2y", "1h 30s"] {
            assert!(window(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_criterion_of_classes_is_one_of_four() {
        assert_eq!(classes_by("size"), Ok(ClassCriterion::Size));
        assert_eq!(classes_by("vhost"), Ok(ClassCriterion::Host));
        let pair = |name: &str, pattern: &str| (name.to_owned(), pattern.to_owned());
        let expected = vec![pair("images", "*.png"), pair("search", "/search?q=*")];
        assert_eq!(classes_by("url:images=*.png, search=/search?q=*"), Ok(ClassCriterion::Url(expected)));
        for text in ["", "bytes", "url", "url:", "url:a", "url:=b", "url:a=b,c"] {
            assert!(classes_by(text).is_err(), "{text}");
        }
    }
}
