//! How much of the time tracepoints on sockets are attached.

/// A share of the time, above none and at most all of it; to a thousandth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duty(u16);

impl Duty {
    /// Never detached: every request is seen, at five times the cost of the default.
    pub const ALWAYS: Duty = Duty(1000);

    /// The nearest thousandth; `None` of what is no such share.
    pub fn of_share(share: f64) -> Option<Duty> {
        let thousandths = (1000.0 * share).round();
        (1.0..=1000.0).contains(&thousandths).then_some(Duty(thousandths as u16))
    }

    /// From 0 to 1.
    pub fn share(self) -> f64 {
        f64::from(self.0) / 1000.0
    }
}

impl Default for Duty {
    fn default() -> Duty {
        Duty(200)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_thousandths() {
        assert_eq!(Duty::of_share(1.0), Some(Duty::ALWAYS));
        assert_eq!(Duty::of_share(0.2), Some(Duty::default()));
        assert_eq!(Duty::of_share(0.1504).map(Duty::share), Some(0.15));
        for none in [0.0, 0.0004, 1.001, -0.2, f64::NAN, f64::INFINITY] {
            assert_eq!(Duty::of_share(none), None, "{none}");
        }
    }
}
