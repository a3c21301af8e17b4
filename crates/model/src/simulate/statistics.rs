//! The statistics of a run, as ratios of sums over its batches (equal parts of the run after the warm-up).

use super::histogram::Histogram;
use super::intervals::{batches, quantiles, ratio, warm_up};
use super::layout::Layout;
use super::record::{Record, Slice};
use super::world::Visits;
use crate::Estimate;
use brimful_core::JsonSchema;
use serde::Serialize;

/// Statistics of the response time of a class in seconds, from arrival to the end of the last visit, without think
/// time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ResponseTime {
    /// Mean response time.
    pub mean: Estimate,
    /// Median of the response times.
    pub p50: Estimate,
    /// 90th percentile of the response times.
    pub p90: Estimate,
    /// 95th percentile of the response times.
    pub p95: Estimate,
    /// 99th percentile of the response times.
    pub p99: Estimate,
}

/// A run without its warm-up, divided into batches (parts of equal length).
pub(super) struct RunStatistics<'a> {
    layout: &'a Layout,
    batches: Vec<&'a [Slice]>,
    /// The sums of each batch (a part of the run), without its histograms.
    sums: Vec<Slice>,
    batch_s: f64,
    settled: bool,
    /// For each class: the mean response time, and the correlation between the mean response times of successive
    /// batches (parts of the run).
    responses: Vec<Option<(Estimate, f64)>>,
}

impl<'a> RunStatistics<'a> {
    pub(super) fn new(layout: &'a Layout, record: &'a Record) -> RunStatistics<'a> {
        let (warm_up, settled) = warm_up(&presence(layout, &record.slices));
        let batches = batches(&record.slices, warm_up);
        let sums: Vec<Slice> = batches.iter().map(|batch| sum(batch)).collect();
        let batch_s = record.slice_s * batches.first().map_or(0, |batch| batch.len()) as f64;
        let response =
            |class: usize| ratio(sums.iter().map(|sum| [sum.completed[class].seconds, sum.completed[class].count]));
        let responses = (0..layout.classes.len()).map(response).collect();
        RunStatistics { layout, batches, sums, batch_s, settled, responses }
    }

    /// Whether the network had reached its steady state after the warm-up.
    pub(super) fn settled(&self) -> bool {
        self.settled
    }

    /// Length of a batch (a part of the run), in seconds.
    pub(super) fn batch_s(&self) -> f64 {
        self.batch_s
    }

    /// Whether the warm-up is over and the precision is at least as good as `wanted`, a relative half width of the
    /// confidence intervals.
    pub(super) fn reaches(&self, wanted: f64) -> bool {
        self.settled && self.precision().is_some_and(|precision| precision <= wanted)
    }

    /// The largest relative half width of the confidence intervals of throughputs and mean response times, over all
    /// classes that send requests. `None` if a half width is unknown.
    pub(super) fn precision(&self) -> Option<f64> {
        let mut worst = 0.0f64;
        for (class, known) in self.layout.classes.iter().enumerate() {
            if known.sends() {
                let (response, _) = self.responses[class]?;
                worst = worst.max(relative_half_width(self.throughput(class))?).max(relative_half_width(response)?);
            }
        }
        Some(worst)
    }

    /// The largest correlation between the mean response times of successive batches (parts of the run), among all
    /// classes.
    pub(super) fn correlation(&self) -> f64 {
        self.responses.iter().flatten().map(|(_, correlation)| *correlation).fold(-1.0, f64::max)
    }

    pub(super) fn throughput(&self, class: usize) -> Estimate {
        self.per_second(|sum| sum.completed[class].count)
    }

    pub(super) fn response_time(&self, class: usize, histogram: &Histogram) -> Option<ResponseTime> {
        let (mean, _) = self.responses[class]?;
        let [p50, p90, p95, p99] = quantiles(&self.batches, class, histogram, [0.5, 0.9, 0.95, 0.99])?;
        Some(ResponseTime { mean, p50, p90, p95, p99 })
    }

    pub(super) fn residence(&self, station: usize, class: usize) -> Option<Estimate> {
        if self.layout.stations[station].demands[class] > 0.0 {
            let visits = self.visits(station, class);
            return ratio(self.sums.iter().map(|sum| [visits(sum).seconds, visits(sum).ended]))
                .map(|(figure, _)| figure);
        }
        Some(Estimate { value: 0.0, ci95_half_width: Some(0.0) })
    }

    pub(super) fn queue_length(&self, station: usize, class: usize) -> Estimate {
        let visits = self.visits(station, class);
        self.per_second(|sum| visits(sum).area)
    }

    pub(super) fn utilization(&self, station: usize, class: usize) -> Estimate {
        let (visits, servers) = (self.visits(station, class), self.layout.stations[station].servers);
        self.per_second(|sum| visits(sum).work / servers)
    }

    fn visits(&self, station: usize, class: usize) -> impl Fn(&Slice) -> Visits + use<> {
        let place = station * self.layout.classes.len() + class;
        move |sum| sum.visits[place]
    }

    fn per_second(&self, count: impl Fn(&Slice) -> f64) -> Estimate {
        let figure = ratio(self.sums.iter().map(|sum| [count(sum), self.batch_s]));
        figure.map_or(Estimate { value: 0.0, ci95_half_width: None }, |(figure, _)| figure)
    }
}

fn relative_half_width(figure: Estimate) -> Option<f64> {
    let half = figure.ci95_half_width?;
    Some(if half > 0.0 { half / figure.value.abs() } else { 0.0 })
}

fn sum(batch: &[Slice]) -> Slice {
    let mut sum = Slice { times: Vec::new(), completed: batch[0].completed.clone(), visits: batch[0].visits.clone() };
    batch[1..].iter().for_each(|slice| sum.add(slice));
    sum
}

/// Mean numbers of requests present in each slice (period of the run), as two series: at all stations together, and at
/// the station that is busiest over the whole run.
fn presence(layout: &Layout, slices: &[Slice]) -> Vec<Vec<f64>> {
    let classes = layout.classes.len();
    let row = |station: usize| station * classes..(station + 1) * classes;
    let work = |station: usize| -> f64 {
        let visits = slices.iter().flat_map(|slice| &slice.visits[row(station)]);
        visits.map(|visits| visits.work).sum::<f64>() / layout.stations[station].capacity
    };
    let busiest = (0..layout.stations.len()).max_by(|a, b| work(*a).total_cmp(&work(*b))).unwrap_or(0);
    let area = |visits: &[Visits]| visits.iter().map(|visits| visits.area).sum();
    vec![
        slices.iter().map(|slice| area(&slice.visits)).collect(),
        slices.iter().map(|slice| area(&slice.visits[row(busiest)])).collect(),
    ]
}
