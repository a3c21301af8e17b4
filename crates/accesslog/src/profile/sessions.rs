//! Identifies user sessions. A session consists of the requests of one client without a long pause. Inside a session,
//! requests with short pauses form a burst, such as a page and its embedded files. The time from one burst to the next
//! is the think time.
//!
//! A client is identified by address and `User-Agent`. So users with the same browser behind one proxy count as one
//! client, and a user who changes browsers counts as several clients. At most [`MAX_OPEN_SESSIONS`] sessions are open
//! at once (14 MiB of memory). If there are more, the session that has been idle longest is ended early. A request with
//! an earlier timestamp than the client's previous request belongs to the same burst.

use super::distinct::{DistinctCounter, fixed_hash, mix};
use super::histogram::Histogram;
use crate::Entry;
use brimful_core::profile;
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// Maximum number of open sessions.
pub const MAX_OPEN_SESSIONS: usize = 200_000;
/// Index that means "no slot": the end of a linked list.
const NO_SLOT: u32 = u32::MAX;
const SECOND_NS: f64 = 1e9;

/// Groups the requests of a log into user sessions.
#[derive(Clone, Debug)]
pub struct Sessions {
    gap_ns: u64,
    burst_gap_ns: u64,
    most_open: usize,
    /// The index (slot) of each open session, by the hash of its client.
    slots_by_client: HashMap<u64, u32, RandomState>,
    slots: Vec<OpenSession>,
    free: Vec<u32>,
    /// The slot of the session that has been idle longest.
    first: u32,
    last: u32,
    clients: DistinctCounter,
    ended: EndedSessions,
}

/// A session that has not ended.
#[derive(Clone, Copy, Debug)]
struct OpenSession {
    client: u64,
    first_ns: i64,
    last_ns: i64,
    requests: u32,
    bursts: u32,
    /// Number of requests in the current burst.
    in_burst: u32,
    /// The preceding slot in the list of slots, which is ordered by time of last use.
    before: u32,
    after: u32,
}

/// Statistics of ended sessions.
#[derive(Clone, Debug, Default)]
struct EndedSessions {
    sessions: u64,
    cut_short: u64,
    requests: Histogram,
    length_ns: Histogram,
    bursts: Histogram,
    requests_per_burst: Histogram,
    think_ns: Histogram,
}

impl Sessions {
    /// Creates a collector without sessions. A pause of `gap_s` seconds or more ends a session. A pause of more than
    /// `burst_gap_s` seconds ends a burst (a page and its embedded files).
    pub fn new(gap_s: f64, burst_gap_s: f64) -> Sessions {
        Sessions::with_most_open(gap_s, burst_gap_s, MAX_OPEN_SESSIONS)
    }

    fn with_most_open(gap_s: f64, burst_gap_s: f64, most_open: usize) -> Sessions {
        // The cast converts negative numbers and NaN to 0.
        let ns = |seconds: f64| (seconds * SECOND_NS).round() as u64;
        Sessions {
            gap_ns: ns(gap_s),
            burst_gap_ns: ns(burst_gap_s),
            most_open: most_open.max(1),
            slots_by_client: HashMap::default(),
            slots: Vec::new(),
            free: Vec::new(),
            first: NO_SLOT,
            last: NO_SLOT,
            clients: DistinctCounter::default(),
            ended: EndedSessions::default(),
        }
    }

    /// Adds a request. A request without a client belongs to no session.
    pub fn add(&mut self, entry: &Entry<'_>) {
        if !entry.client.is_empty() {
            self.add_hashed(fixed_hash(entry.client), fixed_hash(entry.user_agent), entry.time_ns);
        }
    }

    /// Adds a request with the given [`fixed_hash`] of its client and of its `User-Agent`.
    pub(crate) fn add_hashed(&mut self, client: u64, user_agent: u64, time_ns: i64) {
        let client = mix(client ^ user_agent.rotate_left(1));
        match self.slots_by_client.get(&client).copied() {
            Some(slot) => self.continue_session(slot, time_ns),
            None => self.begin_session(client, time_ns),
        }
    }

    /// Estimated number of distinct clients. A client is a pair of address and `User-Agent`.
    pub fn clients(&self) -> u64 {
        self.clients.estimate()
    }

