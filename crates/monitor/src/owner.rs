//! Finds the owners of a port or a Unix socket: the processes that have its listening sockets open.
//!
//! `sock_diag` lists the inodes of a port's sockets. /proc/net/unix lists the inodes of Unix sockets, with the paths to
//! which they were bound. /proc/PID/fd shows which process has `socket:[inode]` open. It can be read only for processes
//! that the caller may inspect: the processes of its own user, or all processes for root. A /proc that is mounted with
//! `hidepid` does not even list other processes. Source: sock_diag(7), proc_pid_fd(5), proc(5), proc_pid_net(5).

use crate::hidden::pid_namespace_hint;
use crate::procfs::{self, process_table};
use crate::sock_diag::{ListenSocket, SockDiag};
use crate::{MonitorError, NetNamespace};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The processes that listen on a TCP port of this network namespace, in ascending order of pid. There is at least one.
///
/// If a parent and its child both listen, only the parent is returned: a server's master, and not its workers.
pub fn listener_owners(port: u16) -> Result<Vec<u32>, MonitorError> {
    owners_in(port, &NetNamespace::Own)
}

/// Like [`listener_owners`], but for another network namespace.
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
    let owners = owners(Path::new("/proc"), &links(sockets.iter().map(|socket| u64::from(socket.inode))));
    if owners.is_empty() {
        return Err(unknown(refusal().to_owned()));
    }
    Ok(owners)
}

/// Like [`listener_owners`], but for a Unix socket that this process can connect to by `path`.
pub fn socket_owners(path: &Path) -> Result<Vec<u32>, MonitorError> {
    let unknown = |why: &str| MonitorError::UnknownSocketOwner { path: path.to_owned(), why: why.to_owned() };
    let table = std::fs::read("/proc/net/unix").map_err(|error| unknown(&error.to_string()))?;
    // The server may have bound the socket to a relative or an absolute path, or through symbolic links.
    let absolute = std::path::absolute(path).unwrap_or_default();
    let real = std::fs::canonicalize(path).unwrap_or_default();
    let inodes = listening_at(&table, &[path, &absolute, &real]);
    if inodes.is_empty() {
        return Err(unknown("no listening socket was bound to that path; give the one in the server's configuration"));
    }
    match owners(Path::new("/proc"), &links(inodes.into_iter())) {
        owners if owners.is_empty() => Err(unknown(refusal())),
        owners => Ok(owners),
    }
}

/// The inodes of the sockets in /proc/net/unix that listen at one of these paths.
fn listening_at(table: &[u8], paths: &[&Path]) -> Vec<u64> {
    /// The kernel's flag `__SO_ACCEPTCON` of a listening socket.
    const LISTENS: u32 = 1 << 16;
    let inode = |line: &[u8]| {
        // The columns are Num RefCount Protocol Flags Type St Inode Path. The inode is padded with spaces, and the path
        // may contain spaces.
        let mut rest = line.trim_ascii_start();
        let mut fields = [&b""[..]; 7];
        for field in &mut fields {
            let end = rest.iter().position(|byte| *byte == b' ')?;
            *field = &rest[..end];
            rest = rest[end..].trim_ascii_start();
        }
        let number = |field: &[u8], radix| u64::from_str_radix(std::str::from_utf8(field).ok()?, radix).ok();
        let listens = number(fields[3], 16)? & u64::from(LISTENS) != 0;
        let is_it = paths.iter().any(|path| path.as_os_str().as_bytes() == rest);
        number(fields[6], 10).filter(|_| listens && is_it)
    };
    table.split(|byte| *byte == b'\n').filter_map(inode).collect()
}

/// The texts of the links in /proc/PID/fd that refer to sockets with these inodes.
fn links(inodes: impl Iterator<Item = u64>) -> Vec<String> {
    inodes.map(|inode| format!("socket:[{inode}]")).collect()
}

