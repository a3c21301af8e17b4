//! The name of the server's software, from the `Server` field (RFC 9110 §10.2.4) of its first response.
//!
//! Each shard reads only the first received bytes of its first response. Later calls cost only one comparison. Before
//! the first response, the shard requests the text of HTTP/2 messages from the engine.

use brimful_http::field_value;

/// Maximum length of the software's name, in characters. Longer names are cut off.
const MAX_CHARS: usize = 200;

/// The name of the server's software, if this shard has read its first response.
#[derive(Debug, Default)]
pub(crate) enum ServerSoftware {
    /// No response has arrived yet.
    #[default]
    Unread,
    /// The software's name in the first response, if there was one.
    Read(Option<String>),
}

impl ServerSoftware {
    /// Whether no response has been read yet.
    pub(crate) fn is_unread(&self) -> bool {
        matches!(self, ServerSoftware::Unread)
    }

    /// Reads the software's name from the first bytes of a response. Ignores all responses after the first.
    #[inline]
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        if self.is_unread() {
            self.read_first(bytes);
        }
    }

    #[cold]
    fn read_first(&mut self, bytes: &[u8]) {
        let value = field_value(bytes, "server").map(|value| String::from_utf8_lossy(value).into_owned());
        let name = value.map(|value| value.chars().take(MAX_CHARS).collect::<String>());
        *self = ServerSoftware::Read(name.filter(|name| !name.is_empty()));
    }

    /// The software's name; `None` if there was no response or it had no such name.
    pub(crate) fn name(&self) -> Option<String> {
        match self {
            ServerSoftware::Unread => None,
            ServerSoftware::Read(name) => name.clone(),
        }
    }

    /// Copies the name from another shard if this shard has none.
    pub(crate) fn merge(&mut self, other: ServerSoftware) {
        if self.name().is_none() {
            *self = other;
        }
    }
}
