//! Flags of `brimful load` for sessions: the sessions' length, as with httperf's `--wsess` and `--wsesslog`, the rate
//! at which sessions start, and whether they keep cookies. A Workload document can define sessions, too. The flags
//! override the values of the Workload.

use crate::exit::UsageError;
use crate::flags::values::Arrivals;
use brimful_core::Rate;
use brimful_core::text::strip_bom_bytes;
use brimful_core::units::Count;
use brimful_core::workload::{Load, SessionArrivals, Sessions, Spread, Workload};
use brimful_workload::read_session_log;
use clap::Args;
use std::path::{Path, PathBuf};

/// Flags for sessions instead of single calls.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Load")]
pub struct SessionArgs {
    /// N1 sessions of N2 calls each, with X seconds of think time between bursts
    ///
    /// Like httperf's. The sessions run one after another unless --session-rate or --users is given.
    #[arg(long, value_name = "N1,N2,X", value_parser = uniform_sessions, conflicts_with_all = OTHER_LOADS, hide_short_help = true)]
    pub wsess: Option<UniformSessions>,
    /// N sessions, taken from FILE in turn, with X seconds of think time between bursts
    ///
    /// The file has httperf's format; X applies to bursts without a think time in the file.
    #[arg(long, value_name = "N,X,FILE", value_parser = scripted_sessions, conflicts_with_all = OTHER_LOADS, hide_short_help = true)]
    #[arg(conflicts_with_all = ["wsess", "burst_length"])]
    pub wsesslog: Option<ScriptedSessions>,
    /// Calls in a burst of --wsess: the others start after the response to the first [default: 1]
    #[arg(long, value_name = "N", requires = "wsess", hide_short_help = true)]
    pub burst_length: Option<Count>,
    /// Pipeline a burst's other calls on one connection, as httperf does [default: up to 6 connections]
    ///
    /// By default they are spread over up to 6 connections, as in browsers.
    #[arg(long, hide_short_help = true)]
    pub pipelined: bool,
    /// Open loop: start this many sessions per second, spaced by --arrivals
    #[arg(long, value_name = "SESSIONS/S", hide_short_help = true)]
    pub session_rate: Option<Rate>,
    /// Closed loop: this many users, each of which starts a new session when its last one has ended
    #[arg(long, value_name = "N", conflicts_with = "session_rate", hide_short_help = true)]
    pub users: Option<Count>,
    /// Keep the cookies that a session receives, and send them in its later calls
    #[arg(long, hide_short_help = true)]
    pub cookies: bool,
}

/// Flags that define a load without sessions. They conflict with the flags that define sessions.
const OTHER_LOADS: [&str; 5] = ["rate", "clients", "s_clients", "stages", "speed"];

/// The value of `--wsess`: sessions with equal numbers of calls.
#[derive(Clone, Debug, PartialEq)]
pub struct UniformSessions {
    sessions: u64,
    calls: u64,
    think_s: Spread,
}

/// The value of `--wsesslog`: sessions that a file describes.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptedSessions {
    sessions: u64,
    think_s: Spread,
    file: PathBuf,
}

impl SessionArgs {
    /// The load of `--wsess` or `--wsesslog`, before [`apply`](Self::apply) applies the flags that change sessions.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn load(&self) -> anyhow::Result<Option<Load>> {
        let one_after_another = || SessionArrivals::Closed { users: 1, rest_s: Spread::Constant(0.0) };
        let sessions = match (&self.wsess, &self.wsesslog) {
            (Some(UniformSessions { sessions, calls, think_s }), _) => Sessions {
                max_sessions: Some(*sessions),
                calls_per_session: Some(Spread::Constant(*calls as f64)),
                calls_per_burst: Spread::Constant(self.burst_length.map_or(1.0, |length| length.0 as f64)),
                think_s: think_s.clone(),
                ..Sessions::with_arrivals(one_after_another())
            },
            (None, Some(ScriptedSessions { sessions, think_s, file })) => Sessions {
                max_sessions: Some(*sessions),
                think_s: think_s.clone(),
                scripts: scripts(file)?,
                ..Sessions::with_arrivals(one_after_another())
            },
            (None, None) => return Ok(None),
        };
        Ok(Some(Load::Sessions(sessions)))
    }

    /// Applies the flags that change existing sessions, such as --session-rate and --pipelined, to the workload.
    ///
    /// # Errors
    /// Returns an error if a flag is given but the workload has no sessions.
    pub fn apply(&self, workload: &mut Workload, arrivals: &Arrivals) -> Result<(), UsageError> {
        let given_flags = [
            ("--burst-length", self.burst_length.is_some()),
            ("--pipelined", self.pipelined),
            ("--session-rate", self.session_rate.is_some()),
            ("--users", self.users.is_some()),
            ("--cookies", self.cookies),
        ];
        let Some(Load::Sessions(sessions)) = &mut workload.load else {
            return match given_flags.iter().find(|(_, is_given)| *is_given) {
                Some((flag, _)) => Err(UsageError(format!(
                    "{flag} is for sessions: define them with --wsess, --wsesslog or a --workload with [load.sessions]"
                ))),
                None => Ok(()),
            };
        };
        match (arrivals, self.session_rate, self.users) {
            (Arrivals::Trace(_), Some(_), _) => {
                return Err(UsageError(
                    "sessions cannot start by a trace: give --arrivals poisson or constant".to_owned(),
                ));
            }
            (Arrivals::Process(process), Some(rate), _) => {
                sessions.session_arrivals = SessionArrivals::Open { rate, arrivals: process.to_string() };
            }
            (_, None, Some(users)) => {
                sessions.session_arrivals = SessionArrivals::Closed { users: users.0, rest_s: Spread::Constant(0.0) };
            }
            (_, None, None) => {}
        }
        sessions.pipelined |= self.pipelined;
        sessions.cookies |= self.cookies;
        Ok(())
    }
}

