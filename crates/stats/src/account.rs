//! An [`Account`]: the counts and times of calls that one shard measured, or several shards after a merge. They are
//! whole numbers, so merging is exact, associative and commutative. A merged Account yields the same Record as a single
//! shard with all the calls would.
//!
//! Counts and times are kept per class. The totals of a Record are the sums over the classes.

use crate::answers::AnswerTimes;
use crate::batch::BatchMeans;
use crate::completions::Completions;
use crate::distribution::Distribution;
use crate::error::{MergeMismatch, StatsError};
use crate::histogram::MAX_COUNT;
use crate::http2_errors::Http2Errors;
use crate::redirects::RedirectTally;
use crate::reply_rate::ReplySampler;
use crate::series::Series;
use crate::sessions::SessionTally;
use crate::tally::{Tally, add};
use brimful_core::account::{HostLimitedCalls, PackedAccount};
use brimful_core::counts::Counts;
use brimful_core::{Nanos, TlsFault};
use std::collections::BTreeMap;

/// The statistics of a run (or of one shard of it): the counts and times of its calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// Planned length of the window in which load is offered; [`Nanos::MAX`] if it is not known before the run.
    pub(crate) window: Nanos,
    /// Counts and times of each class, indexed by [`ClassId`](brimful_core::ClassId).
    pub(crate) classes: Vec<Tally>,
    /// Counts and response times of each address of the server, in the order in which `on_address` reported the
    /// addresses. Empty if the server has one address.
    pub(crate) addresses: Vec<Tally>,
    /// Durations of successful connection attempts.
    pub(crate) connect_time: Distribution,
    /// Lifetimes of connections with a complete response, from the connection attempt to the close.
    pub(crate) connection_lifetime: Distribution,
    /// Number of complete responses on the connections whose lifetimes `connection_lifetime` contains.
    pub(crate) responses_on_closed: u64,
    /// Durations of TLS handshakes; `None` without TLS.
    pub(crate) handshake_time: Option<Distribution>,
    /// Number of calls that failed because of TLS, by cause.
    pub(crate) tls_faults: BTreeMap<TlsFault, u64>,
    /// HTTP/2 error codes that the server sent.
    pub(crate) http2_errors: Http2Errors,
    /// Number of calls that were completed before the window ended.
    pub(crate) completed_in_window: u64,
    /// Number of calls that failed because the load generator's host lacked a resource, by resource.
    pub(crate) limited: HostLimitedCalls,
    /// Counts and times of the calls by interval of the run.
    pub(crate) series: Series,
    /// Completed calls in periods of five seconds.
    pub(crate) replies: ReplySampler,
    /// Number of completed calls in each of many short parts of the window; `None` if they are not counted.
    pub(crate) completions: Option<Completions>,
    /// Response times by batch, for the confidence interval of their mean.
    pub(crate) batches: BatchMeans,
    /// Outcomes of the sessions; `None` if the workload has no sessions.
    pub(crate) sessions: Option<SessionTally>,
    /// Counts of redirects by outcome; `None` if the run does not follow redirects.
    pub(crate) redirects: Option<RedirectTally>,
}

impl Account {
    /// Creates empty statistics of a run with the classes `classes`, at least one. The run offers load for `window`
    /// ([`Nanos::MAX`] if that is not known before the run). All memory is allocated and written to here: 3.8 MB, and
    /// 1.1 MB per class. Later, only the first answer of each status class other than 2xx allocates memory: 0.6 MB.
    pub fn new(classes: &[String], window: Nanos) -> Account {
        Account {
            window,
            classes: classes.iter().map(|name| Tally::new(name.clone())).collect(),
            addresses: Vec::new(),
            connect_time: Distribution::new(),
            connection_lifetime: Distribution::new(),
            responses_on_closed: 0,
            handshake_time: None,
            tls_faults: BTreeMap::new(),
            http2_errors: Http2Errors::default(),
            completed_in_window: 0,
            limited: HostLimitedCalls::default(),
            series: Series::new(),
            replies: ReplySampler::new(window),
            completions: None,
            batches: BatchMeans::new(),
            sessions: None,
            redirects: None,
        }
    }

    /// Allocates the memory for the statistics of sessions: 2.2 MB.
    #[must_use]
    pub fn with_sessions(self) -> Account {
        Account { sessions: Some(SessionTally::default()), ..self }
    }

