//! Finds the knee of a throughput curve (the point at which it flattens) with the Kneedle algorithm.
//!
//! The algorithm (Satopää, Albrecht, Irwin & Raghavan, *Finding a "Kneedle" in a Haystack*, ICDCS Workshops 2011) is
//! for curves that rise and flatten. Both axes are scaled to 0..1. A local maximum of the curve's height above the
//! diagonal is a knee if the height then falls by the sensitivity × the mean distance between points. The paper smooths
//! the curve; this function does not, because the curve has few points, each of which is a mean. The algorithm does not
//! use queueing theory, so it is an independent check of a queueing model.

use crate::EstimateError;
use crate::usl::LoadPoint;
use brimful_core::JsonSchema;
use brimful_core::number::check_non_negative;
use serde::Serialize;

/// The point at which a throughput curve flattens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Knee {
    /// The load at the knee, which is one of the measured loads.
    pub load: f64,
    /// The throughput at the knee.
    pub throughput: f64,
    /// Height of the curve above the diagonal at the knee, with both axes scaled to 0..1.
    pub height: f64,
}

/// Finds the first knee of a throughput curve. `None` if the curve is straight or convex, or if the loads are not far
/// enough beyond a knee.
///
/// `sensitivity` is the parameter S of the Kneedle algorithm, usually 1. With a smaller S, a smaller fall after the
/// maximum is enough. If several points have the same load, their mean throughput is used.
pub fn find_knee(points: &[LoadPoint], sensitivity: f64) -> Result<Option<Knee>, EstimateError> {
    let sensitivity = check_non_negative(sensitivity, || "the sensitivity".into())?;
    let curve = means(points)?;
    let (Some(first), Some(last)) = (curve.first(), curve.last()) else { return Ok(None) };
    let lowest = curve.iter().map(|p| p.throughput).fold(f64::INFINITY, f64::min);
    let highest = curve.iter().map(|p| p.throughput).fold(0.0, f64::max);
    let (width, height) = (last.load - first.load, highest - lowest);
    if curve.len() < 3 || !width.is_normal() || !height.is_normal() {
        return Ok(None);
    }
    let above: Vec<f64> =
        curve.iter().map(|p| (p.throughput - lowest) / height - (p.load - first.load) / width).collect();
    let fall = sensitivity / (curve.len() - 1) as f64;
    let mut candidate = None;
    for i in 1..curve.len() {
        let summit = above[i] > above[i - 1] && above.get(i + 1).is_some_and(|next| above[i] >= *next);
        if summit && above[i] > 0.0 {
            candidate = Some(i);
        }
        if let Some(knee) = candidate
            && i > knee
            && above[i] < above[knee] - fall
        {
            let LoadPoint { load, throughput } = curve[knee];
            return Ok(Some(Knee { load, throughput, height: above[knee] }));
        }
    }
    Ok(None)
}

/// Mean throughput at each load, in ascending order of the load.
fn means(points: &[LoadPoint]) -> Result<Vec<LoadPoint>, EstimateError> {
    for (i, p) in points.iter().enumerate() {
        check_non_negative(p.load, || format!("the load of point {i}"))?;
        check_non_negative(p.throughput, || format!("the throughput of point {i}"))?;
    }
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.load.total_cmp(&b.load));
    let mean = |same: &[LoadPoint]| LoadPoint {
        load: same[0].load,
        throughput: same.iter().map(|p| p.throughput).sum::<f64>() / same.len() as f64,
    };
    Ok(sorted.chunk_by(|a, b| a.load == b.load).map(mean).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(loads: impl Iterator<Item = u32>, x: impl Fn(f64) -> f64) -> Vec<LoadPoint> {
        loads.map(f64::from).map(|load| LoadPoint { load, throughput: x(load) }).collect()
    }

    #[test]
    fn a_server_that_takes_60_and_no_more_bends_at_60() {
        let saturated = curve((0..=10).map(|i| 10 * i), |offered| offered.min(60.0));
        let knee = find_knee(&saturated, 1.0).unwrap().unwrap();
        assert_eq!((knee.load, knee.throughput), (60.0, 60.0));
        let collapsing = curve((0..=10).map(|i| 10 * i), |offered| offered.min(120.0 - offered));
        assert_eq!(find_knee(&collapsing, 1.0).unwrap().unwrap().load, 60.0);
    }

    #[test]
    fn the_papers_own_curve() {
        // y = −1/(x + 0.1) at ten points between 0 and 1, shifted up so that it is positive. The knee is at x = 2/9
        // (0.22 in Fig. 2 of the Kneedle paper).
        let points: Vec<LoadPoint> = (0..10)
            .map(|i| f64::from(i) / 9.0)
            .map(|x| LoadPoint { load: x, throughput: -1.0 / (x + 0.1) + 10.0 })
            .collect();
        assert!((find_knee(&points, 1.0).unwrap().unwrap().load - 2.0 / 9.0).abs() < 1e-12);
    }

    #[test]
    fn no_knee_where_there_is_none() {
        assert_eq!(find_knee(&curve(1..20, |x| 3.0 * x), 1.0), Ok(None), "a straight line has no knee");
        assert_eq!(find_knee(&curve(1..20, |x| x * x), 1.0), Ok(None), "a curve that bends up has no knee");
        assert_eq!(find_knee(&curve(1..20, |_| 7.0), 1.0), Ok(None), "a flat line has no knee");
        let barely = curve((0..=10).map(|i| 10 * i), |offered| offered.min(95.0));
        assert_eq!(find_knee(&barely, 1.0), Ok(None), "one level beyond the bend is too few at sensitivity 1");
        assert!(find_knee(&barely, 0.1).unwrap().is_some(), "one level beyond the bend suffices at sensitivity 0.1");
        assert_eq!(find_knee(&[], 1.0), Ok(None));
    }

    #[test]
    fn order_and_repeats_do_not_matter() {
        let mut points = curve((0..=10).map(|i| 10 * i), |offered| offered.min(60.0));
        let once = find_knee(&points, 1.0);
        points.extend(points.clone());
        points.reverse();
        assert_eq!(find_knee(&points, 1.0), once);
        points[0].throughput = f64::NAN;
        assert!(find_knee(&points, 1.0).is_err() && find_knee(&points[1..], -1.0).is_err());
    }
}
