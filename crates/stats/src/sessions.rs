//! Counts the sessions of a run by outcome, and records their sizes and lifetimes.
//!
//! The sizes of a session are its numbers of calls, bursts of calls, and connections. They are recorded in
//! distributions of times, as one nanosecond per unit. So means and extremes are exact, and quantiles have three
//! significant digits. Completed and failed sessions have separate distributions. A session that was in progress when
//! the run began is counted, but its size and lifetime are not recorded, because its beginning was not observed.

use crate::distribution::Distribution;
use crate::error::StatsError;
use crate::histogram::MAX_COUNT;
use brimful_core::account::PackedSessions;
use brimful_core::record::{SessionResults, SessionSummary, Summary};
use brimful_core::{Nanos, SessionEnded};

/// Counts, sizes and lifetimes of the sessions of one shard, or of several shards after a merge.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SessionTally {
    in_progress: u64,
    completed: Ended,
    failed: Ended,
}

/// The number of sessions with one outcome, and the sizes and lifetimes of those that began within the run.
#[derive(Clone, Debug, Default, PartialEq)]
struct Ended {
    sessions: u64,
    calls: Distribution,
    bursts: Distribution,
    lifetime: Distribution,
    connections: Distribution,
}

impl SessionTally {
    /// Records a session that has ended.
    pub(crate) fn ended(&mut self, session: &SessionEnded) {
        if session.outcome.failed { self.failed.count(session) } else { self.completed.count(session) }
    }

    /// Counts sessions that were in progress at the end of the run.
    pub(crate) fn in_progress(&mut self, sessions: u64) {
        self.in_progress += sessions;
    }

    /// Adds the counts, sizes and lifetimes of `other`.
    pub(crate) fn merge(&mut self, other: &SessionTally) {
        self.in_progress += other.in_progress;
        self.completed.merge(&other.completed);
        self.failed.merge(&other.failed);
    }

    /// Clears all statistics, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.in_progress = 0;
        for Ended { sessions, calls, bursts, lifetime, connections } in [&mut self.completed, &mut self.failed] {
            *sessions = 0;
            [calls, bursts, lifetime, connections].into_iter().for_each(Distribution::clear);
        }
    }

    /// The session statistics of a Record. `window` is the time in which load was offered.
    pub(crate) fn figures(&self, window: Nanos) -> SessionResults {
        let SessionTally { in_progress, completed, failed } = self;
        let started = completed.sessions + failed.sessions + in_progress;
        SessionResults {
            started,
            completed: completed.sessions,
            failed: failed.sessions,
            in_progress: *in_progress,
            rate: if window == Nanos::ZERO { 0.0 } else { started as f64 / window.as_secs_f64() },
            calls: summary(&completed.calls, 1.0),
            bursts: summary(&completed.bursts, 1.0),
            lifetime_s: summary(&completed.lifetime, 1e9),
            connections: summary(&completed.connections, 1.0),
            failed_calls: summary(&failed.calls, 1.0),
            failed_bursts: summary(&failed.bursts, 1.0),
            failed_lifetime_s: summary(&failed.lifetime, 1e9),
            failed_connections: summary(&failed.connections, 1.0),
        }
    }

    pub(crate) fn pack(&self) -> PackedSessions {
        let SessionTally { in_progress, completed, failed } = self;
        PackedSessions {
            completed: completed.sessions,
            failed: failed.sessions,
            in_progress: *in_progress,
            calls: completed.calls.pack(),
            bursts: completed.bursts.pack(),
            lifetime: completed.lifetime.pack(),
            connections: completed.connections.pack(),
            failed_calls: failed.calls.pack(),
            failed_bursts: failed.bursts.pack(),
            failed_lifetime: failed.lifetime.pack(),
            failed_connections: failed.connections.pack(),
        }
    }

    pub(crate) fn unpack(packed: &PackedSessions) -> Result<SessionTally, StatsError> {
        let PackedSessions { completed, failed, in_progress, .. } = *packed;
        if completed.max(failed).max(in_progress) > MAX_COUNT {
            return Err(StatsError::Damaged("more sessions than any run has".to_owned()));
        }
        let unpack = Distribution::unpack;
        Ok(SessionTally {
            in_progress,
            completed: Ended {
                sessions: completed,
                calls: unpack(packed.calls.as_ref())?,
                bursts: unpack(packed.bursts.as_ref())?,
                lifetime: unpack(packed.lifetime.as_ref())?,
                connections: unpack(packed.connections.as_ref())?,
            },
            failed: Ended {
                sessions: failed,
                calls: unpack(packed.failed_calls.as_ref())?,
                bursts: unpack(packed.failed_bursts.as_ref())?,
                lifetime: unpack(packed.failed_lifetime.as_ref())?,
                connections: unpack(packed.failed_connections.as_ref())?,
            },
        })
    }
}

