//! Limits on what the other side may send, so that it cannot exhaust this host's memory. They apply to the values in
//! one message, and to the rate of samples.

use super::protocol::LinkError;
use crate::schedule::Intervals;
use brimful_core::Nanos;
use brimful_core::quantity::count;

/// Maximum number of objects and lists in one message. They are limited separately from values, because even an empty
/// object (`{}`) may become a structure of some hundred bytes in memory. A sample of 512 CPUs, 4,000 interfaces and a
/// Server Module of 16 classes has fewer than 10,000 objects and lists.
const MAX_OBJECTS: usize = 12_288;
/// Maximum number of values in one message. No list in the message can be longer.
const MAX_VALUES: usize = 131_072;

/// Maximum ratio of the rate at which samples arrive to the requested rate. It exceeds 1 because the clocks of the two
/// hosts differ.
const MAX_SPEEDUP: u64 = 2;
/// Number of samples that may arrive earlier than the maximum rate allows. Samples that were delayed on the network
/// arrive together.
const MAX_BURST: u64 = 20;

/// Checks that a message does not exceed the limits on values, objects and lists. The check comes before parsing, so no
/// memory is allocated for them.
///
/// # Errors
/// Returns a text that states the exceeded limit.
pub fn check(line: &[u8]) -> Result<(), String> {
    let (mut in_string, mut escaped) = (false, false);
    let (mut objects, mut separators) = (0, 0);
    for byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => objects += 1,
            b',' => separators += 1,
            _ => {}
        }
    }
    let too_many = |most, what| Err(format!("more than {} {what} in one message", count(most as u64)));
    if objects > MAX_OBJECTS {
        return too_many(MAX_OBJECTS, "objects and lists");
    }
    // A comma stands before every value except the first of its object or list, so commas count the other values.
    if objects + separators > MAX_VALUES {
        return too_many(MAX_VALUES, "values");
    }
    Ok(())
}

/// Checks that samples do not arrive much faster than requested.
#[derive(Debug)]
pub struct SampleRateCheck {
    requested: Intervals,
    begun: Nanos,
    samples: u64,
}

impl SampleRateCheck {
    /// Starts to count at the time `now`. `requested` are the intervals at which samples are requested.
    pub fn new(requested: Intervals, now: Nanos) -> SampleRateCheck {
        SampleRateCheck { requested, begun: now, samples: 0 }
    }

    /// Counts a sample that arrived at the time `now`.
    ///
    /// # Errors
    /// Returns an error if samples arrive faster than allowed.
    pub fn add_sample(&mut self, now: Nanos) -> Result<(), LinkError> {
        self.samples += 1;
        let elapsed = now - self.begun;
        if self.samples <= self.due_within(elapsed).saturating_mul(MAX_SPEEDUP).saturating_add(MAX_BURST) {
            return Ok(());
        }
        Err(LinkError(format!(
            "the watching side sends more samples than requested: {} in {}, while {} were due. Check whether it is a \
             `brimful watch --serve` that you started",
            self.samples,
            elapsed.to_rounded_string(),
            self.due_within(elapsed)
        )))
    }

    /// Number of samples that are due within a time of length `elapsed`. Groups with equal intervals are read in the
    /// same sample.
    fn due_within(&self, elapsed: Nanos) -> u64 {
        let mut due = 0_u64;
        for interval in self.requested.distinct() {
            due = due.saturating_add(1 + elapsed.0 / interval.0.max(1));
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::samples_of_run;
    use crate::groups::GroupName;

    #[test]
    fn every_list_and_map_of_a_message_has_a_bound() {
        let list = |element: &str, count: usize| format!("[{}]", vec![element; count].join(","));
        assert_eq!(check(list("{}", MAX_OBJECTS - 1).as_bytes()), Ok(()));
        let error = check(list("{}", MAX_OBJECTS).as_bytes()).unwrap_err();
        assert_eq!(error, "more than 12,288 objects and lists in one message");
        assert!(check(list("[]", MAX_OBJECTS).as_bytes()).is_err());
        assert_eq!(check(list("0", MAX_VALUES).as_bytes()), Ok(()));
        assert_eq!(check(list("0", MAX_VALUES + 1).as_bytes()).unwrap_err(), "more than 131,072 values in one message");
        let map = |count: usize| format!("{{{}}}", vec![r#""a":1"#; count].join(","));
        assert_eq!((check(map(MAX_VALUES).as_bytes()), check(map(MAX_VALUES + 1).as_bytes()).is_err()), (Ok(()), true));
    }

    #[test]
    fn what_is_inside_text_counts_for_nothing() {
        let text = serde_json::to_string(&"[{,\"\\".repeat(100_000)).unwrap();
        assert_eq!(check(text.as_bytes()), Ok(()));
        let after = format!("[{text},{}]", vec!["{}"; MAX_OBJECTS].join(","));
        assert!(check(after.as_bytes()).is_err(), "values after the text count");
        assert_eq!(check(&serde_json::to_vec(&samples_of_run(0)).unwrap()), Ok(()));
        assert_eq!(check(b"\"\\"), Ok(()));
    }

    #[test]
    fn samples_at_ten_times_the_rate_asked_are_refused_and_late_ones_are_not() {
        let (start, second) = (Nanos::from_secs(7), Nanos::from_secs(1));
        let mut requested = Intervals::uniform(second);
        requested.set(GroupName::Process, Some(Nanos::from_secs(5)));
        let mut pace = SampleRateCheck::new(requested, start);
        // All samples that became due while the network was blocked arrive at once.
        let late = start + Nanos::from_secs(60);
        assert!((0..73).all(|_| pace.add_sample(late).is_ok()));
        let mut pace = SampleRateCheck::new(requested, start);
        let refused = (0..100).find_map(|k| pace.add_sample(start + Nanos(k * second.0 / 10)).err()).unwrap();
        let words = "the watching side sends more samples than requested: ";
        assert!(refused.0.starts_with(words) && refused.0.contains(" were due. "), "{}", refused.0);
        let mut pace = SampleRateCheck::new(requested, start);
        assert!((0..10_000).all(|k| pace.add_sample(start + Nanos(k * second.0)).is_ok()));
    }
}
