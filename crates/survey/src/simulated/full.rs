//! Tests that the survey finds the bottleneck, and predicts the capacity from it.

use super::*;

fn evidence_starts_with(survey: &Survey, text: &str) {
    let evidence = survey.bottleneck_evidence.as_deref().unwrap_or_default();
    assert!(evidence.starts_with(text), "{evidence}");
}

/// Expects that fully used CPUs are reported as saturated although the throughput still grows with the number of
/// clients: with 32 clients or more, calls on this server cost less.
#[test]
fn a_cpu_that_is_busy_is_full_although_throughput_grows() {
    let mut bench = Simulated::single_class(cpu(1), 0.001);
    bench.under_load = Box::new(|model, _| {
        let many = model.classes[0].population.is_some_and(|clients| clients >= 32);
        model.demands[0][0] *= if many { 0.7 } else { 1.0 };
    });
    let survey = has_its_capacity_predicted(&mut bench, "cpu");
    assert!(
        survey.levels.iter().any(|level| level.role == brimful_core::survey::LevelPurpose::PastSaturation),
        "the capacity was measured"
    );
}

#[test]
fn a_backend_of_one_place() {
    let mut bench = Simulated::new(vec![cpu(1), queue("database", 1)], vec![vec![0.001], vec![0.001_25]]);
    let survey = has_its_capacity_predicted(&mut bench, "lock or backend");
    evidence_starts_with(
        &survey,
        "one call at a time, by elimination, or the only worker of server; with 32 clients at once, the CPUs",
    );
    // In the model, the backend is a second station, in addition to the CPUs.
    let held = survey.demands.iter().find(|demand| demand.station == "lock or backend").unwrap();
    assert!((held.seconds / 0.001_25 - 1.0).abs() < 0.03, "{held:?}");
}

#[test]
fn a_backend_of_several_places() {
    let mut bench = Simulated::new(vec![cpu(1), queue("database", 4)], vec![vec![0.000_2], vec![0.005]]);
    bench.programs = vec![("server", 1.0, 20)];
    let survey = has_its_capacity_predicted(&mut bench, "backend pool");
    evidence_starts_with(&survey, "4 calls at a time, by elimination; ");
    assert_eq!(survey.model.stations[1].servers, 4);
}

#[test]
fn workers_by_their_number() {
    let mut bench = Simulated::new(vec![cpu(1), queue("children", 8)], vec![vec![0.000_2], vec![0.02]]);
    bench.programs = vec![("nginx", 0.1, 3), ("php-fpm8.2", 0.9, 9)];
    let survey = has_its_capacity_predicted(&mut bench, "workers");
    evidence_starts_with(
        &survey,
        "8 at a time, as many as php-fpm8.2 has processes beside one that would be their master; ",
    );
    assert_eq!(survey.model.stations[0].servers, 8);
}

/// Expects that the evidence for the bottleneck names the number of threads, although the server has two more threads
/// than workers: a main thread and a thread for signals.
#[test]
fn threads_that_sleep() {
    let mut bench = Simulated::new(vec![cpu(1), queue("sleep", 16)], vec![vec![0.000_2], vec![0.008]]);
    bench.programs = vec![("server", 1.0, 1)];
    bench.more_threads = 17;
    let survey = has_its_capacity_predicted(&mut bench, "workers");
    assert!(survey.bottleneck_evidence.unwrap().contains(" at a time, as many as "));
}

/// Expects that the evidence for the bottleneck names the number of workers that the Server Module reports, which
/// differs from the number of processes.
#[test]
fn workers_by_the_servers_own_count() {
    let mut bench = Simulated::new(vec![cpu(1), queue("children", 8)], vec![vec![0.000_2], vec![0.02]]);
    bench.programs = vec![("apache2", 1.0, 40)];
    bench.module = Some(SimulatedModule { outside_s: 0.000_05, workers: Some(1) });
    let survey = has_its_capacity_predicted(&mut bench, "workers");
    let evidence = survey.bottleneck_evidence.as_deref().unwrap_or_default();
    assert!(evidence.contains(" of 8 workers busy, as the server itself counts them; "), "{evidence}");
    assert_eq!(survey.model.stations[0].servers, 8);
}

