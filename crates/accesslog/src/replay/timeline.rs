//! Distinguishes the regular timestamps of a log, its *timeline*, from timestamps that are far away from their
//! neighbours.
//!
//! Some servers (Apache) log the start time of a request, but write the line when the response has ended. So the line
//! of a long download has an earlier timestamp than the lines before. A clock that was wrong for a moment causes a
//! timestamp that is years ahead. Such timestamps must not delay a replay. So each timestamp is classified when the
//! [`LOOK_AHEAD`] following requests are known:
//!
//! - [`StampKind::Behind`]: the timestamp is earlier than the newest by more than the window, so the request can no
//!   longer be sorted.
//! - [`StampKind::Ahead`]: the timestamp is later than the newest by more than [`LEAP_NS`], and most of the following
//!   timestamps are earlier.
//! - [`StampKind::Regular`]: any other timestamp. If nearly all following lines continue from an earlier time, the
//!   clock was set back (at the end of daylight saving time, or between logs joined in the wrong order). The timeline
//!   then continues without a pause.
//!
//! [`first_of_timeline`] finds the beginning of the timeline: the first timestamp that is not far before all others.

use super::SECOND_NS;

/// Number of following requests that must be known before the timestamp of a request is classified.
pub(super) const LOOK_AHEAD: usize = 64;
/// Minimum time by which a timestamp must be later than all before, in nanoseconds, to be [`StampKind::Ahead`].
const LEAP_NS: i64 = 60 * SECOND_NS;
/// Minimum number of other timestamps with which a suspicious timestamp or gap, or a change of the clock, is compared.
const MIN_COMPARED: usize = 16;
/// A gap at the start or end of a log is suspicious if it is more than this many times as long as the longest other
/// gap.
const MIN_GAP_RATIO: i64 = 10;
/// If fewer lines than this follow a large step of the timestamps forward, the timestamps after the step may be wrong.
const MIN_CONFIRMING_LINES: usize = 8;
const DAY_NS: i64 = 86_400 * SECOND_NS;

/// The classification of a request's timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StampKind {
    /// The timestamp is regular. The number is the time of the request in the timeline, in nanoseconds.
    Regular(i64),
    /// The timestamp is too far behind the preceding lines, so the request cannot be sorted.
    Behind,
    /// The timestamp is too far ahead of its neighbours to be plausible.
    Ahead,
}

/// The state of a log's timeline (the sequence of its regular timestamps) after the last classified request.
#[derive(Debug)]
pub(super) struct Timeline {
    window_ns: i64,
    /// The latest timestamp of the timeline, with `shift_ns` added; `None` before the first request.
    newest_ns: Option<i64>,
    /// Number of nanoseconds that are added to timestamps, because the clock was set back by this much.
    shift_ns: i64,
    /// The last timestamps of the timeline, with `shift_ns` added, in the order of the log.
    recent: Recent,
    /// Number of times that the clock was set back.
    pub clock_setbacks: u64,
}

impl Timeline {
    /// Creates a timeline that sorts requests which are at most `window_ns` nanoseconds out of order.
    pub fn new(window_ns: i64) -> Timeline {
        Timeline { window_ns, newest_ns: None, shift_ns: 0, recent: Recent::default(), clock_setbacks: 0 }
    }

    /// The latest time of the timeline, in nanoseconds since 1970.
    pub fn newest_ns(&self) -> i64 {
        self.newest_ns.unwrap_or(i64::MIN)
    }

    /// Classifies a timestamp by the timestamps that follow in the log. `sorted_ns` is the time of the latest request
    /// that has been emitted.
    pub fn classify_stamp(
        &mut self,
        stamp_ns: i64,
        following: impl ExactSizeIterator<Item = i64> + Clone,
        sorted_ns: Option<i64>,
    ) -> StampKind {
        let newest_ns = match self.newest_ns {
            Some(newest_ns) => newest_ns,
            None => first_of_timeline(std::iter::once(stamp_ns).chain(following.clone()), self.window_ns),
        };
        let shift_ns = self.shift_ns;
        let time_ns = stamp_ns.saturating_add(shift_ns);
        let leap_ns = newest_ns.saturating_add(self.window_ns.max(LEAP_NS));
        let shifted = following.map(move |following_ns| following_ns.saturating_add(shift_ns));
        if time_ns > leap_ns {
            if self.is_ahead(time_ns, newest_ns, shifted) {
                self.newest_ns = Some(newest_ns);
                return StampKind::Ahead;
            }
        } else if time_ns < newest_ns.saturating_sub(self.window_ns)
            && sorted_ns.is_none_or(|sorted_ns| time_ns < sorted_ns)
        {
            self.newest_ns = Some(newest_ns);
            if !self.is_set_back(time_ns, newest_ns, shifted) {
                return StampKind::Behind;
            }
            self.clock_setbacks += 1;
            self.shift_ns = newest_ns.saturating_sub(stamp_ns);
            return StampKind::Regular(newest_ns);
        }
        self.newest_ns = Some(newest_ns.max(time_ns));
        self.recent.push(time_ns);
        StampKind::Regular(time_ns)
    }

