//! The part of a `Workload` document that specifies when calls arrive:
//!
//! ```toml
//! [load]
//! rate = 1000.0             # calls per second, independent of the server
//! arrivals = "poisson"      # arrival process, in the notation of `--arrivals`; constant if absent
//! ```
//!
//! or, in place of `rate`, one of
//!
//! ```toml
//! stages = [{ length_s = 30.0, rate = 1000.0 }]             # linear, beginning at `rate` (0 if absent)
//! trace = { file = "arrivals.txt", speed = 2.0 }
//! log = { files = ["access.log"], speed = 2.0 }             # replays logged requests; only for `brimful replay`
//! clients = 10                                              # with `think_s = 1.0` between answer and next call
//! s_clients = 500                                           # with `think_s`, or with rate, stages or trace
//! sessions = { rate = 2.0, bursts = "geometric:4.2", think_s = "exponential:20" }     # see `sessions.rs`
//! ```

use super::{LoadKind, Sessions, WorkloadError};
use crate::JsonSchema;
use crate::units::{Nanos, Rate};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The load: the rule that determines when calls are due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Fields", into = "Fields")]
#[schemars(with = "Fields")]
pub enum Load {
    /// Open load: calls arrive at a constant mean rate that is independent of the server.
    Open {
        /// Mean arrival rate, in calls per second.
        rate: Rate,
        /// The arrival process, in the notation of `--arrivals`.
        arrivals: String,
    },
    /// Open load: calls arrive at a rate that changes linearly within each stage and is independent of the server.
    Stages {
        /// Calls per second at the start of the first stage.
        start: Rate,
        /// The stages (periods in which the rate changes linearly), in order.
        stages: Vec<Stage>,
        /// The arrival process: `constant` or `poisson`.
        arrivals: String,
    },
    /// Open load: calls arrive at recorded times, independent of the server.
    Trace(Trace),
    /// Open load: the requests of access logs arrive at the logged times, independent of the server. Only `brimful
    /// replay` creates this load.
    Log(LogReplay),
    /// Closed load: each client waits for the answer to its call before it makes its next call.
    Closed {
        /// Number of clients, which is the maximum number of calls in flight.
        clients: u64,
        /// Think time: time from an answer to the client's next call.
        think: Nanos,
    },
    /// S-Clients (Banga & Druschel 1997, §4): each client makes one connection attempt after another, and abandons
    /// attempts that take too long. Therefore, the rate of the attempts does not fall when the server is overloaded.
    SClients {
        /// Number of S-Clients. Each one has at most one connection attempt in progress.
        attempts: u64,
        /// The rule that determines when an S-Client begins its next attempt.
        pace: AttemptPace,
    },
    /// Sessions: users make bursts of calls with think times in between.
    Sessions(Sessions),
}

/// The rule that determines when an S-Client begins its next connection attempt (Banga & Druschel 1997, §4.4).
#[derive(Clone, Debug, PartialEq)]
pub enum AttemptPace {
    /// The next attempt begins this long after the previous connection was established. After an abandoned attempt, the
    /// next attempt begins immediately.
    Think(Nanos),
    /// Attempts are due at the times of this open load. If all S-Clients have an attempt in progress, the next attempt
    /// waits until one of them is free.
    Schedule(Box<Load>),
}

/// A stage of a load. During a stage, the rate changes linearly from the rate at the end of the previous stage to
/// `rate`. If both rates are equal, the rate is constant; if the length is zero, the rate changes immediately.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Length of the stage, in seconds.
    pub length_s: f64,
    /// Calls per second at the end of the stage.
    pub rate: f64,
}

impl Stage {
    /// Sum of the lengths of the stages.
    pub fn total_duration(stages: &[Stage]) -> Nanos {
        stages.iter().fold(Nanos::ZERO, |sum, stage| sum + Nanos::from_secs_f64(stage.length_s))
    }
}

impl FromStr for Stage {
    type Err = WorkloadError;

    /// Parses a stage in the notation `LENGTH:RATE`, like `30s:1000`.
    fn from_str(text: &str) -> Result<Stage, WorkloadError> {
        let stage = |(length, rate): (&str, &str)| {
            let length: Nanos = length.parse().ok()?;
            let rate: Rate = rate.parse().ok()?;
            Some(Stage { length_s: length.as_secs_f64(), rate: rate.0 })
        };
        text.split_once(':').and_then(stage).ok_or_else(|| WorkloadError::BadStage(text.to_owned()))
    }
}

