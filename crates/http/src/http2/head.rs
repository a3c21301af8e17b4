//! Parses the header block of a response: its status and content length (RFC 9113 §8.3.2 and §8.1.1), or its trailers.

use super::hpack::{Decoder, HpackError, TableUse};

/// The properties of a response that its header block determines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// The HTTP status code of the response; `None` in trailers.
    pub(super) status: Option<u16>,
    /// The value of the field `content-length`, if the block has this field.
    pub(super) content_length: Option<u64>,
    /// The reason why a response with this head is malformed (§8.1.1); `None` if it is valid.
    pub(super) fault: Option<&'static str>,
}

/// Caches the header block that was decoded last, if it has the same meaning on every connection. Many servers send the
/// same block for up to a second. An equal block is not decoded again. All connections to one server should share one
/// cache.
#[derive(Clone, Debug, Default)]
pub struct RecentBlock {
    bytes: Vec<u8>,
    head: Option<Head>,
    /// The head in the form of HTTP/1, if it was requested.
    text: Option<Vec<u8>>,
}

/// Decodes one whole header block. If `text` is given, replaces its content by the head in the form of HTTP/1, without
/// a reason phrase.
pub(super) fn read(
    decoder: &mut Decoder,
    recent: &mut RecentBlock,
    block: &[u8],
    mut text: Option<&mut Vec<u8>>,
) -> Result<Head, HpackError> {
    if let Some(head) = recent.head.filter(|_| recent.bytes == block && (text.is_none() || recent.text.is_some())) {
        if let (Some(text), Some(cached)) = (text, &recent.text) {
            text.clone_from(cached);
        }
        return Ok(head);
    }
    let mut fields = Fields::default();
    if let Some(text) = &mut text {
        text.clear();
    }
    let table_use = decoder.decode(block, |name, value| {
        fields.note(name, value);
        if let Some(text) = &mut text {
            write_line(text, name, value);
        }
    })?;
    if let Some(text) = &mut text {
        text.extend_from_slice(b"\r\n");
    }
    let head = fields.head;
    if table_use == TableUse::None {
        recent.bytes.clear();
        recent.bytes.extend_from_slice(block);
        recent.head = Some(head);
        recent.text = text.cloned();
    }
    Ok(head)
}

fn write_line(text: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    let parts: [&[u8]; 4] =
        if name == b":status" { [b"HTTP/2 ", value, b"", b"\r\n"] } else { [name, b": ", value, b"\r\n"] };
    parts.into_iter().for_each(|part| text.extend_from_slice(part));
}

/// The properties that the fields decoded so far determine.
#[derive(Default)]
struct Fields {
    head: Head,
    /// Whether a regular field has been decoded, after which no pseudo-header field may follow.
    regular: bool,
}

impl Fields {
    fn note(&mut self, name: &[u8], value: &[u8]) {
        let fault = if name.first() == Some(&b':') { self.pseudo(name, value) } else { self.field(name, value) };
        self.head.fault = self.head.fault.or(fault);
    }

    fn pseudo(&mut self, name: &[u8], value: &[u8]) -> Option<&'static str> {
        if name != b":status" || self.regular || self.head.status.is_some() {
            return Some("it has a pseudo-header field other than one :status at its start");
        }
        let [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] = value else {
            return Some("its status is not a number of three digits");
        };
        let digit = |byte: u8| u16::from(byte - b'0');
        self.head.status = Some(digit(*a) * 100 + digit(*b) * 10 + digit(*c));
        None
    }

    fn field(&mut self, name: &[u8], value: &[u8]) -> Option<&'static str> {
        self.regular = true;
        if name.is_empty() || name.iter().any(|byte| byte.is_ascii_uppercase() || *byte <= b' ' || *byte >= 0x7f) {
            return Some("the name of a field has a capital letter or another character that is not allowed");
        }
        if value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
            return Some("the value of a field has a line break");
        }
        match name {
            b"content-length" => {
                let Some(length) = decimal(value) else { return Some("its Content-Length is not a number") };
                if self.head.content_length.is_some_and(|earlier| earlier != length) {
                    return Some("it has two different Content-Lengths");
                }
                self.head.content_length = Some(length);
            }
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => {
                return Some("it has a connection-specific field of HTTP/1");
            }
            _ => {}
        }
        None
    }
}

