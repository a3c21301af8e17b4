//! Round-trip times of the clients: evenly spread over them, or drawn for each connection from a histogram.

use crate::wheel::WHEEL_HORIZON;
use brimful_core::{Nanos, csv};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use std::str::FromStr;

/// Maximum round-trip time. By default, a packet stays on a link for half of it, a quarter longer if it is reordered,
/// and up to 4 s longer in the queue of the rate limit. The sum must be below the 8.6 s of the router's timer wheel.
pub const MAX_RTT: Nanos = Nanos::from_secs(5);

const _: () = assert!(MAX_RTT.0 / 8 * 5 + 4_000_000_000 < WHEEL_HORIZON.0);

/// A range of round-trip times, like `20ms..200ms`, or a single time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RttRange {
    /// The shortest round-trip time.
    pub min: Nanos,
    /// The longest round-trip time.
    pub max: Nanos,
}

/// How the test bed chooses round-trip times.
#[derive(Clone, Debug, PartialEq)]
pub enum Rtts {
    /// Each client has its own time, evenly spaced from the shortest (first client) to the longest (last client). A
    /// single client has the mean of both.
    Spread(RttRange),
    /// Each connection has its own time, drawn from this histogram.
    Drawn(RttHistogram),
}

/// A histogram of the round-trip times of connections, from which times are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct RttHistogram {
    bins: Vec<Bin>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Bin {
    range: RttRange,
    /// Share of the connections in this bin and all earlier ones.
    cumulative_share: f64,
}

/// An error in the text of a histogram of round-trip times.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RttHistogramError {
    /// A line of the file is not a round-trip time with its share.
    #[error("line {line}: `{text}` is no round-trip time and its share: write lines like `20ms..40ms, 0.25`")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// The line's text.
        text: String,
    },
    /// The file has no round-trip time with a share above zero.
    #[error("it has no round-trip time with a share above zero: write lines like `20ms..40ms, 0.25`")]
    Empty,
}

impl FromStr for RttRange {
    type Err = String;

    fn from_str(text: &str) -> Result<RttRange, String> {
        let (least, most) = text.split_once("..").unwrap_or((text, text));
        let time = |text: &str| text.trim().parse::<Nanos>().map_err(|error| error.to_string());
        let range = RttRange { min: time(least)?, max: time(most)? };
        if range.min > range.max {
            return Err(format!("`{text}` ends before it begins: write it like 20ms..200ms"));
        }
        if range.max > MAX_RTT {
            return Err(format!("`{text}` is too long: round-trip times are {MAX_RTT} at most"));
        }
        Ok(range)
    }
}

impl Rtts {
    /// The range of round-trip times of one client, given the number of all clients. Both ends are equal unless times
    /// are drawn.
    pub fn range_for_client(&self, client: usize, clients: usize) -> RttRange {
        match self {
            Rtts::Spread(RttRange { min, max }) => {
                let share = if clients > 1 { client as f64 / (clients - 1) as f64 } else { 0.5 };
                let rtt = *min + Nanos(((*max - *min).0 as f64 * share).round() as u64);
                RttRange { min: rtt, max: rtt }
            }
            Rtts::Drawn(histogram) => histogram.range(),
        }
    }
}

impl FromStr for RttHistogram {
    type Err = RttHistogramError;

    /// Parses a histogram. Each line contains a round-trip time, or a range of times, and its weight. All times of a
    /// range are equally likely. A comment begins with `#`.
    fn from_str(text: &str) -> Result<RttHistogram, RttHistogramError> {
        let mut bins = Vec::new();
        let mut sum = 0.0;
        for row in csv::parse(text) {
            let parse_bin = |fields: &[String]| {
                let [range, share] = fields else { return None };
                let share: f64 = share.parse().ok().filter(|share: &f64| share.is_finite() && *share >= 0.0)?;
                Some((range.parse::<RttRange>().ok()?, share))
            };
            let invalid_line = || RttHistogramError::Line { line: row.line, text: row.fields.join(",") };
            let (range, share) = parse_bin(&row.fields).ok_or_else(invalid_line)?;
            sum += share;
            if share > 0.0 {
                bins.push(Bin { range, cumulative_share: sum });
            }
        }
        if !(sum > 0.0 && sum.is_finite()) {
            return Err(RttHistogramError::Empty);
        }
        bins.iter_mut().for_each(|bin| bin.cumulative_share /= sum);
        Ok(RttHistogram { bins })
    }
}

