//! Response times of complete responses by status class (1xx to 5xx). They are separate, so that fast errors cannot
//! make a server look fast. Each response is recorded once, under its status class. The times of all completed calls
//! are the sum over the status classes.

use crate::distribution::Distribution;
use crate::error::StatsError;
use brimful_core::account::{PackedClass, PackedStatusTimes, PackedTimes};
use brimful_core::counts::StatusCounts;
use brimful_core::{Nanos, StatusClass};
use std::collections::BTreeMap;

const CLASSES: usize = StatusClass::ALL.len();

/// Number of possible status codes, which have three digits.
const CODES: usize = 1_000;

/// Response times and service times of a group of responses.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Times {
    /// Response times, measured from when the calls were due.
    pub(crate) response: Distribution,
    /// Service times, measured from the first byte sent.
    pub(crate) service: Distribution,
}

impl Times {
    /// Creates an empty value without allocated memory.
    pub(crate) fn none() -> Times {
        Times { response: Distribution::none(), service: Distribution::none() }
    }

    /// Adds the times of `other`.
    pub(crate) fn merge(&mut self, other: &Times) {
        self.response.merge(&other.response);
        self.service.merge(&other.service);
    }

    fn clear(&mut self) {
        self.response.clear();
        self.service.clear();
    }

    fn is_empty(&self) -> bool {
        self.response.count() == 0
    }

    fn add(&mut self, response: Option<&PackedTimes>, service: Option<&PackedTimes>) -> Result<(), StatsError> {
        self.response.add(response)?;
        self.service.add(service)
    }
}

/// The times of one status class, or `None` before the first response of the class.
type Slot = Option<Box<Times>>;

/// Times of complete responses by status class, and numbers of responses by status code.
#[derive(Clone, Debug)]
pub(crate) struct AnswerTimes {
    /// Times of completed calls, in the order of [`StatusClass::ALL`].
    completed: [Slot; CLASSES],
    /// Times of responses that do not meet the expectations of the workload (status, length or content), in the order
    /// of [`StatusClass::ALL`].
    unexpected: [Slot; CLASSES],
    /// Times of completed calls whose status class is unknown, from a Record of an earlier version.
    unattributed: Slot,
    /// Number of responses by status code.
    codes: Vec<u64>,
}

impl AnswerTimes {
    /// Creates an empty value. The memory for 2xx responses is allocated and written to here. The memory for any other
    /// status class is allocated when its first response arrives.
    pub(crate) fn new() -> AnswerTimes {
        let mut times = AnswerTimes::none();
        let touched = Times { response: Distribution::new(), service: Distribution::new() };
        times.completed[StatusClass::S2xx as usize] = Some(Box::new(touched));
        times
    }

    /// Creates an empty value without allocated memory, into which others are merged.
    pub(crate) fn none() -> AnswerTimes {
        AnswerTimes {
            completed: [const { None }; CLASSES],
            unexpected: [const { None }; CLASSES],
            unattributed: None,
            codes: vec![0; CODES],
        }
    }

    /// Records a response. `service` is its service time, or `None` if the time when the request was sent is unknown.
    #[inline]
    pub(crate) fn record(&mut self, status: u16, expected: bool, response: Nanos, service: Option<Nanos>) {
        self.codes[usize::from(status).min(CODES - 1)] += 1;
        let slots = if expected { &mut self.completed } else { &mut self.unexpected };
        let times = slots[StatusClass::from_code(status) as usize].get_or_insert_with(|| Box::new(Times::none()));
        times.response.record(response);
        if let Some(service) = service {
            times.service.record(service);
        }
    }

    /// Adds the times and counts of `other`.
    pub(crate) fn merge(&mut self, other: &AnswerTimes) {
        for (ours, theirs) in self.slots_mut().zip(other.slots()) {
            if let Some(theirs) = theirs.as_ref().filter(|theirs| !theirs.is_empty()) {
                ours.get_or_insert_with(|| Box::new(Times::none())).merge(theirs);
            }
        }
        self.codes.iter_mut().zip(&other.codes).for_each(|(ours, theirs)| *ours += theirs);
    }

