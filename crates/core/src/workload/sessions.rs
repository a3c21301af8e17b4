//! Sessions: users arrive, make bursts of calls with think times in between, and leave.
//!
//! ```toml
//! [load.sessions]
//! rate = 2.0                      # new sessions per second, with the arrival process `arrivals` (poisson if absent)
//! bursts = "geometric:4.2"        # number of bursts per session; 1 if absent
//! calls_per_burst = "3"           # calls per burst, like a page and its images; 1 if absent
//! think_s = "lognormal:20,1.5"    # from the last answer of a burst to the next burst; 0 if absent
//! connections = 6                 # maximum number of connections per session; 6 if absent
//! pipelined = true                # calls after the first share a connection; if absent, each call has its own
//! between_bursts = "keep"         # keep the connections open during think times, or "close" them
//! cookies = true                  # each session returns its cookies; if absent, cookies are ignored
//! retry = true                    # repeat a call with an unexpected answer; if absent, the session ends
//! in_progress = true              # begin in the steady state; if absent, begin without sessions
//! sessions = 1000                 # total number of sessions; unlimited if absent
//! ```
//!
//! or, in place of `rate` and `arrivals`,
//!
//! ```toml
//! users = 50                      # each user begins one session after another
//! rest_s = "exponential:30"       # from the end of a user's session to the next one; 0 if absent
//! ```
//!
//! or, in place of `bursts`, one of
//!
//! ```toml
//! stay = 0.8                      # probability of another burst after each burst
//! calls = 50                      # number of calls per session, which determines the number of bursts
//! ```
//!
//! Scripted sessions ([`Script`]) can replace `bursts` and `calls_per_burst`. New sessions use the scripts in order.
//!
//! Bursts and think times are those of httperf's `--wsess` (Mosberger & Jin 1998): the first call of a burst is sent
//! alone, and the other calls are sent when it is answered. Numbers of bursts and calls, and times, can be constants or
//! distributions ([`Spread`]). A load with `rate` and `stay` is a partly open system (Schroeder, Wierman &
//! Harchol-Balter 2006), with a geometric number of bursts of mean 1/(1 − `stay`).

mod script;

pub use script::{Script, ScriptedBurst, ScriptedCall, ScriptedRequest};

use super::{LoadKind, Spread, WorkloadError};
use crate::JsonSchema;
use crate::number::is_default;
use crate::units::Rate;
use serde::{Deserialize, Serialize};

/// Default number of connections of a session: browsers open at most six connections to a host.
const BROWSER_CONNECTIONS: u32 = 6;

/// A load of sessions: users arrive, make bursts of calls with think times in between, and leave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Fields", into = "Fields")]
#[schemars(with = "Fields", rename = "SessionLoad")]
pub struct Sessions {
    /// The rule that determines when sessions begin.
    pub session_arrivals: SessionArrivals,
    /// Maximum number of sessions in total; `None` if unlimited.
    pub max_sessions: Option<u64>,
    /// Distribution of the number of bursts (groups of calls) of a session, at least 1, drawn by [`Spread::count`].
    pub bursts: Spread,
    /// Alternative to `bursts`: distribution of the number of calls of a session, at least 1, drawn by
    /// [`Spread::count`]. It determines the number of bursts; the last burst may have fewer calls than the others.
    pub calls_per_session: Option<Spread>,
    /// Distribution of the number of calls of a burst, at least 1, drawn by [`Spread::count`]. The calls after the
    /// first are sent when the first call is answered.
    pub calls_per_burst: Spread,
    /// Distribution of the think time: seconds from the last answer of a burst to the first call of the next burst.
    pub think_s: Spread,
    /// Maximum number of connections of a session, which is also the maximum number of its calls in flight.
    pub connections: u32,
    /// Whether the calls of a burst after the first are sent together on one connection, while the server keeps the
    /// connection open. If false, each of these calls is sent on its own connection.
    pub pipelined: bool,
    /// Whether a session's connections stay open during think times.
    pub between_bursts: BetweenBursts,
    /// Whether each session stores received cookies and sends them with later requests.
    pub cookies: bool,
    /// Whether a call is repeated immediately if its response is complete but unexpected. If false, an unexpected
    /// response ends the session.
    pub retry: bool,
    /// Whether the load begins in the steady state, with sessions in progress. If false, the load begins without
    /// sessions.
    pub in_progress: bool,
    /// Alternative to `bursts` and `calls_per_burst`: scripted sessions. New sessions use the scripts in order, and
    /// begin again after the last script.
    pub scripts: Vec<Script>,
}