#[test]
fn fewer_workers_than_cpus() {
    let mut bench = Simulated::single_class(cpu(1), 0.001);
    bench.cpus = 2;
    let survey = has_its_capacity_predicted(&mut bench, "workers");
    evidence_starts_with(&survey, "one call at a time, on a CPU all the time: a single thread, or a lock");
}

#[test]
fn a_quota_that_is_used_up_leaves_the_cpus_no_more() {
    let mut bench = Simulated::single_class(cpu(1), 0.001);
    bench.cpus = 2;
    bench.throttled = Box::new(|rate| if rate.is_infinite() { 0.4 } else { 0.0 });
    let survey = has_its_capacity_predicted(&mut bench, "cpu");
    assert!(survey.bottleneck_evidence.unwrap().ends_with("all that the quota of 0.500 CPUs leaves server"));
}

#[test]
fn a_disk() {
    let mut bench = Simulated::new(vec![cpu(1), queue("disk sda", 1)], vec![vec![0.001], vec![0.004]]);
    let survey = has_its_capacity_predicted(&mut bench, "disk sda");
    let held = survey.demands.iter().find(|demand| demand.station == "disk sda").unwrap();
    assert!((held.seconds / 0.004 - 1.0).abs() < 0.03, "{held:?}");
}

/// Expects different service demands of the two classes at the disk. They are measured with loads of a single class.
#[test]
fn a_disk_that_one_class_uses_more() {
    let mut bench = Simulated::new(vec![cpu(1), queue("disk sda", 1)], vec![vec![0.001, 0.001], vec![0.002, 0.006]]);
    let survey = bench.survey(&[0.5, 0.5], 20.0);
    let held: Vec<f64> = survey.demands[2..].iter().map(|demand| demand.seconds).collect();
    assert!((held[0] / 0.002 - 1.0).abs() < 0.05 && (held[1] / 0.006 - 1.0).abs() < 0.05, "{held:?}");
}

#[test]
fn cpu_time_is_divided_among_programs() {
    let mut bench = Simulated::single_class(cpu(1), 0.001);
    bench.programs = vec![("nginx", 0.2, 2), ("php-fpm8.2", 0.8, 9)];
    let survey = has_its_capacity_predicted(&mut bench, "cpu");
    evidence_starts_with(&survey, "100 % busy with 32 clients at once");
    let [php, nginx] = &survey.programs[..] else { panic!("{:?}", survey.programs) };
    assert_eq!((php.name.as_str(), php.processes, nginx.name.as_str()), ("php-fpm8.2", 9, "nginx"));
    assert!((php.share - 0.8).abs() < 1e-6 && (php.demand_s / 0.000_8 - 1.0).abs() < 0.03, "{php:?}");
    let half_width = nginx.ci95_half_width.unwrap();
    assert!((nginx.demand_s - 0.000_2).abs() < 2.0 * half_width && half_width < 0.000_02, "{nginx:?}");
}

#[test]
fn a_black_box_has_its_capacity_and_response_times_predicted() {
    let mut bench = Simulated::single_class(Station { scv: 0.5, ..cpu(1) }, 0.001);
    bench.is_black_box = true;
    let survey = bench.survey(&[1.0], 20.0);
    assert!(survey.saturation_rate.error.unwrap().abs() < 0.03, "{:?}", survey.saturation_rate);
    assert_eq!((survey.bottleneck.as_deref(), &*survey.demands[0].station), (Some("server"), "server"));
    assert!(survey.levels.iter().all(|level| level.utilization.measured.is_none() && level.cpu.is_none()));
}