/// A file with recorded times at which calls arrive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Path of the file, which contains one time in seconds per line.
    pub file: String,
    /// Speed of the replay relative to the recording: the times between calls are divided by this factor.
    #[serde(default = "original")]
    pub speed: f64,
}

/// Access logs whose requests are replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogReplay {
    /// Paths of the access logs.
    pub files: Vec<String>,
    /// Speed of the replay relative to the logs: the times between requests are divided by this factor.
    #[serde(default = "original")]
    pub speed: f64,
    /// Whether the requests are sent at a constant rate instead of at the logged times.
    #[serde(default)]
    pub flattened: bool,
    /// Maximum pause between two successive calls, in seconds; longer pauses are shortened to this length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_gap_s: Option<f64>,
}

/// The serialised form of [`Load`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Load")]
struct Fields {
    /// Open load: calls per second, independent of the server. With `stages`, the rate at the start of the first stage.
    /// With `s_clients`, the rate of the connection attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate: Option<f64>,
    /// Arrival process of an open load, in the notation of `--arrivals`; `constant` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arrivals: Option<String>,
    /// Open load: stages, within which the rate changes linearly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stages: Vec<Stage>,
    /// Open load: a file with recorded arrival times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<Trace>,
    /// Open load: access logs whose requests are replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log: Option<LogReplay>,
    /// Closed load: number of clients. Each client waits for the answer to its call before it makes its next call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clients: Option<u64>,
    /// Closed load: think time from an answer to the client's next call, in seconds; 0 if absent. With `s_clients`, the
    /// time from an established connection to the S-Client's next attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    think_s: Option<f64>,
    /// S-Clients: number of clients, each of which makes one connection attempt after another. With `rate`, `stages` or
    /// `trace`, the attempts are due at the times of that schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    s_clients: Option<u64>,
    /// Sessions: users make bursts of calls with think times in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sessions: Option<Sessions>,
}

impl Load {
    /// Creates a load of S-Clients without think time.
    pub fn s_clients(attempts: u64) -> Load {
        Load::SClients { attempts, pace: AttemptPace::Think(Nanos::ZERO) }
    }

    /// Creates an open load with Poisson arrivals.
    pub fn poisson(rate: Rate) -> Load {
        Load::Open { rate, arrivals: "poisson".to_owned() }
    }

    /// The load whose schedule determines when calls are due: for S-Clients with [`AttemptPace::Schedule`], the load of
    /// that schedule; otherwise, the load itself.
    pub fn schedule(&self) -> &Load {
        match self {
            Load::SClients { pace: AttemptPace::Schedule(schedule), .. } => schedule,
            load => load,
        }
    }

    /// The kind of the load: open, closed or S-Clients.
    pub fn kind(&self) -> LoadKind {
        match self {
            Load::Open { .. } | Load::Stages { .. } | Load::Trace(_) | Load::Log(_) => LoadKind::Open,
            Load::Closed { .. } => LoadKind::Closed,
            Load::SClients { .. } => LoadKind::SClients,
            Load::Sessions(sessions) => sessions.kind(),
        }
    }

    /// Checks the conditions on the fields that their types do not guarantee.
    pub(super) fn validate(&self) -> Result<(), WorkloadError> {
        let bad = |message: &'static str| Err(WorkloadError::BadLoad(message));
        let rate_is_bad = |rate: f64| !(rate.is_finite() && rate >= 0.0);
        match self {
            Load::Open { rate, .. } if rate_is_bad(rate.0) || rate.0 == 0.0 => {
                bad("a rate is above zero: give --rate a number of calls per second, like 1000")
            }
            Load::Stages { start, stages, .. }
                if rate_is_bad(start.0) || stages.iter().any(|s| rate_is_bad(s.rate) || rate_is_bad(s.length_s)) =>
            {
                bad("the length and the rate of a stage are numbers of zero or more")
            }
            Load::Trace(Trace { speed, .. }) | Load::Log(LogReplay { speed, .. })
                if rate_is_bad(*speed) || *speed == 0.0 =>
            {
                bad("the speed of a trace or a log is above zero, like 2 for twice as fast")
            }
            Load::Log(LogReplay { max_gap_s: Some(gap_s), .. }) if rate_is_bad(*gap_s) || *gap_s == 0.0 => {
                bad("the longest pause of a replay is above zero: give --max-gap a time, like 10s")
            }
            Load::Closed { clients: 0, .. } => bad("no clients make no load: give --clients at least 1"),
            Load::Sessions(sessions) => sessions.validate(),
            Load::SClients { attempts: 0, .. } => {
                bad("S-Clients with 0 attempts make no calls: give --s-clients at least 1")
            }
            Load::SClients { pace: AttemptPace::Schedule(schedule), .. } => match **schedule {
                Load::Open { .. } | Load::Stages { .. } | Load::Trace(_) => schedule.validate(),
                _ => bad("the attempts of S-Clients follow a rate, stages or a trace"),
            },
            _ => Ok(()),
        }
    }
}