/// The rule that determines when sessions begin.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionArrivals {
    /// Open: sessions begin at a rate that is independent of the server.
    Open {
        /// Mean number of new sessions per second.
        rate: Rate,
        /// The arrival process, in the notation of `--arrivals`.
        arrivals: String,
    },
    /// Closed: each of a fixed number of users begins a new session after the end of the previous session.
    Closed {
        /// Number of users, which is the maximum number of sessions in progress.
        users: u64,
        /// Distribution of the time from the end of a user's session to the start of the user's next session, in
        /// seconds.
        rest_s: Spread,
    },
}

/// Whether a session's connections stay open during think times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BetweenBursts {
    /// The connections stay open, unless the server closes them.
    #[default]
    Keep,
    /// The client closes the connections after each burst.
    Close,
}

/// The serialised form of [`Sessions`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "SessionLoad")]
struct Fields {
    /// New sessions per second, independent of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate: Option<f64>,
    /// Arrival process of sessions, in the notation of `--arrivals`; `poisson` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arrivals: Option<String>,
    /// Alternative to `rate`: number of users. Each user begins a new session after the end of the previous session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    users: Option<u64>,
    /// Seconds from the end of a user's session to the start of the user's next session; 0 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rest_s: Option<Spread>,
    /// Total number of sessions; unlimited if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sessions: Option<u64>,
    /// Number of bursts (groups of calls) of a session; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bursts: Option<Spread>,
    /// Alternative to `bursts`: the probability, after each burst, of another burst.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stay: Option<f64>,
    /// Alternative to `bursts`: number of calls of a session. It determines the number of bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    calls: Option<Spread>,
    /// Number of calls of a burst; 1 if absent. The calls after the first are sent when the first call is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    calls_per_burst: Option<Spread>,
    /// Think time: seconds from the last answer of a burst to the first call of the next burst.
    #[serde(default = "none")]
    think_s: Spread,
    /// Maximum number of connections of a session.
    #[serde(default = "browser_connections")]
    connections: u32,
    /// Whether the calls of a burst after the first are sent together on one connection, while the server keeps the
    /// connection open.
    #[serde(default, skip_serializing_if = "is_default")]
    pipelined: bool,
    /// Whether a session's connections stay open between bursts.
    #[serde(default)]
    between_bursts: BetweenBursts,
    /// Whether each session stores received cookies and sends them with later requests.
    #[serde(default, skip_serializing_if = "is_default")]
    cookies: bool,
    /// Whether a call is repeated immediately if its response is complete but unexpected. If false, an unexpected
    /// response ends the session.
    #[serde(default, skip_serializing_if = "is_default")]
    retry: bool,
    /// Whether the load begins in the steady state, with sessions in progress.
    #[serde(default)]
    in_progress: bool,
    /// Alternative to `bursts` and `calls_per_burst`: scripted sessions. New sessions use the scripts in order, and
    /// begin again after the last script.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    script: Vec<Script>,
}

impl Sessions {
    /// Creates sessions of one call with these arrivals and default values for all other fields.
    pub fn with_arrivals(session_arrivals: SessionArrivals) -> Sessions {
        Sessions {
            session_arrivals,
            max_sessions: None,
            bursts: one(),
            calls_per_session: None,
            calls_per_burst: one(),
            think_s: none(),
            connections: BROWSER_CONNECTIONS,
            pipelined: false,
            between_bursts: BetweenBursts::Keep,
            cookies: false,
            retry: false,
            in_progress: false,
            scripts: Vec::new(),
        }
    }

    /// Whether the arrivals of sessions are open (independent of the server) or closed (after the end of earlier
    /// sessions).
    pub fn kind(&self) -> LoadKind {
        match self.session_arrivals {
            SessionArrivals::Open { .. } => LoadKind::Open,
            SessionArrivals::Closed { .. } => LoadKind::Closed,
        }
    }

