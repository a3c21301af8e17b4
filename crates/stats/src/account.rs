//! All that one shard saw of its calls, or several shards once they are merged: whole numbers only, so that merging is
//! exact, associative and commutative, and a Record derived from the merged Account is the one that a single shard with
//! all the calls would have given.
//!
//! Counts and times are kept per class; the totals are their sum when a Record is derived.

use crate::batch::BatchMeans;
use crate::distribution::Distribution;
use crate::error::{StatsError, Unlike};
use crate::histogram::MOST;
use crate::redirects::RedirectTally;
use crate::reply_rate::ReplySampler;
use crate::series::Series;
use crate::sessions::SessionTally;
use crate::tally::{Tally, add};
use brimful_core::account::{Limited, PackedAccount};
use brimful_core::counts::Counts;
use brimful_core::{Nanos, TlsFault};
use std::collections::BTreeMap;

/// What was seen of the calls of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// How long load was to be offered; [`Nanos::MAX`] when that was not known beforehand.
    pub(crate) window: Nanos,
    /// By [`ClassId`](brimful_core::ClassId).
    pub(crate) classes: Vec<Tally>,
    pub(crate) connect_time: Distribution,
    /// Absent where there is no TLS.
    pub(crate) handshake_time: Option<Distribution>,
    /// Calls that TLS failed, by why.
    pub(crate) tls_faults: BTreeMap<TlsFault, u64>,
    pub(crate) completed_in_window: u64,
    /// What this host lacked.
    pub(crate) limited: Limited,
    pub(crate) series: Series,
    pub(crate) replies: ReplySampler,
    pub(crate) batches: BatchMeans,
    /// Absent where there are none.
    pub(crate) sessions: Option<SessionTally>,
    /// Absent where redirects are not followed.
    pub(crate) redirects: Option<RedirectTally>,
}

impl Account {
    /// Nothing seen yet, of a run with these classes, at least one, that offers load for `window` ([`Nanos::MAX`] when that
    /// is not known beforehand). All memory is taken and touched here: 3.5 MB, and 1.1 MB per class.
    pub fn new(classes: &[String], window: Nanos) -> Account {
        Account {
            window,
            classes: classes.iter().map(|name| Tally::new(name.clone())).collect(),
            connect_time: Distribution::new(),
            handshake_time: None,
            tls_faults: BTreeMap::new(),
            completed_in_window: 0,
            limited: Limited::default(),
            series: Series::new(),
            replies: ReplySampler::new(window),
            batches: BatchMeans::new(),
            sessions: None,
            redirects: None,
        }
    }

    /// The same of a load of sessions, with the memory for them: 2.2 MB.
    #[must_use]
    pub fn of_sessions(self) -> Account {
        Account { sessions: Some(SessionTally::default()), ..self }
    }

    /// The same of a load that follows redirects. Calls of the class beyond the last are those that follow one: they are
    /// part of no total.
    #[must_use]
    pub fn of_redirects(self) -> Account {
        Account { redirects: Some(RedirectTally::new()), ..self }
    }

    /// Whether calls of this class are the schedule's, and not such as follow redirects.
    pub(crate) fn schedules(&self, class: u16) -> bool {
        usize::from(class) < self.classes.len()
    }

    /// Where calls of a class are counted.
    ///
    /// # Panics
    /// When there is no such class.
    pub(crate) fn tally(&mut self, class: u16) -> &mut Tally {
        let class = usize::from(class);
        if class >= self.classes.len()
            && let Some(redirects) = &mut self.redirects
        {
            return &mut redirects.followed;
        }
        &mut self.classes[class]
    }

    /// The same of a load by TLS, with the memory for its handshakes.
    #[must_use]
    pub fn of_tls(self) -> Account {
        Account { handshake_time: Some(Distribution::new()), ..self }
    }

    /// The same with the course of the run in intervals of about this length from the start ([`Series::every`]).
    #[must_use]
    pub fn in_intervals(self, length: Nanos) -> Account {
        Account { series: Series::every(length), ..self }
    }

    /// What became of the calls, all classes together.
    pub fn counts(&self) -> Counts {
        self.classes.iter().fold(Counts::default(), |mut sum, tally| {
            add(&mut sum, &tally.counts);
            sum
        })
    }

    /// What both have seen.
    ///
    /// # Errors
    /// When they cannot be of one run: nothing is merged then.
    pub fn merge(mut self, other: Account) -> Result<Account, Unlike> {
        self.take_in(&other)?;
        Ok(self)
    }