const SEVERAL: &str = "a load is one of rate (or stages), trace, log, clients, s_clients and sessions, not several";
const MISSING: &str = "a load needs one of rate, stages, trace, log, clients, s_clients and sessions";

impl TryFrom<Fields> for Load {
    type Error = String;

    fn try_from(fields: Fields) -> Result<Load, String> {
        let Fields { rate, arrivals, stages, trace, log, clients, think_s, s_clients, sessions } = fields;
        let schedule = schedule(rate, arrivals, stages, trace)?;
        let think = think_s.map(think_time).transpose()?;
        let load = match (schedule, log, clients, s_clients, sessions) {
            (None, None, Some(clients), None, None) => {
                return Ok(Load::Closed { clients, think: think.unwrap_or(Nanos::ZERO) });
            }
            (None, None, None, Some(attempts), None) => {
                return Ok(Load::SClients { attempts, pace: AttemptPace::Think(think.unwrap_or(Nanos::ZERO)) });
            }
            (Some(schedule), None, None, Some(attempts), None) => {
                Load::SClients { attempts, pace: AttemptPace::Schedule(Box::new(schedule)) }
            }
            (Some(schedule), None, None, None, None) => schedule,
            (None, Some(log), None, None, None) => Load::Log(log),
            (None, None, None, None, Some(sessions)) => Load::Sessions(sessions),
            (None, None, None, None, None) => return Err(MISSING.to_owned()),
            _ => return Err(SEVERAL.to_owned()),
        };
        if think.is_some() {
            return Err("think_s is for clients, and for s_clients whose attempts have no schedule".to_owned());
        }
        Ok(load)
    }
}

/// Creates the open load that the fields `rate`, `arrivals`, `stages` and `trace` specify; `None` if they are absent.
fn schedule(
    rate: Option<f64>,
    arrivals: Option<String>,
    stages: Vec<Stage>,
    trace: Option<Trace>,
) -> Result<Option<Load>, String> {
    let has_trace_only = rate.is_none() && arrivals.is_none() && stages.is_empty();
    let is_absent = has_trace_only && trace.is_none();
    let arrivals = arrivals.unwrap_or_else(|| "constant".to_owned());
    match (trace, rate) {
        _ if is_absent => Ok(None),
        (Some(trace), _) if has_trace_only => Ok(Some(Load::Trace(trace))),
        (Some(_), _) => Err(SEVERAL.to_owned()),
        (None, start) if !stages.is_empty() => {
            Ok(Some(Load::Stages { start: Rate(start.unwrap_or(0.0)), stages, arrivals }))
        }
        (None, Some(rate)) => Ok(Some(Load::Open { rate: Rate(rate), arrivals })),
        (None, None) => Err(MISSING.to_owned()),
    }
}

fn think_time(seconds: f64) -> Result<Nanos, String> {
    if seconds.is_finite() && seconds >= 0.0 {
        Ok(Nanos::from_secs_f64(seconds))
    } else {
        Err("think_s is a number of seconds, zero or more".to_owned())
    }
}

impl From<Load> for Fields {
    fn from(load: Load) -> Fields {
        let none = Fields::default();
        match load {
            Load::Open { rate, arrivals } => Fields { rate: Some(rate.0), arrivals: Some(arrivals), ..none },
            Load::Stages { start, stages, arrivals } => {
                Fields { rate: Some(start.0), arrivals: Some(arrivals), stages, ..none }
            }
            Load::Trace(trace) => Fields { trace: Some(trace), ..none },
            Load::Log(log) => Fields { log: Some(log), ..none },
            Load::Closed { clients, think } => {
                Fields { clients: Some(clients), think_s: Some(think.as_secs_f64()), ..none }
            }
            Load::SClients { attempts, pace: AttemptPace::Think(Nanos::ZERO) } => {
                Fields { s_clients: Some(attempts), ..none }
            }
            Load::SClients { attempts, pace: AttemptPace::Think(think) } => {
                Fields { s_clients: Some(attempts), think_s: Some(think.as_secs_f64()), ..none }
            }
            Load::SClients { attempts, pace: AttemptPace::Schedule(schedule) } => {
                Fields { s_clients: Some(attempts), ..Fields::from(*schedule) }
            }
            Load::Sessions(sessions) => Fields { sessions: Some(sessions), ..none },
        }
    }
}

