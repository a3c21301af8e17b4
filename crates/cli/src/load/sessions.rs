//! Flags of `brimful load` that ask for sessions: how long they are, as httperf's `--wsess` and `--wsesslog` have it, who
//! begins them, and what they keep. All of it can stand in a Workload document, too; the flags win.

use crate::exit::UsageError;
use crate::flags::values::Arrivals;
use brimful_core::Rate;
use brimful_core::text::bytes_without_mark;
use brimful_core::units::Count;
use brimful_core::workload::{Load, SessionArrivals, Sessions, Spread, Workload};
use brimful_workload::read_session_log;
use clap::Args;
use std::path::{Path, PathBuf};

/// What is asked for of sessions.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Load")]
pub struct SessionArgs {
    /// Sessions: N1 in all, of N2 calls each, with X seconds to think between bursts
    ///
    /// As httperf has them; one after another unless --session-rate or --users says otherwise.
    #[arg(long, value_name = "N1,N2,X", value_parser = drawn, conflicts_with_all = OTHER_LOADS, hide_short_help = true)]
    pub wsess: Option<Drawn>,
    /// Sessions: N in all, in turn those in FILE, with X seconds to think between bursts
    ///
    /// The file is written as httperf reads it; X is for the bursts of which it says nothing.
    #[arg(long, value_name = "N,X,FILE", value_parser = written, conflicts_with_all = OTHER_LOADS, hide_short_help = true)]
    #[arg(conflicts_with_all = ["wsess", "burst_length"])]
    pub wsesslog: Option<Written>,
    /// Calls of one burst of --wsess: the first is answered before the others [default: 1]
    #[arg(long, value_name = "N", requires = "wsess", hide_short_help = true)]
    pub burst_length: Option<Count>,
    /// Send the others together on one connection, as httperf does [default: on up to 6]
    ///
    /// By default each has one of up to 6 connections, as browsers do.
    #[arg(long, hide_short_help = true)]
    pub pipelined: bool,
    /// This many new sessions per second, whatever the server does, spaced by --arrivals
    #[arg(long, value_name = "SESSIONS/S", hide_short_help = true)]
    pub session_rate: Option<Rate>,
    /// This many users, each of whom begins another session once the last one has ended
    #[arg(long, value_name = "N", conflicts_with = "session_rate", hide_short_help = true)]
    pub users: Option<Count>,
    /// Have each session keep the cookies that it is given, and send them
    #[arg(long, hide_short_help = true)]
    pub cookies: bool,
}

/// Loads that are none of sessions.
const OTHER_LOADS: [&str; 5] = ["rate", "clients", "s_clients", "stages", "speed"];

/// `--wsess`.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    sessions: u64,
    calls: u64,
    think_s: Spread,
}

/// `--wsesslog`.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    sessions: u64,
    think_s: Spread,
    file: PathBuf,
}

impl SessionArgs {
    /// The load of `--wsess` or `--wsesslog`, without what the other flags say of it.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn load(&self) -> anyhow::Result<Option<Load>> {
        let one_after_another = || SessionArrivals::Closed { users: 1, rest_s: Spread::Constant(0.0) };
        let sessions = match (&self.wsess, &self.wsesslog) {
            (Some(Drawn { sessions, calls, think_s }), _) => Sessions {
                number: Some(*sessions),
                calls_in_all: Some(Spread::Constant(*calls as f64)),
                calls_per_burst: Spread::Constant(self.burst_length.map_or(1.0, |length| length.0 as f64)),
                think_s: think_s.clone(),
                ..Sessions::coming(one_after_another())
            },
            (None, Some(Written { sessions, think_s, file })) => Sessions {
                number: Some(*sessions),
                think_s: think_s.clone(),
                scripts: scripts(file)?,
                ..Sessions::coming(one_after_another())
            },
            (None, None) => return Ok(None),
        };
        Ok(Some(Load::Sessions(sessions)))
    }

    /// Has a workload's sessions be as the flags say.
    ///
    /// # Errors
    /// When it has none that they could be said of.
    pub fn apply(&self, workload: &mut Workload, arrivals: &Arrivals) -> Result<(), UsageError> {
        let asked = [
            ("--burst-length", self.burst_length.is_some()),
            ("--pipelined", self.pipelined),
            ("--session-rate", self.session_rate.is_some()),
            ("--users", self.users.is_some()),
            ("--cookies", self.cookies),
        ];
        let Some(Load::Sessions(sessions)) = &mut workload.load else {
            return match asked.iter().find(|(_, asked)| *asked) {
                Some((flag, _)) => Err(UsageError(format!(
                    "{flag} is for sessions: ask for some by --wsess, --wsesslog or a --workload with [load.sessions]"
                ))),
                None => Ok(()),
            };
        };
        match (arrivals, self.session_rate, self.users) {
            (Arrivals::Trace(_), Some(_), _) => {
                return Err(UsageError(
                    "sessions do not begin by a trace: give --arrivals poisson or constant".to_owned(),
                ));
            }
            (Arrivals::Process(process), Some(rate), _) => {
                sessions.comes = SessionArrivals::Open { rate, arrivals: process.to_string() };
            }
            (_, None, Some(users)) => {
                sessions.comes = SessionArrivals::Closed { users: users.0, rest_s: Spread::Constant(0.0) };
            }
            (_, None, None) => {}
        }
        sessions.pipelined |= self.pipelined;
        sessions.cookies |= self.cookies;
        Ok(())
    }
}