/// The sockets that listen on a TCP port of a network namespace.
pub(crate) fn listeners_in(port: u16, netns: &NetNamespace) -> Result<Vec<ListenSocket>, MonitorError> {
    let listening = |_: &Path| SockDiag::open(&[port]).and_then(|mut diag| diag.listening());
    netns.within(Path::new("/proc"), listening)?.map_err(|error| {
        let why = format!("sock_diag: {error}; try: sudo modprobe -a tcp_diag inet_diag");
        MonitorError::UnknownOwner { port, why }
    })
}

/// The reason why no process that this user can see is an owner, with a remedy.
fn refusal() -> &'static str {
    // Any user may read this file of any process, unless /proc hides the processes of other users.
    if std::fs::read("/proc/1/stat").is_err() {
        "/proc hides the processes of other users (hidepid); run as root, or remount /proc without hidepid"
    } else if pid_namespace_hint(Path::new("/")).is_some() {
        "no process that is seen from this PID namespace holds it, as from inside a container; look from the host"
    } else {
        "no process that this user may look into holds it; run as root"
    }
}

fn owners(root: &Path, links: &[String]) -> Vec<u32> {
    // systemd holds the sockets of services that it starts on demand, but is not the server. It is also the ancestor of
    // all processes, so it would hide the server's processes.
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
    use crate::fixture::{Fixture, PID_OFFSET};

    #[test]
    fn a_unix_socket_is_found_by_the_path_it_was_bound_to() {
        let table = b"Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 14530 /run/app.sock
0000000000000000: 00000003 00000000 00000000 0001 03 14531 /run/app.sock
0000000000000000: 00000002 00000000 00010000 0001 01   977 /run/with a space
0000000000000000: 00000002 00000000 00010000 0001 01 14533 @/run/app.sock
0000000000000000: 00000003 00000000 00000000 0001 03 14534
";
        assert_eq!(listening_at(table, &[Path::new("app.sock"), Path::new("/run/app.sock")]), [14530]);
        assert_eq!(listening_at(table, &[Path::new("/run/with a space")]), [977]);
        assert!(listening_at(table, &[Path::new("/run/other")]).is_empty());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app.sock");
        assert!(socket_owners(&path).unwrap_err().to_string().contains("app.sock"));
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        // Another test may be forking a child now, which also holds the socket. Only the parent must be returned.
        assert_eq!(socket_owners(&path).unwrap(), [std::process::id()]);
    }

    #[test]
    fn a_master_stands_for_its_workers_and_systemd_for_nothing() {
        let fixture = Fixture::new();
        for (pid, parent, comm, held) in [
            (PID_OFFSET + 1, 0, "systemd", "socket:[7]"),
            (PID_OFFSET + 2, PID_OFFSET + 1, "nginx", "socket:[7]"),
            (PID_OFFSET + 3, PID_OFFSET + 2, "nginx", "socket:[7]"),
            (PID_OFFSET + 4, PID_OFFSET + 1, "reuseport", "socket:[8]"),
            (PID_OFFSET + 5, PID_OFFSET + 4, "no-listener", "socket:[77]"),
            (PID_OFFSET + 6, PID_OFFSET + 5, "reuseport", "socket:[8]"),
        ] {
            fixture.process(pid, parent, comm, [0; 4]);
            let directory = fixture.proc_root().join(format!("{pid}/fd"));
            std::fs::create_dir(&directory).unwrap();
            std::os::unix::fs::symlink("/dev/null", directory.join("0")).unwrap();
            std::os::unix::fs::symlink(held, directory.join("6")).unwrap();
        }
        let of = |inodes: &[u32]| owners(fixture.proc_root(), &links(inodes.iter().copied().map(u64::from)));
        assert_eq!(of(&[7]), [PID_OFFSET + 2]);
        assert_eq!(of(&[7, 8]), [PID_OFFSET + 2, PID_OFFSET + 4, PID_OFFSET + 6]);
        assert!(of(&[9]).is_empty());
    }
}