    /// Clears all times and counts, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.slots_mut().flatten().for_each(|times| times.clear());
        self.codes.fill(0);
    }

    /// Times of all completed calls.
    pub(crate) fn completed(&self) -> Times {
        sum(self.completed.iter().chain([&self.unattributed]))
    }

    /// Times of the completed calls, except those answered with status 429 or 5xx.
    pub(crate) fn served(&self) -> Times {
        let served = StatusClass::ALL.into_iter().filter(|class| !class.is_refusal());
        sum(served.map(|class| &self.completed[class as usize]).chain([&self.unattributed]))
    }

    /// Number of completed calls that were answered with status 429 or 5xx.
    pub(crate) fn refusals(&self) -> u64 {
        let refusals = StatusClass::ALL.into_iter().filter(|class| class.is_refusal());
        refusals.map(|class| count(&self.completed[class as usize])).sum()
    }

    /// Whether there are completed calls whose status class is not known.
    pub(crate) fn has_unattributed(&self) -> bool {
        count(&self.unattributed) > 0
    }

    /// Number of responses by status code. Codes without responses are left out.
    pub(crate) fn codes(&self) -> impl Iterator<Item = (u16, u64)> {
        (0_u16..).zip(self.codes.iter().copied()).filter(|(_, count)| *count > 0)
    }

    /// Times of all responses, including unexpected ones, by status class. As in documents, 4xx includes status 429,
    /// which also has an entry of its own.
    pub(crate) fn by_status(&self) -> Vec<(&'static str, Times)> {
        let both = |class: StatusClass| [&self.completed[class as usize], &self.unexpected[class as usize]];
        let class_times = |class: StatusClass| match class {
            StatusClass::S4xx => sum(both(class).into_iter().chain(both(StatusClass::S429))),
            _ => sum(both(class).into_iter()),
        };
        StatusClass::ALL
            .into_iter()
            .map(|class| (class.name(), class_times(class)))
            .filter(|(_, times)| !times.is_empty())
            .collect()
    }

    /// Number of non-empty distributions. A status class can have two: one of completed calls, and one of unexpected
    /// responses.
    pub(crate) fn classes(&self) -> usize {
        self.slots().filter(|slot| count(slot) > 0).count()
    }

    /// Serialises the times and counts into the fields of `into`.
    pub(crate) fn pack(&self, into: &mut PackedClass) {
        let all = self.completed();
        into.response_time = all.response.pack();
        into.service_time = all.service.pack();
        into.status_codes = self.codes().map(|(code, count)| (code.to_string(), count)).collect();
        let packed = |expected: bool| {
            move |(class, slot): (StatusClass, &Slot)| {
                let times = slot.as_ref().filter(|times| !times.is_empty())?;
                Some(PackedStatusTimes {
                    status: class.name().to_owned(),
                    expected,
                    response_time: times.response.pack(),
                    service_time: times.service.pack(),
                })
            }
        };
        let completed = StatusClass::ALL.into_iter().zip(&self.completed).filter_map(packed(true));
        let unexpected = StatusClass::ALL.into_iter().zip(&self.unexpected).filter_map(packed(false));
        // If the status class of some completed calls is unknown, only the times of all completed calls together are
        // written.
        let completed = completed.filter(|_| !self.has_unattributed());
        let by_status: Vec<PackedStatusTimes> = completed.chain(unexpected).collect();
        // Usually, all responses have one status class and are expected. Their times are then the times of all calls,
        // and the counts show the status class. So times by status class are not written.
        let is_usual = matches!(&by_status[..], [only] if only.expected);
        into.status_times = if is_usual { Vec::new() } else { by_status };
    }

    /// Adds serialised times and counts, as this version or an earlier version of [`AnswerTimes::pack`] wrote them.
    pub(crate) fn add(&mut self, packed: &PackedClass) -> Result<(), StatsError> {
        self.add_codes(&packed.status_codes, &packed.counts.status)?;
        let (response, service) = (packed.response_time.as_ref(), packed.service_time.as_ref());
        for times in packed.status_times.iter().filter(|times| !times.expected) {
            let slot = &mut self.unexpected[class_named(&times.status)? as usize];
            filled(slot).add(times.response_time.as_ref(), times.service_time.as_ref())?;
        }
        let mut sums = [0_u128; 2];
        let mut by_class = false;
        for times in packed.status_times.iter().filter(|times| times.expected) {
            let slot = &mut self.completed[class_named(&times.status)? as usize];
            let parts = [times.response_time.as_ref(), times.service_time.as_ref()];
            filled(slot).add(parts[0], parts[1])?;
            sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum = sum.saturating_add(total(part)));
            by_class = true;
        }
        if by_class {
            let whole = [total(response), total(service)] == sums;
            return if whole { Ok(()) } else { Err(damaged("times by status class are not those of all calls")) };
        }
        if response.is_none() && service.is_none() {
            return Ok(());
        }
        let slot = match only_class(&packed.counts.status) {
            Some(class) => &mut self.completed[class as usize],
            None => &mut self.unattributed,
        };
        filled(slot).add(response, service)
    }

    fn add_codes(&mut self, codes: &BTreeMap<String, u64>, status: &StatusCounts) -> Result<(), StatsError> {
        let StatusCounts { s1xx, s2xx, s3xx, s4xx, s429: _, s5xx } = *status;
        let counted = codes.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
        // Records of earlier versions have no status codes, so the codes may count fewer responses than the status
        // classes. If they count more, the Record is damaged.
        if counted > s1xx + s2xx + s3xx + s4xx + s5xx {
            return Err(damaged("it has more status codes than responses"));
        }
        for (code, count) in codes {
            let code = code.parse::<usize>().ok().filter(|code| *code < CODES);
            self.codes[code.ok_or_else(|| damaged("a status code is none"))?] += count;
        }
        Ok(())
    }

    fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.completed.iter().chain(&self.unexpected).chain([&self.unattributed])
    }

    fn slots_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.completed.iter_mut().chain(&mut self.unexpected).chain([&mut self.unattributed])
    }
}

