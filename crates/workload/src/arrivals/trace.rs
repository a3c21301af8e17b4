//! Recorded traces of arrivals, played back at a chosen speed.

use crate::ArrivalsError;
use brimful_core::Nanos;
use std::str::FromStr;
use std::sync::Arc;

/// Recorded arrival times, relative to the first arrival. A trace has 8 bytes per arrival; clones share this memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    instants: Arc<[Nanos]>,
}

impl Trace {
    /// Parses a trace with one arrival per line, in seconds from any origin, in ascending order. A blank, comma or
    /// semicolon ends the number, and the rest of the line is ignored. Empty lines and lines that begin with `#` are
    /// ignored, too. Times given as seconds since 1970 have a resolution of a quarter of a microsecond.
    ///
    /// # Errors
    /// [`ArrivalsError`] if a line is malformed (it has the number of the line), or if there is no arrival.
    pub fn parse(bytes: &[u8]) -> Result<Trace, ArrivalsError> {
        let mut instants = Vec::new();
        let (mut first_s, mut last_s) = (None, f64::NEG_INFINITY);
        for (index, text) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let line = index + 1;
            let text = text.trim_ascii();
            if text.is_empty() || text[0] == b'#' {
                continue;
            }
            let at_s = seconds(text).ok_or_else(|| ArrivalsError::TraceLine { line, text: excerpt(text) })?;
            if at_s < last_s {
                return Err(ArrivalsError::TraceOrder { line, text: excerpt(text) });
            }
            last_s = at_s;
            instants.push(Nanos::from_secs_f64(at_s - *first_s.get_or_insert(at_s)));
        }
        if instants.is_empty() {
            return Err(ArrivalsError::EmptyTrace);
        }
        Ok(Trace { instants: instants.into() })
    }

    /// Number of arrivals, at least one.
    pub fn calls(&self) -> u64 {
        self.instants.len() as u64
    }

    /// Length of the shortest run that contains every arrival if the trace is played back at `speed`.
    pub fn window(&self, speed: Speed) -> Nanos {
        self.due_time(self.instants.len() - 1, speed).unwrap_or(Nanos::ZERO) + Nanos(1)
    }

    /// The time at which the arrival with this index is due; `None` after the last arrival.
    pub(super) fn due_time(&self, index: usize, speed: Speed) -> Option<Nanos> {
        self.instants.get(index).map(|at| if speed == Speed::ORIGINAL { *at } else { speed.compress(*at) })
    }
}

/// Parses the number of seconds at the start of a line.
fn seconds(line: &[u8]) -> Option<f64> {
    let separates = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b';');
    let number = line.split(separates).next()?;
    std::str::from_utf8(number).ok()?.parse().ok().filter(|s: &f64| s.is_finite())
}

/// The beginning of a line for an error message. Control characters are escaped.
fn excerpt(line: &[u8]) -> String {
    line[..line.len().min(40)].escape_ascii().to_string()
}

/// Playback speed relative to the recording, written `2x` or `2`. A value below 1 plays the trace back more slowly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed(f64);

impl Speed {
    /// The speed at which the trace was recorded.
    pub const ORIGINAL: Speed = Speed(1.0);

    /// Checks and sets the speed. `factor` must be finite and above zero.
    ///
    /// # Errors
    /// [`ArrivalsError::Speed`] if `factor` is out of range.
    pub fn new(factor: f64) -> Result<Speed, ArrivalsError> {
        let is_valid = factor.is_finite() && factor > 0.0;
        is_valid.then_some(Speed(factor)).ok_or_else(|| ArrivalsError::Speed(factor.to_string()))
    }

    /// The factor by which the trace is played back faster than it was recorded; below 1 if it is played back more
    /// slowly.
    pub fn get(self) -> f64 {
        self.0
    }

    fn compress(self, at: Nanos) -> Nanos {
        Nanos((at.0 as f64 / self.0).round() as u64)
    }
}

impl FromStr for Speed {
    type Err = ArrivalsError;