impl Ended {
    fn count(&mut self, session: &SessionEnded) {
        self.sessions += 1;
        let outcome = &session.outcome;
        if !outcome.began_before_run {
            self.calls.record(Nanos(u64::from(outcome.calls)));
            self.bursts.record(Nanos(u64::from(outcome.bursts)));
            self.lifetime.record(outcome.ended - outcome.began);
            self.connections.record(Nanos(u64::from(session.connections)));
        }
    }

    fn merge(&mut self, other: &Ended) {
        self.sessions += other.sessions;
        self.calls.merge(&other.calls);
        self.bursts.merge(&other.bursts);
        self.lifetime.merge(&other.lifetime);
        self.connections.merge(&other.connections);
    }
}

/// The summary of a distribution, in units of `unit_ns` nanoseconds.
fn summary(distribution: &Distribution, unit_ns: f64) -> Option<SessionSummary> {
    let Summary { mean, p50, p90, p99, max, .. } = distribution.summary_in(unit_ns)?;
    Some(SessionSummary { mean, p50, p90, p99, max })
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::{SessionId, SessionOutcome};

    fn session(calls: u32, lifetime_s: u64) -> SessionEnded {
        let (began, ended) = (Nanos::from_secs(5), Nanos::from_secs(5 + lifetime_s));
        let outcome = SessionOutcome { began, ended, calls, bursts: calls / 3, failed: false, began_before_run: false };
        SessionEnded { session: SessionId(calls), outcome, connections: 2 }
    }

    fn of(sessions: &[SessionEnded], in_progress: u64) -> SessionTally {
        let mut tally = SessionTally::default();
        sessions.iter().for_each(|session| tally.ended(session));
        tally.in_progress(in_progress);
        tally
    }

    #[test]
    fn figures_are_those_of_whole_sessions_that_were_completed() {
        let mut failed = session(1_000, 900);
        (failed.outcome.failed, failed.connections) = (true, 7);
        let mut old = session(2_000, 900);
        old.outcome.began_before_run = true;
        let figures = of(&[session(3, 10), session(9, 40), failed, old], 4).figures(Nanos::from_secs(20));
        let SessionResults { started, completed, failed, in_progress, .. } = figures;
        assert_eq!((started, completed, failed, in_progress, figures.rate), (8, 3, 1, 4, 0.4));
        let close = |figure: Option<SessionSummary>, expected: [f64; 3]| {
            let SessionSummary { mean, p50, max, .. } = figure.unwrap();
            let near = |(a, b): (f64, f64)| (a / b - 1.0).abs() < 2e-3;
            assert!([mean, p50, max].into_iter().zip(expected).all(near), "{figure:?} is not {expected:?}");
        };
        close(figures.calls, [6.0, 3.0, 9.0]);
        close(figures.bursts, [2.0, 1.0, 3.0]);
        close(figures.lifetime_s, [25.0, 10.0, 40.0]);
        close(figures.connections, [2.0, 2.0, 2.0]);
        close(figures.failed_calls, [1_000.0; 3]);
        close(figures.failed_bursts, [333.0; 3]);
        close(figures.failed_lifetime_s, [900.0; 3]);
        close(figures.failed_connections, [7.0; 3]);
        let nothing = of(&[], 0).figures(Nanos::ZERO);
        assert_eq!(nothing, SessionResults::default());
    }

    #[test]
    fn parts_make_the_whole_and_survive_their_record() {
        let mut all = [session(3, 10), session(9, 40), session(27, 7_200), session(1, 0)];
        all[2].outcome.failed = true;
        let mut merged = of(&all[..1], 2);
        merged.merge(&of(&all[1..], 3));
        assert_eq!(merged, of(&all, 5));
        assert_eq!(SessionTally::unpack(&merged.pack()).unwrap(), merged);
        let damaged = PackedSessions { failed: u64::MAX, ..merged.pack() };
        assert!(SessionTally::unpack(&damaged).unwrap_err().to_string().contains("more sessions"));
    }
}