/// Reads the sessions that a file describes.
fn scripts(file: &Path) -> Result<Vec<brimful_core::workload::Script>, UsageError> {
    let named = |error: &dyn std::fmt::Display| UsageError(format!("{}: {error}", file.display()));
    let bytes = std::fs::read(file).map_err(|error| named(&error))?;
    read_session_log(strip_bom_bytes(&bytes)).map_err(|error| named(&error))
}

/// Parses the value of `--wsess`, like `100,50,10`.
fn uniform_sessions(text: &str) -> Result<UniformSessions, String> {
    let form = || {
        format!("`{text}` does not define sessions: write sessions, calls per session and think time, like 100,50,10")
    };
    let [sessions, calls, think_s] = three_parts(text).ok_or_else(form)?;
    let (sessions, calls) = count(sessions).zip(count(calls)).ok_or_else(form)?;
    Ok(UniformSessions { sessions, calls, think_s: seconds(think_s)? })
}

/// Parses the value of `--wsesslog`, like `100,10,sessions.txt`.
fn scripted_sessions(text: &str) -> Result<ScriptedSessions, String> {
    let form = || {
        format!("`{text}` does not define sessions: write sessions, think time in seconds and a file, like 100,10,FILE")
    };
    let [sessions, think_s, file] = three_parts(text).filter(|[.., file]| !file.is_empty()).ok_or_else(form)?;
    Ok(ScriptedSessions { sessions: count(sessions).ok_or_else(form)?, think_s: seconds(think_s)?, file: file.into() })
}

/// Splits a text at its first two commas.
fn three_parts(text: &str) -> Option<[&str; 3]> {
    let mut parts = text.splitn(3, ',');
    Some([parts.next()?, parts.next()?, parts.next()?])
}

fn count(text: &str) -> Option<u64> {
    let count: Count = text.parse().ok()?;
    (count.0 > 0).then_some(count.0)
}

/// Parses a number of seconds, or a distribution of times.
fn seconds(text: &str) -> Result<Spread, String> {
    let spread: Spread = text.parse().map_err(|error: brimful_core::workload::SpreadError| error.to_string())?;
    spread.validate().map_err(|error| error.to_string())?;
    Ok(spread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_workload::ArrivalProcess;

    fn constant() -> Arrivals {
        Arrivals::Process(ArrivalProcess::Constant)
    }

    #[test]
    fn sessions_as_httperf_writes_them() {
        let parsed =
            |sessions, calls, think: &str| Ok(UniformSessions { sessions, calls, think_s: think.parse().unwrap() });
        assert_eq!(uniform_sessions("100,50,10"), parsed(100, 50, "10"));
        assert_eq!(uniform_sessions("1k,5,lognormal:2,1.5"), parsed(1_000, 5, "lognormal:2,1.5"));
        for text in ["", "100", "100,50", "0,50,1", "100,0,1", "a,b,c", "1,1,", "1,1,-1", "1,1,soon"] {
            assert!(uniform_sessions(text).is_err(), "{text}");
        }
        let file = scripted_sessions("3,0.5,a,b.txt").unwrap();
        assert_eq!((file.sessions, file.think_s, file.file), (3, Spread::Constant(0.5), "a,b.txt".into()));
        for text in ["", "3,1", "3,1,", "0,1,f", "3,x,f"] {
            assert!(scripted_sessions(text).is_err(), "{text}");
        }
    }

    #[test]
    fn flags_win_over_the_document() {
        let mut workload = Workload::single_class("GET", "/");
        let asked = SessionArgs {
            wsess: Some(uniform_sessions("10,7,2").unwrap()),
            burst_length: Some(Count(3)),
            ..SessionArgs::default()
        };
        workload.load = asked.load().unwrap();
        let sessions = workload.sessions().unwrap();
        assert_eq!(
            (sessions.max_sessions, sessions.mean_calls(), sessions.max_burst_calls()),
            (Some(10), 7.0, Some(3))
        );
        assert_eq!(sessions.session_arrivals, SessionArrivals::Closed { users: 1, rest_s: Spread::Constant(0.0) });
        assert_eq!(workload.validate(), Ok(()));

        let more =
            SessionArgs { session_rate: Some(Rate(5.0)), cookies: true, pipelined: true, ..SessionArgs::default() };
        more.apply(&mut workload, &constant()).unwrap();
        let sessions = workload.sessions().unwrap();
        assert_eq!(
            sessions.session_arrivals,
            SessionArrivals::Open { rate: Rate(5.0), arrivals: "constant".to_owned() }
        );
        assert!(sessions.cookies && sessions.pipelined && more.load().unwrap().is_none());
        assert!(more.apply(&mut workload, &Arrivals::Trace("x".into())).unwrap_err().0.contains("by a trace"));

        let users = SessionArgs { users: Some(Count(4)), ..SessionArgs::default() };
        users.apply(&mut workload, &constant()).unwrap();
        let session_arrivals = &workload.sessions().unwrap().session_arrivals;
        assert_eq!(*session_arrivals, SessionArrivals::Closed { users: 4, rest_s: Spread::Constant(0.0) });
    }

    #[test]
    fn what_is_for_sessions_is_not_for_calls() {
        let mut workload = Workload::single_class("GET", "/");
        assert!(SessionArgs::default().apply(&mut workload, &constant()).is_ok());
        let cookies = SessionArgs { cookies: true, ..SessionArgs::default() };
        let error = cookies.apply(&mut workload, &constant()).unwrap_err();
        assert!(error.0.starts_with("--cookies is for sessions: define them with --wsess"), "{}", error.0);
    }
}
