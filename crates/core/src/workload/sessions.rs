//! Sessions: users who come, make bursts of calls with time to think in between, and go.
//!
//! ```toml
//! [load.sessions]
//! rate = 2.0                      # new sessions per second, spaced as `arrivals` says (poisson if absent)
//! bursts = "geometric:4.2"        # of one session, like a page with what belongs to it; 1 if absent
//! calls_per_burst = "3"           # the first is answered before the others are made; 1 if absent
//! think_s = "lognormal:20,1.5"    # from the last answer of a burst to the next burst; 0 if absent
//! connections = 6                 # of one session at most; 6 if absent
//! pipelined = true                # a burst's other calls go out together, on one connection; on several if absent
//! between_bursts = "keep"         # its connections, or "close" them
//! cookies = true                  # each session sends back what cookies it was given; not if absent
//! retry = true                    # a call with another answer than `expect` says is made again; the session ends if absent
//! in_progress = true              # the load begins as if it had always gone on; with no session if absent
//! sessions = 1000                 # no more than these; no bound if absent
//! ```
//!
//! or, in place of `rate` and `arrivals`,
//!
//! ```toml
//! users = 50                      # each begins another session
//! rest_s = "exponential:30"       # so long after the last one has ended; at once if absent
//! ```
//!
//! in place of `bursts` one of
//!
//! ```toml
//! stay = 0.8                      # after each burst its user stays for another one with this probability
//! calls = 50                      # of one session in all: as many bursts as it takes
//! ```
//!
//! and in place of `bursts` and `calls_per_burst` sessions that are written out, made in turn ([`Script`]).
//!
//! The bursts and think times are those of sessions as httperf's `--wsess` has them (Mosberger & Jin 1998); each number
//! is a [`Spread`]. New sessions at a `rate` whose users `stay` are a partly open system (Schroeder, Wierman &
//! Harchol-Balter 2006): the number of bursts is geometric, of mean 1/(1 − `stay`).

mod script;

pub use script::{Script, ScriptedBurst, ScriptedCall, ScriptedRequest};

use super::{LoadKind, Spread, WorkloadError};
use crate::units::Rate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a browser keeps open to one host at most.
const CONNECTIONS: u32 = 6;

/// A load of sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Fields", into = "Fields")]
#[schemars(with = "Fields", rename = "SessionLoad")]
pub struct Sessions {
    /// When they begin.
    pub comes: SessionArrivals,
    /// How many there are in all; `None` is without a bound.
    pub number: Option<u64>,
    /// Bursts of one session, at least 1; drawn as [`Spread::count`] says.
    pub bursts: Spread,
    /// In place of `bursts`, the calls of one session, at least 1 and drawn likewise: there are as many bursts as it
    /// takes, and the last one may be shorter than the others.
    pub calls_in_all: Option<Spread>,
    /// Calls of one burst, at least 1; drawn likewise. The first is answered before the others are made.
    pub calls_per_burst: Spread,
    /// Seconds from the last answer of a burst to the next burst's first call.
    pub think_s: Spread,
    /// Connections, and so calls under way, of one session at most.
    pub connections: u32,
    /// Whether the other calls of a burst go out together on one connection, as long as the server keeps it open, and
    /// not each on one of its own.
    pub pipelined: bool,
    /// What becomes of a session's connections while its user thinks.
    pub between_bursts: BetweenBursts,
    /// Whether each session keeps the cookies that it is given, and sends them.
    pub cookies: bool,
    /// Whether a call whose answer is whole, but not what was expected, is made again at once, and does not end its session.
    pub retry: bool,
    /// Whether the load begins as if it had always gone on, and not without a session.
    pub in_progress: bool,
    /// Sessions that are written out, in place of `bursts` and `calls_per_burst`: session `i` is the `i`-th of them,
    /// beginning anew after the last.
    pub scripts: Vec<Script>,
}

