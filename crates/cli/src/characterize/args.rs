//! The flags of `brimful characterize`.

use super::filter::{StatusRange, UrlPattern};
use crate::access_logs::zone;
use brimful_core::Nanos;
use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  $ brimful characterize '/var/log/nginx/access.log*'
  $ brimful characterize access.log --out workload.toml";

/// `brimful characterize`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CharacterizeArgs {
    /// Access logs in any order: files, compressed or not, rotated sets, those of several servers, and patterns like
    /// '/var/log/nginx/access.log*'; - is stdin
    #[arg(value_name = "LOG", required_unless_present = "list_formats")]
    pub logs: Vec<String>,
    /// How lines are written: one of --list-formats, an Apache LogFormat or an nginx log_format (repeatable) [default: what is
    /// found]
    #[arg(long, value_name = "FORMAT")]
    pub format: Vec<String>,
    /// Take the formats from the server's configuration, like /etc/nginx/nginx.conf
    #[arg(long, value_name = "FILE")]
    pub format_from: Option<PathBuf>,
    /// List the formats that have a name
    #[arg(long)]
    pub list_formats: bool,
    /// The window that classes, burstiness and the Workload are of, like 2026-03-01T14:00/2026-03-01T15:00 or in RFC 3339
    /// [default: the busiest]
    #[arg(long, value_name = "FROM/TO", conflicts_with = "window")]
    pub peak: Option<String>,
    /// Length of the busiest window to look for, in whole minutes
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = window)]
    pub window: u64,
    /// Whose hours and days to count, and whose clocks the times in flags are: a name like Europe/Berlin, or an offset
    /// from UTC like +01:00 [default: those of the logs' own stamps, else UTC]
    #[arg(long, value_name = "ZONE", value_parser = zone, allow_hyphen_values = true)]
    pub timezone: Option<TimeZone>,
    /// What becomes of requests of robots, by what they call themselves
    #[arg(long, value_enum, value_name = "POLICY", default_value = "keep")]
    pub robots: RobotPolicy,
    /// How many classes of request to make [default: as many as the sizes of answers ask for]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub classes: Option<u16>,
    /// What classes are made by: size (of answers), url:NAME=PATTERN,… (* in a pattern matches anything; the rest is a class
    /// as well), status or vhost
    #[arg(long, value_name = "WHAT", default_value = "size", value_parser = classes_by)]
    pub classes_by: ClassesBy,
    /// A pause as long as this ends a client's session
    #[arg(long, value_name = "TIME", default_value = "30m")]
    pub session_gap: Nanos,
    /// Look for no sessions, which takes time and memory
    #[arg(long, conflicts_with = "session_gap")]
    pub no_sessions: bool,
    /// How the Workload's calls come: in sessions, or one by one as an arrival process with the log's bursts [default:
    /// in sessions where the log has enough of them]
    #[arg(long, value_enum, value_name = "HOW")]
    pub load: Option<ComingBy>,
    /// Leave out what came before, like 2026-03-01, 2026-03-01T14:00 or in RFC 3339
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Leave out what came then or later
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Keep requests with such a status only, like 2xx,304 or 400-499; !404 leaves one out
    #[arg(long, value_name = "STATUS,…", value_delimiter = ',')]
    pub filter_status: Vec<StatusRange>,
    /// Keep requests of such URLs only, like '/shop/*'; '!/health*' leaves them out (repeatable)
    #[arg(long, value_name = "PATTERN")]
    pub filter_url: Vec<UrlPattern>,
    /// Compare with a profile that --json or --out wrote; exit code 1 if they are not alike
    #[arg(long, value_name = "PROFILE")]
    pub against: Option<PathBuf>,
    /// Print the whole document as JSON, and nothing else
    #[arg(long)]
    pub json: bool,
    /// Write a file as well: NAME.toml the Workload, NAME.csv the rates over time, any other the JSON document; - is stdout,
    /// and stderr has the rest then
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write a page with charts to a file as well
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// No progress on stderr
    #[arg(short, long)]
    pub quiet: bool,
}

/// What becomes of requests of robots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RobotPolicy {
    /// They are traffic like any other
    Keep,
    /// They are left out
    Drop,
    /// All others are left out
    Only,
}

/// How the Workload's calls come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ComingBy {
    /// Users come, and ask for pages with what these embed
    Sessions,
    /// One by one
    Requests,
}

/// What classes are made by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClassesBy {
    /// Bytes of the answer.
    Size,
    /// Names of classes, and what their URLs look like.
    Url(Vec<(String, String)>),
    /// The answer's status.
    Status,
    /// The virtual host.
    Host,
}

/// Whole minutes, in seconds.
fn window(text: &str) -> Result<u64, String> {
    const LONGEST_S: u64 = 366 * 86_400;
    let length: Nanos = text.parse().map_err(|error: brimful_core::units::ParseUnitError| error.to_string())?;
    match length.0.is_multiple_of(60_000_000_000) && (60..=LONGEST_S).contains(&(length.0 / 1_000_000_000)) {
        true => Ok(length.0 / 1_000_000_000),
        false => {
            Err(format!("a window is as long as whole minutes are, up to a year: `{text}` is not; write 15m or 1h"))
        }
    }
}

fn classes_by(text: &str) -> Result<ClassesBy, String> {
    let pattern = |item: &str| {
        let (name, pattern) = item.split_once('=')?;
        let (name, pattern) = (name.trim(), pattern.trim());
        (!name.is_empty() && !pattern.is_empty()).then(|| (name.to_owned(), pattern.to_owned()))
    };
    match (text, text.strip_prefix("url:")) {
        ("size", _) => Ok(ClassesBy::Size),
        ("status", _) => Ok(ClassesBy::Status),
        ("vhost" | "host", _) => Ok(ClassesBy::Host),
        (_, Some(list)) => {
            let patterns: Option<Vec<_>> = list.split(',').map(pattern).collect();
            patterns.map(ClassesBy::Url).ok_or_else(|| {
                format!("`{text}` says no classes by URL: write it like 'url:images=*.png,search=/search*'")
            })
        }
        _ => {
            Err(format!("`{text}` is nothing that classes are made by: use size, url:NAME=PATTERN,…, status or vhost"))
        }
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
    fn classes_are_made_by_what_there_is() {
        assert_eq!(classes_by("size"), Ok(ClassesBy::Size));
        assert_eq!(classes_by("vhost"), Ok(ClassesBy::Host));
        let pair = |name: &str, pattern: &str| (name.to_owned(), pattern.to_owned());
        let expected = vec![pair("images", "*.png"), pair("search", "/search?q=*")];
        assert_eq!(classes_by("url:images=*.png, search=/search?q=*"), Ok(ClassesBy::Url(expected)));
        for text in ["", "bytes", "url", "url:", "url:a", "url:=b", "url:a=b,c"] {
            assert!(classes_by(text).is_err(), "{text}");
        }
    }
}