/// What is written out in a file.
fn scripts(file: &Path) -> Result<Vec<brimful_core::workload::Script>, UsageError> {
    let named = |error: &dyn std::fmt::Display| UsageError(format!("{}: {error}", file.display()));
    let bytes = std::fs::read(file).map_err(|error| named(&error))?;
    read_session_log(bytes_without_mark(&bytes)).map_err(|error| named(&error))
}

/// Reads `100,50,10`.
fn drawn(text: &str) -> Result<Drawn, String> {
    let form = || {
        format!("`{text}` is no load of sessions: write sessions, calls of each and seconds to think, like 100,50,10")
    };
    let [sessions, calls, think_s] = parts(text).ok_or_else(form)?;
    let (sessions, calls) = count(sessions).zip(count(calls)).ok_or_else(form)?;
    Ok(Drawn { sessions, calls, think_s: seconds(think_s)? })
}

/// Reads `100,10,sessions.txt`.
fn written(text: &str) -> Result<Written, String> {
    let form =
        || format!("`{text}` is no load of sessions: write sessions, seconds to think and a file, like 100,10,FILE");
    let [sessions, think_s, file] = parts(text).filter(|[.., file]| !file.is_empty()).ok_or_else(form)?;
    Ok(Written { sessions: count(sessions).ok_or_else(form)?, think_s: seconds(think_s)?, file: file.into() })
}

/// Three, of which the last may have commas in it.
fn parts(text: &str) -> Option<[&str; 3]> {
    let mut parts = text.splitn(3, ',');
    Some([parts.next()?, parts.next()?, parts.next()?])
}

fn count(text: &str) -> Option<u64> {
    let count: Count = text.parse().ok()?;
    (count.0 > 0).then_some(count.0)
}

/// A number, or any other distribution of times.
fn seconds(text: &str) -> Result<Spread, String> {
    let spread: Spread = text.parse().map_err(|error: brimful_core::workload::SpreadError| error.to_string())?;
    spread.validate().map_err(|error| error.to_string())?;
    Ok(spread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_workload::Process;

    fn constant() -> Arrivals {
        Arrivals::Process(Process::Constant)
    }

    #[test]
    fn sessions_as_httperf_writes_them() {
        let drawn_ok = |sessions, calls, think: &str| Ok(Drawn { sessions, calls, think_s: think.parse().unwrap() });
        assert_eq!(drawn("100,50,10"), drawn_ok(100, 50, "10"));
        assert_eq!(drawn("1k,5,lognormal:2,1.5"), drawn_ok(1_000, 5, "lognormal:2,1.5"));
        for text in ["", "100", "100,50", "0,50,1", "100,0,1", "a,b,c", "1,1,", "1,1,-1", "1,1,soon"] {
            assert!(drawn(text).is_err(), "{text}");
        }
        let file = written("3,0.5,a,b.txt").unwrap();
        assert_eq!((file.sessions, file.think_s, file.file), (3, Spread::Constant(0.5), "a,b.txt".into()));
        for text in ["", "3,1", "3,1,", "0,1,f", "3,x,f"] {
            assert!(written(text).is_err(), "{text}");
        }
    }

    #[test]
    fn flags_win_over_the_document() {
        let mut workload = Workload::single("GET", "/");
        let asked = SessionArgs {
            wsess: Some(drawn("10,7,2").unwrap()),
            burst_length: Some(Count(3)),
            ..SessionArgs::default()
        };
        workload.load = asked.load().unwrap();
        let sessions = workload.sessions().unwrap();
        assert_eq!((sessions.number, sessions.calls(), sessions.longest_burst()), (Some(10), 7.0, Some(3)));
        assert_eq!(sessions.comes, SessionArrivals::Closed { users: 1, rest_s: Spread::Constant(0.0) });
        assert_eq!(workload.validate(), Ok(()));

        let more =
            SessionArgs { session_rate: Some(Rate(5.0)), cookies: true, pipelined: true, ..SessionArgs::default() };
        more.apply(&mut workload, &constant()).unwrap();
        let sessions = workload.sessions().unwrap();
        assert_eq!(sessions.comes, SessionArrivals::Open { rate: Rate(5.0), arrivals: "constant".to_owned() });
        assert!(sessions.cookies && sessions.pipelined && more.load().unwrap().is_none());
        assert!(more.apply(&mut workload, &Arrivals::Trace("x".into())).unwrap_err().0.contains("by a trace"));

        let users = SessionArgs { users: Some(Count(4)), ..SessionArgs::default() };
        users.apply(&mut workload, &constant()).unwrap();
        let comes = &workload.sessions().unwrap().comes;
        assert_eq!(*comes, SessionArrivals::Closed { users: 4, rest_s: Spread::Constant(0.0) });
    }

    #[test]
    fn what_is_for_sessions_is_not_for_calls() {
        let mut workload = Workload::single("GET", "/");
        assert!(SessionArgs::default().apply(&mut workload, &constant()).is_ok());
        let cookies = SessionArgs { cookies: true, ..SessionArgs::default() };
        let error = cookies.apply(&mut workload, &constant()).unwrap_err();
        assert!(error.0.starts_with("--cookies is for sessions: ask for some by --wsess"), "{}", error.0);
    }
}
