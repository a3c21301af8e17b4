//! Decides which selector matches a process, and which processes a port or a cgroup has.

use super::cgroup::Cgroup;
use super::names::ProcessNames;
use super::port::{OWNER_REFRESH, Port};
use super::selector::ProcessSelector;
use super::users::{Listeners, Users, by_name_alone};
use crate::accounts::Accounts;
use crate::program::Membership;
use crate::search::SearchLimiter;
use crate::{NetNamespace, sys};
use brimful_core::Nanos;
use std::path::{Path, PathBuf};

/// Maximum time after the start of a process at which it sets its title.
const TITLE_DELAY: Nanos = Nanos::from_secs(10);
/// Maximum time after the start of a process at which it executes its program. During exec, the process has its new
/// name for a moment, but no arguments yet.
const EXEC_DELAY: Nanos = Nanos::from_secs(1);

/// The selectors of processes in the user's order, and the state that is needed to apply them.
#[derive(Debug)]
pub(super) struct Selection {
    proc: PathBuf,
    /// The network namespace of the ports.
    netns: NetNamespace,
    choices: Vec<Choice>,
    /// The processes that listen on the watched ports. Their users are the server's users: processes of a selected name
    /// that belong to other users are excluded.
    listeners: Listeners,
    /// Whether excluded processes must be checked again, because the server's user has become known.
    reconsiders: bool,
    /// Processes that were just found through a port or a cgroup, each with the index of its selector. Processes that
    /// already belong to a program are not listed. The list is discarded after all processes have been checked, because
    /// their pids may be reused later.
    found: Vec<(u32, usize)>,
}

#[derive(Debug)]
struct Choice {
    selector: ProcessSelector,
    holder: Option<Holder>,
    /// If the selector is a name, the users whose processes of this name are selected.
    users: Users,
    search: SearchLimiter,
    /// The time at which to look for further processes of a port or cgroup.
    refresh_at: Nanos,
}

/// A port or a cgroup by which a selector finds processes.
#[derive(Debug)]
enum Holder {
    Port(Port),
    Cgroup(Cgroup),
}

impl Selection {
    /// Creates the selection. `root` contains /proc and /sys. The users of the processes that listen on `ports`
    /// determine which processes of a selected name belong to the server.
    pub fn new(root: &Path, selectors: &[ProcessSelector], netns: &NetNamespace, ports: &[u16]) -> Selection {
        let choice = |selector: &ProcessSelector| Choice {
            selector: selector.clone(),
            holder: match selector {
                ProcessSelector::Port(number) => Some(Holder::Port(Port::new(*number))),
                ProcessSelector::Cgroup(path) => Some(Holder::Cgroup(Cgroup::new(root, path))),
                ProcessSelector::Name(_) | ProcessSelector::Pid(_) => None,
            },
            users: Users::default(),
            search: SearchLimiter::default(),
            refresh_at: Nanos::ZERO,
        };
        let has_names = selectors.iter().any(|selector| matches!(selector, ProcessSelector::Name(_)));
        Selection {
            proc: root.join("proc"),
            netns: netns.clone(),
            choices: selectors.iter().map(choice).collect(),
            listeners: Listeners::new(if has_names { ports } else { &[] }),
            reconsiders: false,
            found: Vec::new(),
        }
    }

    /// Finds the processes of ports and cgroups. If `all` is false, only those ports and cgroups are looked up that are
    /// due.
    pub fn look_up(&mut self, accounts: &Accounts, all: bool) {
        let own = std::process::id();
        let now = sys::now();
        for (index, choice) in self.choices.iter_mut().enumerate() {
            let Some(holder) = &mut choice.holder else { continue };
            let alive = accounts.is_alive(index) || holder.is_shared(accounts);
            if !all && !(choice.search.is_due() && (!alive || now >= choice.refresh_at)) {
                continue;
            }
            choice.refresh_at = now + OWNER_REFRESH;
            let begun = SearchLimiter::begin();
            let mut pids = match holder {
                Holder::Port(port) => port.new_owners(!alive, &self.netns),
                Holder::Cgroup(cgroup) => cgroup.processes().into_iter().filter(|&pid| pid != own).collect(),
            };
            pids.retain(|&pid| accounts.program_of(pid).is_none() && !self.found.contains(&(pid, index)));
            self.found.extend(pids.into_iter().map(|pid| (pid, index)));
            choice.search.end(begun);
        }
        if self.listeners.look_up(&self.proc, &self.netns, all) {
            for choice in &mut self.choices {
                if let ProcessSelector::Name(name) = &choice.selector {
                    self.reconsiders |= choice.users.update(&self.listeners, &self.proc, name);
                }
            }
        }
    }

    /// The network namespace of the ports.
    pub fn netns(&self) -> &NetNamespace {
        &self.netns
    }

    /// Whether all processes must be checked for new processes of a program: a process was found through a port or a
    /// cgroup, or excluded processes must be checked again.
    pub fn needs_scan(&self) -> bool {
        self.reconsiders || !self.found.is_empty()
    }

    /// Discards the processes that were found through ports and cgroups. Must be called after all processes were
    /// checked.
    pub fn forget(&mut self) {
        self.found.clear();
        self.reconsiders = false;
    }

