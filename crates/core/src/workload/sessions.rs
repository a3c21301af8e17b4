//! Sessions: users who come, make bursts of calls with time to think in between, and go.
//!
//! ```toml
//! [load.sessions]
//! rate = 2.0                      # new sessions per second, spaced as `arrivals` says (poisson if absent)
//! bursts = "geometric:4.2"        # of one session, like a page with what belongs to it; 1 if absent
//! calls_per_burst = "3"           # the first is answered before the others are made; 1 if absent
//! think_s = "lognormal:20,1.5"    # from the last answer of a burst to the next burst; 0 if absent
//! connections = 6                 # of one session at most; 6 if absent
//! between_bursts = "keep"         # its connections, or "close" them
//! in_progress = true              # the load begins as if it had always gone on; with no session if absent
//! ```
//!
//! or, in place of `rate` and `arrivals`,
//!
//! ```toml
//! users = 50                      # each begins another session
//! rest_s = "exponential:30"       # so long after the last one has ended; at once if absent
//! ```
//!
//! The bursts and think times are those of sessions as httperf's `--wsess` has them (Mosberger & Jin 1998); each number
//! is a [`Spread`].

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
    /// Bursts of one session, at least 1; drawn as [`Spread::count`] says.
    pub bursts: Spread,
    /// Calls of one burst, at least 1; drawn likewise. The first is answered before the others are made.
    pub calls_per_burst: Spread,
    /// Seconds from the last answer of a burst to the next burst's first call.
    pub think_s: Spread,
    /// Connections, and so calls under way, of one session at most.
    pub connections: u32,
    /// What becomes of a session's connections while its user thinks.
    pub between_bursts: BetweenBursts,
    /// Whether the load begins as if it had always gone on, and not without a session.
    pub in_progress: bool,
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
    /// Bursts of one session.
    #[serde(default = "one")]
    bursts: Spread,
    /// Calls of one burst; the first is answered before the others are made.
    #[serde(default = "one")]
    calls_per_burst: Spread,
    /// Seconds from the last answer of a burst to the next burst's first call.
    #[serde(default = "none")]
    think_s: Spread,
    /// Connections of one session at most.
    #[serde(default = "as_browsers")]
    connections: u32,
    /// What becomes of its connections between bursts.
    #[serde(default)]
    between_bursts: BetweenBursts,
    /// Whether the load begins as if it had always gone on.
    #[serde(default)]
    in_progress: bool,
}

impl Sessions {
    /// What decides when the next session begins.
    pub fn kind(&self) -> LoadKind {
        match self.comes {
            SessionArrivals::Open { .. } => LoadKind::Open,
            SessionArrivals::Closed { .. } => LoadKind::Closed,
        }
    }

    /// Calls of one session, on average.
    pub fn calls(&self) -> f64 {
        self.bursts.mean() * self.calls_per_burst.mean()
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
        if self.bursts.mean() < 1.0 || self.calls_per_burst.mean() < 1.0 {
            return bad("a session has 1 burst or more, and a burst 1 call or more: raise bursts or calls_per_burst");
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
        let Fields { bursts, calls_per_burst, think_s, connections, between_bursts, in_progress, .. } = fields;
        Ok(Sessions { comes, bursts, calls_per_burst, think_s, connections, between_bursts, in_progress })
    }
}

impl From<Sessions> for Fields {
    fn from(sessions: Sessions) -> Fields {
        let Sessions { comes, bursts, calls_per_burst, think_s, connections, between_bursts, in_progress } = sessions;
        let (rate, arrivals, users, rest_s) = match comes {
            SessionArrivals::Open { rate, arrivals } => (Some(rate.0), Some(arrivals), None, None),
            SessionArrivals::Closed { users, rest_s } => (None, None, Some(users), Some(rest_s)),
        };
        Fields {
            rate,
            arrivals,
            users,
            rest_s,
            bursts,
            calls_per_burst,
            think_s,
            connections,
            between_bursts,
            in_progress,
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
            bursts: Spread::Constant(1.0),
            calls_per_burst: Spread::Constant(1.0),
            think_s: Spread::Constant(0.0),
            connections: 6,
            between_bursts: BetweenBursts::Keep,
            in_progress: false,
        };
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