    /// Mean number of calls per session.
    pub fn mean_calls(&self) -> f64 {
        match &self.calls_per_session {
            _ if !self.scripts.is_empty() => {
                let calls: usize = self.scripts.iter().flat_map(|script| &script.bursts).map(|b| b.calls.len()).sum();
                calls as f64 / self.scripts.len() as f64
            }
            Some(calls) => calls.mean(),
            None => self.bursts.mean() * self.calls_per_burst.mean(),
        }
    }

    /// Upper bound of the number of calls of a burst; `None` if the distribution has no upper bound.
    pub fn max_burst_calls(&self) -> Option<u64> {
        let written = self.scripts.iter().flat_map(|script| &script.bursts).map(|burst| burst.calls.len() as u64);
        let longest = self.calls_per_burst.quantile(1.0).ceil();
        written.max().or_else(|| longest.is_finite().then_some(longest as u64))
    }

    /// Checks the conditions on the fields that their types do not guarantee.
    ///
    /// # Errors
    /// Returns the first error: [`WorkloadError::BadSessions`] or [`WorkloadError::BadLoad`].
    pub fn validate(&self) -> Result<(), WorkloadError> {
        let bad = |message: &'static str| Err(WorkloadError::BadLoad(message));
        match &self.session_arrivals {
            SessionArrivals::Open { rate, .. } if !(rate.0.is_finite() && rate.0 > 0.0) => {
                return bad("a rate of sessions is above zero: write how many begin per second, like rate = 2.0");
            }
            SessionArrivals::Closed { users: 0, .. } => return bad("no users make no load: write users = 1 or more"),
            SessionArrivals::Closed { rest_s, .. } => valid("rest_s", rest_s)?,
            SessionArrivals::Open { .. } => {}
        }
        for (what, spread) in
            [("bursts", &self.bursts), ("calls_per_burst", &self.calls_per_burst), ("think_s", &self.think_s)]
        {
            valid(what, spread)?;
        }
        if let Some(calls) = &self.calls_per_session {
            valid("calls", calls)?;
        }
        let calls = self.calls_per_session.as_ref().map_or(1.0, Spread::mean);
        if self.bursts.mean() < 1.0 || self.calls_per_burst.mean() < 1.0 || calls < 1.0 {
            return bad("a session has 1 burst or more, and a burst 1 call or more: raise bursts or calls_per_burst");
        }
        if self.max_sessions == Some(0) {
            return bad("no sessions make no load: write sessions = 1 or more");
        }
        if self.in_progress
            && (self.max_sessions.is_some() || self.calls_per_session.is_some() || !self.scripts.is_empty())
        {
            return bad("a load that is in progress has no first session, and its sessions have bursts: leave out \
                        in_progress, or sessions, calls and script");
        }
        if self.connections == 0 {
            return bad("a session needs a connection: write connections = 1 or more");
        }
        Ok(())
    }
}

fn valid(what: &'static str, spread: &Spread) -> Result<(), WorkloadError> {
    spread.validate().map_err(|why| WorkloadError::BadSessions { what, why })
}

fn one() -> Spread {
    Spread::Constant(1.0)
}

fn none() -> Spread {
    Spread::Constant(0.0)
}

fn browser_connections() -> u32 {
    BROWSER_CONNECTIONS
}

impl TryFrom<Fields> for Sessions {
    type Error = &'static str;

