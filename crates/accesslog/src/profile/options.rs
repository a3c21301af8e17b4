//! Options of a profile.

use jiff::tz::TimeZone;

/// What to do with requests of robots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Robots {
    /// Count them like all others.
    #[default]
    Keep,
    /// Leave them out.
    Drop,
    /// Leave out all others.
    Only,
}

/// How requests are divided into classes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClassBy {
    /// By the bytes of their responses.
    #[default]
    Size,
    /// By URL: names and patterns, in which `*` stands for any text; the first match counts.
    Url(Vec<(String, String)>),
    /// By the status of their responses.
    Status,
    /// By virtual host.
    Host,
}

/// Options of a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The time zone of hours and days.
    pub zone: TimeZone,
    /// Length of the peak window, in seconds.
    pub window_s: u64,
    /// The peak window, unless the busiest one is to be found: from and to, in nanoseconds since 1970.
    pub peak: Option<(i64, i64)>,
    /// What to do with requests of robots.
    pub robots: Robots,
    /// How requests are divided into classes.
    pub class_by: ClassBy,
    /// The number of classes, unless it is to be found.
    pub classes: Option<usize>,
    /// Whether to look for sessions.
    pub sessions: bool,
    /// The pause that ends a session, in seconds.
    pub session_gap_s: f64,
    /// The longest pause inside a burst of a session, in seconds.
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
