//! The messages between the load generator and the monitor on the server's host, and the errors of their connection.

use super::token::{Nonce, PROTOCOL};
use crate::MonitorError;
use crate::groups::GroupName;
use crate::sampler::Sample;
use crate::schedule::Intervals;
use brimful_core::Nanos;
use brimful_core::server::Overhead;
use brimful_core::text::one_line;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};

/// Maximum length of a message from the load generator, in bytes.
pub const MAX_REQUEST_BYTES: usize = 4 << 10;
/// Maximum length of a message from the monitor, in bytes: enough for samples of hundreds of CPUs and thousands of
/// interfaces.
pub const MAX_ANSWER_BYTES: usize = 4 << 20;

/// A message from the client, which is the load generator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// The client's first message. The monitor accepts other requests only after it, and only from a client that knows
    /// the token.
    Hello {
        /// The client's nonce.
        nonce: Nonce,
        /// Proves that the client knows the token.
        proof: String,
    },
    /// Requests a clock reading.
    Clock {},
    /// Requests samples from now on.
    Watch {
        /// Intervals in nanoseconds by the groups' names. Groups that are not listed are not sampled.
        every: BTreeMap<String, Nanos>,
    },
    /// Requests the last sample. No further samples follow.
    Stop {},
}

/// A message from the monitor on the server's host (the watching side).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The first message. The monitor sends it before the client sends anything.
    Greeting {
        /// Name of the protocol: [`PROTOCOL`].
        protocol: String,
        /// The version of brimful.
        version: String,
        /// The monitor's nonce for this connection. The first version of the protocol has no nonce.
        #[serde(default)]
        nonce: String,
    },
    /// The answer to [`Request::Hello`] of a client that knows the token.
    Welcome {
        /// Proves that the monitor also knows the token.
        proof: String,
    },
    /// A refusal with its reason. The connection ends after it.
    Refused(String),
    /// The answer to [`Request::Clock`].
    Clock {
        /// The monitor's reading of `CLOCK_MONOTONIC`.
        at: Nanos,
    },
    /// The answer to [`Request::Watch`].
    Watching {
        /// The intervals at which samples are taken, in nanoseconds by the groups' names.
        every: BTreeMap<String, Nanos>,
        /// The sources, as [`Sampler::sources`](crate::Sampler::sources) returns them.
        sources: BTreeMap<String, String>,
    },
    /// A sample, and the cost of all samples so far.
    Sample {
        /// The sample. Its times are readings of the sender's clock.
        sample: Box<Sample>,
        /// The cost of all samples so far.
        overhead: Overhead,
        /// The sources at the end of the run, which are more precise than those of [`Answer::Watching`]. Only the last
        /// sample, the answer to [`Request::Stop`], has them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<BTreeMap<String, String>>,
    },
}

/// The intervals by the groups' names, in the form in which they are sent.
pub fn intervals_by_group(intervals: Intervals) -> BTreeMap<String, Nanos> {
    GroupName::ALL.into_iter().filter_map(|group| Some((group.to_string(), intervals.get(group)?))).collect()
}

/// The intervals that a client has requested, limited to the available groups and to the bounds for intervals.
pub fn intervals(every: &BTreeMap<String, Nanos>, available: Intervals) -> Intervals {
    let mut intervals = available;
    for group in GroupName::ALL {
        let wanted = available.get(group).and(every.get(group.name()).copied());
        intervals.set(group, wanted);
    }
    intervals
}

/// A message that the two sides do not use the same protocol; `None` if they do.
pub fn protocol_mismatch(protocol: &str, peer: &str) -> Option<String> {
    let version = |protocol: &str| protocol.strip_prefix("brimful.watch/")?.parse::<u32>().ok();
    let update = match (version(protocol), version(PROTOCOL)) {
        _ if protocol == PROTOCOL => return None,
        (None, _) => return Some("it is not a `brimful watch --serve`: check the port".to_owned()),
        (theirs, ours) if theirs < ours => format!("update brimful on {peer}"),
        _ => "update brimful on this host".to_owned(),
    };
    Some(format!("it speaks {}, and this side {PROTOCOL}: {update}", sanitize(protocol)))
}

/// The reason why a connection cannot be used any longer, as a text. Parts of the text may come from the other side.
#[derive(Debug)]
pub struct LinkError(pub String);

impl From<MonitorError> for LinkError {
    fn from(error: MonitorError) -> LinkError {
        LinkError(error.to_string())
    }
}

impl From<io::Error> for LinkError {
    fn from(error: io::Error) -> LinkError {
        LinkError(match error.kind() {
            ErrorKind::UnexpectedEof => "the connection was cut off".to_owned(),
            _ => error.to_string(),
        })
    }
}

