//! Opens the listening socket. Its listen queue has exactly the requested length, or an error is returned.

use crate::error::TargetError;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use std::net::SocketAddr;

/// Listens on `addr`. Returns the socket, and its address, which contains the chosen port if `addr` has port 0.
pub(crate) fn listen(addr: SocketAddr, backlog: u32) -> Result<(OwnedFd, SocketAddr), TargetError> {
    check_backlog(backlog, std::fs::read_to_string("/proc/sys/net/core/somaxconn").ok().as_deref())?;
    open(addr, backlog).map_err(|errno| match errno {
        Errno::ADDRINUSE => TargetError::AddressInUse { addr },
        Errno::ACCESS | Errno::PERM => TargetError::Permission { addr },
        Errno::ADDRNOTAVAIL => TargetError::NotLocal { addr },
        other => TargetError::Listen { addr, source: other.into() },
    })
}

fn open(addr: SocketAddr, backlog: u32) -> rustix::io::Result<(OwnedFd, SocketAddr)> {
    let family = if addr.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    // With this option, the port can be used at once after a restart, although connections of the previous process are
    // still in the state TIME_WAIT.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    // Accepted sockets inherit this option. Setting it on each of them would need a system call per connection.
    sockopt::set_tcp_nodelay(&socket, true)?;
    net::bind(&socket, &addr)?;
    net::listen(&socket, i32::try_from(backlog).unwrap_or(i32::MAX))?;
    let addr = SocketAddr::try_from(net::getsockname(&socket)?)?;
    Ok((socket, addr))
}

/// Rejects a backlog that the kernel would silently reduce to `net.core.somaxconn`.
fn check_backlog(asked: u32, somaxconn: Option<&str>) -> Result<(), TargetError> {
    match somaxconn.and_then(|text| text.trim().parse().ok()) {
        Some(limit) if asked > limit => Err(TargetError::Backlog { asked, limit }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_that_the_kernel_would_reduce_is_rejected() {
        assert!(check_backlog(128, Some("128\n")).is_ok());
        assert!(check_backlog(129, None).is_ok());
        let message = check_backlog(129, Some("128\n")).unwrap_err().to_string();
        assert!(message.contains("sysctl -w net.core.somaxconn=129"), "{message}");
    }

    #[test]
    fn failures_say_what_to_do() {
        let (_socket, addr) = listen("127.0.0.1:0".parse().unwrap(), 1).unwrap();
        assert_ne!(addr.port(), 0);
        let message = listen(addr, 1).unwrap_err().to_string();
        assert!(message.starts_with(&format!("{addr} is in use")) && message.contains("port 0"), "{message}");
        // This address belongs to TEST-NET-1, which is reserved for documentation (RFC 5737), so no host has it.
        let error = listen("192.0.2.1:0".parse().unwrap(), 1).unwrap_err();
        assert!(matches!(error, TargetError::NotLocal { .. }), "{error}");
    }
}