    pub(crate) fn take_in(&mut self, other: &Account) -> Result<(), Unlike> {
        if !self.classes.iter().map(|tally| &tally.name).eq(other.classes.iter().map(|tally| &tally.name)) {
            return Err(Unlike::Classes(self.class_names(), other.class_names()));
        }
        if self.window != other.window {
            return Err(Unlike::Windows(self.window, other.window));
        }
        for (tally, theirs) in self.classes.iter_mut().zip(&other.classes) {
            tally.merge(theirs);
        }
        self.connect_time.merge(&other.connect_time);
        match (&mut self.handshake_time, &other.handshake_time) {
            (Some(ours), Some(theirs)) => ours.merge(theirs),
            (ours @ None, theirs) => ours.clone_from(theirs),
            (Some(_), None) => {}
        }
        for (why, calls) in &other.tls_faults {
            *self.tls_faults.entry(*why).or_default() += calls;
        }
        self.completed_in_window += other.completed_in_window;
        self.limited.descriptors += other.limited.descriptors;
        self.limited.ports += other.limited.ports;
        self.limited.memory += other.limited.memory;
        self.series.merge(&other.series);
        self.replies.merge(&other.replies);
        self.batches.merge(other.batches.clone());
        match (&mut self.sessions, &other.sessions) {
            (Some(ours), Some(theirs)) => ours.merge(theirs),
            (ours @ None, theirs) => ours.clone_from(theirs),
            (Some(_), None) => {}
        }
        match (&mut self.redirects, &other.redirects) {
            (Some(ours), Some(theirs)) => ours.merge(theirs),
            (ours @ None, theirs) => ours.clone_from(theirs),
            (Some(_), None) => {}
        }
        Ok(())
    }

    /// Forgets everything, and keeps all memory, the lengths of intervals and batches among it: what is seen next is
    /// merged with what was seen before, where those are no shorter.
    pub(crate) fn clear(&mut self) {
        self.classes.iter_mut().for_each(Tally::clear);
        self.connect_time.clear();
        self.handshake_time.iter_mut().for_each(Distribution::clear);
        self.tls_faults.clear();
        self.completed_in_window = 0;
        self.limited = Limited::default();
        self.series.clear();
        self.replies.clear();
        self.batches.clear();
        self.sessions.iter_mut().for_each(SessionTally::clear);
        self.redirects.iter_mut().for_each(RedirectTally::clear);
    }

    /// As the Record holds it.
    pub fn pack(&self) -> PackedAccount {
        let (interval_s, intervals) = self.series.pack();
        let (batch_ns, batches) = self.batches.pack();
        PackedAccount {
            window_ns: (self.window != Nanos::MAX).then_some(self.window.0),
            classes: self.classes.iter().map(Tally::pack).collect(),
            connect_time: self.connect_time.pack(),
            handshake_time: self.handshake_time.as_ref().and_then(Distribution::pack),
            tls_faults: self.tls_faults.clone(),
            completed_in_window: self.completed_in_window,
            limited: self.limited,
            interval_s,
            intervals,
            replies: self.replies.pack(),
            batch_ns,
            batches,
            sessions: self.sessions.as_ref().map(SessionTally::pack),
            redirects: self.redirects.as_ref().map(RedirectTally::pack),
        }
    }

    /// Reads what [`Account::pack`] wrote, exactly.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn unpack(packed: &PackedAccount) -> Result<Account, StatsError> {
        let window = packed.window_ns.map_or(Nanos::MAX, Nanos);
        let Limited { descriptors, ports, memory } = packed.limited;
        let faults = packed.tls_faults.values().copied();
        if [packed.completed_in_window, descriptors, ports, memory].into_iter().chain(faults).any(|count| count > MOST)
        {
            return Err(StatsError::Damaged("more calls than any run has".to_owned()));
        }
        if packed.classes.is_empty() {
            return Err(StatsError::Damaged("no class".to_owned()));
        }
        Ok(Account {
            window,
            classes: packed.classes.iter().map(Tally::unpack).collect::<Result<_, _>>()?,
            connect_time: Distribution::unpack(packed.connect_time.as_ref())?,
            handshake_time: packed
                .handshake_time
                .as_ref()
                .map(|times| Distribution::unpack(Some(times)))
                .transpose()?,
            tls_faults: packed.tls_faults.clone(),
            completed_in_window: packed.completed_in_window,
            limited: packed.limited,
            series: Series::unpack(packed.interval_s, &packed.intervals)?,
            replies: ReplySampler::unpack(window, &packed.replies)?,
            batches: BatchMeans::unpack(packed.batch_ns, &packed.batches)?,
            sessions: packed.sessions.as_ref().map(SessionTally::unpack).transpose()?,
            redirects: packed.redirects.as_ref().map(RedirectTally::unpack).transpose()?,
        })
    }

    fn class_names(&self) -> Vec<String> {
        self.classes.iter().map(|tally| tally.name.clone()).collect()
    }

    /// Bytes held by what could grow, for the test that it does not.
    #[cfg(test)]
    pub(crate) fn footprint(&self) -> usize {
        self.series.footprint() + self.replies.footprint() + self.classes.capacity() * size_of::<Tally>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(classes: &[&str], window_s: u64) -> Account {
        let names: Vec<String> = classes.iter().map(ToString::to_string).collect();
        Account::new(&names, Nanos::from_secs(window_s))
    }

    #[test]
    fn what_is_not_of_one_run_is_refused_and_named() {
        let unlike = |other| account(&["light", "heavy"], 10).merge(other).unwrap_err().to_string();
        for other in [&["light"][..], &["light", "heavy", "more"], &["heavy", "light"], &["light", "other"]] {
            let names = other.join(", ");
            let said = format!("their classes differ (light, heavy and {names}); merge runs of one workload");
            assert_eq!(unlike(account(other, 10)), said);
        }
        assert!(
            unlike(account(&["light", "heavy"], 20)).starts_with("they were to last differently long (10s and 20s)")
        );
    }
}
