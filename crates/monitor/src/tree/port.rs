//! A TCP port by which processes are selected, and the processes that listen on it.

use crate::owner::{listeners_in, owners_in};
use crate::{MonitorError, NetNamespace};
use brimful_core::Nanos;

/// How often to look for further owners of a port or members of a cgroup once some are known. Listing listening sockets
/// takes the kernel as long as half a sample.
pub(super) const OWNER_REFRESH: Nanos = Nanos::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Port {
    number: u16,
    /// The listening sockets at the last look-up of their owners.
    inodes: Vec<u32>,
    pub owners: Vec<u32>,
    why_none: Option<String>,
}

impl Port {
    pub fn new(number: u16) -> Port {
        Port { number, ..Port::default() }
    }

    /// The port's owners, if its sockets have changed or the former owners are gone; otherwise none. Finding the owners
    /// of a socket takes a look at every descriptor of every process.
    pub fn new_owners(&mut self, gone: bool, netns: &NetNamespace) -> Vec<u32> {
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

    /// Whether something listens, and this user cannot see the processes that do.
    pub fn is_hidden(&self) -> bool {
        !self.inodes.is_empty() && self.owners.is_empty()
    }

    /// Why no owner is known.
    pub fn why_none(&self) -> Option<String> {
        self.why_none.clone()
    }
}
