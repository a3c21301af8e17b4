//! Forms classes of requests, as in Menascé, Almeida & Dowdy (1999, §3.3): one class for responses without a body, and
//! classes by size for all other responses. If the user asks for it, classes are formed by URL, status or virtual host
//! instead.
//!
//! Sizes are clustered by a minimum spanning tree. In one dimension, this tree is the sorted sequence of sizes. The
//! tree is cut at its longest edges. The length of an edge is the ratio of two sizes ([`cluster_sizes`], applied to
//! logarithms). If the length were a difference in bytes, each of a few large files would be a cluster, and all other
//! files would be one cluster. Clusters with more than a twentieth of the requests are divided into groups ("remainder
//! of cluster 0" in the paper's Table 1). Neighbouring clusters and groups are then joined to classes, so that sizes
//! vary least within each class (`partition`).

mod partition;

use super::options::{ClassBy, Options};
use super::size_ranges::{EMPTY_CLASS, SizeRanges};
use super::sizes::SizeCount;
use super::urls::TopUrl;
use super::window::{KeyedRequests, Window};
use brimful_core::profile::{LogClass, PopularUrl};
use brimful_core::quantity::{count, group_thousands, percent};
use brimful_estimate::cluster_sizes;
use partition::{SizeGroup, explained, partition};
use std::iter::repeat_n;

/// Number of clusters into which the spanning tree of sizes is cut, as in Menascé, Almeida & Dowdy (1999, §3.3).
const CLUSTERS: usize = 150;
/// Share of all requests above which a cluster of sizes is divided into smaller groups.
const LARGE_CLUSTER: f64 = 0.05;
/// Share of the variance of the logarithms of sizes that the classes should explain. Unless the user specified the
/// number of classes, the smallest number that explains this share is used, but at most [`MAX_CLASSES`].
const EXPLAINED: f64 = 0.9;
const MAX_CLASSES: usize = 5;
/// Maximum number of URLs that are listed for a class.
const URLS: usize = 200;

/// Returns the classes of the window's requests, and a description of how the classes were formed.
pub fn classes(window: &Window, options: &Options) -> (Vec<LogClass>, String) {
    match options.class_by {
        ClassBy::Size => match &options.size_ranges {
            Some(ranges) => by_ranges(window, ranges),
            None => by_size(window, options.classes),
        },
        ClassBy::Url(_) => by_key(window, "by URL"),
        ClassBy::Status => by_key(window, "by status"),
        ClassBy::Host => by_key(window, "by virtual host"),
    }
}

fn by_size(window: &Window, wanted: Option<usize>) -> (Vec<LogClass>, String) {
    let sizes: Vec<SizeCount> = window.sizes.sorted().into_iter().filter(|size| size.bytes > 0).collect();
    let groups = size_groups(&sizes);
    let empty = usize::from(window.zero_length > 0);
    let most = groups.len().max(1);
    let enough = || (1..=most.min(MAX_CLASSES)).find(|k| explained(&groups, &partition(&groups, *k)) >= EXPLAINED);
    let number =
        wanted.map_or_else(|| enough().unwrap_or(most.min(MAX_CLASSES)), |k| k.saturating_sub(empty).clamp(1, most));
    let parts = if groups.is_empty() { Vec::new() } else { partition(&groups, number) };
    let why = match wanted {
        Some(k) => format!("{k} were asked for"),
        None => {
            format!("they explain {} of the variance of the logarithm of the size", percent(explained(&groups, &parts)))
        }
    };
    let all = window.urls.sorted();
    let mut found = Vec::new();
    if window.zero_length > 0 {
        found.push(empty_class(window, &all));
    }
    for (index, part) in parts.iter().enumerate() {
        found.push(size_class(window, &sizes, &groups[part.clone()], &all, index + 1 == parts.len()));
    }
    (found, format!("by size, from {} clusters of the spanning tree: {why}", clusters(&groups)))
}

/// Classes by the user's ranges of sizes. Ranges without requests are left out.
fn by_ranges(window: &Window, ranges: &SizeRanges) -> (Vec<LogClass>, String) {
    let sizes = window.sizes.sorted();
    let all = window.urls.sorted();
    let mut found = Vec::new();
    if window.zero_length > 0 {
        found.push(empty_class(window, &all));
    }
    for class in 1..ranges.class_count() {
        let members: Vec<SizeCount> =
            sizes.iter().filter(|size| ranges.class_of(size.bytes) == class).copied().collect();
        let (from, to) = ranges.limits(class);
        if !members.is_empty() {
            let named = LogClass {
                name: ranges.name(class),
                range: ranges.range_text(class),
                derived_from: "--size-classes".to_owned(),
                ..LogClass::default()
            };
            found.push(class_of_sizes(window, &members, (from, to.unwrap_or(u64::MAX - 1)), &all, named));
        }
    }
    (found, "by size, in the given ranges".to_owned())
}