    /// Whether a timestamp is too far ahead: fewer than half of the following timestamps are that late. If few lines
    /// follow, a step forward that is much longer than the recent gaps is too far, too.
    fn is_ahead(&self, time_ns: i64, newest_ns: i64, following: impl ExactSizeIterator<Item = i64>) -> bool {
        let count = following.len();
        let agreeing = following.filter(|next_ns| *next_ns >= time_ns.saturating_sub(self.window_ns)).count();
        if count > 0 && agreeing * 2 < count {
            return true;
        }
        let least_ns = if count == 0 { LEAP_NS } else { DAY_NS };
        let leap_ns = time_ns.saturating_sub(newest_ns);
        let longest_ns = self.recent.longest_gap_ns();
        count < MIN_CONFIRMING_LINES
            && leap_ns > least_ns
            && longest_ns.is_some_and(|longest_ns| leap_ns > longest_ns.saturating_mul(MIN_GAP_RATIO))
    }

    /// Whether the clock was set back: at least seven eighths of the following timestamps continue in order from an
    /// earlier time.
    fn is_set_back(&self, time_ns: i64, newest_ns: i64, following: impl ExactSizeIterator<Item = i64>) -> bool {
        let count = following.len();
        if count < MIN_COMPARED {
            return false;
        }
        let mut goes_on = 0;
        let mut last_ns = time_ns;
        for next_ns in following {
            let is_near =
                next_ns >= last_ns.saturating_sub(self.window_ns) && next_ns <= last_ns.saturating_add(LEAP_NS);
            if is_near && next_ns < newest_ns.saturating_sub(self.window_ns) {
                goes_on += 1;
                last_ns = last_ns.max(next_ns);
            }
        }
        goes_on * 8 >= count * 7
    }
}

/// The first timestamp of a log's timeline: the earliest timestamp after all suspicious gaps. A suspicious gap is near
/// the start: at most an eighth of the timestamps are before it. It is longer than the window, and much longer than any
/// gap between the timestamps after it.
fn first_of_timeline(stamps: impl Iterator<Item = i64>, window_ns: i64) -> i64 {
    let mut sorted: Vec<i64> = stamps.collect();
    sorted.sort_unstable();
    let first_ns = sorted.first().copied().unwrap_or(0);
    // The last eighth of the timestamps may be wrong, too, so the gaps between them are not compared.
    let most = sorted.len() / 8;
    let core_end = sorted.len() - most;
    if core_end < MIN_COMPARED + most {
        return first_ns;
    }
    let gap_before =
        |index: usize| match (index.checked_sub(1).and_then(|before| sorted.get(before)), sorted.get(index)) {
            (Some(before), Some(at)) => at.saturating_sub(*before),
            _ => 0,
        };
    let mut longest_ns = (most + 1..core_end).map(gap_before).max().unwrap_or(0);
    // The loop checks the gaps from the latest to the earliest, and adds each gap that is not suspicious to the
    // timeline.
    for index in (1..=most).rev() {
        let gap_ns = gap_before(index);
        if gap_ns > window_ns.max(SECOND_NS) && gap_ns > longest_ns.saturating_mul(MIN_GAP_RATIO) {
            return sorted.get(index).copied().unwrap_or(first_ns);
        }
        longest_ns = longest_ns.max(gap_ns);
    }
    first_ns
}

/// The last [`LOOK_AHEAD`] timestamps of the timeline.
#[derive(Debug, Default)]
struct Recent {
    stamps: Vec<i64>,
    next: usize,
}

impl Recent {
    fn push(&mut self, time_ns: i64) {
        match self.stamps.get_mut(self.next) {
            Some(place) => *place = time_ns,
            None => self.stamps.push(time_ns),
        }
        self.next = (self.next + 1) % LOOK_AHEAD;
    }