impl RttHistogram {
    /// The shortest and the longest round-trip time of the histogram.
    pub fn range(&self) -> RttRange {
        let min = self.bins.iter().map(|bin| bin.range.min).min().unwrap_or_default();
        RttRange { min, max: self.bins.iter().map(|bin| bin.range.max).max().unwrap_or_default() }
    }

    /// Draws the round-trip time of a connection from the histogram.
    pub fn draw(&self, random: &mut Pcg64Mcg) -> Nanos {
        let bin_draw = random.random::<f64>();
        let position_draw = random.random::<f64>();
        let bin = self.bins.iter().find(|bin| bin_draw < bin.cumulative_share).or(self.bins.last());
        let RttRange { min, max } = bin.map(|bin| bin.range).unwrap_or_default();
        min + Nanos(((max - min).0 as f64 * position_draw) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_pcg::rand_core::SeedableRng;

    const fn ms(min: u64, max: u64) -> RttRange {
        RttRange { min: Nanos::from_millis(min), max: Nanos::from_millis(max) }
    }

    #[test]
    fn ranges_are_parsed() {
        for (text, range) in [("20ms", ms(20, 20)), ("20ms..200ms", ms(20, 200)), ("0ms .. 5s", ms(0, 5000))] {
            assert_eq!(text.parse(), Ok(range), "{text}");
        }
        for (text, reason) in [
            ("20", "duration"),
            ("", "duration"),
            ("2s..1s", "ends before"),
            ("6s", "5s at most"),
            ("1s..", "duration"),
        ] {
            assert!(text.parse::<RttRange>().unwrap_err().contains(reason), "{text}");
        }
    }

    #[test]
    fn clients_lie_evenly_between_the_ends() {
        let spread = Rtts::Spread(ms(20, 200));
        let rtts = |clients| (0..clients).map(|i| spread.range_for_client(i, clients).min).collect::<Vec<_>>();
        assert_eq!(rtts(3), [20, 110, 200].map(Nanos::from_millis));
        assert_eq!(rtts(1), [110].map(Nanos::from_millis));
    }

    #[test]
    fn draws_follow_the_histogram() {
        let histogram: RttHistogram = "# measured\n10ms, 3\n100ms..200ms, 1\n1s, 0\n".parse().unwrap();
        assert_eq!(histogram.range(), ms(10, 200));
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let drawn: Vec<Nanos> = (0..40_000).map(|_| histogram.draw(&mut random)).collect();
        let short = drawn.iter().filter(|rtt| **rtt == Nanos::from_millis(10)).count();
        let long: Vec<f64> =
            drawn.iter().filter(|rtt| **rtt >= Nanos::from_millis(100)).map(|rtt| rtt.as_secs_f64()).collect();
        // The tolerance is five standard deviations.
        assert!(short.abs_diff(30_000) < 434 && short + long.len() == 40_000, "{short}");
        let mean = long.iter().sum::<f64>() / long.len() as f64;
        assert!((mean - 0.150).abs() < 0.002, "{mean}");
    }

    #[test]
    fn errors_name_the_line() {
        for text in ["20ms", "20ms,x", "20ms,-1", "20ms,nan", "20ms,1,2", "fast,1", "6s,1"] {
            let error = format!("5ms,1\n{text}\n").parse::<RttHistogram>().unwrap_err();
            assert!(matches!(error, RttHistogramError::Line { line: 2, .. }), "{text}: {error}");
        }
        for text in ["", "# nothing\n", "20ms,0\n", "20ms,1e308\n30ms,1e308\n"] {
            assert_eq!(text.parse::<RttHistogram>(), Err(RttHistogramError::Empty), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "([0-9]{0,4}|ms|s|\\.\\.|,|\n|#|[ -~]){0,30}") {
            let _ = text.parse::<RttRange>();
            if let Ok(histogram) = text.parse::<RttHistogram>() {
                let rtt = histogram.draw(&mut Pcg64Mcg::seed_from_u64(3));
                prop_assert!(histogram.range().min <= rtt && rtt <= histogram.range().max);
            }
        }
    }
}
