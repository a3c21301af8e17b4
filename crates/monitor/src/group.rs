//! The four groups of figures, each enabled and timed on its own (WebMonitor, Almeida, Almeida & Yates 1997).

use brimful_core::Nanos;
use std::fmt;
use std::str::FromStr;

/// Figures that are read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// The machine: CPUs, disks, paging, interrupts, context switches.
    Kernel,
    /// The server's programs.
    Process,
    /// Interfaces and TCP of the server's network namespace.
    Network,
    /// The server's ports: listening sockets and connections.
    Connections,
}

/// How often each group is read; `None` where it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intervals([Option<Nanos>; Group::ALL.len()]);

/// When each group is due: on a grid of instants of its own. What is late by more than an interval is left out, not made
/// up for.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    intervals: Intervals,
    due: [Nanos; Group::ALL.len()],
}

/// Some of the groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Groups([bool; Group::ALL.len()]);

impl Group {
    /// All of them.
    pub const ALL: [Group; 4] = [Group::Kernel, Group::Process, Group::Network, Group::Connections];

    /// As on the command line and in the names of log files.
    pub fn name(self) -> &'static str {
        match self {
            Group::Kernel => "kernel",
            Group::Process => "process",
            Group::Network => "network",
            Group::Connections => "connections",
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Group {
    type Err = String;

    fn from_str(text: &str) -> Result<Group, String> {
        let known = Group::ALL.into_iter().find(|group| group.name() == text);
        known.ok_or_else(|| {
            format!("`{text}` is no group of figures: choose among kernel, process, network and connections")
        })
    }
}

impl Intervals {
    /// Bounds of every interval: it must show a burst, and must not be a load itself.
    const BOUNDS: (Nanos, Nanos) = (Nanos::from_millis(10), Nanos::from_secs(3600));

    /// The same for all groups.
    pub fn every(interval: Nanos) -> Intervals {
        let mut intervals = Intervals([None; Group::ALL.len()]);
        for group in Group::ALL {
            intervals.set(group, Some(interval));
        }
        intervals
    }

    /// Changes one group's; brought to between 10 ms and an hour.
    pub fn set(&mut self, group: Group, interval: Option<Nanos>) {
        let (least, most) = Intervals::BOUNDS;
        self.0[group as usize] = interval.map(|interval| interval.clamp(least, most));
    }

    /// One group's.
    pub fn of(&self, group: Group) -> Option<Nanos> {
        self.0[group as usize]
    }

    /// The groups that are read at all.
    pub fn enabled(&self) -> Groups {
        Groups(self.0.map(|interval| interval.is_some()))
    }

    /// The shortest; `None` if no group is read.
    pub fn shortest(&self) -> Option<Nanos> {
        self.0.iter().flatten().min().copied()
    }
}

impl Schedule {
    /// Everything is due at `start`.
    pub fn new(intervals: Intervals, start: Nanos) -> Schedule {
        Schedule { intervals, due: [start; Group::ALL.len()] }
    }

    /// The groups that are due; they are so again an interval later.
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

    /// When the next group is due; `None` if none ever is.
    pub fn next(&self) -> Option<Nanos> {
        let enabled = self.due.iter().zip(self.intervals.0).filter(|(_, interval)| interval.is_some());
        enabled.map(|(due, _)| *due).min()
    }
}

impl Groups {
    /// Every group.
    pub const ALL: Groups = Groups([true; Group::ALL.len()]);

    /// Whether a group is among them.
    pub fn has(self, group: Group) -> bool {
        self.0[group as usize]
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self == Groups::default()
    }
}

impl FromIterator<Group> for Groups {
    fn from_iter<I: IntoIterator<Item = Group>>(groups: I) -> Groups {
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
        let mut intervals = Intervals::every(ms(100));
        intervals.set(Group::Process, Some(ms(250)));
        intervals.set(Group::Network, None);
        let mut schedule = Schedule::new(intervals, ms(1000));
        let mut due = |at| {
            let due = schedule.take_due(ms(at));
            (due.has(Group::Kernel), due.has(Group::Process), due.has(Group::Network), schedule.next().unwrap())
        };
        assert_eq!(due(999), (false, false, false, ms(1000)));
        assert_eq!(due(1000), (true, true, false, ms(1100)));
        assert_eq!(due(1130), (true, false, false, ms(1200)));
        assert_eq!(due(1499), (true, true, false, ms(1500)), "three ticks of the first were missed, one is made");
        assert_eq!(due(1500), (true, true, false, ms(1600)));
        assert_eq!(intervals.shortest(), Some(ms(100)));
    }

    #[test]
    fn names_are_read_back_and_others_refused() {
        for group in Group::ALL {
            assert_eq!(group.name().parse(), Ok(group));
        }
        assert!("disk".parse::<Group>().unwrap_err().contains("kernel, process, network and connections"));
        assert!(Groups::from_iter([]).is_empty() && Groups::from_iter(Group::ALL) == Groups::ALL);
    }
}