    /// The longest gap between two of these timestamps after sorting, in nanoseconds; `None` if there are too few.
    fn longest_gap_ns(&self) -> Option<i64> {
        if self.stamps.len() < MIN_COMPARED {
            return None;
        }
        let mut sorted = self.stamps.clone();
        sorted.sort_unstable();
        sorted.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WINDOW_NS: i64 = 5 * SECOND_NS;

    /// Classifies timestamps that are given in seconds. Also returns the number of times that the clock was set back.
    fn places(seconds: &[i64]) -> (Vec<StampKind>, u64) {
        let mut timeline = Timeline::new(WINDOW_NS);
        let stamps: Vec<i64> = seconds.iter().map(|second| second * SECOND_NS).collect();
        let place = |at: usize| {
            let end = stamps.len().min(at + 1 + LOOK_AHEAD);
            timeline.classify_stamp(stamps[at], stamps[at + 1..end].iter().copied(), None)
        };
        let places = (0..stamps.len()).map(place).collect();
        (places, timeline.clock_setbacks)
    }

    fn count(places: &[StampKind], place: StampKind) -> usize {
        places.iter().filter(|other| **other == place).count()
    }

    #[test]
    fn one_early_stamp_is_behind_wherever_it_stands() {
        for at in [0, 1, 5, 63, 64, 150, 299] {
            let mut seconds: Vec<i64> = (0..300).map(|line| 10_000 + line / 10).collect();
            seconds[at] -= 3_000;
            let (places, _) = places(&seconds);
            assert_eq!((places[at], count(&places, StampKind::Behind)), (StampKind::Behind, 1), "line {at}");
        }
        let mut seconds: Vec<i64> = (0..300).map(|line| 10_000 + line / 10).collect();
        for (at, earlier) in [(0, 3_000), (1, 2_000), (2, 1_000)] {
            seconds[at] -= earlier;
        }
        assert_eq!(count(&places(&seconds).0, StampKind::Behind), 3, "early stamps at the start must be behind");
    }

    #[test]
    fn one_stamp_of_another_year_is_ahead_wherever_it_stands() {
        for at in [0, 1, 5, 63, 150, 298, 299] {
            let mut seconds: Vec<i64> = (0..300).map(|line| 10_000 + line / 10).collect();
            seconds[at] = 2_160_000_000;
            let (places, _) = places(&seconds);
            assert_eq!((places[at], count(&places, StampKind::Ahead)), (StampKind::Ahead, 1), "line {at}");
            assert_eq!(count(&places, StampKind::Behind), 0, "line {at}");
        }
    }

    #[test]
    fn pauses_are_part_of_the_timeline() {
        let night: Vec<i64> = (0..100).chain(30_000..30_100).collect();
        let hourly: Vec<i64> = (0..50).map(|line| line * 3_600).collect();
        let few = [0, 7_200, 14_400];
        for seconds in [&night[..], &hourly, &few] {
            let (places, clock_setbacks) = places(seconds);
            assert!(places.iter().all(|place| matches!(place, StampKind::Regular(_))), "{places:?}");
            assert_eq!(clock_setbacks, 0);
        }
    }

    #[test]
    fn a_clock_that_is_set_back_goes_on() {
        // Two hours of summer time. Then the clocks are set back by an hour, so the second hour occurs twice.
        let seconds: Vec<i64> = (0..7_200).chain(3_600..9_000).collect();
        let (places, clock_setbacks) = places(&seconds);
        let times: Vec<i64> = places
            .iter()
            .map(|place| match place {
                StampKind::Regular(time_ns) => time_ns / SECOND_NS,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(clock_setbacks, 1);
        assert_eq!((times[7_199], times[7_200], times[7_201], times[12_599]), (7_199, 7_199, 7_200, 12_598));
    }

    proptest! {
        #[test]
        fn no_stamp_panics(stamps in prop::collection::vec(any::<i64>(), 0..200), window_ns in 0..i64::MAX) {
            let mut timeline = Timeline::new(window_ns);
            for at in 0..stamps.len() {
                let end = stamps.len().min(at + 1 + LOOK_AHEAD);
                timeline.classify_stamp(stamps[at], stamps[at + 1..end].iter().copied(), stamps.get(at / 2).copied());
            }
        }
    }
}
