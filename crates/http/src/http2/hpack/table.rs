//! The tables of fields to which an index refers: first the static table (Appendix A), then the connection's dynamic
//! table, newest entry first (§2.3).

use std::collections::VecDeque;

/// Number of bytes that count toward the size of an entry in addition to its name and value (§4.1).
pub(super) const ENTRY_OVERHEAD: usize = 32;
/// Maximum size of the dynamic table in bytes. It is the default of the protocol (RFC 9113 §6.5.2).
const MAX_SIZE: usize = 4096;

const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// Whether an index refers to an entry of the dynamic table.
pub(super) fn is_dynamic(index: u64) -> bool {
    index > STATIC.len() as u64
}

/// Finds an entry of the static table with this name, preferably also with this value. Returns its index, and whether
/// the value matches.
pub(crate) fn find_static(name: &str, value: &str) -> Option<(u8, bool)> {
    let index = |at: usize| at as u8 + 1;
    let whole = STATIC.iter().position(|entry| *entry == (name, value)).map(|at| (index(at), true));
    whole.or_else(|| STATIC.iter().position(|entry| entry.0 == name).map(|at| (index(at), false)))
}

/// The value of the static entry at an index.
pub(crate) fn static_value(index: u64) -> Option<&'static [u8]> {
    let at = usize::try_from(index).ok()?.checked_sub(1)?;
    STATIC.get(at).map(|(_, value)| value.as_bytes())
}

/// The static and the dynamic table of one connection.
#[derive(Debug)]
pub(super) struct Table {
    /// The dynamic table, newest entry first.
    entries: VecDeque<Entry>,
    size: usize,
    limit: usize,
}

/// An entry of the dynamic table.
#[derive(Debug)]
struct Entry {
    /// The bytes of the name, followed by the bytes of the value.
    bytes: Box<[u8]>,
    /// Length of the name at the start of `bytes`, in bytes.
    name_len: usize,
}

impl Default for Table {
    fn default() -> Table {
        Table { entries: VecDeque::new(), size: 0, limit: MAX_SIZE }
    }
}

impl Table {
    /// The name and the value at an index.
    pub(super) fn get(&self, index: u64) -> Option<(&[u8], &[u8])> {
        let at = usize::try_from(index).ok()?.checked_sub(1)?;
        match STATIC.get(at) {
            Some((name, value)) => Some((name.as_bytes(), value.as_bytes())),
            None => {
                let entry = self.entries.get(at - STATIC.len())?;
                entry.bytes.split_at_checked(entry.name_len)
            }
        }
    }

    /// Adds an entry to the dynamic table. If the entry is larger than the table, the table becomes empty (§4.4).
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + ENTRY_OVERHEAD;
        self.shrink(self.limit.saturating_sub(size));
        if size <= self.limit {
            self.size += size;
            self.entries.push_front(Entry { bytes: [name, value].concat().into(), name_len: name.len() });
        }
    }

    /// Limits the size of the dynamic table. Returns false if the limit exceeds [`MAX_SIZE`].
    pub(super) fn resize(&mut self, limit: u64) -> bool {
        if limit > MAX_SIZE as u64 {
            return false;
        }
        self.limit = limit as usize;
        self.shrink(self.limit);
        true
    }

    fn shrink(&mut self, limit: usize) {
        while self.size > limit
            && let Some(oldest) = self.entries.pop_back()
        {
            self.size -= oldest.bytes.len() + ENTRY_OVERHEAD;
        }
    }
}
