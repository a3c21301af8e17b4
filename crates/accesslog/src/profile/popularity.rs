//! Measures how unevenly requests are distributed over URLs.
//!
//! The exponent of Zipf's law is the negative slope of the least-squares line through the logarithms of rank and count.
//! The fit uses only URLs that have at least [`MIN_REQUESTS`] requests and whose count has a relative error of at most
//! [`MAX_COUNT_ERROR`]. URLs with fewer requests do not follow the line, and their large number would dominate the fit.

use super::urls::{TopUrl, TopUrls};
use brimful_core::profile::{PopularUrl, UrlPopularity};

/// Minimum number of requests of a URL that is used for the fit of Zipf's law.
const MIN_REQUESTS: u64 = 10;
/// Maximum relative error of the request count of a URL that is used for the fit of Zipf's law.
const MAX_COUNT_ERROR: f64 = 0.1;
/// Minimum number of URLs for the fit of Zipf's law.
const MIN_RANKS: usize = 10;
/// Maximum number of URLs that the profile lists.
const SHOWN_URLS: usize = 100;
const CONCENTRATION: [usize; 4] = [1, 10, 100, 1_000];

/// Computes the metrics of the popularity of URLs. `requests` is the number of requests of all URLs.
pub(super) fn measure(urls: &TopUrls, requests: u64) -> UrlPopularity {
    let sorted = urls.sorted();
    let line = zipf(&sorted);
    UrlPopularity {
        zipf: line.map(|(exponent, _)| exponent),
        zipf_fit: line.map(|(_, fit)| fit),
        concentration: concentration(&sorted, requests),
        urls: sorted.iter().take(SHOWN_URLS).map(|url| popular_url(url)).collect(),
    }
}

/// The exponent of Zipf's law for the popularity of URLs, and the coefficient of determination R² of the fit.
fn zipf(sorted: &[&TopUrl]) -> Option<(f64, f64)> {
    let ranked = (1u32..).zip(sorted);
    let good = ranked.filter(|(_, url)| {
        url.requests >= MIN_REQUESTS && url.requests_error as f64 <= MAX_COUNT_ERROR * url.requests as f64
    });
    let points: Vec<(f64, f64)> = good.map(|(rank, url)| (f64::from(rank).ln(), (url.requests as f64).ln())).collect();
    if points.len() < MIN_RANKS {
        return None;
    }
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / n, y + point.1 / n));
    let product =
        |factor: fn(f64, f64) -> f64| points.iter().map(|point| factor(point.0 - x, point.1 - y)).sum::<f64>();
    let xx = product(|x, _| x * x);
    let xy = product(|x, y| x * y);
    let yy = product(|_, y| y * y);
    let fit = if yy > 0.0 { xy * xy / (xx * yy) } else { 1.0 };
    Some((-xy / xx, fit))
}

/// The share of all requests that the n most popular URLs have, for several numbers n. If counts have errors, the true
/// shares may be greater.
fn concentration(sorted: &[&TopUrl], requests: u64) -> Vec<(u64, f64)> {
    let most = CONCENTRATION.into_iter().filter(|n| *n <= sorted.len());
    let share = |n: usize| {
        let of_these: u64 = sorted.iter().take(n).map(|url| url.requests - url.requests_error).sum();
        of_these as f64 / requests.max(1) as f64
    };
    most.map(|n| (n as u64, share(n))).collect()
}

fn popular_url(url: &TopUrl) -> PopularUrl {
    PopularUrl {
        url: String::from_utf8_lossy(&url.url).into_owned(),
        method: String::from_utf8_lossy(&url.method).into_owned(),
        requests: url.requests,
        requests_error: url.requests_error,
        mean_bytes: url.mean_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Entry;
    use rand::SeedableRng;
    use rand_distr::{Distribution, Zipf};
    use rand_pcg::Pcg64;

    fn described(exponent: f64, urls: f64, requests: u64, capacity: usize) -> UrlPopularity {
        let (mut top, mut rng) = (TopUrls::new(capacity), Pcg64::seed_from_u64(7));
        for url in Zipf::new(urls, exponent).unwrap().sample_iter(&mut rng).take(requests as usize) {
            let target = format!("/{url}");
            top.add(&Entry { target: target.as_bytes(), method: b"GET", bytes: Some(url as u64), ..Entry::default() });
        }
        measure(&top, requests)
    }

    #[test]
    fn the_exponent_is_found() {
        for exponent in [0.7, 1.0, 1.3] {
            for capacity in [8_192, 500] {
                let found = described(exponent, 3_000.0, 200_000, capacity);
                let zipf = found.zipf.unwrap();
                assert!((zipf - exponent).abs() < 0.08, "{exponent} with {capacity} places: {zipf}");
                assert!(found.zipf_fit.is_some_and(|fit| fit > 0.95));
            }
        }
        assert_eq!(described(1.0, 5.0, 1_000, 100).zipf, None, "five URLs must be too few for an exponent");
    }

    #[test]
    fn shares_are_those_of_the_law_and_never_too_high() {
        let harmonic = |n: u64| (1..=n).map(|rank| 1.0 / rank as f64).sum::<f64>();
        let found = described(1.0, 3_000.0, 200_000, 8_192);
        assert_eq!(found.concentration.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [1, 10, 100, 1_000]);
        for (n, share) in found.concentration {
            let expected = harmonic(n) / harmonic(3_000);
            assert!((share - expected).abs() < 0.01, "{n}: {share} not {expected}");
        }
        assert_eq!((found.urls.len(), &*found.urls[0].url, found.urls[2].mean_bytes), (100, "/1", 3.0));
        // The test has few counters and many URLs, nearly all of which occur only once.
        let flat = described(0.0, 1e9, 50_000, 1_000);
        assert!(flat.concentration.iter().all(|(n, share)| *share <= *n as f64 / 20_000.0), "{:?}", flat.concentration);
        assert_eq!(flat.zipf, None);
    }
}