    fn from_str(text: &str) -> Result<Speed, ArrivalsError> {
        let factor = text.strip_suffix('x').unwrap_or(text).parse().ok();
        factor.and_then(|factor| Speed::new(factor).ok()).ok_or_else(|| ArrivalsError::Speed(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arrivals;
    use proptest::prelude::*;

    fn due(text: &str, speed: &str) -> Vec<Nanos> {
        Arrivals::trace(Trace::parse(text.as_bytes()).unwrap(), speed.parse().unwrap()).collect()
    }

    #[test]
    fn gaps_are_compressed_and_bursts_kept() {
        let text = "# seconds, path\r\n100.5,/a\r\n\n100.5\t/b\n  100.75 /c\n1.03e2;/d";
        assert_eq!(due(text, "1x"), [0, 0, 250, 2500].map(Nanos::from_millis));
        assert_eq!(due(text, "2x"), [0, 0, 125, 1250].map(Nanos::from_millis));
        assert_eq!(due(text, "0.5"), [0, 0, 500, 5000].map(Nanos::from_millis));
        let trace = Trace::parse(text.as_bytes()).unwrap();
        assert_eq!((trace.calls(), trace.window(Speed::ORIGINAL)), (4, Nanos(2_500_000_001)));
    }

    #[test]
    fn errors_name_the_line() {
        let message = |bytes: &[u8]| Trace::parse(bytes).unwrap_err().to_string();
        assert!(message(b"1\n\ntwo,2\n").contains("line 3 of the trace, `two,2`,"));
        assert!(message(b"# t\n2\n1.5\n").contains("line 3 of the trace, `1.5`,"));
        assert!(message(b"1\n\x1b[2J\xff\n").contains(r"line 2 of the trace, `\x1b[2J\xff`,"));
        for text in ["NaN", "inf", "-inf", "1e999", ",1", "0x10"] {
            assert!(message(text.as_bytes()).contains("line 1"), "{text}");
        }
        for text in ["", "\n\n", "# only a comment"] {
            assert_eq!(Trace::parse(text.as_bytes()), Err(ArrivalsError::EmptyTrace));
        }
    }

    #[test]
    fn speeds_as_people_write_them() {
        assert_eq!("2x".parse(), Ok(Speed(2.0)));
        assert_eq!("1.5".parse(), Ok(Speed(1.5)));
        for text in ["", "x", "0x", "-1x", "NaN", "infx", "2xx"] {
            assert!(text.parse::<Speed>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = Trace::parse(&bytes);
        }

        /// Generates texts of digits and separators, because they are valid traces more often than arbitrary bytes are.
        #[test]
        fn no_numbers_panic(text in "([-+0-9.e]{1,8}[\n,# ]){0,8}", speed in "[0-9.e-]{1,6}x") {
            if let (Ok(trace), Ok(speed)) = (Trace::parse(text.as_bytes()), speed.parse::<Speed>()) {
                let due: Vec<Nanos> = Arrivals::trace(trace.clone(), speed).collect();
                prop_assert_eq!(due.len() as u64, trace.calls());
                prop_assert_eq!(due[0], Nanos::ZERO);
                prop_assert!(due.is_sorted() && trace.window(speed) >= due[due.len() - 1]);
            }
        }

        #[test]
        fn gaps_are_divided_by_the_factor(gaps in prop::collection::vec(0u64..10_000_000, 1..50), speed in 1u64..10) {
            let mut at = 0;
            let micros: Vec<u64> = gaps.iter().map(|gap| { at += gap; at }).collect();
            let text: String = micros.iter().map(|us| format!("{}.{:06}\n", us / 1_000_000, us % 1_000_000)).collect();
            let played = due(&text, &format!("{speed}x"));
            for (due, us) in played.iter().zip(&micros) {
                let expected = (us - micros[0]) as f64 * 1000.0 / speed as f64;
                // Below 500 s, an `f64` has a resolution of 0.06 ns. Each of two roundings to nanoseconds adds an error
                // of up to 0.5 ns.
                prop_assert!((due.0 as f64 - expected).abs() <= 1.2, "{} not {}", due.0, expected);
            }
        }
    }
}
