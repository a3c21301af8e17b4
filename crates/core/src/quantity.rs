//! Formats numbers for people: at least three significant digits, grouped thousands, a true minus sign, and a space
//! before the unit.
//!
//! The output is not meant to be parsed. Text that programs parse uses the format of [`Nanos`](crate::Nanos) (`500ms`)
//! or JSON.

const MINUS: &str = "\u{2212}";

/// Formats a number with at least three significant digits: `37.0`, `1,235`, `1.23M`. Numbers below one have three
/// decimals: `0.123`.
pub fn number(x: f64) -> String {
    let size = x.abs();
    if size >= 999_999.5 {
        return signed_minus(format!("{:.2}M", x / 1e6));
    }
    if size >= 99.95 {
        return group_thousands(x);
    }
    // Rounded to three digits, 9.995 is 10.0. Therefore, the bounds are slightly below the powers of ten.
    let decimals = if size >= 9.995 {
        1
    } else if size >= 0.9995 || size == 0.0 {
        2
    } else {
        3
    };
    signed_minus(format!("{x:.decimals$}"))
}

/// Formats a number, rounded to a whole number, with grouped thousands: `1,235`.
pub fn group_thousands(x: f64) -> String {
    let digits = format!("{:.0}", x.abs());
    let mut text = if x <= -0.5 { MINUS.to_owned() } else { String::new() };
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count: `27,000`.
pub fn count(n: u64) -> String {
    group_thousands(n as f64)
}

/// Formats a count with its noun: `1 call`, `27,000 calls`, `3 processes`. `noun` is in the singular.
pub fn pluralize(n: u64, noun: &str) -> String {
    let ending = match noun {
        _ if n == 1 => "",
        _ if noun.ends_with('s') || noun.ends_with('x') || noun.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", count(n))
}

/// Formats a number for a column of fixed width: `1.23`, `12.3`, `123`. Numbers below one also have two decimals.
pub fn three_digits(x: f64) -> String {
    match x {
        x if x < 9.995 => format!("{x:.2}"),
        x if x < 99.95 => format!("{x:.1}"),
        x => format!("{x:.0}"),
    }
}

/// Formats a number with at most seven characters for columns: `0`, `0.50`, `12,345`, `1.23M`. `x` must not be
/// negative.
pub fn compact(x: f64) -> String {
    match x {
        0.0 => "0".to_owned(),
        x if x < 99.95 => three_digits(x),
        x if x < 999_999.5 => group_thousands(x),
        x if x < 99_999_500.0 => format!("{:.2}M", x / 1e6),
        x => group_thousands(x / 1e6) + "M",
    }
}

/// Formats a rate per second: `1,235/s`.
pub fn rate(per_s: f64) -> String {
    number(per_s) + "/s"
}

/// Formats a time, given in seconds, in the largest unit in which its value is at least one: `1.23 ms`.
pub fn seconds(s: f64) -> String {
    match s.abs() {
        0.0 => "0 s".to_owned(),
        size if size >= 0.9995 => number(s) + " s",
        size if size >= 0.000_999_5 => number(s * 1e3) + " ms",
        size if size >= 0.999_5e-6 => number(s * 1e6) + " µs",
        _ => signed_minus(format!("{:.0} ns", s * 1e9)),
    }
}

/// Formats a size in bytes, with decimal prefixes (powers of 1,000): `12.3 kB`.
pub fn bytes(bytes: f64) -> String {
    match bytes.abs() {
        size if size < 9999.5 => group_thousands(bytes) + " B",
        size if size < 999_500.0 => number(bytes / 1e3) + " kB",
        size if size < 999_500_000.0 => number(bytes / 1e6) + " MB",
        _ => number(bytes / 1e9) + " GB",
    }
}

/// Formats a share as a percentage with one decimal, or without decimals from 100 % on: `73.2 %`.
pub fn percent(share: f64) -> String {
    let decimals = if share.abs() >= 0.9995 { 0 } else { 1 };
    signed_minus(format!("{:.decimals$} %", 100.0 * share))
}

/// Formats a share as a percentage without decimals, or with one decimal below one percent: `73 %`, `0.4 %`.
pub fn whole_percent(share: f64) -> String {
    let decimals = if (0.0005..0.0095).contains(&share.abs()) { 1 } else { 0 };
    signed_minus(format!("{:.decimals$} %", 100.0 * share))
}

/// Formats a small share as a percentage with two decimals: `0.12 %`.
pub fn small_percent(share: f64) -> String {
    signed_minus(format!("{:.2} %", 100.0 * share))
}

/// Formats a difference with its sign: `+950`.
pub fn signed_number(x: f64) -> String {
    plus(x).to_owned() + &number(x)
}

/// Formats a relative change or error as a percentage with its sign: `+2.1 %`.
pub fn signed_percent(share: f64) -> String {
    plus(share).to_owned() + &percent(share)
}

fn plus(x: f64) -> &'static str {
    if x >= 0.0 { "+" } else { "" }
}

fn signed_minus(text: String) -> String {
    text.replacen('-', MINUS, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let shown = [0.0, 0.1234, 9.876, 99.94, 99.96, 999.6, 12_345.6, 999_999.0, 1_234_567.0, -0.5].map(number);
        assert_eq!(shown, ["0.00", "0.123", "9.88", "99.9", "100", "1,000", "12,346", "999,999", "1.23M", "−0.500"]);
        assert_eq!([rate(1234.5), rate(30.46), count(27_000)], ["1,234/s", "30.5/s", "27,000"]);
        let shown = [0.0, -0.2, 999.5, 12_345.6, -1_234_567.0].map(group_thousands);
        assert_eq!(shown, ["0", "0", "1,000", "12,346", "−1,234,567"]);
    }

    #[test]
    fn one_thing_is_no_plural() {
        let shown = [(0, "call"), (1, "call"), (27_000, "call"), (1, "process"), (2, "process")];
        let expected = ["0 calls", "1 call", "27,000 calls", "1 process", "2 processes"];
        assert_eq!(shown.map(|(n, thing)| pluralize(n, thing)), expected);
    }

    #[test]
    fn short_numbers_are_short() {
        let shown = [0.0, 0.5, 12.34, 99.96, 12_345.0, 1_234_567.0, 123_456_789.0].map(compact);
        assert_eq!(shown, ["0", "0.50", "12.3", "100", "12,345", "1.23M", "123M"]);
    }

    #[test]
    fn units_stand_apart_and_fit() {
        let shown = [0.0, 2.5e-7, 1e-6, 0.000_141, 0.000_999_6, 0.001_23, 0.999_4, 0.999_6, 185.0].map(seconds);
        let times = ["0 s", "250 ns", "1.00 µs", "141 µs", "1.00 ms", "1.23 ms", "999 ms", "1.00 s", "185 s"];
        assert_eq!(shown, times);
        let shown = [0.0, 1_246.0, 12_345.0, 1.5e6, 2e9].map(bytes);
        assert_eq!(shown, ["0 B", "1,246 B", "12.3 kB", "1.50 MB", "2.00 GB"]);
    }

    #[test]
    fn shares_have_a_space_and_a_true_minus() {
        assert_eq!([0.7321, 0.9996, 12.3].map(percent), ["73.2 %", "100 %", "1230 %"]);
        assert_eq!([0.7361, 0.0094, 0.0004, 1.0].map(whole_percent), ["74 %", "0.9 %", "0 %", "100 %"]);
        assert_eq!([0.001_23, 0.5].map(small_percent), ["0.12 %", "50.00 %"]);
        assert_eq!([0.021, -0.1234, 0.0].map(signed_percent), ["+2.1 %", "−12.3 %", "+0.0 %"]);
        assert_eq!([950.0, -2.5].map(signed_number), ["+950", "−2.50"]);
    }
}
