//! How long a survey takes is known at its start, within a fifth.

use super::*;

/// What was said, and what it took.
fn foreseen(bench: &mut Simulated, mix: &[f64], level_s: f64) -> (f64, f64) {
    let mut said = None;
    let survey = bench.survey_with(mix, level_s, &mut |step| {
        if let Step::Foreseen(lasts) = step {
            said = Some(lasts.as_secs_f64());
        }
    });
    assert!(survey.stopped.is_none(), "{:?}", survey.stopped);
    (said.unwrap(), bench.spent.as_secs_f64())
}

fn cpu(servers: u32) -> Station {
    Station { name: "cpu".to_owned(), servers, scheduling: Scheduling::Fcfs, scv: 0.25, ..Station::default() }
}

#[test]
fn the_length_of_a_survey_is_known_at_its_start() {
    let of_several = || Simulated::new(vec![cpu(1)], vec![vec![0.000_8, 0.001_6, 0.000_4]]);
    let gentle = || Simulated { max_delay: Some(Nanos::from_micros(100)), ..Simulated::single(cpu(1), 0.001) };
    let changed = || Simulated { change: Some(Change::Quota(0.5)), ..Simulated::single(cpu(1), 0.001) };
    let quick = || Simulated::single(cpu(1), 0.000_05);
    for (what, mut bench, mix, level_s) in [
        ("usual", Simulated::single(cpu(1), 0.001), &[1.0][..], 3.0),
        ("long levels", Simulated::single(cpu(1), 0.001), &[1.0], 20.0),
        ("short levels", Simulated::single(cpu(1), 0.001), &[1.0], 1.0),
        ("several classes", of_several(), &[0.5, 0.3, 0.2], 3.0),
        ("several CPUs", Simulated::single(cpu(4), 0.004), &[1.0], 3.0),
        ("quick", quick(), &[1.0], 3.0),
        ("slow", Simulated::single(cpu(2), 0.02), &[1.0], 10.0),
        ("gentle", gentle(), &[1.0], 3.0),
        ("with a change", changed(), &[1.0], 3.0),
    ] {
        let (said, took) = foreseen(&mut bench, mix, level_s);
        assert!((said / took - 1.0).abs() < 0.2, "{what}: {said} s were said, it took {took} s");
    }
}
