//! Metrics of httperf's report that Records do not contain (Mosberger & Jin 1998, Figure 1; httperf(1), "OUTPUT"):
//! bursts of connection attempts, bytes of response heads and bodies, and lengths of sessions.
//!
//! This observer of a load's events runs in addition to the [`Collector`](crate::Collector), and only if such a report
//! is requested. Its memory grows only with the number of concurrent sessions.

use crate::distribution::Distribution;
use crate::reply_rate::ReplySampler;
use brimful_core::record::{ReplyRate, Summary};
use brimful_core::{End, Event, Nanos, Observer, ResponseSize, SessionEnded, SessionId};
use std::collections::HashMap;

/// Sessions with more responses than this are counted as sessions with this number.
const LONGEST_SESSION: usize = 10_000;
/// Number of most recent milliseconds for which connection attempts are counted. An attempt is reported only when it
/// has succeeded or failed, so the counts of earlier milliseconds can still grow.
const RECENT_MS: usize = 8_192;

/// Metrics of the connections and sessions of one shard, or of several shards after a merge.
#[derive(Clone, Debug)]
pub struct ConnectionDetail {
    /// Number of complete responses.
    responses: u64,
    head_bytes: u64,
    body_bytes: u64,
    bursts: Bursts,
    /// Number of responses of each session that has not ended.
    under_way: HashMap<SessionId, u32>,
    /// Number of sessions, indexed by their number of responses.
    lengths: Vec<u64>,
    /// Completed sessions by time of completion, in periods of five seconds.
    completed: ReplySampler,
    /// Time from the start of a failed session to its failure.
    fail_time: Distribution,
}

impl ConnectionDetail {
    /// Creates an observer of a run that offers load for at most `window`.
    pub fn new(window: Nanos) -> ConnectionDetail {
        ConnectionDetail {
            responses: 0,
            head_bytes: 0,
            body_bytes: 0,
            bursts: Bursts::default(),
            under_way: HashMap::new(),
            lengths: Vec::new(),
            completed: ReplySampler::new(window),
            fail_time: Distribution::new(),
        }
    }

    /// Mean size of a response's head and mean size of its body, in bytes.
    pub fn response_size(&self) -> (f64, f64) {
        (share(self.head_bytes, self.responses), share(self.body_bytes, self.responses))
    }

    /// Maximum number of connection attempts that one shard began within one millisecond.
    pub fn max_connect_burst(&self) -> u32 {
        self.bursts.longest
    }

    /// Completed sessions per second: statistics over the periods of five seconds in `duration`.
    pub fn session_rate(&self, duration: Nanos) -> ReplyRate {
        self.completed.summary(duration)
    }

    /// Times from the start of failed sessions to their failure; `None` if no session failed.
    pub fn fail_time_us(&self) -> Option<Summary> {
        self.fail_time.summary()
    }

    /// Number of sessions, indexed by their number of responses: the first element counts sessions without a response.
    pub fn session_lengths(&self) -> &[u64] {
        &self.lengths
    }
}

impl Observer for ConnectionDetail {
    type PerCall = ();

    fn on(&mut self, _call: &mut (), event: &Event) {
        match event {
            Event::ConnectStarted { at } => self.bursts.begun(*at),
            Event::Ended(outcome) => {
                if let (End::Completed { .. } | End::Unexpected { .. }, Some(session)) =
                    (outcome.end, outcome.call.session)
                {
                    *self.under_way.entry(session).or_default() += 1;
                }
            }
            _ => {}
        }
    }

    fn on_response(&mut self, _call: &mut (), size: &ResponseSize) {
        self.responses += 1;
        self.head_bytes += size.head;
        self.body_bytes += size.body;
    }

