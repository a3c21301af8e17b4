//! Stages: in each stage, the rate changes linearly from one value to another.

use super::rate_segment::RateSegment;
use crate::ArrivalsError;
use brimful_core::Rate;
use brimful_core::workload::Stage;

/// The linear pieces of the rate curve for these stages. The first stage starts at the rate `start`.
pub(super) fn curve(start: Rate, stages: &[Stage]) -> Result<std::vec::IntoIter<RateSegment>, ArrivalsError> {
    let mut from = start.0;
    let mut piece = |stage: &Stage| {
        let piece = RateSegment { length_s: stage.length_s, start_rate: from, end_rate: stage.rate };
        from = piece.end_rate;
        piece
    };
    let pieces: Vec<RateSegment> = stages.iter().map(&mut piece).collect();
    if pieces.iter().all(|piece| piece.area() == 0.0) {
        return Err(ArrivalsError::EmptyStages);
    }
    Ok(pieces.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrivalProcess, Arrivals};
    use brimful_core::Nanos;
    use proptest::prelude::*;

    fn stage(text: &str) -> Stage {
        text.parse().unwrap()
    }

    fn even(start: f64, stages: &[Stage]) -> Vec<f64> {
        Arrivals::stages(ArrivalProcess::Constant, Rate(start), stages, 0).unwrap().map(Nanos::as_secs_f64).collect()
    }

    #[test]
    fn a_ramp_from_nothing_follows_its_parabola() {
        // The rate rises to 10/s within 20 s, so the area after t seconds is t²/4, and call k is due at √(4k) s.
        let due = even(0.0, &[stage("20s:10")]);
        assert_eq!(due.len(), 100);
        for (k, due) in due.iter().enumerate() {
            assert!((due - (4.0 * k as f64).sqrt()).abs() < 1e-9, "call {k} at {due}");
        }
    }

    #[test]
    fn rates_rise_stay_jump_pause_and_fall() {
        let stages = ["2s:10", "3s:10", "0s:100", "1s:100", "0s:0", "5s:0", "0s:10", "2s:0"].map(stage);
        let due = even(0.0, &stages);
        let count = |from: f64, to: f64| due.iter().filter(|due| (from..to).contains(*due)).count();
        assert_eq!([count(0.0, 2.0), count(2.0, 5.0), count(5.0, 6.0), count(6.0, 11.0)], [10, 30, 100, 0]);
        assert_eq!(due[140], 11.0);
        assert_eq!((count(11.0, 13.0), due.len()), (10, 150));
        assert_eq!(Stage::total_duration(&stages), Nanos::from_secs(13));
    }

    #[test]
    fn stages_of_other_processes_or_of_nothing_are_refused() {
        let bursts = "onoff:2,10%".parse().unwrap();
        assert!(matches!(
            Arrivals::stages(bursts, Rate(0.0), &[stage("1s:1")], 0),
            Err(ArrivalsError::StagesWithProcess(_))
        ));
        for stages in [&[][..], &[stage("9s:0")], &[stage("0s:9")]] {
            let refused = Arrivals::stages(ArrivalProcess::Constant, Rate(0.0), stages, 0);
            assert_eq!(refused.unwrap_err(), ArrivalsError::EmptyStages);
        }
    }

    proptest! {
        /// For any stages, expects that the area under the rate curve up to the due time of call k is k, and that no
        /// call is missing.
        #[test]
        fn areas_are_kept(
            start in 0.0..500.0,
            stages in prop::collection::vec((0u64..5_000, prop_oneof![Just(0.0), 0.0..500.0, Just(250.0)]), 1..8),
        ) {
            let stages: Vec<Stage> = stages
                .into_iter()
                .map(|(ms, rate)| Stage { length_s: ms as f64 / 1e3, rate })
                .collect();
            let area_at = |t: f64| {
                let (mut from, mut at, mut area) = (start, 0.0, 0.0);
                for stage in &stages {
                    let length = stage.length_s;
                    let share = ((t - at) / length).clamp(0.0, 1.0);
                    if length > 0.0 {
                        area += share * length * (from + from + (stage.rate - from) * share) / 2.0;
                    }
                    at += length;
                    from = stage.rate;
                }
                area
            };
            let all = area_at(f64::INFINITY);
            prop_assume!(all > 0.0);
            let due = even(start, &stages);
            // If the area of all stages is close to a whole number, rounding decides whether the last call is due
            // before the end. So the number of calls may be off by one.
            let close_to_whole = (all - all.round()).abs() < 1e-6;
            prop_assert!((due.len() as f64 - all.ceil()).abs() <= f64::from(close_to_whole));
            for (k, due) in due.iter().enumerate() {
                // Due times are rounded by up to half a nanosecond, and there are at most 500 calls per second.
                prop_assert!((area_at(*due) - k as f64).abs() < 1e-6, "call {} at {}", k, due);
            }
        }
    }
}