    /// The index of the first selector that matches a process; `None` if there is none.
    pub fn selector_of(&self, pid: u32, comm: &[u8], accounts: &Accounts) -> Option<usize> {
        let names = ProcessNames::new(&self.proc, pid, comm);
        self.choices.iter().enumerate().position(|(index, choice)| match &choice.selector {
            ProcessSelector::Name(name) => {
                pid != std::process::id() && names.contains(name) && choice.users.admits(&self.proc, pid)
            }
            ProcessSelector::Pid(wanted) => *wanted == pid && !accounts.was_found(index),
            ProcessSelector::Port(_) | ProcessSelector::Cgroup(_) => self.found.contains(&(pid, index)),
        })
    }

    /// Whether a process must be checked again, because it may still set the title by which it is selected. This is
    /// true for [`TITLE_DELAY`] after the process's start (`started`, by `CLOCK_BOOTTIME`), if a selected name has no
    /// process yet.
    pub fn awaits_title(&self, started: Nanos, accounts: &Accounts) -> bool {
        let is_awaited = |(index, choice): (usize, &Choice)| {
            matches!(choice.selector, ProcessSelector::Name(_)) && !accounts.is_alive(index)
        };
        sys::now() + sys::suspended_time() < started + TITLE_DELAY && self.choices.iter().enumerate().any(is_awaited)
    }

    /// Whether a process must be checked again because it was perhaps read during exec, when its arguments were not
    /// there yet. `started` is its start (`CLOCK_BOOTTIME`).
    pub fn may_be_executing(&self, started: Nanos) -> bool {
        let by_name = |choice: &Choice| matches!(choice.selector, ProcessSelector::Name(_));
        sys::now() + sys::suspended_time() < started + EXEC_DELAY && self.choices.iter().any(by_name)
    }

    /// The processes of other users that are connected with the server only by their name: for each, the name, the pid
    /// and the user. A process that descends from another process of the program is not listed, because it is the
    /// server's.
    pub fn foreign<'s>(&'s self, accounts: &'s Accounts) -> impl Iterator<Item = (&'s str, u32, u32)> {
        self.choices
            .iter()
            .enumerate()
            .filter_map(|(index, choice)| match &choice.selector {
                ProcessSelector::Name(name) => Some((index, choice, name.as_str())),
                _ => None,
            })
            .flat_map(move |(index, choice, name)| {
                accounts
                    .root_processes(index)
                    .filter_map(move |pid| Some((name, pid, choice.users.foreign(&self.proc, pid)?)))
            })
    }

    /// Remarks for `sources` on processes of a selected name that belong to other users.
    pub fn remarks(&self, accounts: &Accounts) -> Vec<String> {
        let mut remarks = Vec::new();
        for choice in &self.choices {
            let ProcessSelector::Name(name) = &choice.selector else { continue };
            let of_name = self.foreign(accounts).filter(|(other, ..)| other == name);
            remarks.extend(by_name_alone(name, of_name.map(|(_, pid, user)| (pid, user))));
            let is_member = |pid| accounts.program_of(pid).is_some();
            remarks.extend(choice.users.exclusion_remark(&self.proc, name, is_member));
        }
        remarks
    }

    /// Whether the sample of a selector's program contains the metrics of its processes, and if not, the reason.
    /// `index` is the selector's index.
    pub fn membership(&self, index: usize, accounts: &Accounts) -> Membership {
        let holder = self.choices[index].holder.as_ref().filter(|_| !accounts.is_alive(index));
        match holder {
            Some(holder) if holder.is_shared(accounts) => Membership::Shared,
            Some(Holder::Port(port)) if port.is_hidden() => Membership::Hidden,
            _ => Membership::Own,
        }
    }

    /// The selectors that have no process, each with a sentence about it for the user. `every` is the interval at which
    /// all processes are checked.
    pub fn without_processes<'s>(
        &'s self,
        accounts: &'s Accounts,
        every: Nanos,
    ) -> impl Iterator<Item = (&'s ProcessSelector, String)> {
        let absent = |index: usize| !accounts.is_alive(index) && self.membership(index, accounts) != Membership::Shared;
        let choices = self.choices.iter().enumerate().filter(move |(index, _)| absent(*index));
        choices.map(move |(index, choice)| {
            let selector = &choice.selector;
            let every = choice.holder.as_ref().map_or(every, |_| choice.search.interval());
            let often = match every {
                Nanos::ZERO => "at every sample".to_owned(),
                every => format!("at most every {}", every.to_rounded_string()),
            };
            let why = choice
                .holder
                .as_ref()
                .and_then(Holder::missing_reason)
                .map(|why| format!(": {why}"))
                .unwrap_or_default();
            let text = match (selector, accounts.was_found(index)) {
                (ProcessSelector::Pid(_), true) => format!("the process {selector} has ended"),
                (_, true) => format!("waiting: the last process {selector} has ended{why} (looked for {often})"),
                (_, false) => format!("waiting: no process {selector} is running yet{why} (looked for {often})"),
            };
            (selector, text)
        })
    }
}

impl Holder {
    /// Whether all processes that listen on the port already belong to another program, for example because one server
    /// listens on two ports.
    fn is_shared(&self, accounts: &Accounts) -> bool {
        let Holder::Port(port) = self else { return false };
        !port.owner_pids.is_empty() && port.owner_pids.iter().all(|&pid| accounts.program_of(pid).is_some())
    }

    fn missing_reason(&self) -> Option<String> {
        match self {
            Holder::Port(port) => port.missing_reason(),
            Holder::Cgroup(cgroup) => cgroup.missing_reason(),
        }
    }
}