    fn try_from(fields: Fields) -> Result<Sessions, &'static str> {
        let session_arrivals = match (fields.rate, fields.users) {
            (Some(rate), None) if fields.rest_s.is_none() => SessionArrivals::Open {
                rate: Rate(rate),
                arrivals: fields.arrivals.unwrap_or_else(|| "poisson".to_owned()),
            },
            (None, Some(users)) if fields.arrivals.is_none() => {
                SessionArrivals::Closed { users, rest_s: fields.rest_s.unwrap_or_else(none) }
            }
            _ => return Err("sessions need either a rate, with arrivals or without, or users, with rest_s or without"),
        };
        let Fields { sessions, bursts, stay, calls, calls_per_burst, think_s, connections, .. } = fields;
        let Fields { pipelined, between_bursts, cookies, retry, in_progress, script, .. } = fields;
        let says_how_long =
            [bursts.is_some(), stay.is_some(), calls.is_some()].into_iter().filter(|says| *says).count();
        if says_how_long > 1 {
            return Err("how long a session is, one of bursts, stay and calls says, not several");
        }
        if !script.is_empty() && (says_how_long > 0 || calls_per_burst.is_some()) {
            return Err(
                "sessions that are written out have no other bursts: leave out script, or bursts, stay, calls \
                        and calls_per_burst",
            );
        }
        let bursts = match stay {
            Some(stay) if (0.0..1.0).contains(&stay) => Spread::Geometric { mean: (1.0 - stay).recip() },
            Some(_) => return Err("stay is a probability from 0 to below 1: 0.8 has 5 bursts in a session on average"),
            None => bursts.unwrap_or_else(one),
        };
        Ok(Sessions {
            session_arrivals,
            max_sessions: sessions,
            bursts,
            calls_per_session: calls,
            calls_per_burst: calls_per_burst.unwrap_or_else(one),
            think_s,
            connections,
            pipelined,
            between_bursts,
            cookies,
            retry,
            in_progress,
            scripts: script,
        })
    }
}