    /// Allocates the memory for a run that follows redirects. Calls that follow a redirect have a class number beyond
    /// the workload's classes, and no total includes them.
    #[must_use]
    pub fn with_redirects(self) -> Account {
        Account { redirects: Some(RedirectTally::new()), ..self }
    }

    /// Whether the workload schedules calls of this class. Requests that follow a redirect have a class of their own,
    /// which is not scheduled.
    pub(crate) fn schedules(&self, class: u16) -> bool {
        usize::from(class) < self.classes.len()
    }

    /// The counts and times of a class.
    ///
    /// # Panics
    /// If there is no such class.
    pub(crate) fn tally(&mut self, class: u16) -> &mut Tally {
        let class = usize::from(class);
        if class >= self.classes.len()
            && let Some(redirects) = &mut self.redirects
        {
            return &mut redirects.followed;
        }
        &mut self.classes[class]
    }

    /// The counts and times of a server address. The first call with an address appends a new entry to the list.
    fn address(&mut self, address: &str) -> &mut Tally {
        let place = self.addresses.iter().position(|tally| tally.name == address).unwrap_or(self.addresses.len());
        if place == self.addresses.len() {
            self.addresses.push(Tally::none(address));
        }
        &mut self.addresses[place]
    }

    /// Allocates counters for each of these server addresses that has none yet, in the order of `addresses`.
    pub(crate) fn allocate_addresses(&mut self, addresses: &[String]) {
        for address in addresses.iter().skip(self.addresses.len()) {
            self.addresses.push(Tally { answers: AnswerTimes::new(), ..Tally::none(address) });
        }
    }

    /// Allocates the memory for the durations of TLS handshakes.
    #[must_use]
    pub fn with_tls(self) -> Account {
        Account { handshake_time: Some(Distribution::new()), ..self }
    }

    /// Sets the initial length of intervals to about `length` ([`Series::with_interval_length`]). If this is the
    /// shortest possible length, completed calls of the measurement window are also counted in shorter intervals.
    #[must_use]
    pub fn with_interval_length(self, length: Nanos) -> Account {
        let series = Series::with_interval_length(length);
        let has_parts = series.has_shortest_intervals() && self.window != Nanos::MAX;
        Account { completions: has_parts.then(|| Completions::new(self.window)), series, ..self }
    }

    /// Number of calls of all classes together, by outcome.
    pub fn counts(&self) -> Counts {
        self.classes.iter().fold(Counts::default(), |mut sum, tally| {
            add(&mut sum, &tally.counts);
            sum
        })
    }

    /// Merges the counts and times of two shards of one run.
    ///
    /// # Errors
    /// [`MergeMismatch`] if the shards cannot belong to one run.
    pub fn merge(mut self, other: Account) -> Result<Account, MergeMismatch> {
        self.merge_from(&other)?;
        Ok(self)
    }

    /// Adds the counts and times of `other`, which must belong to the same run.
    pub(crate) fn merge_from(&mut self, other: &Account) -> Result<(), MergeMismatch> {
        self.check(other.window, other.classes.iter().map(|tally| &tally.name))?;
        for (tally, theirs) in self.classes.iter_mut().zip(&other.classes) {
            tally.merge(theirs);
        }
        other.addresses.iter().for_each(|theirs| self.address(&theirs.name).merge(theirs));
        self.connect_time.merge(&other.connect_time);
        self.connection_lifetime.merge(&other.connection_lifetime);
        self.responses_on_closed += other.responses_on_closed;
        merge_if_any(&mut self.handshake_time, other.handshake_time.as_ref(), Distribution::merge);
        self.count(&other.tls_faults, other.completed_in_window, other.limited);
        self.http2_errors.merge(&other.http2_errors);
        self.series.merge(&other.series);
        self.replies.merge(&other.replies);
        merge_if_any(&mut self.completions, other.completions.as_ref(), Completions::merge);
        self.batches.merge(other.batches.clone());
        merge_if_any(&mut self.sessions, other.sessions.as_ref(), SessionTally::merge);
        merge_if_any(&mut self.redirects, other.redirects.as_ref(), RedirectTally::merge);
        Ok(())
    }

