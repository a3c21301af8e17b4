//! Decides when each group of metrics is read. Every group can be switched on and off, and has its own interval.

use crate::groups::GroupName;
use brimful_core::Nanos;

/// The interval at which each group of metrics is read; `None` for a group that is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intervals([Option<Nanos>; GroupName::ALL.len()]);

/// The times at which each group of metrics must be read: the multiples of the group's interval. Missed times are
/// skipped.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    intervals: Intervals,
    due: [Nanos; GroupName::ALL.len()],
}

/// A set of groups of metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Groups([bool; GroupName::ALL.len()]);

impl Intervals {
    /// Shortest and longest allowed interval. With a shorter interval, sampling itself would be a load.
    const BOUNDS: (Nanos, Nanos) = (Nanos::from_millis(10), Nanos::from_secs(3600));

    /// The same interval for all groups except `requests`. That group slows the server down, so only [`Intervals::set`]
    /// enables it.
    pub fn uniform(interval: Nanos) -> Intervals {
        let mut intervals = Intervals([None; GroupName::ALL.len()]);
        for group in GroupName::ALL {
            intervals.set(group, Some(interval).filter(|_| group != GroupName::Requests));
        }
        intervals
    }

    /// Changes one group's interval, clamped to between 10 ms and an hour.
    pub fn set(&mut self, group: GroupName, interval: Option<Nanos>) {
        let (least, most) = Intervals::BOUNDS;
        self.0[group as usize] = interval.map(|interval| interval.clamp(least, most));
    }

    /// The interval of one group.
    pub fn get(&self, group: GroupName) -> Option<Nanos> {
        self.0[group as usize]
    }

    /// The set of groups that are read.
    pub fn enabled(&self) -> Groups {
        Groups(self.0.map(|interval| interval.is_some()))
    }

    /// The intervals without duplicates: an interval of several groups is returned once.
    pub fn distinct(&self) -> impl Iterator<Item = Nanos> {
        let is_first = |&(index, interval): &(usize, Nanos)| !self.0[..index].contains(&Some(interval));
        let intervals = self.0.iter().enumerate().filter_map(|(index, interval)| Some((index, (*interval)?)));
        intervals.filter(is_first).map(|(_, interval)| interval)
    }

    /// The shortest interval; `None` if no group is read.
    pub fn shortest(&self) -> Option<Nanos> {
        self.0.iter().flatten().min().copied()
    }
}

impl Schedule {
    /// A schedule in which every group is due at `start`.
    pub fn new(intervals: Intervals, start: Nanos) -> Schedule {
        Schedule { intervals, due: [start; GroupName::ALL.len()] }
    }

    /// Returns the groups that are due at the time `now`, and schedules them again at the next multiple of their
    /// intervals.
    pub fn take_due(&mut self, now: Nanos) -> Groups {
        let mut due = Groups::default();
        for (index, interval) in self.intervals.0.iter().enumerate() {
            let Some(interval) = interval else { continue };
            if self.due[index] <= now {
                due.0[index] = true;
                let missed = (now - self.due[index]).0 / interval.0;
                self.due[index] += Nanos((missed + 1).saturating_mul(interval.0));
            }
        }
        due
    }

    /// The earliest time at which a group is due; `None` if no group is read.
    pub fn next(&self) -> Option<Nanos> {
        let enabled = self.due.iter().zip(self.intervals.0).filter(|(_, interval)| interval.is_some());
        enabled.map(|(due, _)| *due).min()
    }
}

impl Groups {
    /// The set of all groups.
    pub const ALL: Groups = Groups([true; GroupName::ALL.len()]);

    /// Whether the set contains this group of metrics.
    pub fn has(self, group: GroupName) -> bool {
        self.0[group as usize]
    }

    /// Whether the set contains no group of metrics.
    pub fn is_empty(self) -> bool {
        self == Groups::default()
    }
}

impl FromIterator<GroupName> for Groups {
    fn from_iter<I: IntoIterator<Item = GroupName>>(groups: I) -> Groups {
        let mut set = Groups::default();
        for group in groups {
            set.0[group as usize] = true;
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_keeps_its_own_time_and_a_late_tick_is_left_out() {
        let ms = Nanos::from_millis;
        let mut intervals = Intervals::uniform(ms(100));
        intervals.set(GroupName::Process, Some(ms(250)));
        intervals.set(GroupName::Network, None);
        let mut schedule = Schedule::new(intervals, ms(1000));
        let mut due = |at| {
            let due = schedule.take_due(ms(at));
            (
                due.has(GroupName::Kernel),
                due.has(GroupName::Process),
                due.has(GroupName::Network),
                schedule.next().unwrap(),
            )
        };
        assert_eq!(due(999), (false, false, false, ms(1000)));
        assert_eq!(due(1000), (true, true, false, ms(1100)));
        assert_eq!(due(1130), (true, false, false, ms(1200)));
        assert_eq!(
            due(1499),
            (true, true, false, ms(1500)),
            "the first group missed three instants, and is due only once"
        );
        assert_eq!(due(1500), (true, true, false, ms(1600)));
        assert_eq!(intervals.shortest(), Some(ms(100)));
        assert!(Groups::from_iter([]).is_empty() && Groups::from_iter(GroupName::ALL) == Groups::ALL);
    }
}
