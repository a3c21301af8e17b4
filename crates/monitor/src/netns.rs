//! Network namespaces, and the choice of the namespace that is watched.
//!
//! /proc/PID/net shows the namespace of a process; a netlink socket shows the namespace of the thread that opened it.
//! Open files and sockets stay bound to their namespace, and keep it alive. So the monitor itself never changes its
//! namespace: a short-lived thread enters the other namespace, opens the files and sockets that are needed, and ends.
//! Other threads must not open these files and sockets again.
//!
//! Namespaces are identified by the inode of `net/dev`. This inode is unique, and any user may read it, whereas
//! /proc/PID/ns/net requires the right to trace the process. Entering a namespace requires CAP_SYS_ADMIN; reading
//! /proc/PID/net requires no privilege. Source: network_namespaces(7), setns(2), fs/proc/proc_net.c.

use crate::MonitorError;
use rustix::thread::{LinkNameSpaceType, gettid, move_into_link_name_space};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The network namespace that the groups `network` and `connections` watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NetNamespace {
    /// The namespace of all watched processes, even if the processes are restarted in another namespace. If the
    /// processes are in several namespaces, or if no process is named, it is the monitor's namespace. If the watched
    /// namespace is not the monitor's, `sources` says so.
    #[default]
    Server,
    /// The monitor's namespace, wherever the watched processes are.
    Own,
    /// The namespace of the process with this pid.
    Process(u32),
    /// The namespace that a file represents, such as a file of `ip netns` in /run/netns.
    File(PathBuf),
}

/// The network namespace that was chosen, and the way in which it was found.
#[derive(Debug, Default)]
pub(crate) struct ChosenNamespace {
    /// The namespace to watch.
    pub namespace: NetNamespace,
    /// The inode number that identifies the namespace until the machine reboots; `None` if /proc/net cannot be read.
    pub identity: Option<u64>,
    /// The process through which the namespace was found.
    source_process: Option<u32>,
    /// A remark for the user if the monitor's own namespace is not watched, which users may not expect.
    pub remark: Option<String>,
}

/// The file of a namespace named `server`, in which a test bed runs the server.
const TEST_BED_SERVER: &str = "/run/netns/server";

impl FromStr for NetNamespace {
    type Err = String;

    /// Parses `server`, `own`, a pid, a name as `ip netns` shows it, or a path. If there is a namespace with the name
    /// `server`, as in a test bed, `server` is this namespace; otherwise it is [`NetNamespace::Server`].
    fn from_str(text: &str) -> Result<NetNamespace, String> {
        Ok(match text {
            "" | "0" | "." | ".." => {
                return Err(format!("`{text}` is no network namespace: give `server`, `own`, a pid, a name or a path"));
            }
            // In a test bed, `server` is the name of the server's host.
            "server" if Path::new(TEST_BED_SERVER).exists() => NetNamespace::File(TEST_BED_SERVER.into()),
            "server" => NetNamespace::Server,
            "own" => NetNamespace::Own,
            _ => match text.parse() {
                Ok(pid) => NetNamespace::Process(pid),
                Err(_) if text.contains('/') => NetNamespace::File(text.into()),
                Err(_) => NetNamespace::File(Path::new("/run/netns").join(text)),
            },
        })
    }
}

impl fmt::Display for NetNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetNamespace::Server => f.write_str("the server's network namespace"),
            NetNamespace::Own => f.write_str("the monitor's network namespace"),
            NetNamespace::Process(pid) => write!(f, "the network namespace of process {pid}"),
            NetNamespace::File(path) => write!(f, "the network namespace {}", path.display()),
        }
    }
}

impl NetNamespace {
    /// Determines which namespace to watch. `pids` are the watched processes.
    pub(crate) fn choose(&self, proc: &Path, pids: &[u32]) -> Result<ChosenNamespace, MonitorError> {
        let own = identity(&proc.join("net"));
        let seen = pids.iter().filter_map(|&pid| Some((pid, identity(&proc.join(format!("{pid}/net")))?)));
        let seen: Vec<(u32, u64)> = seen.collect();
        let together = seen.windows(2).all(|pair| pair[0].1 == pair[1].1);
        let elsewhere = seen.iter().find(|(_, identity)| Some(*identity) != own).map(|(pid, _)| *pid);
        let (namespace, remark) = match (self, elsewhere) {
            (NetNamespace::Process(_) | NetNamespace::File(_), _) => (self.clone(), Some(format!("in {self}"))),
            (_, None) => (NetNamespace::Own, None),
            (NetNamespace::Server, Some(pid)) if together => {
                let namespace = NetNamespace::Process(pid);
                let remark = format!("in {namespace}, which is watched; `--netns own` shows the monitor's");
                (namespace, Some(remark))
            }
            (_, Some(pid)) => {
                let remark = format!("in the monitor's network namespace; `--netns {pid}` shows that of process {pid}");
                (NetNamespace::Own, Some(remark))
            }
        };
        let identity = namespace.read_within(proc, identity)?;
        Ok(ChosenNamespace { namespace, identity, source_process: pids.first().copied(), remark })
    }