fn decimal(text: &[u8]) -> Option<u64> {
    let digits = text.iter().map(|byte| byte.is_ascii_digit().then(|| u64::from(byte - b'0')));
    let number = digits.into_iter().try_fold(0u64, |number, digit| number.checked_mul(10)?.checked_add(digit?));
    number.filter(|_| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a header block of literals that are not added to the dynamic table.
    fn block(fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in fields {
            block.extend([0, name.len() as u8]);
            block.extend(name.bytes());
            block.push(value.len() as u8);
            block.extend(value.bytes());
        }
        block
    }

    fn head(fields: &[(&str, &str)]) -> Head {
        read(&mut Decoder::default(), &mut RecentBlock::default(), &block(fields), None).unwrap()
    }

    #[test]
    fn heads_have_status_and_length() {
        let said = |status, content_length| Head { status, content_length, fault: None };
        assert_eq!(head(&[(":status", "200"), ("content-length", "12")]), said(Some(200), Some(12)));
        assert_eq!(head(&[(":status", "999"), ("x", "")]), said(Some(999), None));
        assert_eq!(head(&[("x", "y")]), said(None, None), "a block without a status is read as trailers");
        let twice = [(":status", "200"), ("content-length", "5"), ("content-length", "5")];
        assert_eq!(head(&twice), said(Some(200), Some(5)));
    }

    #[test]
    fn malformed_heads_are_named() {
        for (fields, part) in [
            (&[(":status", "20")][..], "three digits"),
            (&[(":status", "099")], "three digits"),
            (&[(":status", "2000")], "three digits"),
            (&[(":status", "200"), (":status", "200")], "pseudo"),
            (&[("x", "y"), (":status", "200")], "pseudo"),
            (&[(":path", "/")], "pseudo"),
            (&[(":status", "200"), ("X-A", "b")], "capital"),
            (&[(":status", "200"), ("", "b")], "capital"),
            (&[(":status", "200"), ("a b", "b")], "capital"),
            (&[(":status", "200"), ("a", "b\r\nc: d")], "line break"),
            (&[(":status", "200"), ("content-length", "-1")], "not a number"),
            (&[(":status", "200"), ("content-length", "")], "not a number"),
            (&[(":status", "200"), ("content-length", "18446744073709551616")], "not a number"),
            (&[(":status", "200"), ("content-length", "1"), ("content-length", "2")], "two different"),
            (&[(":status", "200"), ("transfer-encoding", "chunked")], "HTTP/1"),
            (&[(":status", "200"), ("connection", "close")], "HTTP/1"),
        ] {
            let fault = head(fields).fault.expect("the head must be malformed");
            assert!(fault.contains(part), "{fields:?}: {fault}");
        }
    }

    #[test]
    fn a_repeated_block_gives_the_same_result() {
        let (mut decoder, mut recent) = (Decoder::default(), RecentBlock::default());
        let blocks = [
            block(&[(":status", "200"), ("content-length", "12")]),
            block(&[(":status", "404")]),
            // The block contains a literal that is added to the dynamic table, and then refers to this entry.
            vec![0x88, 0x40, 1, b'a', 1, b'b'],
            vec![0x88, 0xbe],
        ];
        for nth in [0, 0, 1, 0, 2, 3, 3, 0, 2, 2, 3] {
            let mut texts = [None, Some(Vec::new()), Some(Vec::new())].map(|mut text| {
                let fresh = nth < 2;
                let mut alone = (Decoder::default(), RecentBlock::default());
                let said = read(&mut decoder, &mut recent, &blocks[nth], text.as_mut()).unwrap();
                if fresh {
                    assert_eq!(Ok(said), read(&mut alone.0, &mut alone.1, &blocks[nth], None));
                }
                assert_eq!(said.status, Some(if nth == 1 { 404 } else { 200 }));
                text
            });
            let expected: &[u8] = match nth {
                0 => b"HTTP/2 200\r\ncontent-length: 12\r\n\r\n",
                1 => b"HTTP/2 404\r\n\r\n",
                _ => b"HTTP/2 200\r\na: b\r\n\r\n",
            };
            assert!(texts[1..].iter_mut().all(|text| text.take().as_deref() == Some(expected)), "{nth}");
        }
    }
}
