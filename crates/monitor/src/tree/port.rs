//! A TCP port by which processes are selected, and the processes that listen on the port.

use crate::owner::{listeners_in, owners_in};
use crate::{MonitorError, NetNamespace};
use brimful_core::Nanos;

/// Interval at which to look for additional owners of a port or members of a cgroup, if some are already known. It is
/// long, because listing the listening sockets takes the kernel half as much time as a whole sample.
pub(super) const OWNER_REFRESH: Nanos = Nanos::from_secs(5);

/// A TCP port, and the processes that listen on it.
#[derive(Debug, Default)]
pub(super) struct Port {
    number: u16,
    /// The inodes of the listening sockets when their owners were last looked up.
    inodes: Vec<u32>,
    /// Pids of the processes that listen on the port, as last looked up.
    pub owner_pids: Vec<u32>,
    missing_reason: Option<String>,
}

impl Port {
    /// Creates a selector of the processes that listen on this port.
    pub fn new(number: u16) -> Port {
        Port { number, ..Port::default() }
    }

    /// Looks up the processes that listen on the port, if its sockets have changed or if `gone` is true (the former
    /// owners have ended). Otherwise returns an empty list. So the look-up is rare: it must read every descriptor of
    /// every process.
    pub fn new_owners(&mut self, gone: bool, netns: &NetNamespace) -> Vec<u32> {
        let sockets = listeners_in(self.number, netns);
        let mut inodes: Vec<u32> = sockets.unwrap_or_default().iter().map(|socket| socket.inode).collect();
        inodes.sort_unstable();
        if inodes == self.inodes && !gone {
            return Vec::new();
        }
        self.inodes = inodes;
        self.owner_pids.clear();
        match owners_in(self.number, netns) {
            Ok(owners) => {
                self.missing_reason = None;
                self.owner_pids.clone_from(&owners);
                owners
            }
            Err(error) => {
                self.missing_reason = match error {
                    MonitorError::UnknownOwner { why, .. } => Some(why),
                    error => Some(error.to_string()),
                };
                Vec::new()
            }
        }
    }

    /// Whether a process listens on the port, but this user cannot see that process.
    pub fn is_hidden(&self) -> bool {
        !self.inodes.is_empty() && self.owner_pids.is_empty()
    }

    /// The reason why no process is known that listens on the port.
    pub fn missing_reason(&self) -> Option<String> {
        self.missing_reason.clone()
    }
}
