//! The report of a log that was replayed twice: with its bursts, and at a constant rate. It has a table of both runs'
//! metrics, and a sentence on the effect of bursts (Menascé, Almeida & Dowdy 1999, §6; Banga & Druschel 1997).
//!
//! For each metric, the report shows a ratio: its value with bursts divided by its value at a constant rate. If both
//! values have a 95 % confidence interval, the ratio has one too. If the intervals of the values m₁ and m₂ have the
//! half widths h₁ and h₂, the half width of the interval of ln(m₁/m₂) is √((h₁/m₁)² + (h₂/m₂)²) by the delta method
//! (Casella & Berger, *Statistical Inference*, 2002, §5.5.4). The method assumes that the errors of the two values are
//! independent, which is plausible because the runs take place at different times.

use crate::format::{fact, figure, interval, number, percent, rate, seconds, table, words};
use brimful_core::quantity;
use brimful_core::record::{Interval, Record, Summary, Verdict};
use serde::Serialize;

/// Minimum difference between the two replays that the report mentions: of their throughputs (relative), or of their
/// shares of failed calls.
const MIN_DIFFERENCE: f64 = 0.01;

/// The Records (result documents) of both replays, and their comparison.
#[derive(Debug, Serialize)]
pub struct Pair<'a> {
    /// The replay with the log's bursts.
    pub as_logged: &'a Record,
    /// The replay of the same calls at a constant rate, that is, without bursts.
    pub flattened: &'a Record,
    /// The comparison of the two replays.
    pub comparison: Comparison,
}

/// A comparison of two replays.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Whether both runs are valid. Otherwise, the load generator may have caused the differences.
    pub valid: bool,
    /// The compared metrics.
    pub figures: Vec<ComparedMetric>,
    /// A sentence on the effect of bursts.
    pub verdict: String,
}

/// The values of one metric in both replays.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedMetric {
    /// Name of the metric, with its unit if it has one, such as `per second` or `s`.
    pub figure: &'static str,
    /// Value of the metric with the log's bursts.
    pub as_logged: Option<f64>,
    /// Value of the metric at a constant rate.
    pub flattened: Option<f64>,
    /// `as_logged` divided by `flattened`.
    pub ratio: Option<f64>,
    /// 95 % confidence interval of the ratio, if both values have one.
    pub ratio_ci95: Option<[f64; 2]>,
    /// The unit in which the metric is shown.
    #[serde(skip)]
    unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Unit {
    Rate,
    Share,
    Seconds,
}

/// The value of a metric, and the half width of its 95 % confidence interval.
type Measured = (Option<f64>, Option<f64>);

impl<'a> Pair<'a> {
    /// Compares two replays.
    pub fn new(as_logged: &'a Record, flattened: &'a Record) -> Pair<'a> {
        let figure = |name, unit, measured: fn(&Record) -> Measured| {
            ComparedMetric::new(name, unit, measured(as_logged), measured(flattened))
        };
        let figures = vec![
            figure("offered per second", Unit::Rate, |record| (Some(record.rates.offered), None)),
            figure("completed per second", Unit::Rate, |record| {
                (Some(record.rates.completed), record.reply_rate.ci95_half_width)
            }),
            figure("most completed per second", Unit::Rate, |record| (busiest(&record.intervals), None)),
            figure("failed", Unit::Share, |record| (failed(record), None)),
            figure("mean response time, s", Unit::Seconds, |record| {
                let mean = response(record, |summary| summary.mean);
                (mean, record.response_mean_ci95_us.map(|us| us / 1e6))
            }),
            figure("median response time, s", Unit::Seconds, |record| (response(record, |summary| summary.p50), None)),
            figure("95 % within, s", Unit::Seconds, |record| (response(record, |summary| summary.p95), None)),
            figure("99 % within, s", Unit::Seconds, |record| (response(record, |summary| summary.p99), None)),
        ];
        let valid = as_logged.verdict.valid && flattened.verdict.valid;
        let mut comparison = Comparison { valid, figures, verdict: String::new() };
        comparison.verdict = comparison.said(as_logged, flattened);
        Pair { as_logged, flattened, comparison }
    }
}

impl ComparedMetric {
    fn new(figure: &'static str, unit: Unit, as_logged: Measured, flattened: Measured) -> ComparedMetric {
        let ((first, first_half), (second, second_half)) = (as_logged, flattened);
        let both = first.zip(second).filter(|(first, second)| *first > 0.0 && *second > 0.0);
        let ratio = both.map(|(first, second)| first / second);
        let relative = |half: Option<f64>, of: Option<f64>| Some(half? / of?);
        let halves = relative(first_half, first).zip(relative(second_half, second));
        let ratio_ci95 = ratio.zip(halves).map(|(ratio, (first, second))| {
            let half = first.hypot(second).exp();
            [ratio / half, ratio * half]
        });
        ComparedMetric { figure, as_logged: first, flattened: second, ratio, ratio_ci95, unit }
    }