fn clusters(groups: &[SizeGroup]) -> usize {
    groups.last().map_or(0, |group| group.cluster + 1)
}

/// Cuts the sizes into clusters at the longest edges of their spanning tree, and divides the large clusters. Returns
/// the resulting groups of sizes.
fn size_groups(sizes: &[SizeCount]) -> Vec<SizeGroup> {
    let all: u64 = sizes.iter().map(|size| size.count).sum();
    let logarithms: Vec<f64> = sizes.iter().map(|size| (size.bytes.max(1) as f64).ln()).collect();
    // Clustering succeeds, because all sizes are positive.
    let tree = cluster_sizes(&logarithms, CLUSTERS).unwrap_or_default();
    let cluster_of = tree.iter().enumerate().flat_map(|(number, cluster)| repeat_n(number, cluster.count));
    let mut groups: Vec<SizeGroup> = Vec::new();
    for ((index, size), cluster) in sizes.iter().enumerate().zip(cluster_of) {
        let full = |group: &SizeGroup| group.count as f64 > LARGE_CLUSTER * all as f64;
        let (begins, is_full) = groups.last().map_or((true, false), |group| (group.cluster != cluster, full(group)));
        if begins || is_full {
            groups.push(SizeGroup::new(cluster, !begins, index));
        }
        if let Some(group) = groups.last_mut() {
            group.add(index, size.bytes, size.count);
        }
    }
    groups
}

fn empty_class(window: &Window, all: &[&TopUrl]) -> LogClass {
    // The responses without a body: all requests for the URL without the responses with a body. `requests_error` is
    // also subtracted, because this number of requests may belong to other URLs.
    let weigh = |url: &TopUrl| url.requests.saturating_sub(url.requests_error + url.responses_with_body);
    let (service, timed) = window.zero_length_service;
    LogClass {
        name: EMPTY_CLASS.to_owned(),
        range: "no body".to_owned(),
        derived_from: "answers without a body".to_owned(),
        requests: window.zero_length,
        share_requests: share(window.zero_length, window.requests),
        bytes_scv: 0.0,
        unique_urls: all.iter().filter(|url| weigh(url) > 0).count() as u64,
        urls: popular(all.iter().map(|url| (*url, weigh(url), 0.0))),
        mean_service_s: mean_seconds(service, timed),
        service_s: window.zero_length_times.to_times(),
        ..LogClass::default()
    }
}

fn size_class(window: &Window, sizes: &[SizeCount], groups: &[SizeGroup], all: &[&TopUrl], is_last: bool) -> LogClass {
    let (Some(first), Some(last)) = (groups.first(), groups.last()) else { return LogClass::default() };
    let members = &sizes[first.first..=last.last];
    let from = members.first().map_or(0, |size| size.bytes);
    let to = members.last().map_or(0, |size| size.bytes);
    let derived_from = match (first.cluster, last.cluster) {
        (a, b) if a == b && first.is_remainder => format!("remainder of cluster {a}"),
        (a, b) if a == b => format!("cluster {a}"),
        (a, b) => format!("{}clusters {a} to {b}", if first.is_remainder { "remainder of " } else { "" }),
    };
    let range = if is_last && to > from {
        format!("{} bytes and more", count(from))
    } else {
        format!("{} – {} bytes", count(from), count(to))
    };
    let name = if is_last && to > from { format!("from-{from}") } else { format!("{from}-{to}") };
    class_of_sizes(window, members, (from, to), all, LogClass { name, range, derived_from, ..LogClass::default() })
}

/// Adds the metrics of the class of responses with sizes from `from` to `to` bytes to `named`. `members` are the groups
/// of these sizes.
fn class_of_sizes(
    window: &Window,
    members: &[SizeCount],
    (from, to): (u64, u64),
    all: &[&TopUrl],
    named: LogClass,
) -> LogClass {
    let requests: u64 = members.iter().map(|size| size.count).sum();
    let bytes: f64 = members.iter().map(|size| size.sum_bytes).sum();
    let squares: f64 = members.iter().map(|size| size.sum_bytes.powi(2) / size.count as f64).sum();
    let (service, timed) =
        members.iter().fold((0.0, 0), |(sum, n), size| (sum + size.service_ns, n + size.timed_responses));
    let mean = bytes / requests as f64;
    let mine = |url: &&&TopUrl| {
        let mean = url.bytes as f64 / url.responses_with_body as f64;
        url.responses_with_body > 0 && mean >= from as f64 && mean < to as f64 + 1.0
    };
    LogClass {
        requests,
        share_requests: share(requests, window.requests),
        share_bytes: if window.bytes > 0 { bytes / window.bytes as f64 } else { 0.0 },
        mean_bytes: mean,
        bytes_range: [members.first().map_or(0, |size| size.bytes), members.last().map_or(0, |size| size.bytes)],
        bytes_scv: (squares / requests as f64 / mean.powi(2) - 1.0).max(0.0),
        unique_urls: all.iter().filter(mine).count() as u64,
        urls: popular(
            all.iter()
                .filter(mine)
                .map(|url| (*url, url.responses_with_body, url.bytes as f64 / url.responses_with_body as f64)),
        ),
        mean_service_s: mean_seconds(service, timed),
        service_s: window.times_of_sizes(from, to).to_times(),
        ..named
    }
}

