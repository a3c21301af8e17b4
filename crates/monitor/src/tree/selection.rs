//! The selectors at work: which of them matches a process by itself, and whom a port or a cgroup has.

use super::cgroup::Cgroup;
use super::selector::ProcessSelector;
use super::users::{Listeners, Users, by_name_alone};
use crate::accounts::Accounts;
use crate::owner::{listeners_in, owners_in};
use crate::program::Membership;
use crate::search::Search;
use crate::{MonitorError, NetNamespace, sys};
use brimful_core::Nanos;
use std::fs;
use std::path::{Path, PathBuf};

/// How often to look for whoever else has a port or joins a cgroup, while somebody is known to: asking what listens
/// takes the kernel as long as half a sample.
pub(super) const JOINING: Nanos = Nanos::from_secs(5);

/// How long after its start a process may still give itself a title.
const TITLING: Nanos = Nanos::from_secs(10);
/// How long after its start a process may still be between two programs: while one is executed there is a moment in which
/// the process has its new name and no arguments yet.
const EXECUTING: Nanos = Nanos::from_secs(1);

/// The most bytes of a process's name that the kernel keeps (`TASK_COMM_LEN` with its NUL is 16).
const COMM_BYTES: usize = 15;
/// Programs that run scripts, without their versions. What follows `-e` is a program's text, and no file.
const INTERPRETERS: [&[u8]; 11] =
    [b"python", b"pypy", b"perl", b"ruby", b"node", b"nodejs", b"deno", b"bun", b"php", b"lua", b"java"];
/// Shells, to which `-e` means to end at the first error.
const SHELLS: [&[u8]; 3] = [b"sh", b"bash", b"dash"];
/// A script is among the first arguments: an interpreter and its options stand before it.
const MAX_SCRIPT_PLACE: usize = 8;

/// All selectors, in their order.
#[derive(Debug)]
pub(super) struct Selection {
    proc: PathBuf,
    /// Where the ports are.
    netns: NetNamespace,
    choices: Vec<Choice>,
    /// The processes that listen on the watched ports: their users decide which processes of a name are selected.
    listeners: Listeners,
    /// Whether a name's user has become known, so that processes that were left out must be looked at again.
    reconsiders: bool,
    /// Whom a port or a cgroup was just found to have, and by which selector; only those in no program yet. Holds until
    /// the next look at all processes: later, another process may be there under the same number.
    found: Vec<(u32, usize)>,
}

#[derive(Debug)]
struct Choice {
    selector: ProcessSelector,
    holder: Option<Holder>,
    /// The users of the name, if the selector is one.
    users: Users,
    search: Search,
    /// When somebody else is looked for.
    joining_at: Nanos,
}

/// What has processes.
#[derive(Debug)]
enum Holder {
    Port(Port),
    Cgroup(Cgroup),
}

#[derive(Debug, Default)]
pub(super) struct Port {
    number: u16,
    /// Its listening sockets when their owners were last looked for.
    inodes: Vec<u32>,
    pub owners: Vec<u32>,
    why_none: Option<String>,
}

