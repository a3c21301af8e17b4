//! Decodes header blocks (HPACK, RFC 7541, Peon & Ruellan 2015). Section numbers in this folder refer to RFC 7541.
//!
//! - Each connection has its own [`Decoder`], whose table changes with every block: if a block is missed or decoded
//!   only in part, the connection is unusable.
//! - Memory is bounded: the table by 4,096 bytes, the default of the protocol; the fields of one block by
//!   [`MAX_HEAD_BYTES`] and by [`MAX_FIELDS`], however few bytes encode them. The size of an entry or a field is
//!   that of §4.1.
//! - No input makes the decoder panic. Once its buffers have grown, only new table entries need memory to be allocated.
//!
//! This crate has its own decoder, because the existing crates (`hpack` and its forks) panic on a single byte
//! (RUSTSEC-2023-0085) and allocate memory for every field. An encoder is not needed: requests are sent as literals,
//! which use no dynamic table (see `render.rs`).

mod huffman;
mod table;

pub(crate) use table::{find_static, static_value};

use crate::{MAX_FIELDS, MAX_HEAD_BYTES};
use table::Table;

/// The reason why a block cannot be decoded. Later blocks of the connection cannot be decoded either (RFC 9113 §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HpackError {
    /// The block violates the grammar, or refers to an entry that is not in the table.
    Broken,
    /// The fields of the block exceed [`MAX_HEAD_BYTES`] or [`MAX_FIELDS`].
    TooLarge,
}

/// Decodes the blocks of one connection.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    table: Table,
    /// Buffers for the name and the value of a literal.
    name: Vec<u8>,
    value: Vec<u8>,
}

/// Whether a block depends on the dynamic table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableUse {
    /// The dynamic table was neither read nor changed, so the block has the same meaning on every connection.
    None,
    /// The dynamic table was read or changed.
    Dynamic,
}

/// Whether a literal is added to the dynamic table (§6.2).
#[derive(Clone, Copy, PartialEq)]
enum Keep {
    InTable,
    Nowhere,
}

impl Decoder {
    /// Decodes one whole block and passes its fields to `on_field`, in order.
    pub(crate) fn decode(
        &mut self,
        block: &[u8],
        mut on_field: impl FnMut(&[u8], &[u8]),
    ) -> Result<TableUse, HpackError> {
        let mut rest = block;
        let mut table_use = TableUse::None;
        let mut size = 0;
        let mut fields = 0;
        let mut count = |name: &[u8], value: &[u8]| {
            size += name.len() + value.len() + table::ENTRY_OVERHEAD;
            fields += 1;
            if size > MAX_HEAD_BYTES || fields > MAX_FIELDS { Err(HpackError::TooLarge) } else { Ok(()) }
        };
        let mut may_resize = true;
        while let Some(&first) = rest.first() {
            if first & 0x80 != 0 {
                let index = integer(&mut rest, 7)?;
                let (name, value) = self.table.get(index).ok_or(HpackError::Broken)?;
                count(name, value)?;
                on_field(name, value);
                if table::is_dynamic(index) {
                    table_use = TableUse::Dynamic;
                }
            } else if first & 0xe0 == 0x20 {
                // A table size update is allowed only at the start of a block (§4.2).
                let limit = integer(&mut rest, 5)?;
                if !may_resize || !self.table.resize(limit) {
                    return Err(HpackError::Broken);
                }
                table_use = TableUse::Dynamic;
                continue;
            } else {
                let (keep, prefix) = if first & 0x40 != 0 { (Keep::InTable, 6) } else { (Keep::Nowhere, 4) };
                let index = self.literal(&mut rest, prefix)?;
                count(&self.name, &self.value)?;
                on_field(&self.name, &self.value);
                if keep == Keep::InTable {
                    self.table.insert(&self.name, &self.value);
                }
                if keep == Keep::InTable || table::is_dynamic(index) {
                    table_use = TableUse::Dynamic;
                }
            }
            may_resize = false;
        }
        Ok(table_use)
    }

