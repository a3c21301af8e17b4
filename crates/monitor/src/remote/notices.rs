//! Writes log lines about connections. Any host can connect, so lines about clients that have not proved that they know
//! the token are limited to one per second; otherwise they could fill a log.

use crate::sys;
use brimful_core::Nanos;
use brimful_core::panics::lock;
use std::sync::Mutex;

/// Minimum time between two log lines about strangers: clients that have not proved that they know the token.
const STRANGER_INTERVAL: Nanos = Nanos::from_secs(1);

/// Writes log lines about connections.
pub struct ConnectionLog {
    log: Box<dyn Fn(String) + Send + Sync>,
    strangers: Mutex<StrangerLimit>,
}

/// The state of the limit on lines about strangers.
#[derive(Default)]
struct StrangerLimit {
    not_before: Nanos,
    /// Number of lines about strangers omitted since one was last logged.
    left_out: u64,
}

impl ConnectionLog {
    /// Creates a writer that calls `log` for each line.
    pub fn new(log: impl Fn(String) + Send + Sync + 'static) -> ConnectionLog {
        ConnectionLog { log: Box::new(log), strangers: Mutex::default() }
    }

    /// Logs a line about a client that knows the token.
    pub fn log_client(&self, words: String) {
        (self.log)(words);
    }

    /// Logs a line about a connection whose client has not proved that it knows the token. Of several lines within a
    /// second only the first is logged; the next line after that second says how many were omitted.
    pub fn log_unauthenticated(&self, words: String) {
        self.log_stranger_at(words, sys::now());
    }

    fn log_stranger_at(&self, words: String, now: Nanos) {
        let mut strangers = lock(&self.strangers);
        if now < strangers.not_before {
            strangers.left_out += 1;
            return;
        }
        strangers.not_before = now + STRANGER_INTERVAL;
        match std::mem::take(&mut strangers.left_out) {
            0 => (self.log)(words),
            1 => (self.log)(format!("{words} (1 connection before it is not listed)")),
            count => (self.log)(format!("{words} ({count} connections before it are not listed)")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn strangers_get_one_line_a_second_and_clients_all_of_theirs() {
        let (said, hears) = channel();
        let notices = ConnectionLog::new(move |words| drop(said.send(words)));
        let start = Nanos::from_secs(5);
        for ms in [0, 1, 999, 1000, 1500, 2000, 9000] {
            notices.log_stranger_at(format!("stranger {ms}"), start + Nanos::from_millis(ms));
            notices.log_client(format!("client {ms}"));
        }
        let all: Vec<String> = hears.try_iter().collect();
        let (clients, strangers): (Vec<_>, Vec<_>) = all.iter().partition(|words| words.starts_with("client"));
        assert_eq!(clients.len(), 7);
        let expected = [
            "stranger 0",
            "stranger 1000 (2 connections before it are not listed)",
            "stranger 2000 (1 connection before it is not listed)",
            "stranger 9000",
        ];
        assert_eq!(strangers, expected.each_ref());
    }
}