impl PartialEq for AnswerTimes {
    /// Compares the recorded times, regardless of which memory is allocated.
    fn eq(&self, other: &AnswerTimes) -> bool {
        let used = |slot: &Slot| slot.as_deref().filter(|times| !times.is_empty()).cloned();
        self.codes == other.codes && self.slots().zip(other.slots()).all(|(ours, theirs)| used(ours) == used(theirs))
    }
}

fn filled(slot: &mut Slot) -> &mut Times {
    slot.get_or_insert_with(|| Box::new(Times::none()))
}

fn count(slot: &Slot) -> u64 {
    slot.as_ref().map_or(0, |times| times.response.count())
}

fn sum<'a>(slots: impl Iterator<Item = &'a Slot>) -> Times {
    slots.flatten().fold(Times::none(), |mut sum, times| {
        sum.merge(times);
        sum
    })
}

/// The sum of the serialised times, in nanoseconds; 0 for `None`.
fn total(times: Option<&PackedTimes>) -> u128 {
    times.map_or(0, |times| times.sum.0)
}

fn class_named(name: &str) -> Result<StatusClass, StatsError> {
    StatusClass::from_name(name).ok_or_else(|| damaged("a status class is none"))
}

fn damaged(what: &str) -> StatsError {
    StatsError::Damaged(what.to_owned())
}

