//! Converts an entry to text, field by field, so that users see how a line was read.

use crate::Entry;
use brimful_core::Nanos;
use brimful_core::profile::FieldSample;
use brimful_core::quantity::count;
use brimful_core::text::one_line;
use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

/// Maximum length of a value, in characters.
const MAX_VALUE_CHARS: usize = 120;

/// The fields of an entry that are present in its line, with their values as text.
pub fn present_fields(entry: &Entry<'_>) -> Vec<FieldSample> {
    let texts = |fields: &[(&str, &[u8])]| -> Vec<FieldSample> {
        let known = fields.iter().filter(|(_, text)| !text.is_empty());
        known.map(|(field, text)| sample(field, &String::from_utf8_lossy(text))).collect()
    };
    let mut fields = texts(&[("client", entry.client), ("host", entry.host)]);
    fields.extend(time(entry).map(|time| sample("time", &time)));
    fields.extend(texts(&[("method", entry.method), ("target", entry.target), ("protocol", entry.protocol)]));
    if entry.status > 0 {
        fields.push(sample("status", &entry.status.to_string()));
    }
    fields.extend(entry.bytes.map(|bytes| sample("bytes", &count(bytes))));
    fields.extend(entry.service_ns.map(|ns| sample("took", &Nanos(ns).to_rounded_string())));
    fields.extend(entry.upstream_ns.map(|ns| sample("upstream took", &Nanos(ns).to_rounded_string())));
    fields.extend(texts(&[("referer", entry.referer), ("agent", entry.user_agent)]));
    fields
}

/// Joins the fields into one line: `client 203.0.113.7, time 2017-08-03T14:58:51Z, method GET`.
pub fn describe_fields(fields: &[FieldSample]) -> String {
    fields.iter().map(|field| format!("{} {}", field.field, field.value)).collect::<Vec<_>>().join(", ")
}

fn sample(field: &str, value: &str) -> FieldSample {
    let cut: String = value.chars().take(MAX_VALUE_CHARS).collect();
    let dots = if cut.len() < value.len() { "…" } else { "" };
    FieldSample { field: field.to_owned(), value: format!("{}{dots}", one_line(&cut)) }
}

/// The time of an entry in RFC 3339 format, with the log's offset from UTC.
fn time(entry: &Entry<'_>) -> Option<String> {
    let time = Timestamp::from_nanosecond(i128::from(entry.time_ns)).ok()?;
    let offset = entry.offset_s.filter(|offset_s| *offset_s != 0).and_then(|s| Offset::from_seconds(s).ok());
    Some(match offset {
        Some(offset) => time.display_with_offset(TimeZone::fixed(offset).to_offset(time)).to_string(),
        None => time.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_line_has_is_said_and_nothing_else() {
        let entry = Entry {
            time_ns: 1_501_772_331_000_000_000,
            offset_s: Some(7_200),
            client: b"203.0.113.7",
            method: b"GET",
            target: b"/a\x1b[2J",
            status: 200,
            bytes: Some(12_345),
            service_ns: Some(5_040_000),
            ..Entry::default()
        };
        let said = "client 203.0.113.7, time 2017-08-03T16:58:51+02:00, method GET, target /a\\u001b[2J, status 200, \
                    bytes 12,345, took 5.04 ms";
        assert_eq!(describe_fields(&present_fields(&entry)), said);
        let long = present_fields(&Entry { target: &[b'x'; 500], ..entry });
        assert_eq!(long[3].value.chars().count(), MAX_VALUE_CHARS + 1);
        let wrong = present_fields(&Entry { time_ns: i64::MIN, ..Entry::default() });
        assert!(wrong.iter().all(|field| field.field == "time"), "{wrong:?}");
    }
}
