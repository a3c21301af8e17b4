//! The Huffman code of strings (§5.2, Appendix B). The code is canonical: the lengths of the code words determine the
//! code words.
//!
//! Code words of up to eight bits, which cover nearly all bytes of a head, are looked up in a table. Longer code words
//! are searched length by length.

/// Length in bits of the code word of each byte value. The last entry is the end-of-string symbol, which is never sent.
const CODE_LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12,
    10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6,
    5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22,
    22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20,
    22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28,
    27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28,
    27, 27, 27, 27, 27, 26, 30,
];
const MAX_CODE_BITS: usize = 30;
const END_OF_STRING: u16 = 256;

static CODE: Code = Code::new();

/// The Huffman code that [`CODE_LENGTHS`] defines.
struct Code {
    /// The symbols (byte values and [`END_OF_STRING`]), sorted by the length of their code words and then by value.
    symbols: [u16; 257],
    /// The first code word of each length.
    first: [u32; MAX_CODE_BITS + 2],
    /// For each length, the index in `symbols` of the first code word of this length.
    start: [u16; MAX_CODE_BITS + 2],
    /// For each value of the next eight bits: the symbol, and the length of its code word. The length is 0 if the code
    /// word is longer than eight bits.
    short: [(u8, u8); 256],
}

impl Code {
    const fn new() -> Code {
        let mut code = Code {
            symbols: [0; 257],
            first: [0; MAX_CODE_BITS + 2],
            start: [0; MAX_CODE_BITS + 2],
            short: [(0, 0); 256],
        };
        let (mut next, mut placed, mut length) = (0u32, 0usize, 1usize);
        while length <= MAX_CODE_BITS {
            next <<= 1;
            code.first[length] = next;
            code.start[length] = placed as u16;
            let mut symbol = 0;
            while symbol < CODE_LENGTHS.len() {
                if CODE_LENGTHS[symbol] as usize == length {
                    code.symbols[placed] = symbol as u16;
                    if length <= 8 {
                        let shift = 8 - length;
                        let mut tail = 0;
                        while tail < 1 << shift {
                            code.short[(next << shift) as usize + tail] = (symbol as u8, length as u8);
                            tail += 1;
                        }
                    }
                    placed += 1;
                    next += 1;
                }
                symbol += 1;
            }
            length += 1;
        }
        code.start[MAX_CODE_BITS + 1] = placed as u16;
        code
    }

    /// Finds the code word at the start of `bits`, beginning with the highest bit. Returns its symbol and its length in
    /// bits.
    fn find(&self, bits: u64) -> Option<(u16, u32)> {
        let (symbol, length) = self.short[(bits >> 56) as usize];
        if length > 0 {
            return Some((u16::from(symbol), u32::from(length)));
        }
        (9..=MAX_CODE_BITS).find_map(|length| {
            let offset = ((bits >> (64 - length)) as u32).checked_sub(self.first[length])?;
            let at = u32::from(self.start[length]) + offset;
            (at < u32::from(self.start[length + 1])).then(|| (self.symbols[at as usize], length as u32))
        })
    }
}

/// Decodes `text` and appends the result to `into`. Returns `None` if `text` is not valid. At the end, up to seven one
/// bits of padding are allowed.
pub(super) fn decode(text: &[u8], into: &mut Vec<u8>) -> Option<()> {
    let (mut bits, mut count) = (0u64, 0u32);
    let mut bytes = text.iter();
    loop {
        while count <= 56 {
            let Some(&byte) = bytes.next() else { break };
            bits |= u64::from(byte) << (56 - count);
            count += 8;
        }
        // The missing bits after the end of `text` are set to one. Only the code word of the end-of-string symbol
        // consists of ones.
        let padded = bits | u64::MAX.checked_shr(count).unwrap_or(0);
        match CODE.find(padded) {
            Some((symbol, length)) if length <= count && symbol != END_OF_STRING => {
                into.push(symbol as u8);
                bits <<= length;
                count -= length;
            }
            _ => return (count < 8 && padded == u64::MAX).then_some(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the code word of a symbol, and its length in bits.
    fn code(symbol: u16) -> (u32, usize) {
        let at = CODE.symbols.iter().position(|other| *other == symbol).unwrap();
        let length = usize::from(CODE_LENGTHS[usize::from(symbol)]);
        (CODE.first[length] + (at - usize::from(CODE.start[length])) as u32, length)
    }

    fn encode(text: &[u8]) -> Vec<u8> {
        let mut bits = String::new();
        for &byte in text {
            let (code, length) = code(u16::from(byte));
            bits += &format!("{code:0length$b}");
        }
        bits += &"1".repeat((8 - bits.len() % 8) % 8);
        bits.as_bytes().chunks(8).map(|byte| u8::from_str_radix(str::from_utf8(byte).unwrap(), 2).unwrap()).collect()
    }

    fn decoded(text: &[u8]) -> Option<Vec<u8>> {
        let mut into = Vec::new();
        decode(text, &mut into).map(|()| into)
    }

    #[test]
    fn the_code_is_that_of_appendix_b() {
        for (symbol, expected) in [
            (b'0', (0x0, 5)),
            (b'a', (0x3, 5)),
            (b' ', (0x14, 6)),
            (b'!', (0x3f8, 10)),
            (b'|', (0x7fc, 11)),
            (b'\\', (0x7fff0, 19)),
            (128, (0xfffe6, 20)),
            (0, (0x1ff8, 13)),
            (b'\n', (0x3fff_fffc, 30)),
        ] {
            assert_eq!(code(u16::from(symbol)), expected, "{symbol}");
        }
        assert_eq!(code(END_OF_STRING), (0x3fff_ffff, 30));
    }

    #[test]
    fn every_byte_round_trips() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decoded(&encode(&all)), Some(all.clone()));
        for byte in all {
            for times in 0..20 {
                let text = vec![byte; times];
                assert_eq!(decoded(&encode(&text)), Some(text));
            }
        }
    }

    #[test]
    fn padding_is_ones_and_shorter_than_a_byte() {
        assert_eq!(decoded(b""), Some(Vec::new()));
        // The code word of `0` is 00000; the other three bits are padding.
        assert_eq!(decoded(&[0b0000_0111]), Some(b"0".to_vec()));
        for bad in [&[0b0000_0110][..], &[0b0000_0111, 0xff], &[0xff], &[0xff; 4], &[0xff; 9], &[0x00]] {
            assert_eq!(decoded(bad), None, "{bad:?}");
        }
    }
}
