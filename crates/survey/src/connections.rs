//! Which connections the loads of a survey use. Many servers give each connection a worker for as long as it is open:
//! prefork and threaded Apache, gunicorn, PHP's, Python's and Ruby's built-in servers. More connections than workers then
//! starve one another, though each of them is idle. So the survey first finds how many connections the server serves at a
//! time, and never has more of them.
//!
//! - **The look** opens connections one after another. Each makes one call and then stays open and idle. Where the server
//!   gives each connection a worker, the first ones are answered, as many as there are workers, and all others wait. The
//!   connections come so slowly that the calls are no load to speak of.
//! - **A slow moment** looks the same as a lack of workers, so only what two looks agree on is believed.
//! - **The pool** is as large as the server allows, or as the user says. Calls of open loads wait for one of its connections;
//!   closed loads have no more clients than that.

use crate::bench::Hold;
use crate::calibration::{Capacity, MOST_CLIENTS};
use crate::found::Halt;
use crate::level::Trial;
use crate::method::Method;
use brimful_core::Nanos;
use brimful_core::quantity::count;

/// Connections that a pool has at most by itself, per server CPU: as many as a server in demand has to do with.
const POOL: u64 = MOST_CLIENTS;
/// A pool is this many times as large as the mean number of calls that have to be under way for all CPUs to be busy.
const ROOM: f64 = 2.0;
/// No pool is larger than this by itself.
const LARGEST: u64 = 512;
/// Mean time between two connections of a look, over that of a call, so that the server is about half busy.
const PACE: f64 = 2.0;
/// The longest a look takes to open its connections: servers close idle ones after 2 s and more.
const LONGEST: Nanos = Nanos::from_secs(2);
/// How long a call of a look may take at least, and over that of the first look.
const PATIENCE: Nanos = Nanos::from_millis(500);
const PATIENCE_IN_CALLS: f64 = 10.0;
/// Looks at most until two agree.
const LOOKS: usize = 3;

/// How many connections an open load may have at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionLimit {
    /// A pool that fits the server.
    #[default]
    Pool,
    /// A pool of at most this many connections.
    AtMost(u64),
    /// A new connection for each call that finds all others taken.
    Unlimited,
}

/// What the loads use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pool {
    /// Connections that an open load may have at once; `None` is one more for each call that finds all taken.
    pub most: Option<u64>,
    /// Connections that are open before a load begins.
    pub warm: u64,
}

