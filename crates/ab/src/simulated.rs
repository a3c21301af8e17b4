//! Tests of the method with simulated servers whose CPU time per request is known. The simulated host becomes slower or
//! faster over time, has bursts of disturbances, and may make two processes of A differ.

use crate::AbError;
use crate::bench::{Arm, Bench, Slice};
use crate::method::{AbEvent, AbPlan, DesignChoice, Measured, measure_rounds};
use crate::outcome::{Origin, document};
use brimful_core::Nanos;
use brimful_core::ab::{AbMethod, AbRun, AbStopReason, AbTest, ControlOutcome};
use brimful_core::record::{Reason, ReasonCode};
use brimful_core::workload::{Load, Workload};
use brimful_run::{Endpoint, FleetOptions, GeneratorOptions, LoadOptions, RecordOptions, RunOptions, ServerOptions};
use brimful_stats::SliceMetrics;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;

/// A simulated host with servers A, B and the control. Differences and noise are natural logarithms (ln) of the CPU
/// time per request.
#[derive(Clone, Copy, Debug)]
struct Host {
    /// ln of the ratio of B's CPU time per request to A's. 0 means that A and B are equal.
    difference: f64,
    /// ln of the ratio of the control's CPU time per request to A's. The control is a second process of A's command.
    second_process: f64,
    /// Standard deviation of the random noise of a slice, in ln units.
    noise: f64,
    /// Standard deviation of the random change of the host's speed after each slice. The changes add up (a random
    /// walk).
    walk: f64,
    /// Constant change of the host's speed after each slice.
    drift: f64,
    /// Probability of a disturbance in a slice. A disturbance multiplies the CPU time by a factor between 1 and 2.
    disturbed: f64,
    /// Share of the noise and of the disturbances that two servers measured at the same time have in common.
    shared: f64,
    /// Whether the host has enough CPUs to measure two servers at the same time.
    can_duet: bool,
    /// Probability that a slice is not valid.
    invalid: f64,
    /// Probability that the load generator is late in a slice.
    late: f64,
}

const QUIET: Host = Host {
    difference: 0.0,
    second_process: 0.0,
    noise: 0.01,
    walk: 0.005,
    drift: 0.001,
    disturbed: 0.0,
    shared: 0.9,
    can_duet: false,
    invalid: 0.0,
    late: 0.0,
};

struct Simulated {
    host: Host,
    random: Pcg64Mcg,
    level: f64,
    slices: u64,
    b_status: &'static str,
    /// Number of slices, of all servers together, after which B's process ends.
    b_ends_after: u64,
}

impl Simulated {
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.random.random_range(0.0..1.0)).sum::<f64>() - 6.0
    }

    /// The random noise of one slice, which may include a disturbance.
    fn noise(&mut self) -> f64 {
        let disturbance =
            if self.random.random_bool(self.host.disturbed) { self.random.random_range(0.0..0.7) } else { 0.0 };
        self.host.noise * self.normal() + disturbance
    }

    fn pass_time(&mut self) {
        self.slices += 1;
        self.level += self.host.drift + self.host.walk * self.normal();
    }

    fn slice(&mut self, arm: Arm, noise: f64) -> Slice {
        let own = match arm {
            Arm::A => 0.0,
            Arm::Control => self.host.second_process,
            Arm::B => self.host.difference,
        };
        let value = 200e-6 * (self.level + own + noise).exp();
        let is_invalid = self.random.random_bool(self.host.invalid);
        let is_late = !is_invalid && self.host.late > 0.0 && self.random.random_bool(self.host.late);
        let problem = match (is_invalid, is_late) {
            (true, _) => Some((ReasonCode::GeneratorCpu, "The generator was busy. Use more threads.")),
            (_, true) => Some((ReasonCode::GeneratorLate, "The generator was late. Wait.")),
            _ => None,
        };
        let status = if arm == Arm::B { self.b_status } else { "200" };
        Slice {
            metrics: SliceMetrics::from_value("cpu", if is_invalid { value * 5.0 } else { value }),
            problem: problem.map(|(code, message)| Reason { code, message: message.to_owned() }),
            statuses: BTreeMap::from([(status.to_owned(), 1_000)]),
            bytes_per_call: 100.0,
            server_software: None,
        }
    }
}

impl Bench for Simulated {
    fn set_load(&mut self, _: Load) {}