/// When sessions begin.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionArrivals {
    /// At a rate, whatever the server does.
    Open {
        /// Sessions per second.
        rate: Rate,
        /// How they are spaced, as `--arrivals` writes it.
        arrivals: String,
    },
    /// By users who come again.
    Closed {
        /// How many.
        users: u64,
        /// Seconds from the end of a user's session to the next one's beginning.
        rest_s: Spread,
    },
}

/// What becomes of a session's connections while its user thinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BetweenBursts {
    /// They stay open, as long as the server leaves them so.
    #[default]
    Keep,
    /// They are closed.
    Close,
}

/// [`Sessions`] as they are written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "SessionLoad")]
struct Fields {
    /// New sessions per second, whatever the server does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate: Option<f64>,
    /// How they are spaced, as `--arrivals` writes it; `poisson` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arrivals: Option<String>,
    /// In place of a rate: so many users, each beginning another session after the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    users: Option<u64>,
    /// Seconds from the end of a user's session to the next one's beginning; 0 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rest_s: Option<Spread>,
    /// So many sessions in all; no bound if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sessions: Option<u64>,
    /// Bursts of one session; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bursts: Option<Spread>,
    /// In place of `bursts`: the probability that a user stays for another burst after each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stay: Option<f64>,
    /// In place of `bursts`: calls of one session in all, in as many bursts as it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    calls: Option<Spread>,
    /// Calls of one burst; the first is answered before the others are made; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    calls_per_burst: Option<Spread>,
    /// Seconds from the last answer of a burst to the next burst's first call.
    #[serde(default = "none")]
    think_s: Spread,
    /// Connections of one session at most.
    #[serde(default = "as_browsers")]
    connections: u32,
    /// Whether the other calls of a burst go out together on one connection, as long as the server keeps it open.
    #[serde(default, skip_serializing_if = "is_not")]
    pipelined: bool,
    /// What becomes of its connections between bursts.
    #[serde(default)]
    between_bursts: BetweenBursts,
    /// Whether each session keeps the cookies that it is given, and sends them.
    #[serde(default, skip_serializing_if = "is_not")]
    cookies: bool,
    /// Whether a call whose answer is whole, but not what its class expects, is made again at once, and does not end its
    /// session.
    #[serde(default, skip_serializing_if = "is_not")]
    retry: bool,
    /// Whether the load begins as if it had always gone on.
    #[serde(default)]
    in_progress: bool,
    /// Sessions that are written out, made in turn, in place of `bursts` and `calls_per_burst`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    script: Vec<Script>,
}

impl Sessions {
    /// Sessions of one call, which come like this, and all else as it is where a document leaves it out.
    pub fn coming(comes: SessionArrivals) -> Sessions {
        Sessions {
            comes,
            number: None,
            bursts: one(),
            calls_in_all: None,
            calls_per_burst: one(),
            think_s: none(),
            connections: CONNECTIONS,
            pipelined: false,
            between_bursts: BetweenBursts::Keep,
            cookies: false,
            retry: false,
            in_progress: false,
            scripts: Vec::new(),
        }
    }

    /// What decides when the next session begins.
    pub fn kind(&self) -> LoadKind {
        match self.comes {
            SessionArrivals::Open { .. } => LoadKind::Open,
            SessionArrivals::Closed { .. } => LoadKind::Closed,
        }
    }

    /// Calls of one session, on average.
    pub fn calls(&self) -> f64 {
        match &self.calls_in_all {
            _ if !self.scripts.is_empty() => {
                let calls: usize = self.scripts.iter().flat_map(|script| &script.bursts).map(|b| b.calls.len()).sum();
                calls as f64 / self.scripts.len() as f64
            }
            Some(calls) => calls.mean(),
            None => self.bursts.mean() * self.calls_per_burst.mean(),
        }
    }

    /// Calls of the longest burst, if that has a bound.
    pub fn longest_burst(&self) -> Option<u64> {
        let written = self.scripts.iter().flat_map(|script| &script.bursts).map(|burst| burst.calls.len() as u64);
        let longest = self.calls_per_burst.quantile(1.0).ceil();
        written.max().or_else(|| longest.is_finite().then_some(longest as u64))
    }

