//! The header block of a request (RFC 9113 §8.3.1), rendered once for all connections.
//!
//! Every field is a literal that enters no table, or names one of the static table: the same bytes are right on every
//! connection, whatever was sent on it before, and a request costs a copy of them. It is longer by what a table would
//! have saved, some tens of bytes, which the server reads. Strings are not Huffman-coded: they are short, and the
//! server is spared the work.

use super::hpack::find_static;

/// A block with these pseudo fields and these fields, whose names are written small.
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

fn field(block: &mut Vec<u8>, name: &str, value: &str) {
    // What a proxy must not put into its table either (RFC 7541 §6.2.3).
    let literal = if is_secret(name) { 0x10 } else { 0x00 };
    match find_static(name, value) {
        Some((index, true)) => block.push(0x80 | index),
        Some((index, false)) => {
            integer(block, literal, 4, usize::from(index));
            string(block, value);
        }
        None => {
            block.push(literal);
            string(block, name);
            string(block, value);
        }
    }
}

fn string(block: &mut Vec<u8>, text: &str) {
    integer(block, 0, 7, text.len());
    block.extend_from_slice(text.as_bytes());
}

/// Whether a proxy is better not to keep its value.
fn is_secret(name: &str) -> bool {
    matches!(name, "authorization" | "proxy-authorization" | "cookie")
}

/// RFC 7541 §5.1.
fn integer(block: &mut Vec<u8>, first: u8, prefix: u8, number: usize) {
    let most = (1usize << prefix) - 1;
    let Some(mut rest) = number.checked_sub(most) else { return block.push(first | number as u8) };
    block.push(first | most as u8);
    while rest >= 0x80 {
        block.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    block.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::super::hpack::{Decoder, Effect};
    use super::*;

    #[test]
    fn a_block_reads_as_it_was_written() {
        let long = "x".repeat(20_000);
        for path in ["/", "/index.html", "/a?b", &long] {
            let fields = [("Accept", "*/*"), ("cookie", "a=b"), ("X-Own", ""), ("range", "bytes=0-1")];
            let block = block("GET", "https", "a.example:81", path, &fields);
            let mut lines = Vec::new();
            let effect = Decoder::default().decode(&block, |name, value| {
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                lines.push((text(name), text(value)));
            });
            assert_eq!(effect, Ok(Effect::None), "and no table is touched");
            let pseudo = [(":method", "GET"), (":scheme", "https"), (":authority", "a.example:81"), (":path", path)];
            let small = [("accept", "*/*"), ("cookie", "a=b"), ("x-own", ""), ("range", "bytes=0-1")];
            let expected = pseudo.iter().chain(&small).map(|(name, value)| (name.to_string(), value.to_string()));
            assert_eq!(lines, expected.collect::<Vec<_>>());
        }
        assert_eq!(block("GET", "http", "a", "/", &[])[..2], [0x82, 0x86]);
    }
}
