//! Histograms in documents: HdrHistogram V2 (G. Tene), compressed by zlib and encoded in standard base64, so that other
//! tools can read them. The uncompressed histograms of earlier versions can be read as well.
//!
//! Documents are not trusted: decompression stops at the size of the largest histogram with the same bounds.

use crate::error::StatsError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use hdrhistogram::{Counter, Histogram};
use std::borrow::Cow;
use std::hint::black_box;
use std::io::Read;

/// Maximum of every count in a document. A document with a larger count is considered damaged. Sums of permitted counts
/// cannot overflow.
pub(crate) const MAX_COUNT: u64 = 1 << 40;

/// The first four bytes ("cookie") of an uncompressed and of a compressed histogram.
const V2: u32 = 0x1c84_9313;
const COMPRESSED_V2: u32 = 0x1c84_9314;

/// Length of the header in the uncompressed form, in bytes.
const HEADER: usize = 40;

/// Length of the longest encoded count, in bytes.
const LONGEST_COUNT: usize = 9;

/// Creates an empty histogram of values from 1 to `high`. Its memory is not written to in advance.
#[allow(clippy::expect_used, reason = "the bounds are constants of this crate")]
pub(crate) fn empty<C: Counter>(high: u64, digits: u8) -> Histogram<C> {
    Histogram::new_with_bounds(1, high, digits).expect("1 and high are valid bounds")
}

/// Creates an empty histogram of values from 1 to `high`. All its counters are written to, so that recording causes no
/// page fault.
pub(crate) fn touched<C: Counter>(high: u64, digits: u8) -> Histogram<C> {
    let mut histogram = empty(high, digits);
    // The allocator returns zeroed pages without physical memory. Without the black box, the compiler would omit
    // writing zeros to these pages.
    black_box(&mut histogram).reset();
    histogram
}

/// Encodes a histogram: compressed, in base64.
#[allow(clippy::expect_used, reason = "writing to memory, with counts that recording and decode keep in range")]
pub(crate) fn encode<C: Counter>(histogram: &Histogram<C>) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(histogram, &mut bytes).expect("a histogram in memory can be encoded");
    STANDARD.encode(bytes)
}

/// Adds an encoded histogram to `ours`. It must have the same bounds, and may be compressed. Returns the number of added
/// values. Visits only non-zero counters: usually a few hundred out of tens of thousands.
///
/// # Errors
/// If the text is not a histogram of the same bounds. Part of it may then have been added.
pub(crate) fn add<C: Counter>(ours: &mut Histogram<C>, text: &str) -> Result<u64, StatsError> {
    let bytes = STANDARD.decode(text).map_err(|error| damaged(&error.to_string()))?;
    let bytes = uncompressed(&bytes, HEADER + ours.distinct_values() * LONGEST_COUNT)?;
    let (header, mut payload) = bytes.split_at_checked(HEADER).ok_or_else(|| damaged("it is cut short"))?;
    let expected = header_of(ours, payload.len());
    if header[..4] != expected[..4] {
        return Err(damaged("it is not HdrHistogram V2"));
    }
    if header[4..8] != expected[4..8] {
        return Err(damaged("its length is wrong"));
    }
    if header != expected {
        return Err(damaged("it has other bounds than brimful's"));
    }
    let mut index = 0_u64;
    let mut total = 0_u64;
    while !payload.is_empty() {
        match next_number(&mut payload)? {
            // A number ≤ 0 stands for consecutive zero counters: its absolute value is their number, and 0 is a single
            // zero counter.
            zeros @ ..=0 => index += zeros.unsigned_abs().max(1),
            count => {
                let value = lowest_value(index, ours.sigfig());
                let counted = C::from_i64(count).ok_or_else(|| damaged("a count is too large"))?;
                ours.record_n(value, counted).map_err(|_| damaged("it has more counters than its bounds allow"))?;
                index += 1;
                total += count.unsigned_abs();
            }
        }
        if index > ours.distinct_values() as u64 || total > MAX_COUNT {
            return Err(damaged("it has more values than any run"));
        }
    }
    Ok(total)
}