    fn shown(&self) -> Vec<String> {
        let unit = match self.unit {
            Unit::Rate => rate,
            Unit::Share => percent,
            Unit::Seconds => seconds,
        };
        let ratio = match (self.unit, self.ratio_ci95) {
            (Unit::Share, _) => "-".to_owned(),
            (_, Some([low, high])) => format!("{} ({})", number(self.ratio), interval(low, high, number)),
            (_, None) => number(self.ratio),
        };
        let name = self.figure.trim_end_matches(", s").trim_end_matches(" per second");
        vec![name.to_owned(), unit(self.as_logged), unit(self.flattened), ratio]
    }
}

impl Comparison {
    fn figure(&self, name: &str) -> Option<&ComparedMetric> {
        self.figures.iter().find(|figure| figure.figure.starts_with(name))
    }

    fn said(&self, as_logged: &Record, flattened: &Record) -> String {
        match (as_logged.verdict.valid, flattened.verdict.valid) {
            (true, true) => {}
            (false, true) => return "the effect of bursts is unknown: the run as logged is not valid".to_owned(),
            (true, false) => return "the effect of bursts is unknown: the flat run is not valid".to_owned(),
            (false, false) => return "the effect of bursts is unknown: neither run is valid".to_owned(),
        }
        let parts = [self.throughput(), self.failures(), self.response()];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        match parts.is_empty() {
            true => "there is nothing to compare, as no call was completed".to_owned(),
            false => parts.join("; "),
        }
    }

    /// Says that fewer calls completed per second with bursts than at a constant rate; `None` if this is not so.
    fn throughput(&self) -> Option<String> {
        let completed = self.figure("completed")?;
        let (first, second) = completed.as_logged.zip(completed.flattened)?;
        (first < (1.0 - MIN_DIFFERENCE) * second).then(|| {
            format!(
                "bursts cost throughput: {} were completed, and {} of the same calls at a constant rate",
                quantity::rate(first),
                quantity::rate(second)
            )
        })
    }

    fn failures(&self) -> Option<String> {
        let failed = self.figure("failed")?;
        let (first, second) = failed.as_logged.zip(failed.flattened)?;
        (first > second + MIN_DIFFERENCE).then(|| {
            let (first, second) = (quantity::percent(first), quantity::percent(second));
            format!("{first} of the calls failed with bursts, {second} without")
        })
    }

    fn response(&self) -> Option<String> {
        let mean = self.figure("mean response")?;
        let ratio = mean.ratio?;
        let times = match mean.ratio_ci95 {
            Some([low, high]) => {
                format!("{} times ({}, 95 %)", quantity::number(ratio), interval(low, high, number))
            }
            None => format!("{} times", quantity::number(ratio)),
        };
        let slowest = self.figure("99 %").and_then(|figure| figure.as_logged.zip(figure.flattened));
        let slowest = slowest.map_or(String::new(), |(first, second)| {
            format!("; 99 % within {} against {}", quantity::seconds(first), quantity::seconds(second))
        });
        Some(match mean.ratio_ci95 {
            Some([low, _]) if low > 1.0 => format!("bursts make the mean response time {times} as long{slowest}"),
            Some([_, high]) if high < 1.0 => {
                format!("bursts cost no response time here: the mean is {times} that of the flat run{slowest}")
            }
            Some(_) => {
                format!("the mean response time is {times} the flat one: these runs cannot tell them apart{slowest}")
            }
            None => format!(
                "the mean response time is {times} the flat one; the runs are too short to say how sure{slowest}"
            ),
        })
    }
}

/// Formats the comparison as text that ends in a newline.
pub fn text(pair: &Pair<'_>) -> String {
    let columns =
        [words("", 0), figure("as logged", 2, None), figure("flattened", 2, None), figure("ratio (95 %)", 2, None)];
    let rows: Vec<Vec<String>> = pair.comparison.figures.iter().map(ComparedMetric::shown).collect();
    let calls = format!(
        "{} calls as logged in {}, {} at a constant rate in {}",
        quantity::count(pair.as_logged.counts.scheduled),
        quantity::seconds(pair.as_logged.duration_s),
        quantity::count(pair.flattened.counts.scheduled),
        quantity::seconds(pair.flattened.duration_s)
    );
    let verdicts =
        fact("as logged", &verdict(&pair.as_logged.verdict)) + &fact("flattened", &verdict(&pair.flattened.verdict));
    format!("{calls}\n\n{}\n{verdicts}{}", table(&columns, &rows), fact("bursts", &pair.comparison.verdict))
}

