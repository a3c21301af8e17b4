//! Counts the connections of the watched ports by a sock_diag dump or, if the kernel refuses the dump, from
//! /proc/net/tcp.

use super::tables::Tables;
use super::tally::Tally;
use crate::sock_diag::{ConnectedSocket, SockDiag};
use crate::sys;
use brimful_core::Nanos;
use std::io;
use std::path::Path;

/// Counts the connections of some ports, by reading all sockets.
#[derive(Debug)]
pub(super) struct Counter {
    ports: Vec<u16>,
    tables: io::Result<Tables>,
    last: LastCount,
}

/// Duration and failures of the last count.
#[derive(Debug, Default)]
struct LastCount {
    took: Nanos,
    /// The reason why sock_diag could not be used; `None` if it was used.
    refused: Option<String>,
    /// The reason why the count failed; `None` if it succeeded.
    failed: Option<String>,
}

impl Counter {
    /// Creates a counter. `net` is the directory where the kernel lists sockets.
    pub fn open(net: &Path, ports: &[u16]) -> Counter {
        Counter { ports: ports.to_vec(), tables: Tables::open(net), last: LastCount::default() }
    }

    /// Counts the connections of each port, in the order of the ports. Returns `None` if counting fails;
    /// [`Counter::source`] then contains the reason.
    pub fn count(&mut self, diag: &mut io::Result<SockDiag>) -> Option<Vec<Tally>> {
        let begun = sys::now();
        let refused = match self.dump(diag) {
            Ok(tallies) => {
                self.last = LastCount { took: sys::now() - begun, ..LastCount::default() };
                return Some(tallies);
            }
            Err(refused) => refused,
        };
        let counted = match &self.tables {
            Ok(tables) => tally(&self.ports, |see| tables.connections(see)).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let (tallies, failed) = counted.map_or_else(|error| (None, Some(error)), |tallies| (Some(tallies), None));
        self.last = LastCount { took: sys::now() - begun, refused: Some(refused), failed };
        tallies
    }

    /// The duration of the last count.
    pub fn duration(&self) -> Nanos {
        self.last.took
    }

    /// Name of the source of the last count. If the count failed, the text is `none: ` and the reason.
    pub fn source(&self) -> String {
        let Some(refused) = &self.last.refused else { return "sock_diag".to_owned() };
        let hint = "try: sudo modprobe -a tcp_diag inet_diag";
        match &self.last.failed {
            None => {
                format!("/proc/net/tcp and tcp6 (not sock_diag, which takes a fifth of the time: {refused}; {hint})")
            }
            Some(failed) => format!("none: sock_diag: {refused}; /proc/net/tcp: {failed}; {hint}"),
        }
    }

    fn dump(&self, diag: &mut io::Result<SockDiag>) -> Result<Vec<Tally>, String> {
        let diag = diag.as_mut().map_err(|error| error.to_string())?;
        let mut attempt = || tally(&self.ports, |see| diag.connections(see));
        match attempt() {
            // A signal interrupted the count, or the kernel's table changed during the count. The count is repeated
            // once.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => attempt(),
            answer => answer,
        }
        .map_err(|error| error.to_string())
    }
}

fn tally<T>(
    ports: &[u16],
    show: impl FnOnce(&mut dyn FnMut(ConnectedSocket)) -> io::Result<T>,
) -> io::Result<Vec<Tally>> {
    let mut tallies = vec![Tally::default(); ports.len()];
    show(&mut |socket| {
        for (_, tally) in ports.iter().zip(&mut tallies).filter(|(port, _)| **port == socket.port) {
            tally.add(socket.state, socket.record);
        }
    })?;
    Ok(tallies)
}
