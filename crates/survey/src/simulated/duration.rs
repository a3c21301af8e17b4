//! Tests that the duration of a survey, which is estimated at its start, has an error of less than 20 %.

use super::*;

/// The estimated and the simulated duration of a survey, in seconds.
fn durations(bench: &mut Simulated, mix: &[f64], level_s: f64) -> (f64, f64) {
    let mut estimated = None;
    let survey = bench.survey_with(mix, level_s, &mut |step| {
        if let SurveyEvent::EstimatedDuration(duration) = step {
            estimated = Some(duration.as_secs_f64());
        }
    });
    assert!(survey.stopped.is_none(), "{:?}", survey.stopped);
    (estimated.unwrap(), bench.spent.as_secs_f64())
}

fn cpu(servers: u32) -> Station {
    Station { name: "cpu".to_owned(), servers, scheduling: Scheduling::Fcfs, scv: 0.25, ..Station::default() }
}

#[test]
fn the_estimated_duration_is_close() {
    let several_classes = || Simulated::new(vec![cpu(1)], vec![vec![0.000_8, 0.001_6, 0.000_4]]);
    let gentle = || Simulated { max_delay: Some(Nanos::from_micros(100)), ..Simulated::single_class(cpu(1), 0.001) };
    let changed = || Simulated { change: Some(Change::Quota(0.5)), ..Simulated::single_class(cpu(1), 0.001) };
    let quick = || Simulated::single_class(cpu(1), 0.000_05);
    for (what, mut bench, mix, level_s) in [
        ("usual", Simulated::single_class(cpu(1), 0.001), &[1.0][..], 3.0),
        ("long levels", Simulated::single_class(cpu(1), 0.001), &[1.0], 20.0),
        ("short levels", Simulated::single_class(cpu(1), 0.001), &[1.0], 1.0),
        ("several classes", several_classes(), &[0.5, 0.3, 0.2], 3.0),
        ("several CPUs", Simulated::single_class(cpu(4), 0.004), &[1.0], 3.0),
        ("quick", quick(), &[1.0], 3.0),
        ("slow", Simulated::single_class(cpu(2), 0.02), &[1.0], 10.0),
        ("gentle", gentle(), &[1.0], 3.0),
        ("with a change", changed(), &[1.0], 3.0),
    ] {
        let (estimated, real) = durations(&mut bench, mix, level_s);
        assert!((estimated / real - 1.0).abs() < 0.2, "{what}: {estimated} s were estimated, it took {real} s");
    }
}
