//! Helpers for the commands that read access logs: formats, time zones, errors, and counts of lines.

use crate::exit::UsageError;
use brimful_accesslog::LogError;
use brimful_accesslog::detect::Formats;
use brimful_accesslog::format::Format;
use brimful_accesslog::read::ReadOptions;
use brimful_core::profile::Lines;
use brimful_core::quantity::count;
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::TimeZone;
use std::io::ErrorKind;

/// Options for reading logs in the formats of `--format`; if none is given, the formats are detected.
pub fn read_options(formats: &[String]) -> Result<ReadOptions, LogError> {
    let formats: Vec<Format> = formats.iter().map(|format| Format::parse(format)).collect::<Result<_, _>>()?;
    let formats = (!formats.is_empty()).then(|| Formats::from_list(formats));
    Ok(ReadOptions { formats, ..ReadOptions::default() })
}

/// Reads a time zone: a name of the IANA database, or an offset from UTC.
pub fn parse_zone(text: &str) -> Result<TimeZone, String> {
    let zone = DateTimeParser::new().parse_time_zone(text);
    zone.map_err(|_| {
        let text: String = text.chars().take(40).collect();
        format!("`{text}` is not a time zone: write a name like Europe/Berlin, UTC, or an offset from UTC like +01:00")
    })
}

/// One sentence with the number of lines that were read, and how many of them were parsed, malformed or filtered out.
pub fn describe_line_counts(lines: &Lines) -> String {
    format!(
        "{} lines read = {} parsed + {} malformed + {} filtered out",
        count(lines.read),
        count(lines.parsed),
        count(lines.malformed),
        count(lines.filtered)
    )
}

/// Converts an error of the log reader into an error with the right exit code: the environment if a file cannot be read
/// or a pattern matches no file, and otherwise bad input. The message says what to do if the cause is known.
pub fn log_error(error: LogError) -> anyhow::Error {
    let hint = match &error {
        LogError::Io { source, .. } => match source.kind() {
            ErrorKind::NotFound => "; check the path",
            ErrorKind::PermissionDenied => "; read it as a member of its group (`ls -l` shows which), or with sudo",
            _ => "",
        },
        LogError::NoMatch(_) => "",
        _ => return UsageError(error.to_string()).into(),
    };
    anyhow::anyhow!("{error}{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_names_and_offsets() {
        assert_eq!(parse_zone("Europe/Berlin").unwrap().iana_name(), Some("Europe/Berlin"));
        assert_eq!(parse_zone("-05:30").unwrap().to_offset(jiff::Timestamp::UNIX_EPOCH).seconds(), -19_800);
        for text in ["", "Europe/Atlantis", "/etc/passwd"] {
            assert!(parse_zone(text).unwrap_err().contains("Europe/Berlin"), "{text}");
        }
    }
}
