//! Renders the header block of a request (RFC 9113 §8.3.1), once for all connections.
//!
//! Every field is an entry of the static table, or a literal that is not added to the dynamic table. So the same bytes
//! are valid on every connection, whatever was sent before, and sending a request only copies them. The dynamic table
//! would save a few dozen bytes per request. Strings are not Huffman-coded: they are short, and the server need not
//! decode them.

use super::hpack::{Decoder, find_static, integer as read_integer, static_value};

/// First byte of a literal that neither the server nor a proxy may add to its table (RFC 7541 §6.2.3).
const NEVER_INDEXED: u8 = 0x10;

/// Renders a block with these pseudo-header fields and `fields`, whose names are converted to lower case.
pub(crate) fn block(method: &str, scheme: &str, authority: &str, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    let pseudo = [(":method", method), (":scheme", scheme), (":authority", authority), (":path", path)];
    for (name, value) in pseudo {
        field(&mut block, name, value);
    }
    for (name, value) in fields {
        field(&mut block, &name.to_ascii_lowercase(), value);
    }
    block
}

/// Adds a Cookie field at the end of a block.
pub(crate) fn with_cookies(block: &[u8], cookies: &[u8]) -> Vec<u8> {
    /// Maximum number of bytes that the field needs in addition to the value: for the index of its name and the value's
    /// length.
    const MAX_OVERHEAD: usize = 8;
    let mut with = Vec::with_capacity(block.len() + MAX_OVERHEAD + cookies.len());
    with.extend_from_slice(block);
    match find_static("cookie", "") {
        Some((index, _)) => integer(&mut with, NEVER_INDEXED, 4, usize::from(index)),
        None => {
            with.push(NEVER_INDEXED);
            string(&mut with, b"cookie");
        }
    }
    string(&mut with, cookies);
    with
}

/// The method of a block rendered by [`block`]: its first field.
pub(crate) fn method(block: &[u8]) -> &[u8] {
    next_value(&mut &*block).unwrap_or_default()
}

/// The path of a block rendered by [`block`]: its fourth field.
pub(crate) fn path(block: &[u8]) -> &[u8] {
    let mut rest = block;
    let value = (0..4).map_while(|_| next_value(&mut rest)).last();
    value.unwrap_or_default()
}

/// Converts a block rendered by [`block`] to the text of an HTTP/1 request head.
pub(crate) fn text(block: &[u8]) -> Vec<u8> {
    let mut line = Vec::new();
    let mut fields = Vec::new();
    let mut add = |name: &[u8], value: &[u8]| fields.extend([name, b": ", value, b"\r\n"].concat());
    // Decoding cannot fail, because this module rendered the block.
    let _ = Decoder::default().decode(block, |name, value| match name {
        b":method" => line.extend_from_slice(value),
        b":scheme" => {}
        b":authority" => add(b"host", value),
        b":path" => line.extend([b" ", value, b" HTTP/2\r\n"].concat()),
        _ => add(name, value),
    });
    [&line[..], &fields, b"\r\n"].concat()
}

/// Removes the next field from `rest` and returns the field's value. The field's name must be in the static table, as
/// the names of all pseudo-header fields are.
fn next_value<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    if rest.first()? & 0x80 != 0 {
        return static_value(read_integer(rest, 7).ok()?);
    }
    read_integer(rest, 4).ok()?;
    let length = usize::try_from(read_integer(rest, 7).ok()?).ok()?;
    let (value, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(value)
}

/// Appends a field to `block`. Its name must be in lower case.
pub(super) fn field(block: &mut Vec<u8>, name: &str, value: &str) {
    let literal = if is_secret(name) { NEVER_INDEXED } else { 0x00 };
    match find_static(name, value) {
        Some((index, true)) => block.push(0x80 | index),
        Some((index, false)) => {
            integer(block, literal, 4, usize::from(index));
            string(block, value.as_bytes());
        }
        None => {
            block.push(literal);
            string(block, name.as_bytes());
            string(block, value.as_bytes());
        }
    }
}

fn string(block: &mut Vec<u8>, text: &[u8]) {
    integer(block, 0, 7, text.len());
    block.extend_from_slice(text);
}

/// Whether a field with this name has a secret value. A proxy must not put a secret value into a table (RFC 7541
/// §6.2.3).
fn is_secret(name: &str) -> bool {
    matches!(name, "authorization" | "proxy-authorization" | "cookie")
}

/// Appends an integer whose first bits are the lowest `prefix` bits of `first` (RFC 7541 §5.1).
fn integer(block: &mut Vec<u8>, first: u8, prefix: u8, number: usize) {
    let prefix_mask = (1usize << prefix) - 1;
    let Some(mut rest) = number.checked_sub(prefix_mask) else { return block.push(first | number as u8) };
    block.push(first | prefix_mask as u8);
    while rest >= 0x80 {
        block.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    block.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::super::hpack::TableUse;
    use super::*;

    #[test]
    fn a_rendered_block_decodes_to_its_fields() {
        let long = "x".repeat(20_000);
        for path in ["/", "/index.html", "/a?b", &long] {
            let fields = [("Accept", "*/*"), ("cookie", "a=b"), ("X-Own", ""), ("range", "bytes=0-1")];
            let block = block("GET", "https", "a.example:81", path, &fields);
            assert_eq!(super::path(&block), path.as_bytes());
            let mut lines = Vec::new();
            let table_use = Decoder::default().decode(&block, |name, value| {
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                lines.push((text(name), text(value)));
            });
            assert_eq!(table_use, Ok(TableUse::None), "the block does not use the dynamic table");
            let pseudo = [(":method", "GET"), (":scheme", "https"), (":authority", "a.example:81"), (":path", path)];
            let small = [("accept", "*/*"), ("cookie", "a=b"), ("x-own", ""), ("range", "bytes=0-1")];
            let expected = pseudo.iter().chain(&small).map(|(name, value)| (name.to_string(), value.to_string()));
            assert_eq!(lines, expected.collect::<Vec<_>>());
        }
        assert_eq!(block("GET", "http", "a", "/", &[])[..2], [0x82, 0x86]);
    }
}
