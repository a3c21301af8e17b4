//! Tests that the seed of a survey determines the arrivals of its loads.

use super::*;

/// A server on which calls cost twice the CPU time during the first `slow` loads, like a server with a just-in-time
/// compiler or an empty cache.
fn slow_at_first(slow: usize) -> Simulated {
    let mut bench = Simulated::single_class(Station { scv: 0.25, ..cpu(1) }, 0.001);
    let loads = std::cell::Cell::new(0);
    bench.under_load = Box::new(move |model, _| {
        loads.set(loads.get() + 1);
        if loads.get() <= slow {
            model.demands[0].iter_mut().for_each(|demand| *demand *= 2.0);
        }
    });
    bench
}

/// Expects that the number of loads in the warm-up, which depends on the server, does not change the seeds of later
/// loads.
#[test]
fn a_longer_warm_up_does_not_change_the_later_schedules() {
    let [quickly_warm, slowly_warm] = [0, 3].map(|slow| {
        let mut bench = slow_at_first(slow);
        bench.survey(&[1.0], 3.0);
        bench
    });
    let runs = |bench: &Simulated| bench.offered.borrow().len();
    assert_ne!(runs(&quickly_warm), runs(&slowly_warm), "both warm-ups have the same number of slices");
    let calibration = |bench: &Simulated| {
        let is_open = |load: &Load| matches!(load, Load::Open { .. });
        let first_level = bench.offered.borrow().iter().position(is_open).unwrap();
        bench.seeds[first_level..].to_vec()
    };
    assert_eq!(calibration(&quickly_warm), calibration(&slowly_warm));
}
