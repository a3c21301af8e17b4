//! Whose a port is: the processes that hold its listening sockets.
//!
//! `sock_diag` gives the sockets' inodes; /proc/PID/fd shows who holds `socket:[inode]`, for processes that the caller
//! may look into: its own user's, or all of them for root. A /proc that is mounted with `hidepid` does not even list
//! the others. Source: sock_diag(7), proc_pid_fd(5), proc(5).

use crate::process_table::process_table;
use crate::procfs;
use crate::sock_diag::{ListenSocket, SockDiag};
use crate::tree::elsewhere;
use crate::{MonitorError, NetNamespace};
use std::path::Path;

/// The processes that listen on a TCP port of this network namespace, in ascending order of pid and never none.
///
/// Of a parent and its child only the parent is given: a server's master, not its workers.
pub fn listener_owners(port: u16) -> Result<Vec<u32>, MonitorError> {
    owners_in(port, &NetNamespace::Own)
}

/// The same of another network namespace.
pub(crate) fn owners_in(port: u16, netns: &NetNamespace) -> Result<Vec<u32>, MonitorError> {
    let unknown = |why: String| MonitorError::UnknownOwner { port, why };
    let sockets = listeners_in(port, netns)?;
    if sockets.is_empty() {
        let place = match netns {
            NetNamespace::Server | NetNamespace::Own => "this network namespace".to_owned(),
            other => other.to_string(),
        };
        return Err(unknown(format!("nothing listens there in {place}; start the server first")));
    }
    let links: Vec<String> = sockets.iter().map(|socket| format!("socket:[{}]", socket.inode)).collect();
    let proc = Path::new("/proc");
    let owners = owners(proc, &links);
    if owners.is_empty() {
        return Err(unknown(refusal().to_owned()));
    }
    Ok(owners)
}

/// The sockets that listen on a TCP port of a network namespace.
pub(crate) fn listeners_in(port: u16, netns: &NetNamespace) -> Result<Vec<ListenSocket>, MonitorError> {
    let listening = |_: &Path| SockDiag::open(&[port]).and_then(|mut diag| diag.listening());
    netns.within(Path::new("/proc"), listening)?.map_err(|error| {
        let why = format!("sock_diag: {error}; try: sudo modprobe -a tcp_diag inet_diag");
        MonitorError::UnknownOwner { port, why }
    })
}

/// Why none of the processes that are seen is an owner, and what to do about it.
fn refusal() -> &'static str {
    // Any user may read this of any process, unless /proc hides those of others.
    if std::fs::read("/proc/1/stat").is_err() {
        "/proc hides the processes of other users (hidepid); run as root, or remount /proc without hidepid"
    } else if elsewhere(Path::new("/")).is_some() {
        "no process that is seen from this PID namespace holds it, as from inside a container; look from the host"
    } else {
        "no process that this user may look into holds it; run as root"
    }
}

fn owners(root: &Path, links: &[String]) -> Vec<u32> {
    // systemd keeps the sockets of services that it starts on demand, and is the parent of all: it is not the server.
    let table = process_table(root, |pid, comm| (comm != b"systemd" && holds(root, pid, links)).then_some(()));
    let holds = |pid| table.get(pid).is_some_and(|(_, tag)| tag.is_some());
    table.iter().filter(|(pid, (parent, _))| holds(pid) && !holds(parent)).map(|(&pid, _)| pid).collect()
}

fn holds(root: &Path, pid: u32, links: &[String]) -> bool {
    let directory = root.join(format!("{pid}/fd"));
    procfs::numeric_entries(&directory).into_iter().any(|fd| {
        let target = std::fs::read_link(directory.join(fd.to_string())).unwrap_or_default();
        links.iter().any(|link| target.as_os_str() == link.as_str())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, P};

    #[test]
    fn a_master_stands_for_its_workers_and_systemd_for_nothing() {
        let fixture = Fixture::new();
        for (pid, parent, comm, held) in [
            (P + 1, 0, "systemd", "socket:[7]"),
            (P + 2, P + 1, "nginx", "socket:[7]"),
            (P + 3, P + 2, "nginx", "socket:[7]"),
            (P + 4, P + 1, "reuseport", "socket:[8]"),
            (P + 5, P + 4, "no-listener", "socket:[77]"),
            (P + 6, P + 5, "reuseport", "socket:[8]"),
        ] {
            fixture.process(pid, parent, comm, [0; 4]);
            let directory = fixture.root().join(format!("{pid}/fd"));
            std::fs::create_dir(&directory).unwrap();
            std::os::unix::fs::symlink("/dev/null", directory.join("0")).unwrap();
            std::os::unix::fs::symlink(held, directory.join("6")).unwrap();
        }
        let of = |inodes: &[u32]| {
            let links: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
            owners(fixture.root(), &links)
        };
        assert_eq!(of(&[7]), [P + 2]);
        assert_eq!(of(&[7, 8]), [P + 2, P + 4, P + 6]);
        assert!(of(&[9]).is_empty());
    }
}
