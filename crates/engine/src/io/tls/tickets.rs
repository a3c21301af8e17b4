//! The TLS session tickets that one shard has received from its server.
//!
//! A TLS 1.3 ticket is used only once (RFC 8446 §C.4), so a shard needs one ticket for each connection that it opens at
//! the same time. The default store of rustls keeps only eight tickets, too few for this. Because tickets expire, the
//! latest ticket is used first, and the oldest is dropped first.

use brimful_core::panics::lock;
use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard};

/// Maximum number of tickets that a shard keeps. A ticket needs a few hundred bytes.
const MAX_TICKETS: usize = 4096;

/// The tickets of one server, because a run has only one. The lock is never contended, because a shard is one thread.
#[derive(Default)]
pub struct Tickets {
    /// Whether to resume sessions. If false, no tickets are kept.
    resume: bool,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The key exchange group that the server chose last. Later handshakes offer it first, because an offer that the
    /// server rejects costs another round trip.
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    tls13: VecDeque<Tls13ClientSessionValue>,
}

impl Tickets {
    /// Creates an empty store. If `resume` is false, it keeps no tickets.
    pub fn new(resume: bool) -> Tickets {
        Tickets { resume, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }
}

impl fmt::Debug for Tickets {
    /// Leaves out the tickets, which are secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").field("resume", &self.resume).finish_non_exhaustive()
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.known().group = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.known().group
    }

    fn set_tls12_session(&self, _: ServerName<'static>, session: Tls12ClientSessionValue) {
        if self.resume {
            self.known().tls12 = Some(session);
        }
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.known().tls12.clone()
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.known().tls12 = None;
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        if self.resume {
            let tickets = &mut self.known().tls13;
            if tickets.len() >= MAX_TICKETS {
                tickets.pop_front();
            }
            tickets.push_back(ticket);
        }
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.known().tls13.pop_back()
    }
}
