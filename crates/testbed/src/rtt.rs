//! Round-trip times: one for all clients, spread over them, or drawn for each connection from a histogram.

use crate::wheel::HORIZON;
use brimful_core::{Nanos, csv};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use std::str::FromStr;

/// The longest round-trip time. Half of it, a packet that is held back for a quarter of that, and 4 s for a queue are
/// within what the router's wheel can hold.
pub const MOST_RTT: Nanos = Nanos::from_secs(5);

const _: () = assert!(MOST_RTT.0 / 8 * 5 + 4_000_000_000 < HORIZON.0);

/// From one round-trip time to another, like `20ms..200ms`, or one alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The least.
    pub least: Nanos,
    /// The greatest.
    pub most: Nanos,
}

/// Which round-trip times there are.
#[derive(Clone, Debug, PartialEq)]
pub enum Rtts {
    /// The first client has the least, the last the greatest, the others lie evenly between; one alone has the middle.
    Spread(Range),
    /// Every connection has one of its own.
    Drawn(Histogram),
}

/// How many connections have which round-trip time.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    bins: Vec<Bin>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Bin {
    range: Range,
    /// Share of the connections in this bin and those before it.
    up_to: f64,
}

/// Why a file is no histogram of round-trip times.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HistogramError {
    /// A line is none of it.
    #[error("line {line}: `{text}` is no round-trip time and its share: write lines like `20ms..40ms, 0.25`")]
    Line {
        /// From 1.
        line: usize,
        /// What it holds.
        text: String,
    },
    /// No connection has any.
    #[error("it has no round-trip time with a share above zero: write lines like `20ms..40ms, 0.25`")]
    Empty,
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Range, String> {
        let (least, most) = text.split_once("..").unwrap_or((text, text));
        let time = |text: &str| text.trim().parse::<Nanos>().map_err(|error| error.to_string());
        let range = Range { least: time(least)?, most: time(most)? };
        if range.least > range.most {
            return Err(format!("`{text}` ends before it begins: write it like 20ms..200ms"));
        }
        if range.most > MOST_RTT {
            return Err(format!("`{text}` is too long: round-trip times are {MOST_RTT} at most"));
        }
        Ok(range)
    }
}

impl Rtts {
    /// The least and the greatest of a client, of which there are so many; both are the same unless they are drawn.
    pub fn of_client(&self, client: usize, clients: usize) -> Range {
        match self {
            Rtts::Spread(Range { least, most }) => {
                let share = if clients > 1 { client as f64 / (clients - 1) as f64 } else { 0.5 };
                let rtt = *least + Nanos(((*most - *least).0 as f64 * share).round() as u64);
                Range { least: rtt, most: rtt }
            }
            Rtts::Drawn(histogram) => histogram.range(),
        }
    }
}

impl FromStr for Histogram {
    type Err = HistogramError;

    /// Lines of a round-trip time, or a range of them, and a number that is in proportion to how many connections have
    /// it; comments begin with `#`. Within a range all are alike.
    fn from_str(text: &str) -> Result<Histogram, HistogramError> {
        let mut bins = Vec::new();
        let mut sum = 0.0;
        for row in csv::read(text) {
            let bin = |fields: &[String]| {
                let [range, share] = fields else { return None };
                let share: f64 = share.parse().ok().filter(|share: &f64| share.is_finite() && *share >= 0.0)?;
                Some((range.parse::<Range>().ok()?, share))
            };
            let no_bin = || HistogramError::Line { line: row.line, text: row.fields.join(",") };
            let (range, share) = bin(&row.fields).ok_or_else(no_bin)?;
            sum += share;
            if share > 0.0 {
                bins.push(Bin { range, up_to: sum });
            }
        }
        if !(sum > 0.0 && sum.is_finite()) {
            return Err(HistogramError::Empty);
        }
        bins.iter_mut().for_each(|bin| bin.up_to /= sum);
        Ok(Histogram { bins })
    }
}