    /// Merges a serialised Account without restoring it first. With twenty classes, that would allocate 25 MB of
    /// counters, most of which would be 0.
    pub(crate) fn add(&mut self, packed: &PackedAccount) -> Result<(), AddError> {
        self.check(window(packed), packed.classes.iter().map(|class| &class.name))?;
        let HostLimitedCalls { descriptors, ports, memory, bodies } = packed.limited;
        let faults = packed.tls_faults.values().copied();
        let counts = [packed.completed_in_window, packed.responses_on_closed, descriptors, ports, memory, bodies];
        if counts.into_iter().chain(faults).any(|count| count > MAX_COUNT) {
            return Err(StatsError::Damaged("more calls than any run has".to_owned()).into());
        }
        for (tally, theirs) in self.classes.iter_mut().zip(&packed.classes) {
            tally.add(theirs)?;
        }
        for theirs in &packed.addresses {
            self.address(&theirs.name).add(theirs)?;
        }
        self.connect_time.add(packed.connect_time.as_ref())?;
        self.connection_lifetime.add(packed.connection_lifetime.as_ref())?;
        self.responses_on_closed += packed.responses_on_closed;
        if let Some(times) = &packed.handshake_time {
            self.handshake_time.get_or_insert_with(Distribution::none).add(Some(times))?;
        }
        self.count(&packed.tls_faults, packed.completed_in_window, packed.limited);
        self.http2_errors.add_list(&packed.http2_errors)?;
        self.series.add(packed.interval_s, &packed.intervals)?;
        self.replies.merge(&ReplySampler::unpack(self.window, &packed.replies)?);
        if !packed.completed_by_part.is_empty() {
            let theirs = Completions::unpack(self.window, &packed.completed_by_part)?;
            merge_if_any(&mut self.completions, Some(&theirs), Completions::merge);
        }
        self.batches.merge(BatchMeans::unpack(packed.batch_ns, &packed.batches)?);
        let sessions = packed.sessions.as_ref().map(SessionTally::unpack).transpose()?;
        merge_if_any(&mut self.sessions, sessions.as_ref(), SessionTally::merge);
        let redirects = packed.redirects.as_ref().map(RedirectTally::unpack).transpose()?;
        merge_if_any(&mut self.redirects, redirects.as_ref(), RedirectTally::merge);
        Ok(())
    }

