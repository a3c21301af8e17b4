//! What a profile is to be of.

use jiff::tz::TimeZone;

/// What becomes of requests of robots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Robots {
    /// They are requests as all others.
    #[default]
    Keep,
    /// They are left out.
    Drop,
    /// All others are left out.
    Only,
}

/// What classes of requests are made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClassBy {
    /// The bytes of their answers.
    #[default]
    Size,
    /// Their URLs: name and pattern, in which `*` stands for anything; the first that fits.
    Url(Vec<(String, String)>),
    /// The status of their answers.
    Status,
    /// Their virtual hosts.
    Host,
}

/// What a profile is to be of.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Where hours and days are those of the clocks.
    pub zone: TimeZone,
    /// Length of the peak window, in seconds.
    pub window_s: u64,
    /// The peak window, where it is not the busiest: from when to when, in nanoseconds since 1970.
    pub peak: Option<(i64, i64)>,
    /// What becomes of robots.
    pub robots: Robots,
    /// What classes are made of.
    pub class_by: ClassBy,
    /// How many classes, where that is not found.
    pub classes: Option<usize>,
    /// Whether sessions are looked for.
    pub sessions: bool,
    /// A pause that ends one, in seconds.
    pub session_gap_s: f64,
    /// A pause that goes on with a burst of one.
    pub burst_gap_s: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            zone: TimeZone::UTC,
            window_s: 3_600,
            peak: None,
            robots: Robots::Keep,
            class_by: ClassBy::Size,
            classes: None,
            sessions: true,
            session_gap_s: 1_800.0,
            burst_gap_s: 1.0,
        }
    }
}
