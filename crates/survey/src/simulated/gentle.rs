//! Surveys so gentle that one client, or a few, are let at the server: what it can take is extrapolated.

use super::random::{quantile, server};
use super::*;
use brimful_model::saturation_rate;

/// How many servers.
const SERVERS: usize = 16;

#[test]
fn capacity_that_is_extrapolated_has_an_interval_as_wide_as_that_deserves() {
    // A pool that nothing fills shows in nothing.
    let bound_by_cpu = (1..).map(server).filter(|bench| bench.server.stations[1].kind == StationKind::Delay);
    let (mut held, mut widths) = (0, Vec::new());
    for (seed, mut bench) in bound_by_cpu.take(SERVERS).enumerate() {
        bench.seed = seed as u64;
        bench.max_delay = Some(Nanos::from_micros(100));
        let survey = bench.survey(&[1.0], 8.0);
        assert!(survey.stopped.is_none() && survey.saturation_rate.measured.is_none(), "{:?}", survey.stopped);
        let mut model = bench.server.clone();
        model.classes[0].rate = Some(1.0);
        let (truth, _) = saturation_rate(&model).unwrap();
        let [low, high] = survey.saturation_rate.interval90.unwrap();
        held += usize::from((low..=high).contains(&truth));
        widths.push((high - low) / 2.0 / truth);
    }
    let width = quantile(widths, 0.5);
    assert!(10 * held >= 8 * SERVERS && width < 0.4, "{held} of {SERVERS} intervals hold, half of one is {width}");
}
