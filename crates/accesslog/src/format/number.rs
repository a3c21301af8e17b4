//! Reads numbers in logs: counts, and durations, which are converted to nanoseconds. Each function reads at the start
//! of a text, and returns the number of bytes that the number occupies.

/// Upper bound of a duration, in nanoseconds: 31 years.
const MAX_DURATION_NS: u64 = 1_000_000_000_000_000_000;

/// The unit of a logged duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

impl TimeUnit {
    /// The name of the unit, such as `microseconds`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            TimeUnit::Seconds => "seconds",
            TimeUnit::Milliseconds => "milliseconds",
            TimeUnit::Microseconds => "microseconds",
            TimeUnit::Nanoseconds => "nanoseconds",
        }
    }

    /// The length of the unit in nanoseconds.
    pub(crate) fn ns(self) -> u64 {
        match self {
            TimeUnit::Seconds => 1_000_000_000,
            TimeUnit::Milliseconds => 1_000_000,
            TimeUnit::Microseconds => 1_000,
            TimeUnit::Nanoseconds => 1,
        }
    }
}

/// Reads a whole number; `None` if the text has no digits, or more than 19 digits.
#[inline]
pub(crate) fn whole_number(text: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    let mut length = 0usize;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        if length == 19 {
            return None;
        }
        // At most 19 digits are read, so the value fits into 64 bits.
        value = value * 10 + u64::from(digit);
        length += 1;
    }
    (length > 0).then_some((value, length))
}

/// Reads the size of a response in bytes: a number, or `-` if there are no bytes. `None` for more than a petabyte.
#[inline]
pub(crate) fn byte_count(text: &[u8]) -> Option<(Option<u64>, usize)> {
    match whole_number(text) {
        Some((count, length)) => (count <= 1_000_000_000_000_000).then_some((Some(count), length)),
        None => absent_length(text).map(|length| (None, length)),
    }
}

/// Reads a status of three digits. The result is 0 for `-`, `0`, `000` and `-1`, which mean that there is no status.
#[inline]
pub(crate) fn status(text: &[u8]) -> Option<(u16, usize)> {
    match whole_number(text.get(..4).unwrap_or(text)) {
        Some((value @ 100..=999, 3)) => u16::try_from(value).ok().map(|status| (status, 3)),
        Some((0, length @ (1 | 3))) => Some((0, length)),
        Some(_) => None,
        None => absent_length(text).map(|length| (0, length)),
    }
}

/// Reads a duration in digits, with or without a decimal point.
pub(crate) fn duration(text: &[u8], unit: TimeUnit) -> Option<(u64, usize)> {
    let (value, length) = whole_number(text)?;
    let ns = value.checked_mul(unit.ns()).filter(|ns| *ns <= MAX_DURATION_NS)?;
    let Some((b'.', digits)) = text.get(length..)?.split_first() else { return Some((ns, length)) };
    let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let digit = |place| if place < count { digits.get(place).map_or(0, |byte| u64::from(byte - b'0')) } else { 0 };
    let billionths = (0..9).fold(0, |sum, place| sum * 10 + digit(place));
    // A point without digits after it is not part of the number.
    let point = usize::from(count > 0);
    Some((ns + billionths * unit.ns() / 1_000_000_000, length + point + count))
}

/// Reads a duration, or `-` or `-1`, which mean that the duration is unknown.
pub(crate) fn duration_or_none(text: &[u8], unit: TimeUnit) -> Option<(Option<u64>, usize)> {
    match duration(text, unit) {
        Some((ns, length)) => Some((Some(ns), length)),
        None => absent_length(text).map(|length| (None, length)),
    }
}

/// Reads a list such as nginx's `0.005, 0.010 : -`, which contains one duration for each upstream server that nginx
/// tried. Returns the sum.
pub(crate) fn durations(text: &[u8], unit: TimeUnit) -> Option<(Option<u64>, usize)> {
    let mut sum = None;
    let mut at = 0;
    loop {
        let (ns, length) = duration_or_none(text.get(at..)?, unit)?;
        at += length;
        sum = match (sum, ns) {
            (Some(sum), Some(ns)) => Some(u64::saturating_add(sum, ns)),
            (sum, ns) => sum.or(ns),
        };
        let rest = text.get(at..)?;
        let separator = if rest.starts_with(b", ") {
            2
        } else if rest.starts_with(b" : ") {
            3
        } else {
            return Some((sum, at));
        };
        if !matches!(rest.get(separator), Some(b'0'..=b'9' | b'-')) {
            return Some((sum, at));
        }
        at += separator;
    }
}

/// Reads a whole text as a duration: with its unit (`12ms`, `1.5s`), with an exponent, or as a plain number in `unit`.
/// If `unit` is `None`, a number with a decimal point is in seconds, and a whole number is in milliseconds.
pub(crate) fn any_duration(text: &[u8], unit: Option<TimeUnit>) -> Option<Option<u64>> {
    if text.is_empty() {
        return Some(None);
    }
    let is_scientific = text.iter().any(|byte| matches!(byte, b'e' | b'E'));
    if is_scientific && let Some(value) = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok()) {
        let ns = value * unit.unwrap_or(TimeUnit::Seconds).ns() as f64;
        // The cast rounds towards 0, and cannot overflow because the range is checked.
        return (0.0..=MAX_DURATION_NS as f64).contains(&ns).then_some(Some(ns as u64));
    }
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    let unit = match text.get(digits..)? {
        b"s" => TimeUnit::Seconds,
        b"ms" => TimeUnit::Milliseconds,
        b"us" | b"\xc2\xb5s" | b"\xce\xbcs" => TimeUnit::Microseconds,
        b"ns" => TimeUnit::Nanoseconds,
        _ if text.contains(&b'.') => unit.unwrap_or(TimeUnit::Seconds),
        _ => unit.unwrap_or(TimeUnit::Milliseconds),
    };
    let has_unit = matches!(text.get(digits..)?, b"s" | b"ms" | b"us" | b"\xc2\xb5s" | b"\xce\xbcs" | b"ns");
    let (ns, length) = durations(text, unit)?;
    (length == text.len() || (has_unit && length == digits)).then_some(ns)
}