    /// Runs `open` in a short-lived thread inside the namespace. The argument of `open` is the path of the namespace's
    /// /proc/net.
    pub(crate) fn within<T: Send>(&self, proc: &Path, open: impl FnOnce(&Path) -> T + Send) -> Result<T, MonitorError> {
        let path = match self {
            NetNamespace::Server | NetNamespace::Own => return Ok(open(&proc.join("net"))),
            NetNamespace::Process(pid) => proc.join(format!("{pid}/ns/net")),
            NetNamespace::File(path) => path.clone(),
        };
        let refused = |source| self.refused(&path, source);
        let target = File::open(&path).map_err(refused)?;
        std::thread::scope(|scope| {
            let inside = || {
                move_into_link_name_space(target.as_fd(), Some(LinkNameSpaceType::Network))?;
                // The path must contain the thread: /proc/self/net belongs to the process's main thread, which stays in
                // its own namespace.
                Ok(open(&proc.join(format!("self/task/{}/net", gettid()))))
            };
            let thread = std::thread::Builder::new().name("netns".to_owned()).spawn_scoped(scope, inside);
            match thread.map_err(MonitorError::Thread)?.join() {
                Ok(result) => result.map_err(refused),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Like [`NetNamespace::within`], but for a function that only reads files. No privilege is needed if a process in
    /// the namespace is known.
    pub(crate) fn read_within<T: Send>(
        &self,
        proc: &Path,
        open: impl FnOnce(&Path) -> T + Send,
    ) -> Result<T, MonitorError> {
        match self {
            NetNamespace::Process(pid) if proc.join(format!("{pid}/net")).exists() => {
                Ok(open(&proc.join(format!("{pid}/net"))))
            }
            _ => self.within(proc, open),
        }
    }

    fn refused(&self, path: &Path, source: io::Error) -> MonitorError {
        let remedy = match source.kind() {
            io::ErrorKind::PermissionDenied => {
                format!(
                    "run as root, or start the monitor in it: sudo nsenter --net={} brimful watch …",
                    path.display()
                )
            }
            _ => "`sudo lsns -t net` lists the existing ones".to_owned(),
        };
        MonitorError::NetNamespace { which: self.to_string(), source, remedy }
    }
}

impl ChosenNamespace {
    /// Whether the namespace must be determined again: the process through which it was found is no longer watched, but
    /// other processes are.
    pub fn has_lost_source_process(&self, pids: &[u32]) -> bool {
        !pids.is_empty() && !self.source_process.is_some_and(|source_process| pids.contains(&source_process))
    }

    /// The same namespace, with a remark that the server moved into it after monitoring began.
    pub fn with_move_remark(mut self) -> ChosenNamespace {
        let remark = self.remark.unwrap_or_else(|| format!("in {}", NetNamespace::Own));
        self.remark = Some(format!("{remark}; the server has been there only for a part of the time"));
        self
    }
}

fn identity(net: &Path) -> Option<u64> {
    std::fs::metadata(net.join("dev")).ok().map(|dev| dev.ino())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Creates a directory that replaces /proc. It contains these processes, each in a namespace with the given name,
    /// and the monitor in the namespace `own`.
    fn proc_with(processes: &[(u32, &str)]) -> tempfile::TempDir {
        let proc = tempfile::tempdir().unwrap();
        for namespace in ["own", "a", "b"] {
            fs::write(proc.path().join(namespace), "").unwrap();
        }
        let enter = |net: PathBuf, namespace: &str| {
            fs::create_dir_all(&net).unwrap();
            fs::hard_link(proc.path().join(namespace), net.join("dev")).unwrap();
        };
        enter(proc.path().join("net"), "own");
        for (pid, namespace) in processes {
            enter(proc.path().join(format!("{pid}/net")), namespace);
        }
        proc
    }

    fn choose(netns: NetNamespace, processes: &[(u32, &str)]) -> ChosenNamespace {
        let pids: Vec<u32> = processes.iter().map(|(pid, _)| *pid).collect();
        netns.choose(proc_with(processes).path(), &pids).unwrap()
    }

    #[test]
    fn the_server_is_watched_where_all_its_processes_are() {
        // The namespaces are identified by inode numbers, which must not be reused while this test compares them. So
        // all processes are in one directory.
        let proc = proc_with(&[(7, "a"), (8, "a"), (9, "own"), (10, "own")]);
        let chosen = |pids: &[u32]| NetNamespace::Server.choose(proc.path(), pids).unwrap();
        let elsewhere = chosen(&[7, 8]);
        assert_eq!(elsewhere.namespace, NetNamespace::Process(7));
        let remark = elsewhere.remark.unwrap();
        assert!(remark.contains("process 7") && remark.contains("--netns own"), "{remark}");

        let at_home = chosen(&[9, 10]);
        assert_eq!((&at_home.namespace, &at_home.remark), (&NetNamespace::Own, &None));
        assert_ne!(at_home.identity, elsewhere.identity);
        assert_eq!(choose(NetNamespace::Server, &[]).namespace, NetNamespace::Own);

        for apart in [[(7, "own"), (8, "a")], [(7, "b"), (8, "a")]] {
            let chosen = choose(NetNamespace::Server, &apart);
            assert_eq!(chosen.namespace, NetNamespace::Own);
            assert!(chosen.remark.unwrap().contains("--netns"), "{apart:?}");
        }
    }

    #[test]
    fn what_was_asked_for_is_watched_and_what_else_there_is_said() {
        let own = choose(NetNamespace::Own, &[(7, "a")]);
        assert_eq!(own.namespace, NetNamespace::Own);
        assert!(own.remark.unwrap().ends_with("`--netns 7` shows that of process 7"));
        let other = choose(NetNamespace::Process(9), &[(7, "a"), (9, "b")]);
        assert_eq!(other.namespace, NetNamespace::Process(9));
        assert_eq!(other.remark.as_deref(), Some("in the network namespace of process 9"));
    }

    #[test]
    fn a_place_is_left_when_the_process_it_was_found_by_is() {
        let found = choose(NetNamespace::Server, &[(7, "a"), (8, "a")]);
        assert!(
            !found.has_lost_source_process(&[7, 9])
                && !found.has_lost_source_process(&[])
                && found.has_lost_source_process(&[8, 9])
        );
        let nobody = choose(NetNamespace::Server, &[]);
        assert!(!nobody.has_lost_source_process(&[]) && nobody.has_lost_source_process(&[7]));
    }

    #[test]
    fn a_namespace_that_cannot_be_entered_says_what_to_do() {
        let error = NetNamespace::Process(3).within(proc_with(&[]).path(), |_| ()).unwrap_err().to_string();
        assert!(error.starts_with("cannot enter the network namespace of process 3:"), "{error}");
        assert!(error.ends_with("`sudo lsns -t net` lists the existing ones"), "{error}");
        let refused = NetNamespace::Process(3).refused(Path::new("/proc/3/ns/net"), rustix::io::Errno::PERM.into());
        assert!(refused.to_string().ends_with("sudo nsenter --net=/proc/3/ns/net brimful watch …"), "{refused}");
        // The file exists, but does not represent a namespace.
        let file = NetNamespace::File("/proc/self/stat".into());
        assert!(file.within(Path::new("/proc"), |_| ()).is_err());
    }

    #[test]
    fn names_pids_and_paths_are_told_apart() {
        for (text, expected) in [
            ("server", NetNamespace::Server),
            ("own", NetNamespace::Own),
            ("77", NetNamespace::Process(77)),
            ("web", NetNamespace::File("/run/netns/web".into())),
            ("/run/docker/netns/3f", NetNamespace::File("/run/docker/netns/3f".into())),
            ("./77", NetNamespace::File("./77".into())),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for text in ["", "0", ".", ".."] {
            assert!(text.parse::<NetNamespace>().unwrap_err().contains("give `server`, `own`, a pid"), "{text}");
        }
    }
}
