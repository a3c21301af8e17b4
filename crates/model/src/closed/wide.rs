//! Positive numbers of unlimited range, for normalizing constants. With some hundreds of customers, these constants
//! exceed the range of `f64`.

/// The number mantissa · 2^(512·exponent). The mantissa is 0, or between 2^−256 and 2^256.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wide {
    mantissa: f64,
    exponent: i32,
}

const UP: f64 = f64::from_bits((1023 + 512) << 52);
const DOWN: f64 = f64::from_bits((1023 - 512) << 52);
const HIGH: f64 = f64::from_bits((1023 + 256) << 52);
const LOW: f64 = f64::from_bits((1023 - 256) << 52);

impl Wide {
    pub(super) const ZERO: Wide = Wide { mantissa: 0.0, exponent: 0 };
    pub(super) const ONE: Wide = Wide { mantissa: 1.0, exponent: 0 };

    /// self + other · factor, for a factor of at most 2^256.
    #[inline]
    pub(super) fn add_scaled(self, other: Wide, factor: f64) -> Wide {
        self.plus(other.times(factor))
    }

    #[inline]
    pub(super) fn times(self, factor: f64) -> Wide {
        Wide { mantissa: self.mantissa * factor, exponent: self.exponent }.settled()
    }

    #[inline]
    pub(super) fn plus(self, other: Wide) -> Wide {
        if self.exponent == other.exponent {
            return Wide { mantissa: self.mantissa + other.mantissa, exponent: self.exponent }.settled();
        }
        self.plus_unequal(other)
    }

    /// self / other, as an `f64`.
    pub(super) fn over(self, other: Wide) -> f64 {
        let quotient = self.mantissa / other.mantissa;
        match i64::from(self.exponent) - i64::from(other.exponent) {
            0 => quotient,
            1 => quotient * UP,
            -1 => quotient * DOWN,
            difference if difference > 1 && quotient > 0.0 => f64::INFINITY,
            _ => 0.0,
        }
    }

    #[inline]
    fn settled(self) -> Wide {
        if self.mantissa >= HIGH {
            return Wide { mantissa: self.mantissa * DOWN, exponent: self.exponent + 1 };
        }
        if self.mantissa < LOW {
            return self.raised();
        }
        self
    }

    #[cold]
    fn raised(self) -> Wide {
        if self.mantissa == 0.0 {
            return Wide::ZERO;
        }
        Wide { mantissa: self.mantissa * UP, exponent: self.exponent - 1 }
    }

    #[cold]
    fn plus_unequal(self, other: Wide) -> Wide {
        if self.mantissa == 0.0 {
            return other;
        }
        if other.mantissa == 0.0 {
            return self;
        }
        let (large, small) = if self.exponent > other.exponent { (self, other) } else { (other, self) };
        if large.exponent - small.exponent > 1 {
            return large;
        }
        Wide { mantissa: large.mantissa + small.mantissa * DOWN, exponent: large.exponent }.settled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factorials_of_thousands_have_the_right_ratios() {
        let mut factorial = Wide::ONE;
        let mut before = factorial;
        for n in 1..=5000 {
            before = factorial;
            factorial = factorial.times(f64::from(n));
        }
        assert!((factorial.over(before) / 5000.0 - 1.0).abs() < 1e-15);
        let back = (1..=5000).fold(factorial, |w, n| w.times(1.0 / f64::from(n)));
        assert!((back.over(Wide::ONE) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn sums_of_different_exponents_are_exact() {
        let tiny = (0..200).fold(Wide::ONE, |w, _| w.times(0.1));
        let near = tiny.times(1e20).times(1e30);
        assert!(((near.plus(tiny)).over(near) - 1.0).abs() < 1e-15);
        assert_eq!(Wide::ONE.plus(tiny), Wide::ONE);
        assert_eq!(tiny.plus(Wide::ZERO), tiny);
        assert_eq!(Wide::ZERO.plus(tiny), tiny);
        // Checks that no digits are lost where the exponent of a sum changes.
        let edge = Wide::ONE.times(0.75 * HIGH);
        let sum = edge.plus(edge);
        assert_eq!(sum.over(edge), 2.0);
        assert_eq!(sum.plus(edge).over(edge), 3.0);
    }

    #[test]
    fn a_ratio_beyond_f64_is_infinite_or_nothing() {
        let huge = (0..200).fold(Wide::ONE, |w, _| w.times(1e10));
        assert_eq!((huge.over(Wide::ONE), Wide::ONE.over(huge)), (f64::INFINITY, 0.0));
    }
}