    /// Checks that statistics with this window and these classes can belong to the same run.
    fn check<'a>(&self, window: Nanos, classes: impl Iterator<Item = &'a String> + Clone) -> Result<(), MergeMismatch> {
        if !self.classes.iter().map(|tally| &tally.name).eq(classes.clone()) {
            return Err(MergeMismatch::Classes(self.class_names(), classes.cloned().collect()));
        }
        if self.window != window {
            return Err(MergeMismatch::Windows(self.window, window));
        }
        Ok(())
    }

    fn count(&mut self, tls_faults: &BTreeMap<TlsFault, u64>, completed_in_window: u64, limited: HostLimitedCalls) {
        for (why, calls) in tls_faults {
            *self.tls_faults.entry(*why).or_default() += calls;
        }
        self.completed_in_window += completed_in_window;
        self.limited.descriptors += limited.descriptors;
        self.limited.ports += limited.ports;
        self.limited.memory += limited.memory;
        self.limited.bodies += limited.bodies;
    }

    /// Clears all observations and keeps the memory. The lengths of intervals and batches do not change: the later
    /// observations are merged with the cleared ones, so shorter intervals would be of no use.
    pub(crate) fn clear(&mut self) {
        self.classes.iter_mut().for_each(Tally::clear);
        self.addresses.iter_mut().for_each(Tally::clear);
        self.connect_time.clear();
        self.connection_lifetime.clear();
        self.responses_on_closed = 0;
        self.handshake_time.iter_mut().for_each(Distribution::clear);
        self.tls_faults.clear();
        self.http2_errors.clear();
        self.completed_in_window = 0;
        self.limited = HostLimitedCalls::default();
        self.series.clear();
        self.replies.clear();
        self.completions.iter_mut().for_each(Completions::clear);
        self.batches.clear();
        self.sessions.iter_mut().for_each(SessionTally::clear);
        self.redirects.iter_mut().for_each(RedirectTally::clear);
    }

    /// The serialised counts and times, which a Record contains.
    pub fn pack(&self) -> PackedAccount {
        let (interval_s, intervals) = self.series.pack();
        let (batch_ns, batches) = self.batches.pack();
        PackedAccount {
            window_ns: (self.window != Nanos::MAX).then_some(self.window.0),
            classes: self.classes.iter().map(Tally::pack).collect(),
            addresses: self.addresses.iter().map(Tally::pack).collect(),
            connect_time: self.connect_time.pack(),
            connection_lifetime: self.connection_lifetime.pack(),
            responses_on_closed: self.responses_on_closed,
            handshake_time: self.handshake_time.as_ref().and_then(Distribution::pack),
            tls_faults: self.tls_faults.clone(),
            http2_errors: self.http2_errors.list(),
            completed_in_window: self.completed_in_window,
            limited: self.limited,
            interval_s,
            intervals,
            replies: self.replies.pack(),
            completed_by_part: self.completions.as_ref().map(Completions::pack).unwrap_or_default(),
            batch_ns,
            batches,
            sessions: self.sessions.as_ref().map(SessionTally::pack),
            redirects: self.redirects.as_ref().map(RedirectTally::pack),
        }
    }

    /// Restores exactly the Account that [`Account::pack`] serialised.
    ///
    /// # Errors
    /// [`StatsError`] if `packed` is not output of `pack`.
    pub fn unpack(packed: &PackedAccount) -> Result<Account, StatsError> {
        let window = window(packed);
        if packed.classes.is_empty() {
            return Err(StatsError::Damaged("no class".to_owned()));
        }
        let mut read = Account {
            window,
            classes: packed.classes.iter().map(|class| Tally::none(&class.name)).collect(),
            addresses: Vec::new(),
            connect_time: Distribution::none(),
            connection_lifetime: Distribution::none(),
            responses_on_closed: 0,
            handshake_time: None,
            tls_faults: BTreeMap::new(),
            http2_errors: Http2Errors::default(),
            completed_in_window: 0,
            limited: HostLimitedCalls::default(),
            series: Series::unpack(packed.interval_s, &[])?,
            replies: ReplySampler::new(window),
            completions: None,
            batches: BatchMeans::unpack(packed.batch_ns, &[])?,
            sessions: None,
            redirects: None,
        };
        match read.add(packed) {
            Ok(()) => Ok(read),
            Err(AddError::Damaged(error)) => Err(error),
            // The classes are the same, so a mismatch means that the serialised Account contradicts itself.
            Err(AddError::MergeMismatch(unlike)) => Err(StatsError::Damaged(unlike.to_string())),
        }
    }

    fn class_names(&self) -> Vec<String> {
        self.classes.iter().map(|tally| tally.name.clone()).collect()
    }

    /// Number of bytes allocated for the vectors that could grow. A test checks that this number does not grow during a
    /// run.
    #[cfg(test)]
    pub(crate) fn footprint(&self) -> usize {
        self.series.footprint() + self.replies.footprint() + self.classes.capacity() * size_of::<Tally>()
    }
}

/// An error in adding a serialised Account. Part of it may already have been added.
#[derive(Debug)]
pub(crate) enum AddError {
    MergeMismatch(MergeMismatch),
    Damaged(StatsError),
}

impl From<MergeMismatch> for AddError {
    fn from(unlike: MergeMismatch) -> AddError {
        AddError::MergeMismatch(unlike)
    }
}

impl From<StatsError> for AddError {
    fn from(error: StatsError) -> AddError {
        AddError::Damaged(error)
    }
}

/// The planned window of a serialised Account. A load without an end has none, which [`Nanos::MAX`] represents.
fn window(packed: &PackedAccount) -> Nanos {
    packed.window_ns.map_or(Nanos::MAX, Nanos)
}

/// Merges statistics that only some loads have, such as those of sessions.
fn merge_if_any<T: Clone>(ours: &mut Option<T>, theirs: Option<&T>, merge: impl Fn(&mut T, &T)) {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => merge(ours, theirs),
        (ours @ None, theirs) => *ours = theirs.cloned(),
        (Some(_), None) => {}
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
        assert!(unlike(account(&["light", "heavy"], 20)).starts_with("their planned durations differ (10s and 20s)"));
    }
}
