//! Chooses the connections that the loads of a survey use. Many servers dedicate a worker to each connection while it
//! is open: prefork and threaded Apache, gunicorn, and the built-in servers of PHP, Python and Ruby. On such a server,
//! idle connections block other connections if there are more connections than workers. So the survey first measures
//! how many connections the server serves at the same time, and never opens more.
//!
//! - **The measurement** opens connections one after another. Each makes one call and then remains open without further
//!   calls. If the server dedicates a worker to each connection, the number of answered calls is the number of workers,
//!   because the other calls wait. The connections are opened slowly, so that the calls put little load on the server.
//! - **Repetition**: if the server is slow for a moment, some calls remain unanswered. So a result counts only if two
//!   measurements agree.
//! - **The pool** is the set of connections that open loads may use; calls wait for one of them. Its size is the user's
//!   choice or a number per CPU of the server, but at most the number of connections that the server serves at the same
//!   time. Closed loads have at most as many clients as the pool has connections.

use crate::bench::{IdleConnections, Pool};
use crate::first_look::InitialMeasurement;
use crate::runner::{Halt, Runner};
use crate::setup::{ConnectionLimit, Setup};
use brimful_core::Nanos;
use brimful_core::quantity::count;
use brimful_core::survey::Connections;

/// Maximum number of clients of a closed load, and initial number of connections in the pool, per CPU of the server.
const CLIENTS_PER_CPU: u64 = 32;
/// Size of the connection pool, as a multiple of the mean number of calls in progress when all CPUs are busy.
const POOL_MARGIN: f64 = 2.0;
/// Maximum size of a connection pool that the survey chooses itself.
const LARGEST_POOL: u64 = 512;
/// Mean time between the openings of two connections, as a multiple of the duration of a call. With a value of 2, the
/// calls keep about half of one CPU busy.
const OPENING_INTERVAL: f64 = 2.0;
/// Maximum duration over which the connections are opened. Some servers close idle connections after 2 s.
const LONGEST_OPENING: Nanos = Nanos::from_secs(2);
/// Minimum timeout of a call in the measurement of connections.
const MIN_TIMEOUT: Nanos = Nanos::from_millis(500);
/// Minimum timeout of a call in the measurement of connections, as a multiple of the duration of a single call.
const TIMEOUT_IN_CALLS: f64 = 10.0;
/// Maximum number of measurements of the number of connections. Fewer are made if two results agree.
const MAX_MEASUREMENTS: usize = 3;

/// The connections that the loads of the survey use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ConnectionUse {
    /// The connections as the survey's document describes them.
    pub summary: Connections,
    /// The connections that open loads may use; `None` until they are chosen.
    pool: Option<Pool>,
    /// Duration of a call without queueing, in seconds.
    call_s: f64,
}

/// Chooses the connections. `first` is the first measurement of the server, with a single client.
pub(crate) fn choose_connections(runner: &mut Runner<'_>, first: &InitialMeasurement) -> Result<ConnectionUse, Halt> {
    let setup = runner.setup;
    let is_kept = !setup.connections.one_call_each;
    let counts = &first.counts;
    let closed_by_server = is_kept && counts.completed > 1 && 2 * counts.established > counts.completed;
    let mut connections = ConnectionUse { call_s: first.call_duration_s(), ..ConnectionUse::default() };
    connections.summary.closed_by_server = closed_by_server;
    connections.summary.one_call_each = !is_kept || closed_by_server;
    let wanted = match setup.connections.limit {
        ConnectionLimit::AtMost(most) => most,
        ConnectionLimit::Pool | ConnectionLimit::Unlimited => clients_by_cpus(setup),
    };
    if is_kept {
        connections.summary.served_at_once = connections.measure_served_at_once(runner, wanted)?;
    }
    let pool_size = match setup.connections.limit {
        ConnectionLimit::Unlimited => None,
        ConnectionLimit::Pool if !is_kept => None,
        ConnectionLimit::Pool | ConnectionLimit::AtMost(_) => Some(connections.limited_by_server(wanted)),
    };
    connections.use_pool(runner, pool_size)?;
    Ok(connections)
}

impl ConnectionUse {
    /// Enlarges the pool if it is too small to keep all CPUs busy, for example because calls wait for a backend server.
    /// `capacity` is the number of calls per second that fully used CPUs would complete.
    pub fn widen_pool(&mut self, runner: &mut Runner<'_>, capacity: f64) -> Result<(), Halt> {
        let is_fixed = self.summary.served_at_once.is_some() || runner.setup.connections.limit != ConnectionLimit::Pool;
        // By Little's law, the number of calls in progress is rate × duration.
        let needed = ((POOL_MARGIN * capacity * self.call_s).ceil() as u64).min(LARGEST_POOL);
        if is_fixed || self.summary.max_connections.is_none_or(|most| needed <= most) {
            return Ok(());
        }
        self.summary.served_at_once = self.measure_served_at_once(runner, needed)?;
        self.use_pool(runner, Some(self.limited_by_server(needed)))
    }