impl Selection {
    /// `root` contains /proc and /sys. The processes that listen on `ports` decide which user's processes of a name are
    /// selected.
    pub fn new(root: &Path, selectors: &[ProcessSelector], netns: &NetNamespace, ports: &[u16]) -> Selection {
        let choice = |selector: &ProcessSelector| Choice {
            selector: selector.clone(),
            holder: match selector {
                ProcessSelector::Port(number) => Some(Holder::Port(Port::new(*number))),
                ProcessSelector::Cgroup(path) => Some(Holder::Cgroup(Cgroup::new(root, path))),
                ProcessSelector::Name(_) | ProcessSelector::Pid(_) => None,
            },
            users: Users::default(),
            search: Search::default(),
            joining_at: Nanos::ZERO,
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

    /// Looks at ports and cgroups: all of them, or those whose turn it is.
    pub fn look_up(&mut self, accounts: &Accounts, all: bool) {
        let (own, now) = (std::process::id(), sys::now());
        for (index, choice) in self.choices.iter_mut().enumerate() {
            let Some(holder) = &mut choice.holder else { continue };
            let alive = accounts.is_alive(index) || holder.is_shared(accounts);
            if !all && !(choice.search.due() && (!alive || now >= choice.joining_at)) {
                continue;
            }
            choice.joining_at = now + JOINING;
            let begun = Search::begin();
            let mut pids = match holder {
                Holder::Port(port) => port.owners(!alive, &self.netns),
                Holder::Cgroup(cgroup) => cgroup.processes().into_iter().filter(|&pid| pid != own).collect(),
            };
            pids.retain(|&pid| accounts.program_of(pid).is_none() && !self.found.contains(&(pid, index)));
            self.found.extend(pids.into_iter().map(|pid| (pid, index)));
            choice.search.rest(begun);
        }
        if self.listeners.look_up(&self.proc, &self.netns, all) {
            for choice in &mut self.choices {
                if let ProcessSelector::Name(name) = &choice.selector {
                    self.reconsiders |= choice.users.learn(&self.listeners, &self.proc, name);
                }
            }
        }
    }

    /// Where the ports are.
    pub fn netns(&self) -> &NetNamespace {
        &self.netns
    }

    /// Whether a port or a cgroup has a new process, or a name may have one.
    pub fn has_found(&self) -> bool {
        self.reconsiders || !self.found.is_empty()
    }

    /// To be called after a look at all processes.
    pub fn forget(&mut self) {
        self.found.clear();
        self.reconsiders = false;
    }

    /// Which selector matches a process by itself.
    pub fn of(&self, pid: u32, comm: &[u8], accounts: &Accounts) -> Option<usize> {
        let mut others = None;
        self.choices.iter().enumerate().position(|(index, choice)| match &choice.selector {
            ProcessSelector::Name(name) => {
                pid != std::process::id()
                    && (is_whole(comm, name.as_bytes())
                        || others
                            .get_or_insert_with(|| process_names(&self.proc, pid, comm))
                            .iter()
                            .any(|other| other == name.as_bytes()))
                    && choice.users.admit(&self.proc, pid)
            }
            ProcessSelector::Pid(wanted) => *wanted == pid && !accounts.was_found(index),
            ProcessSelector::Port(_) | ProcessSelector::Cgroup(_) => self.found.contains(&(pid, index)),
        })
    }

    /// Whether a process that started then (`CLOCK_BOOTTIME`) is worth another look although nothing is new about it:
    /// some name is waited for, and programs give themselves titles a moment after they were executed.
    pub fn awaits_title(&self, started: Nanos, accounts: &Accounts) -> bool {
        let is_awaited = |(index, choice): (usize, &Choice)| {
            matches!(choice.selector, ProcessSelector::Name(_)) && !accounts.is_alive(index)
        };
        sys::now() + sys::suspended() < started + TITLING && self.choices.iter().enumerate().any(is_awaited)
    }

    /// Whether a process that started then (`CLOCK_BOOTTIME`) may have been seen while it executed its program, so that its
    /// title is worth another look.
    pub fn may_be_executing(&self, started: Nanos) -> bool {
        let by_name = |choice: &Choice| matches!(choice.selector, ProcessSelector::Name(_));
        sys::now() + sys::suspended() < started + EXECUTING && self.choices.iter().any(by_name)
    }

    /// Other users' processes that only their name connects with the server: the name, the pid and the user. A process
    /// that descends from another member counts as the server's.
    pub fn foreign<'s>(&'s self, accounts: &'s Accounts) -> impl Iterator<Item = (&'s str, u32, u32)> {
        self.choices
            .iter()
            .enumerate()
            .filter_map(|(index, choice)| match &choice.selector {
                ProcessSelector::Name(name) => Some((index, choice, name.as_str())),
                _ => None,
            })
            .flat_map(move |(index, choice, name)| {
                accounts.eldest(index).filter_map(move |pid| Some((name, pid, choice.users.foreign(&self.proc, pid)?)))
            })
    }

    /// Remarks for `sources` on other users' processes of a selected name.
    pub fn remarks(&self, accounts: &Accounts) -> Vec<String> {
        let mut remarks = Vec::new();
        for choice in &self.choices {
            let ProcessSelector::Name(name) = &choice.selector else { continue };
            let of_name = self.foreign(accounts).filter(|(other, ..)| other == name);
            remarks.extend(by_name_alone(name, of_name.map(|(_, pid, user)| (pid, user))));
            let is_member = |pid| accounts.program_of(pid).is_some();
            remarks.extend(choice.users.left_out(&self.proc, name, is_member));
        }
        remarks
    }

    /// Whether a selector's program has figures of its own.
    pub fn membership(&self, index: usize, accounts: &Accounts) -> Membership {
        let holder = self.choices[index].holder.as_ref().filter(|_| !accounts.is_alive(index));
        match holder {
            Some(holder) if holder.is_shared(accounts) => Membership::Shared,
            Some(Holder::Port(Port { inodes, owners, .. })) if !inodes.is_empty() && owners.is_empty() => {
                Membership::Hidden
            }
            _ => Membership::Own,
        }
    }

    /// Selectors that have no process, with what to say of it. `every` is how often all processes are looked at.
    pub fn absent<'s>(
        &'s self,
        accounts: &'s Accounts,
        every: Nanos,
    ) -> impl Iterator<Item = (&'s ProcessSelector, String)> {
        let absent = |index: usize| !accounts.is_alive(index) && self.membership(index, accounts) != Membership::Shared;
        let choices = self.choices.iter().enumerate().filter(move |(index, _)| absent(*index));
        choices.map(move |(index, choice)| {
            let selector = &choice.selector;
            let every = choice.holder.as_ref().map_or(every, |_| choice.search.every());
            let often = match every {
                Nanos::ZERO => "at every sample".to_owned(),
                every => format!("at most every {}", every.rounded()),
            };
            let why =
                choice.holder.as_ref().and_then(Holder::why_none).map(|why| format!(": {why}")).unwrap_or_default();
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
    /// Whether its processes belong to another program: a server that listens on two ports.
    fn is_shared(&self, accounts: &Accounts) -> bool {
        let Holder::Port(Port { owners, .. }) = self else { return false };
        !owners.is_empty() && owners.iter().all(|&pid| accounts.program_of(pid).is_some())
    }

    fn why_none(&self) -> Option<String> {
        match self {
            Holder::Port(port) => port.why_none.clone(),
            Holder::Cgroup(cgroup) => cgroup.why_none(),
        }
    }
}

impl Port {
    pub fn new(number: u16) -> Port {
        Port { number, ..Port::default() }
    }

    /// Its owners, if its sockets are others than before or the former owners are gone. To find out whose a socket is
    /// takes a look at every descriptor of every process.
    pub fn owners(&mut self, gone: bool, netns: &NetNamespace) -> Vec<u32> {
        let sockets = listeners_in(self.number, netns);
        let mut inodes: Vec<u32> = sockets.unwrap_or_default().iter().map(|socket| socket.inode).collect();
        inodes.sort_unstable();
        if inodes == self.inodes && !gone {
            return Vec::new();
        }
        self.inodes = inodes;
        self.owners.clear();
        match owners_in(self.number, netns) {
            Ok(owners) => {
                self.why_none = None;
                self.owners.clone_from(&owners);
                owners
            }
            Err(error) => {
                self.why_none = match error {
                    MonitorError::UnknownOwner { why, .. } => Some(why),
                    error => Some(error.to_string()),
                };
                Vec::new()
            }
        }
    }
}

/// Whether a process has this name, the kernel's or another.
pub(super) fn bears_name(proc: &Path, pid: u32, comm: &[u8], name: &str) -> bool {
    is_whole(comm, name.as_bytes()) || process_names(proc, pid, comm).iter().any(|other| other == name.as_bytes())
}

/// Whether a process's name is this one, and not what the kernel leaves of a longer one.
fn is_whole(comm: &[u8], name: &[u8]) -> bool {
    name.len() <= COMM_BYTES && comm == name
}

/// Whether a process's name is what the kernel leaves of this one.
fn is_cut_to(comm: &[u8], name: &[u8]) -> bool {
    !comm.is_empty() && comm == &name[..name.len().min(COMM_BYTES)]
}

/// The names of a process besides the kernel's: its executable's, its title's, and that of the script that it runs.
fn process_names(proc: &Path, pid: u32, comm: &[u8]) -> Vec<Vec<u8>> {
    let executable = executable_name(proc, pid);
    let command_line = fs::read(proc.join(format!("{pid}/cmdline"))).unwrap_or_default();
    let script = script(&command_line, comm, &executable).map(<[u8]>::to_vec);
    [Some(title(&command_line)), script, Some(executable)].into_iter().flatten().collect()
}

/// How a process's title begins, without directories: `php-fpm` of `php-fpm: master process (/etc/...)`, `puma` of
/// `puma 6.4 (tcp://...)`. One that gives itself none has the name that it was started by.
fn title(command_line: &[u8]) -> Vec<u8> {
    file_name(command_line.split(|byte| b"\0: ".contains(byte)).next().unwrap_or_default()).to_vec()
}

/// The file name of the script that an interpreter runs: `app.py` of `python3 -u /srv/app.py --port 80`. A process
/// counts as an interpreter if its executable is a known one, or if the kernel named it after the script, which begins
/// with `#!`.
fn script<'c>(command_line: &'c [u8], comm: &[u8], executable: &[u8]) -> Option<&'c [u8]> {
    let program = without_version(executable);
    let is_shell = SHELLS.contains(&program);
    let mut arguments = command_line.split(|byte| *byte == 0).skip(1).take(MAX_SCRIPT_PLACE);
    let argument = arguments.find(|argument| !argument.starts_with(b"-") || is_code(argument, is_shell))?;
    let name = file_name(argument);
    let is_script = !argument.starts_with(b"-") && !name.is_empty();
    let is_interpreter = is_shell || INTERPRETERS.contains(&program);
    (is_script && (is_interpreter || is_cut_to(comm, name))).then_some(name)
}

/// Whether a program's text follows this option, and no file.
fn is_code(option: &[u8], is_shell: bool) -> bool {
    option == b"-c" || (option == b"-e" && !is_shell)
}

/// A program's name without its version: `python` of `python3.11`.
fn without_version(executable: &[u8]) -> &[u8] {
    let version = |byte: &u8| byte.is_ascii_digit() || b".-".contains(byte);
    let length = executable.iter().rposition(|byte| !version(byte)).map_or(0, |last| last + 1);
    executable.get(..length).unwrap_or_default()
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// The file name of a process's executable, also after that was replaced by a newer one.
fn executable_name(proc: &Path, pid: u32) -> Vec<u8> {
    let path = fs::read_link(proc.join(format!("{pid}/exe"))).unwrap_or_default();
    let file = path.file_name().unwrap_or_default().as_encoded_bytes();
    file.strip_suffix(b" (deleted)").unwrap_or(file).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_of_an_interpreter_is_found_among_its_arguments() {
        for (line, comm, executable, expected) in [
            (
                "python3\0/opt/verylongscriptname-app\0x",
                "verylongscriptn",
                "python3.11",
                Some("verylongscriptname-app"),
            ),
            ("python3\0-u\0app.py\0--port=1", "python3", "python3.11", Some("app.py")),
            ("/opt/own\0/opt/verylongscriptname-app", "verylongscriptn", "own", Some("verylongscriptname-app")),
            ("/opt/own\0/opt/verylongscriptname-app", "own", "own", None),
            ("vim\0nginx", "vim", "vim.basic", None),
            ("sh\0-c\0nginx", "sh", "dash", None),
            ("sh\0-e\0/opt/run", "sh", "dash", Some("run")),
            ("perl\0-e\0print", "perl", "perl", None),
            ("perl\0-w\0-T\0s.pl", "s.pl", "perl", Some("s.pl")),
            ("php8.2\0index.php", "php8.2", "php8.2", Some("index.php")),
            ("python3", "python3", "python3.11", None),
            ("", "", "", None),
        ] {
            let found = script(line.as_bytes(), comm.as_bytes(), executable.as_bytes());
            assert_eq!(found.map(String::from_utf8_lossy).as_deref(), expected, "{line:?}");
        }
    }
}