    /// Checks what the types cannot.
    ///
    /// # Errors
    /// [`WorkloadError::BadSessions`] or [`WorkloadError::BadLoad`] with what is wrong first.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        let bad = |message: &'static str| Err(WorkloadError::BadLoad(message));
        match &self.comes {
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
        if let Some(calls) = &self.calls_in_all {
            valid("calls", calls)?;
        }
        let calls = self.calls_in_all.as_ref().map_or(1.0, Spread::mean);
        if self.bursts.mean() < 1.0 || self.calls_per_burst.mean() < 1.0 || calls < 1.0 {
            return bad("a session has 1 burst or more, and a burst 1 call or more: raise bursts or calls_per_burst");
        }
        if self.number == Some(0) {
            return bad("no sessions make no load: write sessions = 1 or more");
        }
        if self.in_progress && (self.number.is_some() || self.calls_in_all.is_some() || !self.scripts.is_empty()) {
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

/// For what a document need not say.
fn is_not(value: &bool) -> bool {
    !value
}

fn none() -> Spread {
    Spread::Constant(0.0)
}

fn as_browsers() -> u32 {
    CONNECTIONS
}

impl TryFrom<Fields> for Sessions {
    type Error = &'static str;

    fn try_from(fields: Fields) -> Result<Sessions, &'static str> {
        let comes = match (fields.rate, fields.users) {
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
            comes,
            number: sessions,
            bursts,
            calls_in_all: calls,
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
        let Sessions { comes, bursts, calls_in_all, calls_per_burst, scripts, .. } = sessions;
        let (rate, arrivals, users, rest_s) = match comes {
            SessionArrivals::Open { rate, arrivals } => (Some(rate.0), Some(arrivals), None, None),
            SessionArrivals::Closed { users, rest_s } => (None, None, Some(users), Some(rest_s)),
        };
        let drawn = scripts.is_empty();
        Fields {
            rate,
            arrivals,
            users,
            rest_s,
            sessions: sessions.number,
            bursts: (drawn && calls_in_all.is_none()).then_some(bursts),
            stay: None,
            calls: calls_in_all,
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
            comes: SessionArrivals::Open { rate: Rate(2.0), arrivals: "poisson".to_owned() },
            number: None,
            bursts: Spread::Constant(1.0),
            calls_in_all: None,
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
        assert_eq!(Sessions::with_arrivals(expected.comes.clone()), expected);
        assert_eq!((sessions.validate(), sessions.kind()), (Ok(()), LoadKind::Open));
        assert_eq!(sessions, expected);
        let users = read("users = 50").unwrap();
        assert_eq!(users.comes, SessionArrivals::Closed { users: 50, rest_s: Spread::Constant(0.0) });
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
            (read("rate = 1\nbursts = 'geometric:4.2'\ncalls_per_burst = 3").unwrap().calls() - 12.6).abs() < 1e-12
        );
        let stays = read("rate = 1\nstay = 0.75\ncalls_per_burst = 3").unwrap();
        assert_eq!((stays.bursts, stays.calls_in_all), (Spread::Geometric { mean: 4.0 }, None));
    }

    #[test]
    fn the_longest_burst_is_known_where_it_has_a_bound() {
        let longest = |toml: &str| read(toml).unwrap().longest_burst();
        assert_eq!(longest("rate = 1\ncalls_per_burst = 2.5"), Some(3));
        assert_eq!(longest("rate = 1\ncalls_per_burst = 'quantiles:0=1,1=80'"), Some(80));
        assert_eq!(longest("rate = 1\ncalls_per_burst = 'geometric:3'"), None);
        let written = "rate = 1\n[[script]]\nbursts = [{ calls = [{}, {}] }, { calls = [{}] }]";
        assert_eq!((longest(written), read(written).unwrap().calls()), (Some(2), 3.0));
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
            ("rate = 2\nbursts = 'geometric:0'", "1 or more"),
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
