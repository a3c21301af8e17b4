//! Decides which processes of a selected name belong to the server. Any user can give a program the server's name, so
//! the user of a process counts too.
//!
//! If a process of the name listens on a watched port, the user of this process is the server's user. Processes of the
//! name that belong to other users are then excluded. If no process of the name listens, the processes of all users are
//! watched, and the sources name the processes of other users. But processes of other users are never moved to other
//! CPUs or into another control group. Only processes of root and of the watching user are trusted in this case. The
//! real user of a process counts, because a setuid program changes the effective user. Source: proc_pid_status(5),
//! credentials(7).

use super::names::ProcessNames;
use super::port::{OWNER_REFRESH, Port};
use crate::procfs;
use crate::search::SearchLimiter;
use crate::{NetNamespace, sys};
use brimful_core::Nanos;
use rustix::process::getuid;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const ROOT: u32 = 0;
/// Maximum number of excluded processes that are remembered for one name.
const MAX_LEFT_OUT: usize = 1024;
/// Maximum number of processes that one remark to the user lists.
const MAX_LISTED: usize = 5;

/// The processes that listen on the watched ports.
#[derive(Debug)]
pub(super) struct Listeners {
    ports: Vec<Port>,
    search: SearchLimiter,
    refresh_at: Nanos,
}

/// The users whose processes of one name are selected, and the excluded processes.
#[derive(Debug, Default)]
pub(super) struct Users {
    /// The users of the processes of this name that listen on a watched port, as last known.
    listening: Vec<u32>,
    /// Excluded processes: for each pid, the user of the process.
    left_out: RefCell<BTreeMap<u32, u32>>,
}

impl Listeners {
    /// Creates a list of the processes that listen on these ports. It is empty until the first look-up.
    pub fn new(ports: &[u16]) -> Listeners {
        let ports = ports.iter().map(|&number| Port::new(number)).collect();
        Listeners { ports, search: SearchLimiter::default(), refresh_at: Nanos::ZERO }
    }

    /// Looks up the listening processes, if a look-up is due or if `now` is true. Returns true if they were looked up.
    pub fn look_up(&mut self, proc: &Path, netns: &NetNamespace, now: bool) -> bool {
        if self.ports.is_empty() || !(now || self.search.is_due() && sys::now() >= self.refresh_at) {
            return false;
        }
        self.refresh_at = sys::now() + OWNER_REFRESH;
        let begun = SearchLimiter::begin();
        for port in &mut self.ports {
            let is_there = |pid: &u32| proc.join(pid.to_string()).exists();
            let gone = port.owner_pids.is_empty() || !port.owner_pids.iter().all(is_there);
            port.new_owners(gone, netns);
        }
        self.search.end(begun);
        true
    }

    /// The users of those listening processes that have this name.
    fn users_of(&self, proc: &Path, name: &str) -> Vec<u32> {
        let owners = self.ports.iter().flat_map(|port| port.owner_pids.iter().copied());
        let mut users: Vec<u32> =
            owners.filter(|&pid| has_name(proc, pid, name)).filter_map(|pid| user_of(proc, pid)).collect();
        users.sort_unstable();
        users.dedup();
        users
    }
}

impl Users {
    /// Updates the users of a name from the listening processes. Returns true if the users have changed. While no
    /// process of the name listens, for example when a server restarts, the former users remain.
    pub fn update(&mut self, listeners: &Listeners, proc: &Path, name: &str) -> bool {
        let listening = listeners.users_of(proc, name);
        let learns = !listening.is_empty() && listening != self.listening;
        if learns {
            self.listening = listening;
            self.left_out.borrow_mut().clear();
        }
        learns
    }

    /// Whether a process of this name may belong to the server, given its user.
    pub fn admits(&self, proc: &Path, pid: u32) -> bool {
        if self.listening.is_empty() {
            return true;
        }
        let user = user_of(proc, pid);
        let is_admitted = user.is_some_and(|user| user == ROOT || self.listening.contains(&user));
        if let Some(user) = user.filter(|_| !is_admitted) {
            let mut left_out = self.left_out.borrow_mut();
            if left_out.len() >= MAX_LEFT_OUT {
                left_out.clear();
            }
            left_out.insert(pid, user);
        }
        is_admitted
    }