    /// Decodes a literal into `name` and `value`. Returns the table index of its name, or 0 if the name is also a
    /// literal.
    fn literal(&mut self, rest: &mut &[u8], prefix: u8) -> Result<u64, HpackError> {
        let index = integer(rest, prefix)?;
        if index == 0 {
            string(rest, &mut self.name)?;
        } else {
            let (name, _) = self.table.get(index).ok_or(HpackError::Broken)?;
            self.name.clear();
            self.name.extend_from_slice(name);
        }
        string(rest, &mut self.value)?;
        Ok(index)
    }
}

/// Decodes an integer whose first bits are the lowest `prefix` bits of the first byte (§5.1). An integer that is too
/// large for any header block is an error, so the sum cannot overflow.
pub(crate) fn integer(rest: &mut &[u8], prefix: u8) -> Result<u64, HpackError> {
    let (&first, mut tail) = rest.split_first().ok_or(HpackError::Broken)?;
    let prefix_mask = (1u8 << prefix) - 1;
    let mut number = u64::from(first & prefix_mask);
    if first & prefix_mask == prefix_mask {
        let mut shift = 0;
        loop {
            let (&byte, more) = tail.split_first().ok_or(HpackError::Broken)?;
            tail = more;
            if shift > 28 {
                return Err(HpackError::Broken);
            }
            number += u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *rest = tail;
    Ok(number)
}

/// Decodes a string, plain or Huffman-coded (§5.2), and replaces the content of `into` by it.
fn string(rest: &mut &[u8], into: &mut Vec<u8>) -> Result<(), HpackError> {
    into.clear();
    let coded = rest.first().ok_or(HpackError::Broken)? & 0x80 != 0;
    let length = usize::try_from(integer(rest, 7)?).map_err(|_| HpackError::Broken)?;
    let (text, tail) = rest.split_at_checked(length).ok_or(HpackError::Broken)?;
    *rest = tail;
    if coded {
        return huffman::decode(text, into).ok_or(HpackError::Broken);
    }
    into.extend_from_slice(text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    /// Decodes a block. Returns its fields, one per line, and whether the block depends on the dynamic table.
    fn read(decoder: &mut Decoder, block: &[u8]) -> Result<(String, TableUse), HpackError> {
        let mut lines = String::new();
        let table_use = decoder.decode(block, |name, value| {
            lines += &format!("{}: {}\n", String::from_utf8_lossy(name), String::from_utf8_lossy(value));
        })?;
        Ok((lines, table_use))
    }

    /// Decodes the three Huffman-coded requests in RFC 7541, C.4, on one connection. Expects the fields that the RFC
    /// states.
    #[test]
    fn the_requests_of_appendix_c() {
        let mut decoder = Decoder::default();
        let start = ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\n";
        for (block, fields) in [
            ("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", start.to_owned()),
            ("8286 84be 5886 a8eb 1064 9cbf", format!("{start}cache-control: no-cache\n")),
            (
                "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
                start.replace("http\n", "https\n").replace(": /\n", ": /index.html\n") + "custom-key: custom-value\n",
            ),
        ] {
            assert_eq!(read(&mut decoder, &bytes(block)), Ok((fields, TableUse::Dynamic)));
        }
    }

    /// Decodes the three Huffman-coded responses in RFC 7541, C.6. Expects the fields that the RFC states. Unlike in
    /// the RFC, the table has room for all entries.
    #[test]
    fn the_responses_of_appendix_c() {
        let mut decoder = Decoder::default();
        let first = bytes(
            "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 \
             63c7 8f0b 97c8 e9ae 82ae 43d3",
        );
        let (fields, _) = read(&mut decoder, &first).unwrap();
        let date = "date: Mon, 21 Oct 2013 20:13:21 GMT\n";
        let rest = "location: https://www.example.com\n";
        assert_eq!(fields, format!(":status: 302\ncache-control: private\n{date}{rest}"));
        let (fields, table_use) = read(&mut decoder, &bytes("4883 640e ffc1 c0bf")).unwrap();
        assert_eq!(fields, format!(":status: 307\ncache-control: private\n{date}{rest}"));
        assert_eq!(table_use, TableUse::Dynamic);
    }

    #[test]
    fn static_entries_and_plain_literals_do_not_involve_the_table() {
        let mut decoder = Decoder::default();
        // The block contains a status from the static table, and a literal that is not added to the dynamic table.
        let block = bytes("88 0f0d 02 3132");
        let said = Ok((":status: 200\ncontent-length: 12\n".to_owned(), TableUse::None));
        assert_eq!((read(&mut decoder, &block), read(&mut decoder, &block)), (said.clone(), said));
        assert_eq!(read(&mut decoder, &bytes("be")), Err(HpackError::Broken), "the table is empty");
    }

    #[test]
    fn violations_of_the_grammar_are_refused() {
        for block in [
            "80",
            "c0",
            "3f",
            "3fe2ff03",
            "88 20",
            "00",
            "40 01",
            "40 0161",
            "40 0161 05 6161",
            "ff ff ff ff ff ff ff 01",
            "40 81 ff 00",
            "40 0161 84 ff ff ff ff",
            "40 0161 81 00",
            "7f ff ff ff ff 0f",
            "20 3fe1ff03",
        ] {
            assert_eq!(read(&mut Decoder::default(), &bytes(block)), Err(HpackError::Broken), "{block}");
        }
        for good in ["", "20", "3fe11f", "20 3fe11f 88"] {
            assert!(read(&mut Decoder::default(), &bytes(good)).is_ok(), "{good}");
        }
    }

    #[test]
    fn a_full_table_evicts_the_oldest_and_a_size_of_0_evicts_all() {
        let mut decoder = Decoder::default();
        let entry = |value: &str| [&[0x40, 1, b'n', value.len() as u8][..], value.as_bytes()].concat();
        let value = |nth: usize| format!("{nth:0>95}");
        for nth in 0..40 {
            read(&mut decoder, &entry(&value(nth))).unwrap();
        }
        // Each entry has a size of 128 bytes (§4.1), so 32 entries fit into the table.
        assert_eq!(read(&mut decoder, &[0x80 | 62]).unwrap().0, format!("n: {}\n", value(39)));
        assert_eq!(read(&mut decoder, &[0x80 | 93]).unwrap().0, format!("n: {}\n", value(8)));
        assert_eq!(read(&mut decoder, &[0x80 | 94]), Err(HpackError::Broken));
        read(&mut decoder, &[0x20]).unwrap();
        assert_eq!(read(&mut decoder, &[0x80 | 62]), Err(HpackError::Broken));
        read(&mut decoder, &entry("v")).unwrap();
        assert_eq!(read(&mut decoder, &[0x80 | 62]), Err(HpackError::Broken), "no entry fits into a table of size 0");
    }

    /// Expects that a few bytes cannot produce a large head by referring to one long entry many times.
    #[test]
    fn a_decompression_bomb_is_refused() {
        let mut decoder = Decoder::default();
        let long = "v".repeat(4000);
        // The length of the value is 4,000: 127 in the prefix, and the rest in seven bits per byte.
        let mut entry = vec![0x40, 1, b'n', 0x7f, (4000 - 127) as u8 | 0x80, ((4000 - 127) >> 7) as u8];
        entry.extend_from_slice(long.as_bytes());
        assert!(read(&mut decoder, &entry).unwrap().0.len() > 4000);
        let (mut shown, bomb) = (0, vec![0x80 | 62; 16_000]);
        assert_eq!(decoder.decode(&bomb, |name, value| shown += name.len() + value.len()), Err(HpackError::TooLarge));
        assert!(shown < MAX_HEAD_BYTES, "{shown}");
        let many = vec![0x88; MAX_FIELDS + 1];
        assert!(read(&mut Decoder::default(), &many[1..]).is_ok());
        assert_eq!(read(&mut Decoder::default(), &many), Err(HpackError::TooLarge));
    }
}