fn original() -> f64 {
    1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Load, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    fn sessions() -> Sessions {
        serde_json::from_str(r#"{"users": 3, "bursts": "geometric:4"}"#).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back_as_the_same() {
        let stage = |length_s, rate| Stage { length_s, rate };
        for load in [
            Load::poisson(Rate(12.5)),
            Load::Stages { start: Rate(0.0), stages: vec![stage(30.0, 1e3)], arrivals: "constant".to_owned() },
            Load::Trace(Trace { file: "a b.txt".to_owned(), speed: 2.0 }),
            Load::Log(LogReplay {
                files: vec!["a.log".to_owned(), "-".to_owned()],
                speed: 0.5,
                flattened: true,
                max_gap_s: Some(10.0),
            }),
            Load::Closed { clients: 3, think: Nanos::from_millis(1500) },
            Load::s_clients(500),
            Load::SClients { attempts: 500, pace: AttemptPace::Think(Nanos::from_millis(250)) },
            Load::SClients { attempts: 5, pace: AttemptPace::Schedule(Box::new(Load::poisson(Rate(12.5)))) },
            Load::Sessions(sessions()),
        ] {
            let json = serde_json::to_string(&load).unwrap();
            assert_eq!(read(&json), Ok(load), "{json}");
        }
        assert_eq!(read(r#"{"rate": 5}"#), Ok(Load::Open { rate: Rate(5.0), arrivals: "constant".to_owned() }));
    }

    #[test]
    fn stages_as_people_write_them() {
        assert_eq!("30s:1000".parse(), Ok(Stage { length_s: 30.0, rate: 1000.0 }));
        assert_eq!("2m:1.5k".parse(), Ok(Stage { length_s: 120.0, rate: 1500.0 }));
        for text in ["", "30s", "30s:", ":1000", "30:1000", "30s:-1", "1000:30s"] {
            assert!(text.parse::<Stage>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_load_comes_in_one_way() {
        for (json, word) in [
            ("{}", "needs one of"),
            (r#"{"rate": 5, "clients": 2}"#, "not several"),
            (r#"{"clients": 5, "s_clients": 2}"#, "not several"),
            (r#"{"trace": {"file": "x"}, "arrivals": "poisson"}"#, "not several"),
            (r#"{"log": {"files": ["x"]}, "clients": 5}"#, "not several"),
            (r#"{"sessions": {"rate": 1}, "rate": 5}"#, "not several"),
            (r#"{"sessions": {"rate": 1}, "log": {"files": ["x"]}}"#, "not several"),
            (r#"{"sessions": {}}"#, "either a rate"),
            (r#"{"rate": 5, "think_s": 2}"#, "think_s is for clients"),
            (r#"{"s_clients": 5, "rate": 5, "think_s": 2}"#, "think_s is for clients"),
            (r#"{"s_clients": 5, "arrivals": "poisson"}"#, "needs one of"),
            (r#"{"s_clients": 5, "sessions": {"rate": 1}}"#, "not several"),
            (r#"{"clients": 5, "think_s": -2}"#, "zero or more"),
            (r#"{"rates": 5}"#, "unknown field"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(word), "{json}: {error}");
        }
    }

    #[test]
    fn no_load_of_nothing() {
        let open = |rate| Load::Open { rate: Rate(rate), arrivals: "constant".to_owned() };
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(open(rate).validate().is_err(), "{rate}");
        }
        assert!(Load::Closed { clients: 0, think: Nanos::ZERO }.validate().is_err());
        assert!(Load::s_clients(0).validate().is_err());
        let scheduled = |load| Load::SClients { attempts: 5, pace: AttemptPace::Schedule(Box::new(load)) };
        assert_eq!(scheduled(open(1.0)).validate(), Ok(()));
        assert!(scheduled(open(0.0)).validate().is_err());
        assert!(scheduled(Load::s_clients(5)).validate().is_err());
        assert!(Load::Trace(Trace { file: String::new(), speed: 0.0 }).validate().is_err());
        assert!(Load::Sessions(Sessions { connections: 0, ..sessions() }).validate().is_err());
        assert_eq!(Load::Sessions(sessions()).validate(), Ok(()));
        assert_eq!(open(1.0).validate(), Ok(()));
    }
}