/// Escapes control characters in text of the other side, so that it is safe for a terminal, and cuts it to 500
/// characters.
pub fn sanitize(text: &str) -> String {
    one_line(text.trim()).chars().take(500).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::samples_of_run;
    use crate::{History, MonitorConfig, ProcessSelector, Sampler};
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn it_is_said_which_side_to_update() {
        assert_eq!(protocol_mismatch(PROTOCOL, "there:1"), None);
        let about = |protocol| protocol_mismatch(protocol, "there:1").unwrap();
        assert!(about("brimful.watch/1").ends_with("update brimful on there:1"));
        assert!(about("brimful.watch/4").ends_with("update brimful on this host"));
        assert!(about("SSH-2.0").contains("check the port"));
    }

    #[test]
    fn only_groups_that_there_are_can_be_wanted() {
        let mut available = Intervals::uniform(Nanos::from_secs(1));
        available.set(GroupName::Network, None);
        let wanted = intervals_by_group(Intervals::uniform(Nanos::from_millis(50)));
        let mut expected = Intervals::uniform(Nanos::from_millis(50));
        expected.set(GroupName::Network, None);
        assert_eq!(intervals(&wanted, available), expected);
        let strange = [("kernel".to_owned(), Nanos::ZERO), ("none".to_owned(), Nanos::MAX)].into();
        assert_eq!(intervals(&strange, available).get(GroupName::Kernel), Some(Nanos::from_millis(10)));
        assert_eq!(intervals(&strange, available).get(GroupName::Process), None);
    }

    #[test]
    fn samples_travel_unchanged() {
        for sample in samples_of_run(2) {
            let answer = Answer::Sample { sample: Box::new(sample), overhead: Overhead::default(), last: None };
            let line = serde_json::to_vec(&answer).unwrap();
            assert_eq!(serde_json::from_slice::<Answer>(&line).unwrap(), answer);
        }
    }

    /// Collects the JSON pointers of all numbers in a document.
    fn numbers(value: &Value, at: String, found: &mut Vec<String>) {
        match value {
            Value::Number(_) => found.push(at),
            Value::Array(items) => items.iter().enumerate().for_each(|(i, v)| numbers(v, format!("{at}/{i}"), found)),
            Value::Object(items) => items.iter().for_each(|(key, v)| numbers(v, format!("{at}/{key}"), found)),
            _ => {}
        }
    }

    /// A copy of the sample in which some numbers are replaced by numbers from `with`. A replacement that makes the
    /// document invalid as a sample is undone.
    fn tampered(sample: &Sample, with: &[u64]) -> Sample {
        let mut document = serde_json::to_value(sample).unwrap();
        let mut places = Vec::new();
        numbers(&document, String::new(), &mut places);
        for (place, with) in places.iter().zip(with.iter().cycle()).filter(|(_, with)| **with % 3 != 0) {
            let number = document.pointer_mut(place).unwrap();
            let before = std::mem::replace(number, Value::from(*with));
            if serde_json::from_value::<Sample>(document.clone()).is_err() {
                *document.pointer_mut(place).unwrap() = before;
            }
        }
        serde_json::from_value(document).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..200), deep in 0..20_000_usize,
        ) {
            let _ = serde_json::from_slice::<Answer>(&bytes);
            let _ = serde_json::from_slice::<Request>(&bytes);
            prop_assert!(serde_json::from_str::<Answer>(&"[".repeat(deep)).is_err());
        }

        /// A sample comes from another host and may contain any numbers. No sample may cause a panic.
        #[test]
        fn figures_are_made_of_any_numbers(with in proptest::collection::vec(
            prop_oneof![any::<u64>(), 0_u64..100, Just(u64::MAX), Just(1 << 32), Just(u64::MAX / 2 + 2)], 1..60,
        )) {
            let watch = MonitorConfig {
                processes: vec![ProcessSelector::Pid(std::process::id())], ports: vec![1], ..MonitorConfig::default()
            };
            let real = Sampler::open(&watch).unwrap().sample();
            let mut samples: Vec<Sample> = samples_of_run(1).into_iter().chain([real]).collect();
            for sample in samples.clone() {
                samples.push(tampered(&sample, &with));
            }
            prop_assert_ne!(tampered(&samples[2], &[77]), samples[2].clone(), "no number was replaced");
            for from in &samples {
                for to in &samples {
                    let mut history = History::default();
                    for sample in [from, to, from] {
                        history.push(sample.clone());
                    }
                    history.summary(Nanos(with[0]), Some((from.at, to.at)));
                    history.rates();
                }
            }
        }
    }
}
