//! Histograms in documents: HdrHistogram V2 (G. Tene), not compressed, in standard base64.

use crate::error::StatsError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use hdrhistogram::{Counter, Histogram};
use std::hint::black_box;

/// More of anything than any run has; a document that claims more is damaged. Sums of so many stay within range.
pub(crate) const MOST: u64 = 1 << 40;

/// An empty histogram from 1 to `high`. Its memory need not exist before something is written there.
#[allow(clippy::expect_used, reason = "the bounds are constants of this crate")]
pub(crate) fn empty<C: Counter>(high: u64, digits: u8) -> Histogram<C> {
    Histogram::new_with_bounds(1, high, digits).expect("1 and high are bounds")
}

/// The same, but all counters have been written, so that recording meets no page fault.
pub(crate) fn touched<C: Counter>(high: u64, digits: u8) -> Histogram<C> {
    let mut histogram = empty(high, digits);
    // The allocator hands out zeroed pages that do not exist yet; without the black box, writing zeros to them is
    // optimised away.
    black_box(&mut histogram).reset();
    histogram
}

/// As text.
#[allow(clippy::expect_used, reason = "writing to memory, with counts that recording and decode keep in range")]
pub(crate) fn encode<C: Counter>(histogram: &Histogram<C>) -> String {
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(histogram, &mut bytes).expect("a histogram in memory can be encoded");
    STANDARD.encode(bytes)
}

/// Reads what [`encode`] wrote of a histogram from 1 to `high`. Checks what the decoder trusts: that the payload is as long as
/// the header says (it would allocate up to 4 GiB first), and that no number takes nine bytes (it would overflow on the
/// largest).
pub(crate) fn decode<C: Counter>(text: &str, high: u64, digits: u8) -> Result<Histogram<C>, StatsError> {
    const V2: [u8; 4] = 0x1c84_9313_u32.to_be_bytes();
    const HEADER: usize = 40;
    let damaged = |what: &str| StatsError::Damaged(format!("a histogram: {what}"));
    let bytes = STANDARD.decode(text).map_err(|error| damaged(&error.to_string()))?;
    let (header, payload) = bytes.split_at_checked(HEADER).ok_or_else(|| damaged("it is cut short"))?;
    if header[..4] != V2 {
        return Err(damaged("it is not HdrHistogram V2"));
    }
    let length = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    if usize::try_from(length) != Ok(payload.len()) {
        return Err(damaged("its length is wrong"));
    }
    if payload.windows(8).any(|w| w.iter().all(|byte| byte & 0x80 != 0)) {
        return Err(damaged("a count is too large"));
    }
    let read: Histogram<C> = Deserializer::new().deserialize(&mut &bytes[..]).map_err(|e| damaged(&e.to_string()))?;
    if (read.low(), read.high(), read.sigfig()) != (1, high, digits) {
        return Err(damaged("it has other bounds than brimful's"));
    }
    if read.len() > MOST {
        return Err(damaged("it has more values than any run"));
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HIGH: u64 = 3_600;

    fn of(values: &[u64]) -> Histogram<u64> {
        let mut histogram = touched(HIGH, 3);
        values.iter().for_each(|value| histogram.saturating_record(*value));
        histogram
    }

    fn refused(text: &str) -> String {
        decode::<u64>(text, HIGH, 3).unwrap_err().to_string()
    }

    #[test]
    fn what_is_written_is_read() {
        for values in [&[][..], &[0], &[3_600, 9_999], &[5, 5, 1_000]] {
            assert_eq!(decode(&encode(&of(values)), HIGH, 3), Ok(of(values)));
        }
    }

    #[test]
    fn damaged_text_is_an_error() {
        let good = encode(&of(&[5, 3_000]));
        for bad in ["", "*", &good[..good.len() - 4], &STANDARD.encode([0; 64])] {
            assert!(refused(bad).contains("a histogram: "), "{bad}");
        }
        let mut huge = STANDARD.decode(&good).unwrap();
        huge.truncate(40);
        huge.extend([0xff; 9]);
        huge[4..8].copy_from_slice(&9_u32.to_be_bytes());
        assert!(refused(&STANDARD.encode(&huge)).contains("a count is too large"));
    }

    #[test]
    fn another_tools_histogram_is_refused() {
        let foreign: Histogram<u64> = touched(1_000_000, 2);
        assert!(refused(&encode(&foreign)).contains("other bounds"));
    }
}