    /// Ends all sessions and returns their metrics; `None` if there was no session. `span_s` is the length of the log
    /// in seconds.
    pub fn finish(mut self, span_s: f64) -> Option<profile::Sessions> {
        while self.first != NO_SLOT {
            self.end_session(self.first);
        }
        let ended = &self.ended;
        (ended.sessions > 0).then(|| profile::Sessions {
            gap_s: self.gap_ns as f64 / SECOND_NS,
            burst_gap_s: self.burst_gap_ns as f64 / SECOND_NS,
            sessions: ended.sessions,
            rate: ended.sessions as f64 / span_s,
            requests: ended.requests.to_times(1.0),
            length_s: ended.length_ns.to_times(SECOND_NS),
            bursts: ended.bursts.to_times(1.0),
            requests_per_burst: ended.requests_per_burst.to_times(1.0),
            think_s: ended.think_ns.to_times(SECOND_NS),
            cut_short: ended.cut_short,
        })
    }

    /// Adds a request to an open session.
    fn continue_session(&mut self, slot: u32, time_ns: i64) {
        let Some(open) = self.slots.get_mut(slot as usize) else { return };
        let pause = time_ns.abs_diff(open.last_ns);
        if pause >= self.gap_ns {
            let client = open.client;
            self.end_session(slot);
            return self.begin_session(client, time_ns);
        }
        open.requests = open.requests.saturating_add(1);
        if time_ns <= open.last_ns || pause <= self.burst_gap_ns {
            open.in_burst = open.in_burst.saturating_add(1);
        } else {
            self.ended.requests_per_burst.add(u64::from(open.in_burst));
            self.ended.think_ns.add(pause);
            open.bursts = open.bursts.saturating_add(1);
            open.in_burst = 1;
        }
        open.first_ns = open.first_ns.min(time_ns);
        open.last_ns = open.last_ns.max(time_ns);
        if slot != self.last {
            self.unlink(slot);
            self.link(slot);
        }
    }

    fn begin_session(&mut self, client: u64, time_ns: i64) {
        self.clients.add(client);
        self.end_expired(time_ns);
        if self.slots_by_client.len() >= self.most_open {
            self.ended.cut_short += 1;
            self.end_session(self.first);
        }
        let open = OpenSession {
            client,
            first_ns: time_ns,
            last_ns: time_ns,
            requests: 1,
            bursts: 1,
            in_burst: 1,
            before: NO_SLOT,
            after: NO_SLOT,
        };
        let slot = self.free.pop().unwrap_or(self.slots.len() as u32);
        match self.slots.get_mut(slot as usize) {
            Some(free) => *free = open,
            None => self.slots.push(open),
        }
        self.slots_by_client.insert(client, slot);
        self.link(slot);
    }

    /// Ends at most two expired sessions for each new session. Otherwise, a single wrong timestamp far ahead would end
    /// all sessions.
    fn end_expired(&mut self, time_ns: i64) {
        for _ in 0..2 {
            let Some(idle) = self.slots.get(self.first as usize) else { return };
            if time_ns < idle.last_ns || time_ns.abs_diff(idle.last_ns) < self.gap_ns {
                return;
            }
            self.end_session(self.first);
        }
    }

    fn end_session(&mut self, slot: u32) {
        let Some(open) = self.slots.get(slot as usize).copied() else { return };
        self.unlink(slot);
        self.slots_by_client.remove(&open.client);
        self.free.push(slot);
        self.ended.sessions += 1;
        self.ended.requests.add(u64::from(open.requests));
        self.ended.length_ns.add(open.last_ns.abs_diff(open.first_ns));
        self.ended.bursts.add(u64::from(open.bursts));
        self.ended.requests_per_burst.add(u64::from(open.in_burst));
    }

    /// Appends a slot to the list of slots, as the most recently used one.
    fn link(&mut self, slot: u32) {
        let before = std::mem::replace(&mut self.last, slot);
        match self.slots.get_mut(before as usize) {
            Some(open) => open.after = slot,
            None => self.first = slot,
        }
        if let Some(open) = self.slots.get_mut(slot as usize) {
            (open.before, open.after) = (before, NO_SLOT);
        }
    }