impl From<Sessions> for Fields {
    fn from(sessions: Sessions) -> Fields {
        let Sessions { session_arrivals, bursts, calls_per_session, calls_per_burst, scripts, .. } = sessions;
        let (rate, arrivals, users, rest_s) = match session_arrivals {
            SessionArrivals::Open { rate, arrivals } => (Some(rate.0), Some(arrivals), None, None),
            SessionArrivals::Closed { users, rest_s } => (None, None, Some(users), Some(rest_s)),
        };
        let drawn = scripts.is_empty();
        Fields {
            rate,
            arrivals,
            users,
            rest_s,
            sessions: sessions.max_sessions,
            bursts: (drawn && calls_per_session.is_none()).then_some(bursts),
            stay: None,
            calls: calls_per_session,
            calls_per_burst: drawn.then_some(calls_per_burst),
            think_s: sessions.think_s,
            connections: sessions.connections,
            pipelined: sessions.pipelined,
            between_bursts: sessions.between_bursts,
            cookies: sessions.cookies,
            retry: sessions.retry,
            in_progress: sessions.in_progress,
            script: scripts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(toml: &str) -> Result<Sessions, String> {
        toml::from_str(toml).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_left_out_is_as_documented() {
        let sessions = read("rate = 2").unwrap();
        let expected = Sessions {
            session_arrivals: SessionArrivals::Open { rate: Rate(2.0), arrivals: "poisson".to_owned() },
            max_sessions: None,
            bursts: Spread::Constant(1.0),
            calls_per_session: None,
            calls_per_burst: Spread::Constant(1.0),
            think_s: Spread::Constant(0.0),
            connections: 6,
            pipelined: false,
            between_bursts: BetweenBursts::Keep,
            cookies: false,
            retry: false,
            in_progress: false,
            scripts: Vec::new(),
        };
        assert_eq!(Sessions::with_arrivals(expected.session_arrivals.clone()), expected);
        assert_eq!((sessions.validate(), sessions.kind()), (Ok(()), LoadKind::Open));
        assert_eq!(sessions, expected);
        let users = read("users = 50").unwrap();
        assert_eq!(users.session_arrivals, SessionArrivals::Closed { users: 50, rest_s: Spread::Constant(0.0) });
        assert_eq!(users.kind(), LoadKind::Closed);
    }

    #[test]
    fn what_is_written_is_read_back_as_the_same() {
        for toml in [
            "rate = 2.0\narrivals = 'constant'\nbursts = 'geometric:4.2'\ncalls_per_burst = 3\n\
             think_s = 'lognormal:20,1.5'\nconnections = 2\nbetween_bursts = 'close'\nin_progress = true",
            "users = 50\nrest_s = 'exponential:30'\nbursts = 'quantiles:0=1,0.5=3,1=80'",
            "rate = 1\nsessions = 100\ncalls = 50\ncalls_per_burst = 5\nthink_s = 2\npipelined = true\ncookies = true\n\
             retry = true",
            "rate = 1\nstay = 0.8",
            "users = 1\n[[script]]\nbursts = [{ calls = [{ path = '/a' }, { class = 'x', method = 'POST', body = 'b' }], \
             think_s = 0.5 }, { calls = [{}] }]",
        ] {
            let sessions = read(toml).unwrap();
            assert_eq!(sessions.validate(), Ok(()));
            let json = serde_json::to_string(&sessions).unwrap();
            assert_eq!(serde_json::from_str::<Sessions>(&json).unwrap(), sessions, "{json}");
            assert_eq!(read(&toml::to_string(&sessions).unwrap()), Ok(sessions));
        }
        assert!(
            (read("rate = 1\nbursts = 'geometric:4.2'\ncalls_per_burst = 3").unwrap().mean_calls() - 12.6).abs()
                < 1e-12
        );
        let stays = read("rate = 1\nstay = 0.75\ncalls_per_burst = 3").unwrap();
        assert_eq!((stays.bursts, stays.calls_per_session), (Spread::Geometric { mean: 4.0 }, None));
    }

    #[test]
    fn the_longest_burst_is_known_where_it_has_a_bound() {
        let longest = |toml: &str| read(toml).unwrap().max_burst_calls();
        assert_eq!(longest("rate = 1\ncalls_per_burst = 2.5"), Some(3));
        assert_eq!(longest("rate = 1\ncalls_per_burst = 'quantiles:0=1,1=80'"), Some(80));
        assert_eq!(longest("rate = 1\ncalls_per_burst = 'geometric:3'"), None);
        let written = "rate = 1\n[[script]]\nbursts = [{ calls = [{}, {}] }, { calls = [{}] }]";
        assert_eq!((longest(written), read(written).unwrap().mean_calls()), (Some(2), 3.0));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (toml, word) in [
            ("", "either a rate"),
            ("rate = 2\nusers = 2", "either a rate"),
            ("rate = 2\nrest_s = 2", "either a rate"),
            ("users = 2\narrivals = 'poisson'", "either a rate"),
            ("rate = 2\nthink = 2", "unknown field"),
            ("rate = 2\nbetween_bursts = 'open'", "keep"),
            ("rate = 2\nbursts = 'geometric:0'", "from 1 to 1e15"),
            ("rate = 2\nbursts = 2\nstay = 0.5", "not several"),
            ("rate = 2\nbursts = 2\ncalls = 5", "not several"),
            ("rate = 2\nstay = 1", "below 1"),
            ("rate = 2\nstay = nan", "below 1"),
            ("rate = 2\nbursts = 2\n[[script]]\nbursts = []", "written out"),
            ("rate = 2\ncalls_per_burst = 2\n[[script]]\nbursts = []", "written out"),
            ("rate = 2\n[[script]]\nbursts = [{ calls = [{ uri = '/' }] }]", "unknown field"),
        ] {
            let error = read(toml).unwrap_err();
            assert!(error.contains(word), "{toml}: {error}");
        }
        for (toml, word) in [
            ("rate = 0", "above zero"),
            ("rate = nan", "above zero"),
            ("users = 0", "no users"),
            ("rate = 2\nbursts = 0.5", "1 burst or more"),
            ("rate = 2\ncalls_per_burst = 'exponential:0.5'", "1 call or more"),
            ("rate = 2\nconnections = 0", "needs a connection"),
            ("rate = 2\nsessions = 0", "no sessions"),
            ("rate = 2\ncalls = 0", "1 call or more"),
            ("rate = 2\nsessions = 2\nin_progress = true", "in_progress"),
            ("rate = 2\ncalls = 2\nin_progress = true", "in_progress"),
        ] {
            let error = read(toml).unwrap().validate().unwrap_err().to_string();
            assert!(error.contains(word), "{toml}: {error}");
        }
        let mut sessions = read("rate = 1").unwrap();
        sessions.think_s = Spread::Constant(-1.0);
        let error = sessions.validate().unwrap_err().to_string();
        assert!(error.starts_with("think_s: `-1` is not a distribution"), "{error}");
    }
}
