//! Service times by URL and by hour: the slow URLs, and the hours in which the server was slow.
//!
//! The times of a URL are kept while the URL has a counter in [`TopUrls`]. A URL that gets a new counter starts without
//! times. At most [`MAX_HOURS`] hours have times; later hours are ignored.

use super::TopUrls;
use super::sparse_times::SparseTimes;
use brimful_core::profile::{SlowestHour, UrlTimes};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// Maximum number of hours with service times: more than a year.
const MAX_HOURS: usize = 10_000;
/// Number of slow URLs that the profile lists.
const URLS: usize = 20;
/// Minimum number of service times for the computation of a 95th percentile.
const MIN_TIMES: u64 = 20;

/// Service times by URL and by hour.
#[derive(Clone, Debug, Default)]
pub(super) struct SlowRequests {
    /// Service times of the URL in each counter slot of [`TopUrls`].
    by_slot: Vec<SparseTimes>,
    /// Service times of each hour. The key is the number of hours since 1970.
    by_hour: HashMap<i64, SparseTimes, RandomState>,
    /// Sum of all service times, in nanoseconds.
    sum_ns: f64,
}

impl SlowRequests {
    /// Adds the service time of a request. `slot` has the index of the slot that counts the request's URL, and whether
    /// the URL is new in this slot. For a new URL, the times of the slot's previous URL are removed.
    pub fn add(&mut self, slot: Option<(usize, bool)>, second: i64, service_ns: Option<u64>) {
        if let Some((slot, true)) = slot
            && let Some(times) = self.by_slot.get_mut(slot)
        {
            times.clear();
        }
        let Some(service_ns) = service_ns else { return };
        self.sum_ns += service_ns as f64;
        if let Some((slot, _)) = slot {
            if slot >= self.by_slot.len() {
                self.by_slot.resize_with(slot + 1, SparseTimes::default);
            }
            self.by_slot[slot].add(service_ns);
        }
        let hour = second.div_euclid(3600);
        let room = self.by_hour.len() < MAX_HOURS;
        if room || self.by_hour.contains_key(&hour) {
            self.by_hour.entry(hour).or_default().add(service_ns);
        }
    }

    /// The URLs with the highest 95th percentiles.
    pub fn slowest_urls(&self, urls: &TopUrls) -> Vec<UrlTimes> {
        let timed = urls.slots().filter_map(|(slot, url)| Some((self.by_slot.get(slot)?, url)));
        let mut timed: Vec<_> = timed.filter(|(times, _)| times.samples() >= MIN_TIMES).collect();
        let p95 = |times: &SparseTimes| times.percentile(0.95);
        timed.sort_by(|(a, x), (b, y)| p95(b).total_cmp(&p95(a)).then_with(|| x.url.cmp(&y.url)));
        timed.truncate(URLS);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let describe = |(times, url): (&SparseTimes, &super::TopUrl)| {
            Some(UrlTimes {
                url: text(&url.url),
                method: text(&url.method),
                service_s: times.to_times()?,
                time_share: if self.sum_ns > 0.0 { times.sum_ns() / self.sum_ns } else { 0.0 },
            })
        };
        timed.into_iter().filter_map(describe).collect()
    }

    /// The hour with the highest 95th percentile of response times; `None` if fewer than two hours have enough responses. `show` formats a
    /// time in nanoseconds since 1970.
    pub fn slowest_hour(&self, show: impl Fn(i64) -> String) -> Option<SlowestHour> {
        let enough = self.by_hour.iter().filter(|(_, times)| times.samples() >= MIN_TIMES);
        let mut hours: Vec<(f64, i64)> = enough.map(|(hour, times)| (times.percentile(0.95), *hour)).collect();
        // Sorted by percentile. Of hours with the same percentile, the earliest comes last.
        hours.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        let (_, slowest) = hours.last().filter(|_| hours.len() > 1)?;
        let (usual, _) = hours[hours.len() / 2];
        Some(SlowestHour {
            from: show(slowest.saturating_mul(3_600_000_000_000)),
            service_s: self.by_hour.get(slowest)?.to_times()?,
            median_p95_s: usual / 1e9,
        })
    }
}
