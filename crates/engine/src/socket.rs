//! Non-blocking TCP sockets, and what their errors mean to a call.

use crate::Close;
use brimful_core::{End, Limit, Nanos};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with, sockopt,
};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A connection attempt that was started.
#[derive(Debug)]
pub struct Attempt {
    pub socket: OwnedFd,
    /// Whether it is established already.
    pub established: bool,
}

/// Starts a connection attempt.
///
/// # Errors
/// How the call ends when the attempt cannot even begin.
pub fn open(address: &SocketAddr) -> Result<Attempt, End> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None).map_err(end_of_attempt)?;
    match connect(&socket, address) {
        Ok(()) => Ok(Attempt { socket, established: true }),
        Err(Errno::INPROGRESS) => Ok(Attempt { socket, established: false }),
        Err(errno) => Err(end_of_attempt(errno)),
    }
}

/// Opens up to `count` connections, one after another, and stops at the first that is not established in time: whatever
/// hinders it will show in the run.
pub fn open_established(address: &SocketAddr, timeout: Nanos, count: u64) -> Vec<OwnedFd> {
    let open = |_| {
        let stream = TcpStream::connect_timeout(address, timeout.into()).ok()?;
        stream.set_nonblocking(true).ok()?;
        Some(OwnedFd::from(stream))
    };
    (0..count).map_while(open).collect()
}

/// The result of an attempt whose socket has become writable or has failed.
pub fn attempt_result(socket: &OwnedFd) -> Result<(), End> {
    sockopt::socket_error(socket).unwrap_or_else(Err).map_err(end_of_attempt)
}

/// Writes what fits; `Ok(0)` when nothing does.
pub fn write(socket: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
    match send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        result => result,
    }
}

/// Reads what is there; `Ok(None)` when nothing is, `Ok(Some(0))` at the end of the stream.
pub fn read(socket: &OwnedFd, buffer: &mut [u8]) -> Result<Option<usize>, Errno> {
    match recv(socket, buffer, RecvFlags::DONTWAIT) {
        Ok((n, _)) => Ok(Some(n)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Closes from this side.
pub fn close(socket: OwnedFd, how: Close) {
    if how == Close::Rst {
        // If it is refused the close becomes an ordinary one.
        let _ = sockopt::set_socket_linger(&socket, Some(Duration::ZERO));
    }
    drop(socket);
}

fn end_of_attempt(errno: Errno) -> End {
    match errno {
        Errno::MFILE | Errno::NFILE => End::ClientLimited(Limit::Descriptors),
        Errno::ADDRNOTAVAIL => End::ClientLimited(Limit::Ports),
        Errno::NOBUFS | Errno::NOMEM => End::ClientLimited(Limit::Memory),
        // The kernel's own SYN retries ran out before our timeout did.
        Errno::TIMEDOUT => End::Abandoned,
        _ => End::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_host_lacks_is_never_the_servers_failure() {
        assert_eq!(end_of_attempt(Errno::MFILE), End::ClientLimited(Limit::Descriptors));
        assert_eq!(end_of_attempt(Errno::ADDRNOTAVAIL), End::ClientLimited(Limit::Ports));
        assert_eq!(end_of_attempt(Errno::NOBUFS), End::ClientLimited(Limit::Memory));
        assert_eq!(end_of_attempt(Errno::CONNREFUSED), End::Refused);
        assert_eq!(end_of_attempt(Errno::TIMEDOUT), End::Abandoned);
    }
}