/// Whether a text is a duration with its unit (`12ms`, `1.5s`, `350µs`), or `-`.
pub(crate) fn has_unit(text: &[u8]) -> bool {
    text == b"-" || (text.ends_with(b"s") && any_duration(text, None).is_some())
}

/// Whether a number has at least three decimals, like the seconds that nginx and others write.
pub(crate) fn has_milliseconds(text: &[u8]) -> bool {
    let point = text.iter().position(|byte| *byte == b'.');
    let digits = point.and_then(|point| text.get(point + 1..)).unwrap_or_default();
    digits.iter().take_while(|byte| byte.is_ascii_digit()).count() >= 3
}

/// The length of `-`, `-1` or `-1.000`, which mean that there is no value. `None` for other texts: other negative
/// numbers are invalid.
fn absent_length(text: &[u8]) -> Option<usize> {
    let rest = text.strip_prefix(b"-")?;
    match rest.split_first() {
        Some((b'1', rest)) => {
            let zeros = match rest.split_first() {
                Some((b'.', rest)) => 1 + rest.iter().take_while(|byte| **byte == b'0').count(),
                _ => 0,
            };
            (!matches!(rest.get(zeros), Some(b'0'..=b'9'))).then_some(2 + zeros)
        }
        Some((b'0'..=b'9', _)) => None,
        _ => Some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_end_where_their_digits_do() {
        assert_eq!(whole_number(b"2326 x"), Some((2326, 4)));
        assert_eq!(whole_number(b"9999999999999999999"), Some((9_999_999_999_999_999_999, 19)));
        assert_eq!((whole_number(b"10000000000000000000"), whole_number(b""), whole_number(b"-1")), (None, None, None));
        assert_eq!(
            (byte_count(b"- "), byte_count(b"0"), byte_count(b"-5")),
            (Some((None, 1)), Some((Some(0), 1)), None)
        );
        assert_eq!(byte_count(b"1000000000000001"), None);
        assert_eq!(status(b"200 "), Some((200, 3)));
        for none in ["-", "0", "000", "-1"] {
            assert_eq!(status(none.as_bytes()), Some((0, none.len())), "{none}");
        }
        for wrong in ["20", "2000", "20x", "", "x", "099", "-2"] {
            assert_eq!(status(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn durations_are_added_up() {
        assert_eq!(duration(b"0.005 ", TimeUnit::Seconds), Some((5_000_000, 5)));
        assert_eq!(duration(b"1.0000000019", TimeUnit::Seconds), Some((1_000_000_001, 12)));
        assert_eq!(duration(b"12.", TimeUnit::Milliseconds), Some((12_000_000, 2)));
        assert_eq!(duration(b"99999999999", TimeUnit::Seconds), None);
        let sum = |text: &[u8]| durations(text, TimeUnit::Seconds);
        assert_eq!(sum(b"0.005, 0.010 : 0.001 x"), Some((Some(16_000_000), 20)));
        assert_eq!(sum(b"-, 0.010"), Some((Some(10_000_000), 8)));
        assert_eq!(sum(b"- - -"), Some((None, 1)));
        assert_eq!(sum(b"0.001, abc"), Some((Some(1_000_000), 5)));
        assert_eq!(
            (sum(b"-1"), sum(b"-1.000,"), sum(b"-10"), sum(b"-2")),
            (Some((None, 2)), Some((None, 6)), None, None)
        );
    }

    #[test]
    fn a_unit_is_obeyed() {
        let any = |text: &str, unit| any_duration(text.as_bytes(), unit);
        assert_eq!(any("9.29675e-05", None), Some(Some(92_967)));
        assert_eq!(any("0.000929675", None), Some(Some(929_675)));
        assert_eq!(any("12", None), Some(Some(12_000_000)));
        assert_eq!(any("12", Some(TimeUnit::Nanoseconds)), Some(Some(12)));
        for (text, ns) in [("1.5s", 1_500_000_000), ("2ms", 2_000_000), ("3µs", 3_000), ("4us", 4_000), ("5ns", 5)] {
            assert_eq!(any(text, Some(TimeUnit::Seconds)), Some(Some(ns)), "{text}");
        }
        assert_eq!((any("-", None), any("", None)), (Some(None), Some(None)));
        for wrong in ["s", "x", "1x", "1.5 s", "1e99", "-1e3", "1m", "nan"] {
            assert_eq!(any(wrong, None), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text: Vec<u8>, number in "[0-9.,: e+-]{0,40}") {
            for text in [text.as_slice(), number.as_bytes()] {
                for (_, length) in [durations(text, TimeUnit::Seconds), byte_count(text)].into_iter().flatten() {
                    prop_assert!(length <= text.len());
                }
                let _ = (any_duration(text, None), status(text));
            }
        }
    }
}