fn by_key(window: &Window, how: &str) -> (Vec<LogClass>, String) {
    let mut found: Vec<LogClass> =
        window.requests_by_key.iter().map(|(key, keyed)| key_class(window, key, keyed)).collect();
    found.sort_by(|a, b| b.requests.cmp(&a.requests).then_with(|| a.name.cmp(&b.name)));
    (found, how.to_owned())
}

fn key_class(window: &Window, key: &str, keyed: &KeyedRequests) -> LogClass {
    let mean = keyed.bytes as f64 / (keyed.requests.max(1)) as f64;
    let moment = keyed.sum_of_squared_bytes / keyed.requests.max(1) as f64;
    let urls = keyed.urls.sorted();
    let mean_of = |url: &TopUrl| url.bytes as f64 / url.requests.saturating_sub(url.requests_error).max(1) as f64;
    LogClass {
        name: key.to_owned(),
        range: key.to_owned(),
        derived_from: format!(
            "{} to {} bytes",
            group_thousands(keyed.min_bytes as f64),
            group_thousands(keyed.max_bytes as f64)
        ),
        requests: keyed.requests,
        share_requests: share(keyed.requests, window.requests),
        share_bytes: share(keyed.bytes, window.bytes),
        mean_bytes: mean,
        bytes_range: [keyed.min_bytes, keyed.max_bytes],
        bytes_scv: if mean > 0.0 { (moment / mean.powi(2) - 1.0).max(0.0) } else { 0.0 },
        unique_urls: urls.len() as u64,
        urls: popular(urls.iter().map(|url| (*url, url.requests, mean_of(url)))),
        mean_service_s: mean_seconds(keyed.service.0, keyed.service.1),
        service_s: keyed.times.to_times(),
    }
}

/// The most popular of `urls`. Each URL has its number of requests and its mean size in bytes.
fn popular<'a>(urls: impl Iterator<Item = (&'a TopUrl, u64, f64)>) -> Vec<PopularUrl> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut found: Vec<PopularUrl> = urls
        .filter(|(_, requests, _)| *requests > 0)
        .map(|(url, requests, mean_bytes)| PopularUrl {
            url: text(&url.url),
            method: text(&url.method),
            requests,
            requests_error: url.requests_error.min(requests),
            mean_bytes,
        })
        .collect();
    found.sort_by(|a, b| b.requests.cmp(&a.requests).then_with(|| a.url.cmp(&b.url)));
    found.truncate(URLS);
    found
}

fn share(part: u64, all: u64) -> f64 {
    if all > 0 { part as f64 / all as f64 } else { 0.0 }
}

fn mean_seconds(sum_ns: f64, n: u64) -> Option<f64> {
    (n > 0).then(|| sum_ns / 1e9 / n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(counts: &[(u64, u64)]) -> Vec<SizeCount> {
        let size = |(bytes, count): &(u64, u64)| SizeCount {
            bytes: *bytes,
            count: *count,
            sum_bytes: (bytes * count) as f64,
            service_ns: 0.0,
            timed_responses: 0,
        };
        counts.iter().map(size).collect()
    }

    #[test]
    fn the_longest_edges_part_clusters() {
        let found = size_groups(&sizes(&[(100, 1), (101, 1), (102, 1), (5000, 1), (5001, 1), (900_000, 1)]));
        // Every size must be a cluster, because there are fewer sizes than the maximum number of clusters.
        assert_eq!(found.iter().map(|group| group.cluster).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
        let dense: Vec<(u64, u64)> = (1000..1400).map(|bytes| (bytes, 1)).chain([(100_000, 1)]).collect();
        let found = size_groups(&sizes(&dense));
        assert_eq!(clusters(&found), CLUSTERS);
        assert_eq!(found.last().map(|group| group.count), Some(1), "an isolated size must be a cluster of its own");
    }

    #[test]
    fn a_cluster_with_most_requests_is_divided() {
        // Neighbouring sizes differ by 0.1 %. All edges have about the same length, so the cuts leave one large
        // cluster, which must be divided.
        let line: Vec<(u64, u64)> = (0..3000).map(|i| (1_000_000 + 1000 * i, 10)).collect();
        let found = size_groups(&sizes(&line));
        let all: u64 = found.iter().map(|group| group.count).sum();
        assert!(all == 30_000 && found.iter().all(|group| group.count <= 30_000 / 20 + 10), "{found:?}");
        assert!(found.len() > clusters(&found));
    }
}