fn verdict(verdict: &Verdict) -> String {
    match (verdict.valid, verdict.failing) {
        (true, Some(true)) => "valid; the server failed more calls than it completed".to_owned(),
        (true, _) => "valid".to_owned(),
        (false, _) => {
            let reasons: Vec<&str> = verdict.reasons.iter().map(|reason| reason.message.as_str()).collect();
            format!("NOT VALID: {}", reasons.join(" "))
        }
    }
}

fn response(record: &Record, figure: fn(&Summary) -> f64) -> Option<f64> {
    record.response_time_us.as_ref().map(|summary| figure(summary) / 1e6)
}

fn failed(record: &Record) -> Option<f64> {
    let calls = record.counts.scheduled as f64;
    (calls > 0.0).then(|| record.counts.errors() as f64 / calls)
}

/// The highest throughput of any interval of the run.
fn busiest(intervals: &[Interval]) -> Option<f64> {
    let rates = intervals.iter().filter(|interval| interval.length_s > 0.0);
    rates.map(|interval| interval.completed as f64 / interval.length_s).max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::fixture;
    use brimful_core::record::{Reason, ReasonCode};

    /// A Record with this mean response time and half width of its confidence interval, both in seconds, and this rate
    /// of completed calls per second.
    fn record(mean_s: f64, half_s: f64, completed: f64) -> Record {
        let mut record = fixture::record();
        record.verdict = Verdict { failing: Some(false), error_share: Some(0.0), ..Verdict::from_reasons(vec![]) };
        record.rates.completed = completed;
        record.response_mean_ci95_us = Some(half_s * 1e6);
        if let Some(summary) = &mut record.response_time_us {
            summary.mean = mean_s * 1e6;
        }
        record
    }

    #[test]
    fn a_ratio_has_an_interval_where_both_have_one() {
        let figure = ComparedMetric::new("x", Unit::Rate, (Some(6.0), Some(0.3)), (Some(2.0), Some(0.1)));
        let [low, high] = figure.ratio_ci95.unwrap();
        // Each value has a relative error of 5 %. The errors are independent, so the error of the ratio's logarithm is
        // √2 × 5 % = 7.07 %.
        assert!((figure.ratio.unwrap() - 3.0).abs() < 1e-12);
        assert!((low - 3.0 * (-0.070_71_f64).exp()).abs() < 1e-4 && (high - 3.0 * 0.070_71_f64.exp()).abs() < 1e-4);
        assert_eq!(ComparedMetric::new("x", Unit::Rate, (Some(6.0), None), (Some(2.0), Some(0.1))).ratio_ci95, None);
        assert_eq!(ComparedMetric::new("x", Unit::Rate, (Some(6.0), None), (Some(0.0), None)).ratio, None);
        assert_eq!(ComparedMetric::new("x", Unit::Rate, (None, None), (Some(1.0), None)).ratio, None);
    }

    #[test]
    fn what_bursts_cost_is_said_in_a_sentence() {
        let said = |first: &Record, second: &Record| Pair::new(first, second).comparison.verdict;
        let slow = said(&record(0.009, 0.0003, 500.0), &record(0.003, 0.0001, 500.0));
        assert!(slow.starts_with("bursts make the mean response time 3.00 times ("), "{slow}");
        let same = said(&record(0.003, 0.0003, 500.0), &record(0.003, 0.0003, 500.0));
        assert!(same.contains("cannot tell them apart"), "{same}");
        let overloaded = said(&record(0.9, 0.1, 131.0), &record(0.1, 0.01, 202.0));
        assert!(
            overloaded.starts_with("bursts cost throughput: 131/s were completed, and 202/s of the same"),
            "{overloaded}"
        );
    }

    #[test]
    fn a_run_that_is_not_valid_compares_with_nothing() {
        let mut late = record(0.9, 0.1, 500.0);
        late.verdict.valid = false;
        late.verdict.reasons.push(Reason { code: ReasonCode::GeneratorLate, message: "too late".to_owned() });
        let flat = record(0.1, 0.01, 500.0);
        let pair = Pair::new(&flat, &late);
        assert!(!pair.comparison.valid);
        assert_eq!(pair.comparison.verdict, "the effect of bursts is unknown: the flat run is not valid");
        assert!(text(&pair).contains("flattened   NOT VALID: too late\n"), "{}", text(&pair));
    }

    #[test]
    fn the_text_has_both_side_by_side() {
        let (first, second) = (record(0.009, 0.0003, 500.0), record(0.003, 0.0001, 500.0));
        let text = text(&Pair::new(&first, &second));
        let row = text.lines().find(|line| line.starts_with("mean response time")).unwrap();
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells[3..8], ["9.00", "ms", "3.00", "ms", "3.00"], "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let json = serde_json::to_value(Pair::new(&first, &second)).unwrap();
        assert!(json["as_logged"]["schema"] == json["flattened"]["schema"] && json["comparison"]["valid"] == true);
    }
}
