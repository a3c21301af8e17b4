//! Opens sockets and sets their options.

use super::{Route, Settings, WarmConnection};
use crate::Address;
use brimful_core::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType, bind, connect, socket_with, sockopt};
use std::net::SocketAddr;
use std::time::Duration;

/// Options of every socket of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// Whether to close the socket with RST instead of FIN.
    pub reset_on_close: bool,
    /// Whether to disable Nagle's algorithm (`TCP_NODELAY`), which delays a partial segment until earlier data is
    /// acknowledged. It would delay the end of a request of several segments.
    pub no_delay: bool,
    /// Size of the send buffer in bytes (`SO_SNDBUF`). The kernel doubles it for its own needs.
    pub send_buffer: Option<u32>,
    /// Size of the receive buffer in bytes (`SO_RCVBUF`). The kernel doubles it for its own needs.
    pub receive_buffer: Option<u32>,
}

/// Opens a non-blocking socket and starts to connect it.
pub fn open(address: &Address, options: &SocketOptions, source: Option<&SocketAddr>) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(address.family(), SocketType::STREAM, flags, None)?;
    options.apply(&socket)?;
    if let Some(source) = source {
        // With this option, `connect` rather than `bind` chooses the port, so that connections to different servers can
        // share a port. Otherwise, this host runs out of ports sooner.
        set_bind_address_no_port(&socket)?;
        bind(&socket, source)?;
    }
    match connect(&socket, &address.raw()) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(errno) => Err(address.failure(errno)),
    }
}

fn set_bind_address_no_port(socket: &OwnedFd) -> Result<(), Errno> {
    let on: libc::c_int = 1;
    let value = (&raw const on).cast();
    let size = size_of_val(&on) as libc::socklen_t;
    // SAFETY: the descriptor is open, and `value` points to `size` bytes that outlive the call.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, value, size) };
    if result == 0 {
        Ok(())
    } else {
        Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL))
    }
}

/// Opens up to `count` connections, one after another. Stops at the first connection that is not established within
/// `timeout`. Does not report the reason, because the run will meet the same error and report it.
pub fn open_established(settings: &Settings, timeout: Nanos, count: u64) -> Vec<WarmConnection> {
    let open = |nth| {
        let route = settings.warm_route(nth);
        Some(WarmConnection { socket: open_one(settings, route, timeout)?, address: route.address, session: None })
    };
    (0..count).map_while(open).collect()
}

/// Opens a connection; `None` if it is not established within `timeout`.
pub fn open_one(settings: &Settings, route: Route, timeout: Nanos) -> Option<OwnedFd> {
    let address = settings.addresses.get(route.address)?;
    let source = settings.sources.get(route.source);
    let socket = open(address, &settings.options, source).ok()?;
    wait_until_established(&socket, timeout).then_some(socket)
}

/// Waits for a connection attempt to end. Returns whether it succeeded within `timeout`.
pub fn wait_until_established(socket: &OwnedFd, timeout: Nanos) -> bool {
    let timeout = Timespec { tv_sec: (timeout.0 / 1_000_000_000) as i64, tv_nsec: (timeout.0 % 1_000_000_000) as i64 };
    let mut polled = [PollFd::new(socket, PollFlags::OUT)];
    poll(&mut polled, Some(&timeout)) == Ok(1) && matches!(sockopt::socket_error(socket), Ok(Ok(())))
}

impl SocketOptions {
    fn apply(&self, socket: &OwnedFd) -> Result<(), Errno> {
        if self.reset_on_close {
            sockopt::set_socket_linger(socket, Some(Duration::ZERO))?;
        }
        if self.no_delay {
            sockopt::set_tcp_nodelay(socket, true)?;
        }
        if let Some(bytes) = self.send_buffer {
            sockopt::set_socket_send_buffer_size(socket, bytes as usize)?;
        }
        if let Some(bytes) = self.receive_buffer {
            sockopt::set_socket_recv_buffer_size(socket, bytes as usize)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_socket_has_the_requested_options_and_source() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let options = SocketOptions {
            reset_on_close: true,
            no_delay: true,
            send_buffer: Some(8192),
            receive_buffer: Some(16384),
        };
        let source = SocketAddr::from(([127, 0, 0, 9], 0));
        let socket = open(&listener.local_addr().unwrap().into(), &options, Some(&source)).unwrap();
        assert_eq!(listener.accept().unwrap().1.ip(), source.ip());
        assert_eq!(sockopt::socket_linger(&socket), Ok(Some(Duration::ZERO)));
        assert_eq!(sockopt::tcp_nodelay(&socket), Ok(true));
        assert_eq!(sockopt::socket_send_buffer_size(&socket), Ok(2 * 8192));
        assert_eq!(sockopt::socket_recv_buffer_size(&socket), Ok(2 * 16384));
    }
}