/// Returns the uncompressed form of an encoded histogram. Decompression stops after `max_length` bytes.
fn uncompressed(bytes: &[u8], max_length: usize) -> Result<Cow<'_, [u8]>, StatsError> {
    let Some((cookie, rest)) = bytes.split_first_chunk::<4>() else { return Err(damaged("it is cut short")) };
    if u32::from_be_bytes(*cookie) != COMPRESSED_V2 {
        return Ok(Cow::Borrowed(bytes));
    }
    let Some((length, compressed)) = rest.split_first_chunk::<4>() else { return Err(damaged("it is cut short")) };
    if u32::from_be_bytes(*length) as usize != compressed.len() {
        return Err(damaged("its compressed length is wrong"));
    }
    let mut decoder = ZlibDecoder::new(compressed);
    let mut plain = Vec::new();
    let read = decoder.by_ref().take(max_length as u64 + 1).read_to_end(&mut plain);
    read.map_err(|error| damaged(&format!("it cannot be decompressed: {error}")))?;
    if plain.len() > max_length {
        return Err(damaged("it is larger than its bounds allow"));
    }
    if decoder.total_in() != compressed.len() as u64 {
        return Err(damaged("more follows its end"));
    }
    Ok(Cow::Owned(plain))
}

fn damaged(what: &str) -> StatsError {
    StatsError::Damaged(format!("a histogram: {what}"))
}

/// The header that an uncompressed histogram of these bounds must have. Its fields are: cookie, payload length,
/// normalising offset, digits, bounds, and the conversion ratio of integers to doubles.
fn header_of<C: Counter>(histogram: &Histogram<C>, payload: usize) -> Vec<u8> {
    let length = u32::try_from(payload).unwrap_or(u32::MAX);
    let words = [V2, length, 0, u32::from(histogram.sigfig())].map(u32::to_be_bytes);
    let bounds = [histogram.low(), histogram.high(), 1_f64.to_bits()].map(u64::to_be_bytes);
    [words.as_flattened(), bounds.as_flattened()].concat()
}

/// Reads a number in zigzag LEB128 encoding. Numbers of more than seven bytes exceed [`MAX_COUNT`] and are rejected.
fn next_number(bytes: &mut &[u8]) -> Result<i64, StatsError> {
    let mut number = 0_u64;
    for shift in (0..49).step_by(7) {
        let byte = bytes.split_off_first().ok_or_else(|| damaged("it is cut short"))?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok((number >> 1) as i64 ^ -((number & 1) as i64));
        }
    }
    Err(damaged("a count is too large"))
}