    fn on_session(&mut self, session: &SessionEnded) {
        let length = self.under_way.remove(&session.session).unwrap_or(0) as usize;
        let length = length.min(LONGEST_SESSION);
        if self.lengths.len() <= length {
            self.lengths.resize(length + 1, 0);
        }
        self.lengths[length] += 1;
        let outcome = &session.outcome;
        match outcome.failed {
            true => self.fail_time.record(outcome.ended - outcome.began),
            false => self.completed.record(outcome.ended),
        }
    }

    fn merge(&mut self, other: ConnectionDetail) {
        self.responses += other.responses;
        self.head_bytes += other.head_bytes;
        self.body_bytes += other.body_bytes;
        self.bursts.longest = self.bursts.longest.max(other.bursts.longest);
        self.under_way.extend(other.under_way);
        if self.lengths.len() < other.lengths.len() {
            self.lengths.resize(other.lengths.len(), 0);
        }
        for (ours, theirs) in self.lengths.iter_mut().zip(other.lengths) {
            *ours += theirs;
        }
        self.completed.merge(&other.completed);
        self.fail_time.merge(&other.fail_time);
    }
}

/// Numbers of connection attempts by the millisecond in which they began. Only recent milliseconds are kept.
#[derive(Clone, Debug, Default)]
struct Bursts {
    /// Ring buffer: for each recent millisecond of the run, its number and the number of attempts that began in it.
    recent: Vec<(u64, u32)>,
    longest: u32,
}

impl Bursts {
    fn begun(&mut self, at: Nanos) {
        let ms = at.0 / 1_000_000;
        self.recent.resize(RECENT_MS, (0, 0));
        let slot = &mut self.recent[(ms % RECENT_MS as u64) as usize];
        if slot.0 != ms {
            *slot = (ms, 0);
        }
        slot.1 += 1;
        self.longest = self.longest.max(slot.1);
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::{CallSpec, ClassId, Outcome, SessionOutcome};

    fn detail() -> ConnectionDetail {
        ConnectionDetail::new(Nanos::from_secs(20))
    }

    fn answer(detail: &mut ConnectionDetail, session: u32) {
        let call = CallSpec { session: Some(SessionId(session)), ..CallSpec::for_class(ClassId(0)) };
        let end = End::Completed { status: 200 };
        let outcome = Outcome { call, due: Nanos::ZERO, at: Nanos::ZERO, end, bytes_sent: 1, bytes_received: 1 };
        detail.on_response(&mut (), &ResponseSize { head: 100, body: 50 });
        detail.on(&mut (), &Event::Ended(outcome));
    }

    fn ended(session: u32, failed: bool, seconds: u64) -> SessionEnded {
        let (began, ended) = (Nanos::from_secs(1), Nanos::from_secs(1 + seconds));
        let outcome = SessionOutcome { began, ended, calls: 9, bursts: 1, failed, began_before_run: false };
        SessionEnded { session: SessionId(session), outcome, connections: 1 }
    }

    #[test]
    fn sessions_are_counted_by_their_responses() {
        let (mut one, mut other) = (detail(), detail());
        (0..3).for_each(|_| answer(&mut one, 7));
        answer(&mut other, 8);
        one.on_session(&ended(7, false, 2));
        other.on_session(&ended(8, true, 4));
        other.on_session(&ended(9, true, 6));
        one.merge(other);
        assert_eq!(one.session_lengths(), [1, 1, 0, 1]);
        assert_eq!((one.fail_time_us().unwrap().mean, one.response_size()), (5e6, (100.0, 50.0)));
        let rate = one.session_rate(Nanos::from_secs(10));
        assert_eq!((rate.samples, rate.max), (2, Some(0.2)));
        assert!(one.under_way.is_empty());
    }

    #[test]
    fn attempts_of_one_millisecond_are_a_burst() {
        let mut detail = detail();
        for us in [0, 100, 900, 1_000, 1_100, 8_192_000] {
            detail.on(&mut (), &Event::ConnectStarted { at: Nanos::from_micros(us) });
        }
        assert_eq!(detail.max_connect_burst(), 3);
    }
}