    fn unlink(&mut self, slot: u32) {
        let Some(OpenSession { before, after, .. }) = self.slots.get(slot as usize).copied() else { return };
        match self.slots.get_mut(before as usize) {
            Some(open) => open.after = after,
            None => self.first = after,
        }
        match self.slots.get_mut(after as usize) {
            Some(open) => open.before = before,
            None => self.last = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;
    use std::collections::BTreeMap;

    fn request<'a>(client: &'a str, user_agent: &'a str, time_s: f64) -> Entry<'a> {
        let time_ns = (time_s * 1e9) as i64;
        Entry { client: client.as_bytes(), user_agent: user_agent.as_bytes(), time_ns, ..Entry::default() }
    }

    fn sessions(requests: &[(&str, f64)]) -> profile::Sessions {
        let mut sessions = Sessions::new(1_800.0, 1.0);
        requests.iter().for_each(|(client, time)| sessions.add(&request(client, "browser", *time)));
        sessions.finish(10_000.0).unwrap()
    }

    #[test]
    fn a_session_has_bursts_and_ends_with_a_pause() {
        let found = sessions(&[
            ("a", 0.0),
            ("a", 0.5),
            ("b", 0.7),
            ("a", 1.5),
            ("a", 31.5),
            ("a", 31.4),
            ("a", 1_831.0),
            // This pause is exactly 1,800 seconds, so it must end the session.
            ("a", 3_631.0),
        ]);
        assert_eq!((found.sessions, found.rate, found.cut_short), (3, 3.0 / 10_000.0, 0));
        assert_eq!((found.requests.max, found.requests.samples), (6.0, 3));
        assert_eq!((found.bursts.max, found.bursts.mean), (3.0, 5.0 / 3.0));
        assert!((found.length_s.max - 1_831.0).abs() < 1e-6);
        assert_eq!((found.requests_per_burst.samples, found.requests_per_burst.max), (5, 3.0));
        assert_eq!(found.think_s.samples, 2);
        assert!((found.think_s.mean - (30.0 + 1_799.5) / 2.0).abs() < 1e-6, "{}", found.think_s.mean);
    }

    #[test]
    fn clients_are_addresses_with_agents() {
        let mut all = Sessions::new(1_800.0, 1.0);
        for user_agent in ["x", "y", "x"] {
            all.add(&request("::1", user_agent, 5.0));
        }
        all.add(&request("", "x", 5.0));
        assert_eq!((all.clients(), all.finish(1.0).unwrap().sessions), (2, 2));
        assert!(Sessions::new(1_800.0, 1.0).finish(1.0).is_none());
        let mut odd = Sessions::new(f64::NAN, -1.0);
        (0..3).for_each(|i| odd.add(&request("a", "", f64::from(i))));
        assert_eq!(odd.finish(1.0).unwrap().sessions, 3);
    }

    #[test]
    fn figures_are_those_of_each_client_on_its_own() {
        let mut rng = Pcg64::seed_from_u64(1);
        let (mut all, mut by_client) = (Sessions::new(1_800.0, 1.0), BTreeMap::<u32, Vec<f64>>::new());
        let mut time = 0.0;
        for _ in 0..30_000 {
            time += rng.random_range(0.0..4.0);
            let client = rng.random_range(0..200u32).pow(2);
            all.add(&request(&client.to_string(), "browser", time));
            by_client.entry(client).or_default().push(time);
        }
        let found = all.finish(time).unwrap();
        let (mut sessions, mut bursts, mut thinks, mut lengths) = (0, 0, Vec::new(), Vec::new());
        for times in by_client.values() {
            let parts: Vec<&[f64]> = times.chunk_by(|a, b| b - a < 1_800.0).collect();
            sessions += parts.len() as u64;
            for part in parts {
                let pauses: Vec<f64> = part.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 1.0).collect();
                bursts += pauses.len() as u64 + 1;
                thinks.extend(pauses);
                lengths.push(part[part.len() - 1] - part[0]);
            }
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        assert!(sessions > 250, "{sessions}");
        assert_eq!((found.sessions, found.requests_per_burst.samples), (sessions, bursts));
        assert!((found.requests.mean * sessions as f64 - 30_000.0).abs() < 1e-6);
        assert!((found.think_s.mean / mean(&thinks) - 1.0).abs() < 1e-6);
        assert!((found.length_s.mean / mean(&lengths) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn open_sessions_are_bounded() {
        let mut all = Sessions::with_most_open(1_800.0, 1.0, 100);
        for i in 0..1_000 {
            all.add(&request(&i.to_string(), "browser", f64::from(i)));
            // Client 0 continues to send requests, so the sessions of other clients must be ended early.
            all.add(&request("0", "browser", f64::from(i)));
        }
        assert!(all.slots.len() <= 100 && all.slots_by_client.len() == 100 && all.free.len() + 100 == all.slots.len());
        let found = all.finish(1.0).unwrap();
        assert_eq!((found.sessions, found.cut_short, found.requests.max), (1_000, 900, 1_001.0));
        // These sessions expire before the maximum number of open sessions is reached, so none may count as ended
        // early.
        let mut slow = Sessions::with_most_open(1_800.0, 1.0, 100);
        (0..1_000).for_each(|i| slow.add(&request(&i.to_string(), "browser", f64::from(i) * 60.0)));
        assert!(slow.slots.len() <= 33, "{}", slow.slots.len());
        assert_eq!(slow.finish(1.0).unwrap().cut_short, 0);
    }
}
