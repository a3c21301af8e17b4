//! Time zones. A time zone determines the offset of local time from UTC at every point in time.

use crate::time::{DAY_S, ParsedTime, Timestamp, read_offset, write_offset};
use brimful_core::JsonSchema;
use jiff::tz::{Offset, TimeZone};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// A time zone: one of the IANA database, or a fixed offset from UTC. In documents, it is written `UTC`,
/// `Europe/Berlin` or `+01:00`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(into = "String")]
#[schemars(with = "String")]
pub struct Zone(TimeZone);

impl Zone {
    /// A time zone with a fixed offset from UTC, in seconds.
    pub fn fixed(offset_s: i32) -> Self {
        match Offset::from_seconds(offset_s) {
            Ok(offset) if offset_s != 0 => Self(TimeZone::fixed(offset)),
            _ => Self(TimeZone::UTC),
        }
    }

    /// The offset of local time from UTC at a point in time, in seconds.
    pub(crate) fn offset_s(&self, unix: i64) -> i32 {
        let nearest = if unix < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
        self.0.to_offset(jiff::Timestamp::from_second(unix).unwrap_or(nearest)).seconds()
    }

    /// The point in time at which clocks show the local time `local`, in seconds since 1970-01-01 00:00 local time. If
    /// this local time occurs twice, returns the first occurrence. If clocks skip it, the result is later by the length
    /// of the skip.
    pub(crate) fn time(&self, local: i64) -> Timestamp {
        // Clocks change by less than a day, so a change near the local time is between these two times.
        let [before, after] = [local - DAY_S, local + DAY_S].map(|unix| i64::from(self.offset_s(unix)));
        let shows = |offset: i64| i64::from(self.offset_s(local - offset)) == offset;
        let offset = if !shows(before) && shows(after) { after } else { before };
        self.show(Timestamp::from_unix(local - offset))
    }

    /// The same point in time with this zone's offset from UTC.
    pub(crate) fn show(&self, time: Timestamp) -> Timestamp {
        time.with_offset(self.offset_s(time.unix()))
    }

    /// Converts a parsed time to this zone. A time without an offset is read as local time of this zone.
    pub(crate) fn read(&self, written: ParsedTime) -> Timestamp {
        match written {
            ParsedTime::Instant(unix, _) => self.show(Timestamp::from_unix(unix)),
            ParsedTime::Clock(local) => self.time(local),
        }
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = || write_offset(self.offset_s(0));
        f.pad(&self.0.iana_name().map_or_else(offset, str::to_owned))
    }
}

impl From<Zone> for String {
    fn from(zone: Zone) -> String {
        zone.to_string()
    }
}

/// The error for a text that is not a time zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no time zone: write a name like Europe/Berlin, UTC, or an offset from it like +01:00")]
pub struct ParseZoneError(String);

impl FromStr for Zone {
    type Err = ParseZoneError;
    /// Parses a name of the IANA database, or an offset from UTC.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let offset = text.starts_with(['+', '-', 'Z', 'z']).then(|| read_offset(text));
        if let Some(offset) = offset.flatten() {
            return Ok(Self::fixed(offset));
        }
        TimeZone::get(text).map(Self).map_err(|_| ParseZoneError(text.chars().take(40).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_read_as_they_are_written() {
        for name in ["UTC", "Europe/Berlin", "America/New_York", "+01:00", "-05:30"] {
            assert_eq!(name.parse::<Zone>().unwrap_or_else(|e| panic!("{e}")).to_string(), name);
        }
        assert_eq!("Z".parse::<Zone>(), Ok(Zone::fixed(0)));
        for wrong in ["", "Europe/Atlantis", "+1", "/etc/passwd", "25:00"] {
            assert!(wrong.parse::<Zone>().expect_err(wrong).to_string().contains("Europe/Berlin"));
        }
    }

    #[test]
    fn clocks_that_change_are_followed() {
        let berlin: Zone = "Europe/Berlin".parse().unwrap_or_else(|e| panic!("{e}"));
        let shows = |local: &str| {
            let local: Timestamp = local.parse().unwrap_or_else(|e| panic!("{e}"));
            berlin.time(local.unix()).to_string()
        };
        assert_eq!(shows("2026-03-29 00:00"), "2026-03-29T00:00:00+01:00");
        assert_eq!(shows("2026-03-30 00:00"), "2026-03-30T00:00:00+02:00");
        assert_eq!(shows("2026-03-29 02:30"), "2026-03-29T03:30:00+02:00", "a skipped local time must move forward");
        assert_eq!(
            shows("2026-10-25 02:30"),
            "2026-10-25T02:30:00+02:00",
            "if a local time occurs twice, the first must be used"
        );
    }
}