    /// The maximum number of clients of a closed load, each of which uses one connection.
    pub fn max_clients(&self, setup: &Setup) -> u64 {
        let by_user = match setup.connections.limit {
            ConnectionLimit::AtMost(most) => most,
            ConnectionLimit::Pool | ConnectionLimit::Unlimited => u64::MAX,
        };
        self.limited_by_server(clients_by_cpus(setup).min(by_user)).max(1)
    }

    /// The pool of connections; `None` if the number of connections is not limited.
    pub fn pool(&self) -> Option<Pool> {
        self.pool.filter(|pool| pool.size.is_some())
    }

    /// The same connections without the limit of the pool, to measure its effect: each call that finds no idle
    /// connection opens a new one. `None` if the user limits the connections, if each call opens its own connection
    /// anyway, or if the server serves only some connections at the same time.
    pub fn without_pool(&self, setup: &Setup) -> Option<Pool> {
        let is_limited = matches!(setup.connections.limit, ConnectionLimit::AtMost(_));
        let has_no_alternative = is_limited || self.summary.one_call_each || self.summary.served_at_once.is_some();
        self.pool().filter(|_| !has_no_alternative).map(|pool| Pool { size: None, ..pool })
    }

    /// Whether this number of clients occupies all workers of a server that dedicates a worker to each connection;
    /// false on any other server.
    pub fn workers_are_occupied_by(&self, clients: u64) -> bool {
        self.summary.served_at_once.is_some_and(|served| clients >= served)
    }

    /// The timeout of a call in the measurement of connections.
    fn timeout(&self) -> Nanos {
        self.calls(TIMEOUT_IN_CALLS).max(MIN_TIMEOUT)
    }

    /// The duration of `number` single calls, one after another.
    fn calls(&self, number: f64) -> Nanos {
        Nanos::from_secs_f64(number * self.call_s)
    }

    fn limited_by_server(&self, wanted: u64) -> u64 {
        self.summary.served_at_once.map_or(wanted, |served| served.min(wanted))
    }

    /// Measures how many of `number` connections the server serves at the same time; `None` if it serves all of them.
    fn measure_served_at_once(&self, runner: &mut Runner<'_>, number: u64) -> Result<Option<u64>, Halt> {
        let timeout = self.timeout();
        let hold = if self.summary.closed_by_server {
            // The server closes connections after each call. So only the number of connections that it accepts at the
            // same time can be measured.
            let timeout = timeout + self.calls(number as f64);
            IdleConnections { connections: number, idle: 0, opening_time: Nanos::ZERO, timeout }
        } else {
            let opening_time = self.calls(OPENING_INTERVAL * number as f64).min(LONGEST_OPENING);
            IdleConnections { connections: number, idle: 0, opening_time, timeout }
        };
        let mut results: Vec<u64> = Vec::new();
        for _ in 0..MAX_MEASUREMENTS {
            let answered = runner.bench.open_idle_connections(&hold)?;
            if runner.bench.is_interrupted() {
                return Err(runner.interrupted());
            }
            if answered >= number {
                return Ok(None);
            }
            runner.wait_for_recovery();
            let agrees = results.contains(&answered);
            results.push(answered);
            if agrees {
                break;
            }
        }
        Ok(results.into_iter().max().map(|served| served.max(1)))
    }

    /// Makes all later loads use a pool of `size` connections. With `None`, each call that finds no idle connection
    /// opens a new one.
    fn use_pool(&mut self, runner: &mut Runner<'_>, size: Option<u64>) -> Result<(), Halt> {
        let opened_ahead =
            if runner.setup.connections.opened_ahead { self.measure_opened_ahead(runner, size)? } else { 0 };
        self.summary.max_connections = size;
        let pool = Pool { size, opened_ahead };
        self.pool = Some(pool);
        runner.bench.use_connections(pool)?;
        if self.summary.served_at_once.is_some() || self.summary.closed_by_server {
            runner.note(self.summary.to_string());
        } else if let Some(size) = size {
            runner.note(format!("open loads have a pool of {} connections", count(size)));
        }
        Ok(())
    }

    /// Measures how many connections to open before each load. TLS handshakes cost a server as much CPU time as many
    /// calls, so they should happen before a load is measured. The result is 0 if the server does not answer on a new
    /// connection while other connections are idle: some servers first wait for a request on each open connection.
    fn measure_opened_ahead(&self, runner: &mut Runner<'_>, pool_size: Option<u64>) -> Result<u64, Halt> {
        if self.summary.one_call_each || self.summary.served_at_once.is_some() {
            return Ok(0);
        }
        let idle = pool_size.unwrap_or(clients_by_cpus(runner.setup));
        let hold = IdleConnections { connections: 1, idle, opening_time: Nanos::ZERO, timeout: self.timeout() };
        if runner.bench.open_idle_connections(&hold)? == 1 {
            return Ok(idle);
        }
        runner.wait_for_recovery();
        Ok(0)
    }
}

fn clients_by_cpus(setup: &Setup) -> u64 {
    CLIENTS_PER_CPU * u64::from(setup.servers())
}