impl Histogram {
    /// The least and the greatest of all.
    pub fn range(&self) -> Range {
        let least = self.bins.iter().map(|bin| bin.range.least).min().unwrap_or_default();
        Range { least, most: self.bins.iter().map(|bin| bin.range.most).max().unwrap_or_default() }
    }

    /// The round-trip time of the next connection.
    pub fn draw(&self, random: &mut Pcg64Mcg) -> Nanos {
        let (which, where_in_it) = (random.random::<f64>(), random.random::<f64>());
        let bin = self.bins.iter().find(|bin| which < bin.up_to).or(self.bins.last());
        let Range { least, most } = bin.map(|bin| bin.range).unwrap_or_default();
        least + Nanos(((most - least).0 as f64 * where_in_it) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_pcg::rand_core::SeedableRng;

    const fn ms(least: u64, most: u64) -> Range {
        Range { least: Nanos::from_millis(least), most: Nanos::from_millis(most) }
    }

    #[test]
    fn ranges_as_people_write_them() {
        for (text, range) in [("20ms", ms(20, 20)), ("20ms..200ms", ms(20, 200)), ("0ms .. 5s", ms(0, 5000))] {
            assert_eq!(text.parse(), Ok(range), "{text}");
        }
        for (text, why) in [
            ("20", "duration"),
            ("", "duration"),
            ("2s..1s", "ends before"),
            ("6s", "5s at most"),
            ("1s..", "duration"),
        ] {
            assert!(text.parse::<Range>().unwrap_err().contains(why), "{text}");
        }
    }

    #[test]
    fn clients_lie_evenly_between_the_ends() {
        let spread = Rtts::Spread(ms(20, 200));
        let of = |clients| (0..clients).map(|i| spread.of_client(i, clients).least).collect::<Vec<_>>();
        assert_eq!(of(3), [20, 110, 200].map(Nanos::from_millis));
        assert_eq!(of(1), [110].map(Nanos::from_millis));
    }

    #[test]
    fn a_histogram_is_drawn_from_in_proportion() {
        let histogram: Histogram = "# measured\n10ms, 3\n100ms..200ms, 1\n1s, 0\n".parse().unwrap();
        assert_eq!(histogram.range(), ms(10, 200));
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let drawn: Vec<Nanos> = (0..40_000).map(|_| histogram.draw(&mut random)).collect();
        let short = drawn.iter().filter(|rtt| **rtt == Nanos::from_millis(10)).count();
        let long: Vec<f64> =
            drawn.iter().filter(|rtt| **rtt >= Nanos::from_millis(100)).map(|rtt| rtt.as_secs_f64()).collect();
        // Five standard deviations.
        assert!(short.abs_diff(30_000) < 434 && short + long.len() == 40_000, "{short}");
        let mean = long.iter().sum::<f64>() / long.len() as f64;
        assert!((mean - 0.150).abs() < 0.002, "{mean}");
    }

    #[test]
    fn what_is_no_histogram_says_where() {
        for text in ["20ms", "20ms,x", "20ms,-1", "20ms,nan", "20ms,1,2", "fast,1", "6s,1"] {
            let error = format!("5ms,1\n{text}\n").parse::<Histogram>().unwrap_err();
            assert!(matches!(error, HistogramError::Line { line: 2, .. }), "{text}: {error}");
        }
        for text in ["", "# nothing\n", "20ms,0\n", "20ms,1e308\n30ms,1e308\n"] {
            assert_eq!(text.parse::<Histogram>(), Err(HistogramError::Empty), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "([0-9]{0,4}|ms|s|\\.\\.|,|\n|#|[ -~]){0,30}") {
            let _ = text.parse::<Range>();
            if let Ok(histogram) = text.parse::<Histogram>() {
                let rtt = histogram.draw(&mut Pcg64Mcg::seed_from_u64(3));
                prop_assert!(histogram.range().least <= rtt && rtt <= histogram.range().most);
            }
        }
    }
}
