//! Quantities in running text: three digits, a space, and the unit that fits.

/// A share: `73.2 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Microseconds in the unit that keeps the number at or above one, with three significant digits.
pub fn time(us: f64) -> String {
    match us {
        us if us < 1.0 => format!("{:.0} ns", us * 1e3),
        us if us < 1e3 => format!("{} µs", three_digits(us)),
        us if us < 1e6 => format!("{} ms", three_digits(us / 1e3)),
        us => format!("{} s", three_digits(us / 1e6)),
    }
}

/// Bytes, in powers of 1000.
pub fn size(bytes: f64) -> String {
    match bytes {
        b if b < 1e4 => format!("{b:.0} B"),
        b if b < 1e6 => format!("{} kB", three_digits(b / 1e3)),
        b if b < 1e9 => format!("{} MB", three_digits(b / 1e6)),
        b => format!("{} GB", three_digits(b / 1e9)),
    }
}

/// `1.23`, `12.3`, `123`.
pub fn three_digits(x: f64) -> String {
    match x {
        x if x < 9.995 => format!("{x:.2}"),
        x if x < 99.95 => format!("{x:.1}"),
        x => format!("{x:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_three_digits_and_the_unit_that_fits() {
        let times = [0.0, 0.35, 1.0, 12.34, 999.0, 1_234.0, 99_960.0, 1_500_000.0, 185e6].map(time);
        let expected = ["0 ns", "350 ns", "1.00 µs", "12.3 µs", "999 µs", "1.23 ms", "100 ms", "1.50 s", "185 s"];
        assert_eq!(times, expected);
        assert_eq!([0.0, 1_246.0, 12_345.0, 1.5e6, 2e9].map(size), ["0 B", "1246 B", "12.3 kB", "1.50 MB", "2.00 GB"]);
    }
}
