//! The speed of a station, and its work.

use brimful_core::model::Station;

/// Maximum speed of a queue with many requests present, relative to the speed with one request.
pub(crate) fn max_speed(station: &Station) -> f64 {
    station.rate_multipliers.last().copied().unwrap_or_else(|| f64::from(station.servers))
}

/// The products of the elements of two lists, such as demands and rates.
pub(crate) fn products(a: &[f64], b: &[f64]) -> impl Iterator<Item = f64> {
    a.iter().zip(b).map(|(a, b)| a * b)
}