    /// The user of a process that is connected with the server only by its name; `None` if this user is trusted.
    pub fn foreign(&self, proc: &Path, pid: u32) -> Option<u32> {
        let is_trusted = |user: u32| user == ROOT || user == getuid().as_raw() || self.listening.contains(&user);
        user_of(proc, pid).filter(|&user| !is_trusted(user))
    }

    /// A remark to the user that lists the excluded processes of a name. `is_member` is true for processes that belong
    /// to the program for another reason, for example because they are children of the server.
    pub fn exclusion_remark(&self, proc: &Path, name: &str, is_member: impl Fn(u32) -> bool) -> Option<String> {
        let mut left_out = self.left_out.borrow_mut();
        left_out.retain(|&pid, user| !is_member(pid) && user_of(proc, pid) == Some(*user));
        let processes = listed(left_out.iter().map(|(&pid, &user)| (pid, user)))?;
        Some(format!("left out, because the `{name}` that listens is another user's: {processes}"))
    }
}

/// A remark to the user that lists the processes of other users that were selected only by their name.
pub(super) fn by_name_alone(name: &str, foreign: impl Iterator<Item = (u32, u32)>) -> Option<String> {
    let processes = listed(foreign)?;
    Some(format!(
        "only the name `{name}` says that these are the server's: {processes}; name the server by its port or pid if they \
         are not"
    ))
}

/// A list of processes with their users, as text; `None` if there are none.
fn listed(processes: impl Iterator<Item = (u32, u32)>) -> Option<String> {
    let words: Vec<String> = processes.map(|(pid, user)| format!("pid {pid} of uid {user}")).collect();
    let named = words.iter().take(MAX_LISTED).cloned().collect::<Vec<_>>().join(", ");
    match words.len() {
        0 => None,
        count if count > MAX_LISTED => Some(format!("{named} and {} more", count - MAX_LISTED)),
        _ => Some(named),
    }
}

fn has_name(proc: &Path, pid: u32, name: &str) -> bool {
    let stat = fs::read(proc.join(format!("{pid}/stat"))).unwrap_or_default();
    procfs::pid_stat(&stat).is_some_and(|stat| ProcessNames::new(proc, pid, stat.comm).contains(name))
}

/// The real user of a process; `None` if there is no such process.
fn user_of(proc: &Path, pid: u32) -> Option<u32> {
    let status = fs::read(proc.join(format!("{pid}/status"))).ok()?;
    let line = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"Uid:"))?;
    std::str::from_utf8(line).ok()?.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_its_real_users() {
        let root = tempfile::tempdir().unwrap();
        let process = |pid: u32, status: &str| {
            fs::create_dir(root.path().join(pid.to_string())).unwrap();
            fs::write(root.path().join(format!("{pid}/status")), status).unwrap();
        };
        // A process chooses its own name. Even if the name contains a line break and `Uid:`, it must not be taken for
        // the line with the users.
        process(7, "Name:\tUid:\t0\nState:\tS\nUid:\t1000\t0\t0\t0\nGid:\t0\n");
        process(8, "Name:\tx\nUid:\t33\t33\t33\t33\n");
        process(9, "Name:\tx\n");
        assert_eq!([7, 8, 9, 10].map(|pid| user_of(root.path(), pid)), [Some(1000), Some(33), None, None]);

        let users = Users { listening: vec![33], ..Users::default() };
        assert_eq!([7, 8, 9].map(|pid| users.admits(root.path(), pid)), [false, true, false]);
        let words = users.exclusion_remark(root.path(), "x", |_| false).unwrap();
        assert!(words.contains("the `x` that listens is another user's: pid 7 of uid 1000"), "{words}");
        assert_eq!(
            users.exclusion_remark(root.path(), "x", |pid| pid == 7),
            None,
            "a child of the server is not listed"
        );
        assert!(
            [7, 8, 9].iter().all(|&pid| Users::default().admits(root.path(), pid)),
            "if no process of the name listens, the processes of all users are admitted"
        );
        assert_eq!((users.foreign(root.path(), 7), users.foreign(root.path(), 8)), (Some(1000), None));
    }

    #[test]
    fn many_processes_are_named_in_few_words() {
        let processes = |count: u32| by_name_alone("x", (1..=count).map(|pid| (pid, 1000)));
        assert_eq!(processes(0), None);
        let words = processes(7).unwrap();
        assert!(words.contains(": pid 1 of uid 1000, ") && words.contains("pid 5 of uid 1000 and 2 more;"), "{words}");
    }
}