    fn measure(&mut self, arm: Arm, _: u64) -> Result<Slice, AbError> {
        self.pass_time();
        if arm == Arm::B && self.slices > self.b_ends_after {
            let [side, name] = ["B", "new"];
            let [when, why] = [String::new(), "it has ended".to_owned()];
            return Err(AbError::NoAnswer { side, name: name.to_owned(), when, why });
        }
        let noise = self.noise();
        Ok(self.slice(arm, noise))
    }

    fn measure_duet(&mut self, arms: [Arm; 2], is_swapped: bool, _: u64) -> Result<[Slice; 2], AbError> {
        self.pass_time();
        // One half of the CPUs is 6 % faster than the other, which ln units of ±0.03 simulate.
        let place = if is_swapped { 0.03 } else { -0.03 };
        let shared = self.host.shared * self.noise();
        let own = [self.noise(), self.noise()].map(|noise| (1.0 - self.host.shared) * noise);
        Ok([self.slice(arms[0], shared + own[0] + place), self.slice(arms[1], shared + own[1] - place)])
    }

    fn duet_obstacle(&self) -> Option<String> {
        (!self.host.can_duet).then(|| "it needs 4 CPUs, and this host has 2".to_owned())
    }

    fn elapsed(&self) -> Nanos {
        Nanos::from_secs(self.slices)
    }

    fn is_interrupted(&self) -> bool {
        false
    }
}

fn plan(design: DesignChoice, until: f64, budget: u64) -> AbPlan {
    let options = RunOptions {
        server: ServerOptions {
            endpoint: Endpoint::for_server("127.0.0.1", 1, Nanos::ZERO).unwrap(),
            version: brimful_http::Version::Http11,
            headers: Vec::new(),
            tls: None,
            connections: Default::default(),
        },
        load: LoadOptions {
            workload: Workload::single_class("GET", "/"),
            trace: None,
            window: Nanos::from_secs(1),
            calls: u64::MAX,
            seed: 1,
            tick: None,
            back_off: true,
            max_redirects: None,
        },
        generator: GeneratorOptions { engine: Default::default(), threads: 1, cpus: Vec::new(), max_rate: None },
        fleet: FleetOptions::default(),
        monitor: None,
        record: RecordOptions {
            command: Vec::new(),
            labels: BTreeMap::new(),
            interval: Nanos::from_secs(1),
            secret_headers: Vec::new(),
        },
    };
    AbPlan {
        run_options: [options.clone(), options],
        names: ["./old <b>".to_owned(), "./new".to_owned()],
        design,
        load: Some(Load::Closed { clients: 1, think: Nanos::ZERO }),
        stopping_metric: None,
        target_half_width: until,
        time_limit: Nanos::from_secs(budget),
        slice_duration: Nanos::from_secs(1),
        limits: vec!["cpu:3%".parse().unwrap()],
    }
}

fn simulated(host: Host, seed: u64) -> Simulated {
    Simulated {
        host,
        random: Pcg64Mcg::seed_from_u64(seed),
        level: 0.0,
        slices: 0,
        b_status: "200",
        b_ends_after: u64::MAX,
    }
}

fn measured(host: Host, plan: &AbPlan, seed: u64) -> Measured {
    measure_rounds(plan, seed, &mut simulated(host, seed ^ 0x55), &mut |_| {}).unwrap()
}

fn tested(host: Host, plan: &AbPlan, seed: u64) -> AbTest {
    documented(plan, measured(host, plan, seed), seed)
}

fn documented(plan: &AbPlan, measured: Measured, seed: u64) -> AbTest {
    let origin = Origin {
        run: AbRun::default(),
        urls: ["http://a/".to_owned(), "http://b/".to_owned()],
        workload: Workload::single_class("GET", "/"),
        seed,
        control_is_second_process: true,
        is_same_server: false,
    };
    document(plan, measured, origin).unwrap()
}

fn interval(tested: &AbTest) -> [f64; 2] {
    tested.figures[0].interval95.unwrap()
}

