//! The server's software, read from the `Server` field (RFC 9110 §10.2.4) of its first response.
//!
//! Only the first piece of a response is read, and only once per shard, so later calls pay for one comparison. HTTP/2
//! responses reach observers only if they are rendered as text, so they usually have no such name.

use brimful_http::field_value;

/// Maximum length of the name, in characters. Longer names are cut.
const MAX_CHARS: usize = 200;

/// The server's software, as one shard knows it.
#[derive(Debug, Default)]
pub(crate) enum ServerSoftware {
    /// No response arrived yet.
    #[default]
    Unread,
    /// The first response was read; `None` if it does not name the software.
    Read(Option<String>),
}

impl ServerSoftware {
    /// Reads a piece of a response, unless an earlier piece was read.
    #[inline]
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        if matches!(self, ServerSoftware::Unread) {
            self.read_first(bytes);
        }
    }

    #[cold]
    fn read_first(&mut self, bytes: &[u8]) {
        let value = field_value(bytes, "server").map(|value| String::from_utf8_lossy(value).into_owned());
        let name = value.map(|value| value.chars().take(MAX_CHARS).collect::<String>());
        *self = ServerSoftware::Read(name.filter(|name| !name.is_empty()));
    }

    /// The name; `None` if no response had one.
    pub(crate) fn name(&self) -> Option<String> {
        match self {
            ServerSoftware::Unread => None,
            ServerSoftware::Read(name) => name.clone(),
        }
    }

    /// Adds the name that another shard read.
    pub(crate) fn merge(&mut self, other: ServerSoftware) {
        if self.name().is_none() {
            *self = other;
        }
    }
}