/// The only status class with responses; `None` if no status class or several have responses.
fn only_class(status: &StatusCounts) -> Option<StatusClass> {
    let StatusCounts { s1xx, s2xx, s3xx, s4xx, s429, s5xx } = *status;
    let counts = [s1xx, s2xx, s3xx, s4xx.saturating_sub(s429), s429, s5xx];
    let mut used = StatusClass::ALL.into_iter().zip(counts).filter(|(_, count)| *count > 0);
    let (only, _) = used.next()?;
    used.next().is_none().then_some(only)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::counts::Counts;

    fn times(answers: &[(u16, bool, u64)]) -> (AnswerTimes, PackedClass) {
        let mut times = AnswerTimes::new();
        let mut counts = Counts::default();
        for &(status, expected, ms) in answers {
            times.record(status, expected, Nanos::from_millis(ms), Some(Nanos::from_millis(ms / 2)));
            crate::tally::count_status(&mut counts, status);
        }
        let mut packed = PackedClass { counts, ..PackedClass::default() };
        times.pack(&mut packed);
        (times, packed)
    }

    fn read(packed: &PackedClass) -> Result<AnswerTimes, StatsError> {
        let mut read = AnswerTimes::none();
        read.add(packed).map(|()| read)
    }

    #[test]
    fn times_of_every_class_come_back_from_a_record() {
        for answers in [
            &[][..],
            &[(200, true, 8)],
            &[(503, true, 2), (503, true, 4)],
            &[(429, true, 2)],
            &[(200, true, 80), (404, true, 6), (429, true, 2), (503, true, 4)],
            &[(200, true, 80), (200, false, 6)],
            &[(503, false, 80)],
        ] {
            let (times, packed) = times(answers);
            assert_eq!(read(&packed).as_ref(), Ok(&times), "{answers:?}");
        }
    }

    #[test]
    fn what_is_usual_is_written_once() {
        assert!(times(&[(200, true, 8), (201, true, 9)]).1.status_times.is_empty());
        assert_eq!(times(&[(200, true, 8), (503, true, 9)]).1.status_times.len(), 2);
    }

    #[test]
    fn a_429_is_a_4xx_and_a_refusal() {
        let (times, _) = times(&[(200, true, 80), (404, true, 6), (429, true, 2), (500, true, 4), (503, false, 9)]);
        let by_status = times.by_status().into_iter().map(|(name, times)| (name, times.response.count()));
        assert_eq!(by_status.collect::<Vec<_>>(), [("2xx", 1), ("4xx", 2), ("429", 1), ("5xx", 2)]);
        assert_eq!((times.refusals(), times.served().response.count()), (2, 2));
        assert_eq!(times.completed().response.count(), 4);
        assert_eq!(times.codes().map(|(code, _)| code).collect::<Vec<_>>(), [200, 404, 429, 500, 503]);
    }

    #[test]
    fn an_earlier_version_said_the_class_only_where_it_was_one() {
        let earlier = |answers| PackedClass { status_codes: BTreeMap::new(), status_times: vec![], ..times(answers).1 };
        let all_503 = read(&earlier(&[(503, true, 2), (503, true, 4)])).unwrap();
        assert_eq!((all_503.refusals(), all_503.has_unattributed()), (2, false));
        let mixed = earlier(&[(200, true, 2), (503, true, 4)]);
        let read_once = read(&mixed).unwrap();
        assert_eq!((read_once.completed().response.count(), read_once.has_unattributed()), (2, true));
        // Serialising the times again must preserve that their status classes are unknown.
        let mut again = PackedClass { counts: mixed.counts, ..PackedClass::default() };
        read_once.pack(&mut again);
        assert_eq!(read(&again), Ok(read_once));
    }

    #[test]
    fn damaged_times_by_class_are_refused() {
        let (_, good) = times(&[(200, true, 80), (503, true, 6)]);
        let mut renamed = good.clone();
        renamed.status_times[0].status = "9xx".to_owned();
        let mut fewer = good.clone();
        fewer.status_times.pop();
        let mut code = good.clone();
        code.status_codes = [("1000".to_owned(), 2)].into();
        let mut more = good;
        more.status_codes.insert("404".to_owned(), 1);
        for damaged in [renamed, fewer, code, more] {
            assert!(read(&damaged).is_err(), "{damaged:?}");
        }
    }
}
