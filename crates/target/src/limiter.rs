//! Limits the request rate by a token bucket, like nginx's limit_req or a gateway. Requests above the limit get a 429
//! response at once.

use brimful_core::panics::lock;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The capacity of the bucket is the number of tokens that are added in this time, but at least one token.
const FULL_AFTER: Duration = Duration::from_millis(100);

/// A rate limit: on average, at most a fixed number of requests per second is admitted.
#[derive(Debug)]
pub(crate) struct Limiter {
    per_s: f64,
    bucket: Mutex<Bucket>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    tokens: f64,
    /// The time at which `tokens` was last updated; `None` before the first request.
    counted: Option<Instant>,
}

impl Limiter {
    /// Creates a limiter that admits `per_s` requests per second on average.
    pub(crate) fn new(per_s: u32) -> Limiter {
        Limiter { per_s: f64::from(per_s), bucket: Mutex::default() }
    }

    /// Whether to serve a request that arrives at `now`. If so, removes a token from the bucket.
    pub(crate) fn admits(&self, now: Instant) -> bool {
        let capacity = (self.per_s * FULL_AFTER.as_secs_f64()).max(1.0);
        let mut bucket = lock(&self.bucket);
        let elapsed = bucket.counted.map_or(Duration::from_secs(1), |last| now.saturating_duration_since(last));
        bucket.tokens = (bucket.tokens + self.per_s * elapsed.as_secs_f64()).min(capacity);
        bucket.counted = Some(now);
        let is_admitted = bucket.tokens >= 1.0;
        if is_admitted {
            bucket.tokens -= 1.0;
        }
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_a_second_of_requests_is_admitted_at_once() {
        let limiter = Limiter::new(100);
        let begun = Instant::now();
        let at = |ms| (0..20).filter(|_| limiter.admits(begun + Duration::from_millis(ms))).count();
        assert_eq!([at(0), at(0), at(55), at(1000)], [10, 0, 5, 10]);
        let second = (0..1000).filter(|ms| limiter.admits(begun + Duration::from_millis(2000 + ms))).count();
        assert!((109..=110).contains(&second), "{second}");
    }

    #[test]
    fn one_request_a_second_is_the_lowest_rate() {
        let limiter = Limiter::new(1);
        let begun = Instant::now();
        let at = |ms| limiter.admits(begun + Duration::from_millis(ms));
        assert_eq!([at(0), at(900), at(1001)], [true, false, true]);
    }
}