/// Simulated hosts with different disturbances, by name.
fn hosts() -> [(&'static str, Host); 4] {
    [
        ("quiet", QUIET),
        ("drifting", Host { walk: 0.02, drift: 0.01, ..QUIET }),
        ("disturbed", Host { disturbed: 0.1, noise: 0.02, ..QUIET }),
        ("with invalid slices", Host { invalid: 0.1, ..QUIET }),
    ]
}

/// Between 93 % and 97 % of the intervals contain the true ratio, whether the interval's width or the time limit ends
/// the measurement. With 1,000 measurements, the standard error of this percentage is 0.7 %. The seeds are fixed.
#[test]
fn intervals_contain_the_true_ratio() {
    const REPEATS: u64 = 1_000;
    for (name, host) in hosts() {
        for (until, budget) in [(0.01, 600), (0.0001, 120)] {
            let host = Host { difference: 0.02, ..host };
            let plan = plan(DesignChoice::Interleaved, until, budget);
            let truth = 0.02_f64.exp_m1();
            let contains = |seed: &u64| {
                let [low, high] = interval(&tested(host, &plan, *seed));
                low <= truth && truth <= high
            };
            let covered = (0..REPEATS).filter(contains).count() as f64 / REPEATS as f64;
            println!("{name}, ± {until}: {covered}");
            // With frequent disturbances, the interval of a trimmed mean is too wide, so more intervals contain the
            // true ratio.
            let highest = if host.disturbed > 0.0 { 1.0 } else { 0.97 };
            assert!((0.93..=highest).contains(&covered), "{name}, ± {until}: {covered}");
        }
    }
}

/// About 5 % of the comparisons of equal servers report a difference, and about 5 % report that A differs from itself.
#[test]
fn equal_servers_and_controls_rarely_differ() {
    const REPEATS: u64 = 600;
    let plan = plan(DesignChoice::Interleaved, 0.01, 300);
    for (name, host) in hosts() {
        let all: Vec<AbTest> = (0..REPEATS).map(|seed| tested(host, &plan, seed)).collect();
        let differ = all.iter().filter(|tested| tested.figures[0].differs).count() as f64 / REPEATS as f64;
        let distrusted = all.iter().filter(|tested| tested.control.outcome == ControlOutcome::Differs).count() as f64
            / REPEATS as f64;
        println!("{name}: {differ} differ, {distrusted} are not trusted");
        // The upper bound is 5 % plus three standard errors, for 600 comparisons.
        assert!(differ <= 0.077 && distrusted <= 0.077, "{name}: {differ} and {distrusted}");
    }
}

#[test]
fn a_true_difference_of_one_percent_is_found_in_five_minutes() {
    const REPEATS: u64 = 100;
    let plan = plan(DesignChoice::Interleaved, 0.005, 300);
    let host = Host { difference: 0.01, ..QUIET };
    let found = (0..REPEATS).filter(|seed| tested(host, &plan, *seed).figures[0].differs).count();
    assert!(found >= 80, "{found}");
}

#[test]
fn a_difference_between_two_processes_of_a_is_reported() {
    let plan = plan(DesignChoice::Interleaved, 0.01, 300);
    let unequal = tested(Host { second_process: 0.05, difference: 0.02, ..QUIET }, &plan, 1);
    assert_eq!(unequal.control.outcome, ControlOutcome::Differs);
    assert!(unequal.headline.contains("cannot be trusted"), "{}", unequal.headline);
    let small = tested(Host { second_process: 0.03, difference: 0.5, ..QUIET }, &plan, 1);
    assert_eq!(small.control.outcome, ControlOutcome::Small);
    assert!(small.headline.starts_with("B uses 6") && small.headline.contains("much less"), "{}", small.headline);
    let equal = tested(Host { difference: 0.2, ..QUIET }, &plan, 3);
    assert!(equal.headline.contains("The control confirms this"), "{}", equal.headline);
    assert_eq!(equal.stopping.reason, AbStopReason::Narrow);
}

#[test]
fn the_pilot_chooses_the_method_with_the_smaller_variance() {
    let plan = plan(DesignChoice::Auto, 0.01, 600);
    let noisy = Host { noise: 0.05, can_duet: true, ..QUIET };
    let duet = measured(noisy, &plan, 1);
    let pilot = duet.pilot.unwrap();
    assert_eq!(duet.method, AbMethod::Duet);
    assert!(pilot.duet < pilot.interleaved && duet.method_reason.contains("times the variance"), "{duet:?}");
    // A negative share simulates servers that disturb each other: measured at the same time, they vary more.
    assert_eq!(measured(Host { shared: -2.0, ..noisy }, &plan, 1).method, AbMethod::Interleaved);
    let impossible = measured(Host { can_duet: false, ..noisy }, &plan, 1);
    assert!(impossible.method_reason.contains("it needs 4 CPUs"), "{}", impossible.method_reason);
    // One half of the CPUs is 6 % faster. Because the servers exchange their CPUs, the interval contains B's true
    // difference of 1 %.
    let [low, high] = interval(&tested(Host { difference: 0.01, ..noisy }, &plan, 5));
    assert!(low < 0.0101 && 0.0101 < high && high - low < 0.03, "{low} {high}");
    let wanted = AbPlan { design: DesignChoice::Duet, ..plan };
    let refused = measure_rounds(&wanted, 1, &mut simulated(QUIET, 1), &mut |_| {}).unwrap_err();
    assert!(refused.to_string().contains("a duet is not possible here: it needs 4 CPUs"), "{refused}");
}

#[test]
fn invalid_slices_are_left_out_and_too_many_make_the_result_invalid() {
    let plan = plan(DesignChoice::Interleaved, 0.01, 300);
    let some = tested(Host { invalid: 0.1, difference: 0.1, ..QUIET }, &plan, 1);
    let [low, high] = interval(&some);
    assert!(some.verdict.valid && low < 0.1052 && 0.1052 < high, "{low} {high}");
    assert!(some.a.left_out > 0 && some.warnings[0].contains("left out"), "{:?}", some.warnings);
    let most = tested(Host { invalid: 0.9, ..QUIET }, &plan, 1);
    assert!(most.headline.starts_with("NOT VALID: "), "{}", most.headline);
    assert!(!most.verdict.valid && most.verdict.reasons[0].code == ReasonCode::GeneratorCpu, "{:?}", most.verdict);
}

/// The CPU time per request is used although the load generator is late in some slices, so a busy host does not prevent
/// the comparison.
#[test]
fn the_cpu_time_of_slices_with_a_late_generator_is_used() {
    let late = Host { late: 0.9, difference: 0.1, ..QUIET };
    let tested = tested(late, &plan(DesignChoice::Interleaved, 0.01, 300), 1);
    let [low, high] = interval(&tested);
    assert!(tested.verdict.valid && low < 0.1052 && 0.1052 < high, "{low} {high}");
    assert_eq!(tested.a.left_out + tested.b.left_out, 0);
    let [warning] = &tested.warnings[..] else { panic!("{:?}", tested.warnings) };
    assert!(warning.starts_with("the generator was late in ") && warning.ends_with("CPU time per request is used"));
}

#[test]
fn a_server_that_ends_late_leaves_the_rounds_that_were_measured() {
    let plan = plan(DesignChoice::Interleaved, 0.0001, 300);
    let ended = |after: u64| {
        let mut bench = Simulated { b_ends_after: after, ..simulated(Host { difference: 0.1, ..QUIET }, 1) };
        measure_rounds(&plan, 1, &mut bench, &mut |_| {})
    };
    assert!(matches!(ended(12), Err(AbError::NoAnswer { .. })), "two rounds have no interval");
    let tested = documented(&plan, ended(60).unwrap(), 1);
    assert_eq!(
        (tested.stopping.reason, tested.verdict.reasons[0].code),
        (AbStopReason::Failed, ReasonCode::ServerDied)
    );
    let [low, high] = interval(&tested);
    assert!(low < 0.1052 && 0.1052 < high, "{low} {high}");
    assert!(tested.headline.starts_with("NOT VALID: B uses") && !tested.verdict.valid, "{}", tested.headline);
}

#[test]
fn servers_that_answer_differently_are_not_compared() {
    let mut bench = Simulated { b_status: "404", ..simulated(QUIET, 1) };
    let error = measure_rounds(&plan(DesignChoice::Auto, 0.01, 60), 1, &mut bench, &mut |_| {}).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("A 200 (100 %), B 404 (100 %)"), "{error}");
    let figure = AbPlan { stopping_metric: Some("p12".to_owned()), ..plan(DesignChoice::Auto, 0.01, 60) };
    let error = measure_rounds(&figure, 1, &mut simulated(QUIET, 1), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("these are: cpu"), "{error}");
}

#[test]
fn the_time_is_used_up_without_a_further_round_and_every_round_is_an_event() {
    let plan = plan(DesignChoice::Interleaved, 0.0001, 61);
    let mut rounds = Vec::new();
    let listener = &mut |event| {
        if let AbEvent::Round { rounds: number, .. } = event {
            rounds.push(number);
        }
    };
    let measured = measure_rounds(&plan, 1, &mut simulated(QUIET, 1), listener).unwrap();
    assert_eq!((measured.stop_reason, measured.elapsed <= plan.time_limit), (AbStopReason::OutOfTime, true));
    assert_eq!(rounds.len(), 11, "{rounds:?}");
    let few = tested(QUIET, &AbPlan { time_limit: Nanos::from_secs(20), ..plan }, 1);
    assert!(few.headline.starts_with("There are too few valid rounds"), "{}", few.headline);
    assert_eq!(few.control.outcome, ControlOutcome::NotKnown);
}
