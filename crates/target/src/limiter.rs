//! A limit on the rate of requests, as by nginx's limit_req or a gateway: a token bucket. Those above it are answered
//! 429 at once.

use crate::desk::lock;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long nobody needs to have asked for the bucket to be full. It holds one token at least.
const FULL_AFTER: Duration = Duration::from_millis(100);

/// So many requests a second.
#[derive(Debug)]
pub(crate) struct Limiter {
    per_s: f64,
    state: Mutex<(f64, Option<Instant>)>,
}

impl Limiter {
    pub(crate) fn new(per_s: u32) -> Limiter {
        Limiter { per_s: f64::from(per_s), state: Mutex::default() }
    }

    /// Whether a request that comes now is served.
    pub(crate) fn admits(&self, now: Instant) -> bool {
        let most = (self.per_s * FULL_AFTER.as_secs_f64()).max(1.0);
        let mut state = lock(&self.state);
        let (tokens, last) = *state;
        let since = last.map_or(Duration::from_secs(1), |last| now.saturating_duration_since(last));
        let tokens = (tokens + self.per_s * since.as_secs_f64()).min(most);
        let admitted = tokens >= 1.0;
        *state = (if admitted { tokens - 1.0 } else { tokens }, Some(now));
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_a_second_and_a_tenth_of_them_at_once() {
        let limiter = Limiter::new(100);
        let begun = Instant::now();
        let at = |ms| (0..20).filter(|_| limiter.admits(begun + Duration::from_millis(ms))).count();
        assert_eq!([at(0), at(0), at(55), at(1000)], [10, 0, 5, 10]);
        let second = (0..1000).filter(|ms| limiter.admits(begun + Duration::from_millis(2000 + ms))).count();
        assert!((109..=110).contains(&second), "{second}");
    }

    #[test]
    fn the_slowest_serves_one_a_second() {
        let limiter = Limiter::new(1);
        let begun = Instant::now();
        let at = |ms| limiter.admits(begun + Duration::from_millis(ms));
        assert_eq!([at(0), at(900), at(1001)], [true, false, true]);
    }
}