/// The lowest value that the counter at `index` counts. Up to 2·10ᵈⁱᵍⁱᵗˢ, rounded up to a power of two, each value has
/// its own counter. Above this bound, each range from a value to twice the value has half that number of counters.
fn lowest_value(index: u64, digits: u8) -> u64 {
    let half = (2 * 10_u64.pow(u32::from(digits))).next_power_of_two() / 2;
    match index / half {
        0 => index,
        // Overflow yields the largest value, which recording rejects because it is beyond the bounds of the histogram.
        doublings => (half + index % half).checked_shl((doublings - 1) as u32).unwrap_or(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use hdrhistogram::serialization::V2Serializer;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::io::Write;

    const HIGH: u64 = 3_600;

    fn of(values: &[u64]) -> Histogram<u64> {
        let mut histogram = touched(HIGH, 3);
        values.iter().for_each(|value| histogram.saturating_record(*value));
        histogram
    }

    fn added(ours: &[u64], text: &str) -> Result<Histogram<u64>, StatsError> {
        let mut ours = of(ours);
        let before = ours.len();
        let count = add(&mut ours, text)?;
        assert_eq!(ours.len(), before + count);
        Ok(ours)
    }

    /// The uncompressed form in base64, as earlier versions wrote it.
    fn plain(histogram: &Histogram<u64>) -> String {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(histogram, &mut bytes).unwrap();
        STANDARD.encode(bytes)
    }

    /// Prepends the header of the compressed form to these bytes, and encodes the result in base64.
    fn framed(compressed: &[u8]) -> String {
        let words = [COMPRESSED_V2, compressed.len() as u32].map(u32::to_be_bytes);
        STANDARD.encode([words.as_flattened(), compressed].concat())
    }

    fn deflated(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn refused(text: &str) -> String {
        added(&[], text).unwrap_err().to_string()
    }

    #[test]
    fn what_is_written_is_read() {
        for values in [&[][..], &[0], &[3_600, 9_999], &[5, 5, 1_000]] {
            assert_eq!(added(&[], &encode(&of(values))), Ok(of(values)));
        }
        assert_eq!(added(&[5, 7], &encode(&of(&[0, 5, 3_600]))), Ok(of(&[5, 7, 0, 5, 3_600])));
    }

    #[test]
    fn histograms_are_compressed_as_other_tools_have_them_and_older_ones_are_read() {
        for values in [&[][..], &[0], &[3_600, 9_999], &[5, 5, 1_000]] {
            let histogram = of(values);
            // In base64, the text begins with the encoded cookie. Log readers recognise histograms by it.
            assert!(encode(&histogram).starts_with("HISTFAAA"), "{}", encode(&histogram));
            assert_eq!(encode(&histogram), encode(&histogram));
            assert_eq!(added(&[7], &plain(&histogram)), added(&[7], &encode(&histogram)));
        }
    }

    #[test]
    fn no_more_is_decompressed_than_a_histogram_can_have() {
        let bomb = framed(&deflated(&vec![0; 64 << 20]));
        assert!(bomb.len() < 100_000, "{}", bomb.len());
        assert!(refused(&bomb).contains("larger than its bounds allow"));
        let whole = STANDARD.decode(plain(&of(&[5]))).unwrap();
        assert_eq!(added(&[], &framed(&deflated(&whole))), Ok(of(&[5])));
        let followed = [deflated(&whole), vec![0; 3]].concat();
        assert!(refused(&framed(&followed)).contains("more follows its end"));
        assert!(refused(&framed(b"no zlib")).contains("cannot be decompressed"));
        let longer = STANDARD.decode(framed(&deflated(&whole))).unwrap();
        assert!(refused(&STANDARD.encode(&longer[..longer.len() - 1])).contains("compressed length is wrong"));
    }

    /// Encodes a histogram with one value in every counter. Expects the same histogram after decoding.
    #[test]
    fn every_counter_is_read_as_what_it_counts() {
        for (high, digits) in [(3_600_000_000_000, 3), (60_000_000, 2)] {
            let mut written: Histogram<u64> = touched(high, digits);
            let mut value = 0;
            while value <= high {
                written.record(value).unwrap();
                value = written.next_non_equivalent(value);
            }
            let mut read: Histogram<u64> = empty(high, digits);
            assert_eq!(add(&mut read, &encode(&written)), Ok(written.len()));
            assert_eq!(read, written);
        }
    }

    #[test]
    fn damaged_text_is_an_error() {
        let good = plain(&of(&[5, 3_000]));
        for bad in ["", "*", &good[..good.len() - 4], &STANDARD.encode([0; 64])] {
            assert!(refused(bad).contains("a histogram: "), "{bad}");
        }
        let payload = |payload: &[u8]| {
            let mut bytes = STANDARD.decode(&good).unwrap();
            bytes.truncate(40);
            bytes.extend(payload);
            bytes[4..8].copy_from_slice(&(payload.len() as u32).to_be_bytes());
            STANDARD.encode(&bytes)
        };
        assert!(refused(&payload(&[0xff; 9])).contains("a count is too large"));
        assert!(refused(&payload(&[0xff; 3])).contains("cut short"));
        // The first payload has a count of 2⁴¹, which exceeds the counts of any run. The second one has zero counters
        // beyond the last counter of the histogram.
        assert!(refused(&payload(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01])).contains("more values than any run"));
        let beyond = [0xff, 0xff, 0x03, 2];
        assert!(refused(&payload(&beyond)).contains("more values than any run"), "{}", refused(&payload(&beyond)));
        let mut small: Histogram<u8> = empty(HIGH, 3);
        assert!(add(&mut small, &payload(&[0x80, 0x08])).unwrap_err().to_string().contains("a count is too large"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// Adds encoded numbers of any length, cut off at any position. Expects that they are added with the right
        /// count, or refused.
        #[test]
        fn foreign_bytes_are_read_or_refused(numbers in vec((any::<i64>(), 0..64_u32), 0..20), cut in 0..8_usize) {
            let mut payload = Vec::new();
            for (number, shift) in numbers {
                let number = number >> shift;
                let mut rest = (number << 1 ^ number >> 63) as u64;
                while rest >= 0x80 {
                    payload.push(rest as u8 | 0x80);
                    rest >>= 7;
                }
                payload.push(rest as u8);
            }
            payload.truncate(payload.len().saturating_sub(cut));
            let mut ours = of(&[5]);
            let text = STANDARD.encode([header_of(&ours, payload.len()), payload].concat());
            if let Ok(count) = add(&mut ours, &text) {
                prop_assert_eq!(ours.len(), 1 + count);
            }
        }
    }

    #[test]
    fn another_tools_histogram_is_refused() {
        let foreign: Histogram<u64> = touched(1_000_000, 2);
        assert!(refused(&encode(&foreign)).contains("other bounds"));
    }
}