impl Method<'_> {
    /// Finds which connections to use, by the first look at the server.
    pub(crate) fn choose_connections(&mut self, first: &Trial) -> Result<(), Halt> {
        let counts = &first.record.counts;
        let asked = self.setup.connection_limit;
        let is_kept = !self.setup.new_connections;
        let closes = is_kept && counts.completed > 1 && 2 * counts.established > counts.completed;
        self.found.connections.closed_by_server = closes;
        self.found.connections.one_call_each = !is_kept || closes;
        let wanted = match asked {
            ConnectionLimit::AtMost(most) => most,
            ConnectionLimit::Pool | ConnectionLimit::Unlimited => POOL * u64::from(self.setup.servers()),
        };
        self.found.alone_s = 1.0 / first.record.rates.completed.max(1e-9);
        if is_kept {
            self.found.connections.served_at_once = self.served_at_once(wanted, closes)?;
        }
        let served = self.found.connections.served_at_once;
        let most = match asked {
            ConnectionLimit::Unlimited => None,
            ConnectionLimit::Pool if !is_kept => None,
            _ => Some(served.map_or(wanted, |served| served.min(wanted))),
        };
        self.use_pool(most)?;
        self.say_connections();
        Ok(())
    }

    /// Makes the pool larger where more calls than it has connections have to be under way for all CPUs to be busy, as where
    /// calls wait for something else.
    pub(crate) fn widen_pool(&mut self, capacity: &Capacity) -> Result<(), Halt> {
        let connections = &self.found.connections;
        let is_limited = connections.served_at_once.is_some() || self.setup.connection_limit != ConnectionLimit::Pool;
        // By Little's law. CPUs that other programs keep busy are no reason for more connections.
        let in_use = capacity.in_use.filter(|in_use| *in_use > 0.0 && !capacity.filled).unwrap_or(1.0);
        let needed = ((ROOM * capacity.rate / in_use * self.found.alone_s).ceil() as u64).min(LARGEST);
        if is_limited || connections.most.is_none_or(|most| needed <= most) {
            return Ok(());
        }
        let served = self.served_at_once(needed, connections.closed_by_server)?;
        self.found.connections.served_at_once = served;
        self.use_pool(Some(served.map_or(needed, |served| served.min(needed))))?;
        self.say_connections();
        Ok(())
    }

    /// The most clients of a closed load: each has a connection.
    pub(crate) fn most_clients(&self) -> u64 {
        let by_cpus = MOST_CLIENTS * u64::from(self.setup.servers());
        let asked = match self.setup.connection_limit {
            ConnectionLimit::AtMost(most) => Some(most),
            ConnectionLimit::Pool | ConnectionLimit::Unlimited => None,
        };
        [self.found.connections.served_at_once, asked].into_iter().flatten().fold(by_cpus, u64::min).max(1)
    }

    /// Whether so many clients occupy all that the server serves at a time.
    pub(crate) fn occupies_all(&self, clients: u64) -> bool {
        self.found.connections.served_at_once.is_some_and(|served| clients >= served)
    }

    /// How many of so many connections the server serves at a time; `None` if all of them.
    fn served_at_once(&mut self, connections: u64, closes: bool) -> Result<Option<u64>, Halt> {
        let alone = Nanos::from_secs_f64(self.found.alone_s);
        let scaled = |factor: f64| Nanos::from_secs_f64(factor * alone.as_secs_f64());
        let hold = Hold {
            connections,
            idle: 0,
            // One that closes connections holds none of them: only how many it accepts at once can be seen.
            lasts: if closes { Nanos::ZERO } else { scaled(PACE * connections as f64).min(LONGEST) },
            patience: scaled(PATIENCE_IN_CALLS).max(PATIENCE)
                + if closes { scaled(connections as f64) } else { Nanos::ZERO },
        };
        let mut seen: Vec<u64> = Vec::new();
        for _ in 0..LOOKS {
            let answered = self.bench.hold(&hold)?;
            if self.bench.is_interrupted() {
                return Err(self.interrupted());
            }
            if answered >= connections {
                return Ok(None);
            }
            self.recover();
            let agrees = seen.contains(&answered);
            seen.push(answered);
            if agrees {
                break;
            }
        }
        Ok(seen.into_iter().max().map(|served| served.max(1)))
    }

    fn use_pool(&mut self, most: Option<u64>) -> Result<(), Halt> {
        let warm = if self.setup.opens_ahead { self.warm_connections(most)? } else { 0 };
        self.found.connections.most = most;
        self.bench.use_connections(Pool { most, warm })?;
        Ok(())
    }

    /// Connections to open before each load. A TLS handshake costs a server as much as many calls, so handshakes are not to
    /// fall into a level. Connections on which nothing has been asked yet may hold up others even where idle ones do not.
    fn warm_connections(&mut self, most: Option<u64>) -> Result<u64, Halt> {
        let connections = &self.found.connections;
        if connections.one_call_each || connections.served_at_once.is_some() {
            return Ok(0);
        }
        let idle = most.unwrap_or(POOL * u64::from(self.setup.servers()));
        let patience = Nanos::from_secs_f64(PATIENCE_IN_CALLS * self.found.alone_s).max(PATIENCE);
        let hold = Hold { connections: 1, idle, lasts: Nanos::ZERO, patience };
        if self.bench.hold(&hold)? == 1 {
            return Ok(idle);
        }
        self.recover();
        Ok(0)
    }

    fn say_connections(&mut self) {
        let connections = &self.found.connections;
        if connections.served_at_once.is_some() || connections.closed_by_server {
            self.note(connections.to_string());
        } else if let Some(most) = connections.most {
            self.note(format!("open loads have a pool of {} connections", count(most)));
        }
    }
}
