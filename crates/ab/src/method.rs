//! The comparison method, in three phases. The rehearsal, a short run against each server, determines the default load.
//! The pilot, a few rounds of each method, decides whether the servers are measured in turn or at the same time. Then
//! rounds of slices (short runs against A and B) follow until the confidence interval is narrow enough or the time is
//! used up.

use crate::AbError;
use crate::bench::{Arm, Bench, Slice, main_problem};
use crate::rounds::{Round, Rounds};
use brimful_core::ab::{AbMethod, AbPilot, AbStopReason};
use brimful_core::quantity::{self, whole_percent};
use brimful_core::record::Reason;
use brimful_core::workload::{Load, LoadKind};
use brimful_core::{Nanos, Rate};
use brimful_run::RunOptions;
use brimful_stats::{Estimate, RegressionLimit, half_width, paired_differences, round_differences};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

/// Minimum number of rounds. With fewer rounds, the confidence interval may be narrow by chance.
pub(crate) const MIN_ROUNDS: usize = 10;
/// Number of rounds that are added after the confidence interval is narrow enough, as a share of the rounds so far
/// (Simons 1968). At that moment the interval is too narrow on average, and the added rounds correct this.
const FURTHER_ROUNDS: f64 = 0.35;
/// The confidence interval is narrow enough if its half width is at most this share of the requested half width. The
/// margin is needed because the added rounds may widen the interval again.
const STOPPING_MARGIN: f64 = 0.95;
/// Number of rounds of each method (in turn, and at the same time) in the pilot, which chooses between the two.
const PILOT_ROUNDS: usize = 6;
/// Number of clients of the closed load in the rehearsal, which measures the throughput of both servers if the user
/// defines no load.
const REHEARSAL_CLIENTS: u64 = 4;
/// The default request rate, as a share of the slower server's throughput in the rehearsal. At this rate, queues are
/// short and the load generator is not the limit.
const DEFAULT_LOAD: f64 = 0.3;
/// Maximum difference between A and B in the share of responses with the same status code. Above it, A and B are not
/// compared.
const MAX_STATUS_DIFFERENCE: f64 = 0.01;
/// Maximum relative difference between the mean response lengths of A and B. Above it, the comparison has a warning.
const MAX_SIZE_DIFFERENCE: f64 = 0.02;
/// The control is measured in every round whose number is a multiple of this. The comparison of the control with A
/// needs less precision than the comparison of B with A.
const CONTROL_EVERY: u64 = 2;
/// Mean duration of a round in which the servers are measured in turn, in slices: 4 without the control, 6 with it.
const INTERLEAVED_SLICES: f64 = 5.0;
/// Mean duration of a round in which two servers are measured at the same time, in slices: 2 without the control, 4
/// with it.
const DUET_SLICES: f64 = 3.0;

/// The options of a comparison.
#[derive(Clone, Debug)]
pub struct AbPlan {
    /// The options of the runs against A, and of the runs against B. The comparison itself sets the seed and the
    /// duration.
    pub run_options: [RunOptions; 2],
    /// The URLs or commands of A and B, as the user wrote them.
    pub names: [String; 2],
    /// Whether the servers are measured in turn or at the same time.
    pub design: DesignChoice,
    /// The load during each slice. With `None`, the comparison chooses a constant request rate that both servers can
    /// serve.
    pub load: Option<Load>,
    /// Name of the metric whose confidence interval decides when the measurement ends. With `None`, the comparison
    /// chooses a metric.
    pub stopping_metric: Option<String>,
    /// Half width of the confidence interval of B/A − 1 at which the measurement ends, such as 0.01 for ± 1 %.
    pub target_half_width: f64,
    /// Time limit of the whole comparison.
    pub time_limit: Nanos,
    /// Duration of a slice, a short run against one server.
    pub slice_duration: Nanos,
    /// Limits on how much worse than A the metrics of B may be.
    pub limits: Vec<RegressionLimit>,
}

/// The user's choice: measure the servers in turn, at the same time, or as a pilot decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DesignChoice {
    /// A pilot (a few rounds of each method) decides. The method with the smaller variance is used.
    #[default]
    Auto,
    /// The servers are measured in turn.
    Interleaved,
    /// Both servers are measured at the same time, each on its own CPUs.
    Duet,
}

/// An event during a comparison, for a progress display.
#[derive(Clone, Debug, PartialEq)]
pub enum AbEvent {
    /// A message for the user, without a newline.
    Note(String),
    /// A round was measured: A and B for at least two slices (short runs) each.
    Round {
        /// Number of rounds so far.
        rounds: usize,
        /// Name of the metric that decides when the measurement ends.
        figure: String,
        /// Relative difference of the metric between B and A so far, and the half width of its confidence interval.
        /// `None` until there are enough rounds.
        difference: Option<(f64, f64)>,
        /// Time since the comparison began.
        elapsed: Nanos,
    },
}

/// The measured rounds, and how the measurement was made and ended.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// The measured slices (short runs), by round.
    pub rounds: Rounds,
    /// Name of the metric that decides when the measurement ends.
    pub stopping_metric: String,
    /// Whether the servers were measured in turn or at the same time.
    pub method: AbMethod,
    /// Why this method was used, as a clause for the report.
    pub method_reason: String,
    /// Variances of the two methods in the pilot; `None` if there was no pilot.
    pub pilot: Option<AbPilot>,
    /// The load during every slice.
    pub load: Load,
    /// Why the measurement ended.
    pub stop_reason: AbStopReason,
    /// The error that ended the measurement early, if an interval had been computed before; otherwise `None`.
    pub failure: Option<Reason>,
    /// Total duration of the comparison, including the rehearsal (which determines the load) and the pilot (which
    /// chooses the method).
    pub elapsed: Nanos,
    /// The server software that A and B report.
    pub server_software: [Option<String>; 2],
    /// Warnings about differences between the responses of A and B.
    pub warnings: Vec<String>,
}

/// Compares the servers with rehearsal, pilot and rounds. `seed` determines all random numbers and the request
/// schedules of all slices.
pub(crate) fn measure_rounds(
    plan: &AbPlan,
    seed: u64,
    bench: &mut dyn Bench,
    listener: &mut dyn FnMut(AbEvent),
) -> Result<Measured, AbError> {
    let load = match &plan.load {
        Some(load) => load.clone(),
        None => default_load(seed, bench, listener)?,
    };
    bench.set_load(load.clone());
    let a = bench.measure(Arm::A, seed)?;
    bench.measure(Arm::Control, seed)?;
    let b = bench.measure(Arm::B, seed)?;
    let warnings = check_answers(&a, &b)?;
    let figure = chosen_figure(plan.stopping_metric.as_deref(), &load, &a, &b)?;
    let mut method = Method { seed, random: Pcg64Mcg::seed_from_u64(seed), round: 0, bench };
    let (kind, method_reason, pilot) = method.choose(plan.design, &figure)?;
    listener(AbEvent::Note(format!("{}: {method_reason}", name(kind))));
    let mut rounds = Rounds::default();
    let mut last_round = usize::MAX;
    let mut longest_round = Nanos::ZERO;
    let mut failure = None;
    let mut has_interval = false;
    let reason = loop {
        let began = method.bench.elapsed();
        let round = match method.round(kind) {
            // The rounds before the error are a valid result, so the comparison returns them.
            Err(error) if has_interval => {
                failure = Some(error.reason());
                break AbStopReason::Failed;
            }
            round => round?,
        };
        let Some(round) = round else { break AbStopReason::Interrupted };
        rounds.push(round);
        let elapsed = method.bench.elapsed();
        let contrasts = rounds.b_paired_rounds();
        let main = paired_differences(&contrasts, &figure).into_iter().find(|compared| compared.name == figure);
        let width = main.as_ref().and_then(half_width);
        has_interval |= width.is_some();
        listener(AbEvent::Round {
            rounds: contrasts.len(),
            figure: figure.clone(),
            difference: main.and_then(|main| main.difference).zip(width),
            elapsed,
        });
        if contrasts.len() >= last_round {
            break AbStopReason::Narrow;
        }
        let valid = round_differences(&contrasts, &figure).len();
        let is_narrow = width.is_some_and(|width| width <= STOPPING_MARGIN * plan.target_half_width);
        if last_round == usize::MAX && valid >= MIN_ROUNDS && is_narrow {
            last_round = contrasts.len() + (FURTHER_ROUNDS * valid as f64).ceil() as usize;
        }
        longest_round = longest_round.max(elapsed - began);
        if elapsed + longest_round > plan.time_limit {
            break AbStopReason::OutOfTime;
        }
    };
    let elapsed = method.bench.elapsed();
    let server_software = [a.server_software, b.server_software];
    Ok(Measured {
        rounds,
        stopping_metric: figure,
        method: kind,
        method_reason,
        pilot,
        load,
        stop_reason: reason,
        failure,
        elapsed,
        server_software,
        warnings,
    })
}

fn name(method: AbMethod) -> &'static str {
    match method {
        AbMethod::Interleaved => "in turn",
        AbMethod::Duet => "at the same time",
    }
}

/// An open load at 30 % of the slower server's throughput, which both servers can serve.
fn default_load(seed: u64, bench: &mut dyn Bench, listener: &mut dyn FnMut(AbEvent)) -> Result<Load, AbError> {
    bench.set_load(Load::Closed { clients: REHEARSAL_CLIENTS, think: Nanos::ZERO });
    let mut slowest = f64::INFINITY;
    for arm in [Arm::A, Arm::B] {
        let slice = bench.measure(arm, seed)?;
        slowest = slowest.min(slice.metrics.value("throughput").unwrap_or(0.0));
    }
    let rate = (DEFAULT_LOAD * slowest).max(1.0).round();
    listener(AbEvent::Note(format!(
        "no load is defined: {} calls per second, {} of what the slower server takes from {REHEARSAL_CLIENTS} clients \
         (--rate, --clients)",
        quantity::number(rate),
        whole_percent(DEFAULT_LOAD)
    )));
    Ok(Load::Open { rate: Rate(rate), arrivals: "constant".to_owned() })
}

/// Fails if the status codes of A and B differ. Returns a warning if their response lengths differ.
fn check_answers(a: &Slice, b: &Slice) -> Result<Vec<String>, AbError> {
    let total = |slice: &Slice| slice.statuses.values().sum::<u64>() as f64;
    let share = |slice: &Slice, status: &str| *slice.statuses.get(status).unwrap_or(&0) as f64 / total(slice).max(1.0);
    let list = |slice: &Slice| {
        let mut shares: Vec<(&String, f64)> =
            slice.statuses.keys().map(|status| (status, share(slice, status))).collect();
        shares.sort_by(|one, other| other.1.total_cmp(&one.1));
        shares
            .iter()
            .map(|(status, share)| format!("{status} ({})", whole_percent(*share)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let differs = |status: &&String| (share(a, status) - share(b, status)).abs() > MAX_STATUS_DIFFERENCE;
    if a.statuses.keys().chain(b.statuses.keys()).any(|status| differs(&status)) {
        let message = format!(
            "A and B cannot be compared, because they answer differently: A {}, B {}; request a path that both answer alike",
            list(a),
            list(b)
        );
        return Err(AbError::NotComparable(message));
    }
    let [smaller, larger] = [a.bytes_per_call.min(b.bytes_per_call), a.bytes_per_call.max(b.bytes_per_call)];
    let differ_in_size = larger > smaller * (1.0 + MAX_SIZE_DIFFERENCE);
    Ok(differ_in_size
        .then(|| {
            let [a, b] = [a, b].map(|slice| quantity::bytes(slice.bytes_per_call));
            format!("the responses differ in length: those of A have {a} on average, with their heads, those of B {b}")
        })
        .into_iter()
        .collect())
}

/// Name of the metric that decides when the measurement ends: the user's choice (`--figure`) or a default. The default
/// is the CPU time per request if it is measured for both servers. Otherwise it is the throughput of a closed load, or
/// the median response time of an open load.
fn chosen_figure(wanted: Option<&str>, load: &Load, a: &Slice, b: &Slice) -> Result<String, AbError> {
    let both_have = |name: &str| a.metrics.value(name).is_some() && b.metrics.value(name).is_some();
    if let Some(wanted) = wanted {
        if both_have(wanted) {
            return Ok(wanted.to_owned());
        }
        let hint = if wanted == "cpu" { "; the processes of both servers must be visible on this host" } else { "" };
        let names = a.metrics.names().into_iter().filter(|name| both_have(name)).collect::<Vec<_>>().join(", ");
        return Err(AbError::NotComparable(format!(
            "--figure {wanted} is not measured here; these are: {names}{hint}"
        )));
    }
    let without_cpu = if load.kind() == LoadKind::Open { "p50" } else { "throughput" };
    Ok(if both_have("cpu") { "cpu" } else { without_cpu }.to_owned())
}

/// State of a measurement in progress.
struct Method<'a> {
    seed: u64,
    random: Pcg64Mcg,
    /// Number of rounds that have begun, including those of the pilot.
    round: u64,
    bench: &'a mut dyn Bench,
}

impl Method<'_> {
    /// Chooses whether the servers are measured in turn or at the same time. Returns the method, the reason for it, and
    /// the results of the pilot.
    fn choose(&mut self, design: DesignChoice, figure: &str) -> Result<(AbMethod, String, Option<AbPilot>), AbError> {
        let obstacle = self.bench.duet_obstacle();
        match (design, obstacle) {
            (DesignChoice::Interleaved, _) => Ok((AbMethod::Interleaved, "as requested".to_owned(), None)),
            (DesignChoice::Duet, None) => Ok((AbMethod::Duet, "as requested".to_owned(), None)),
            (DesignChoice::Duet, Some(obstacle)) => Err(AbError::NoDuet(obstacle)),
            (DesignChoice::Auto, Some(obstacle)) => {
                Ok((AbMethod::Interleaved, format!("a duet is not possible here: {obstacle}"), None))
            }
            (DesignChoice::Auto, None) => self.pilot(figure),
        }
    }

    /// Measures some rounds with each method, and chooses the method with the smaller variance in the same time.
    fn pilot(&mut self, figure: &str) -> Result<(AbMethod, String, Option<AbPilot>), AbError> {
        let mut variances = Vec::new();
        for (method, slices) in [(AbMethod::Interleaved, INTERLEAVED_SLICES), (AbMethod::Duet, DUET_SLICES)] {
            let mut contrasts = Vec::new();
            for _ in 0..PILOT_ROUNDS {
                let Some(round) = self.round(method)? else { break };
                contrasts.push(round.b_pairing.paired_round());
            }
            let differences = round_differences(&contrasts, figure);
            let error = Estimate::from_trimmed(&differences).map_or(f64::INFINITY, |mean| mean.standard_error);
            variances.push(error * error * differences.len() as f64 * slices);
        }
        let [interleaved, duet] = [variances[0], variances[1]];
        let (method, other) = if duet < interleaved {
            (AbMethod::Duet, interleaved / duet)
        } else {
            (AbMethod::Interleaved, duet / interleaved)
        };
        if !interleaved.is_finite() || !duet.is_finite() {
            let reason = "the pilot had too few valid slices to choose a method";
            return Ok((AbMethod::Interleaved, reason.to_owned(), None));
        }
        let reason = format!(
            "in the pilot, the other way had {} times the variance of ln(B/A) in the same time",
            quantity::three_digits(other)
        );
        Ok((method, reason, Some(AbPilot { interleaved, duet })))
    }

    /// Measures one round. Returns `None` if the user has interrupted the comparison.
    fn round(&mut self, method: AbMethod) -> Result<Option<Round>, AbError> {
        let seed = self.seed.wrapping_add(self.round);
        let has_control = self.round.is_multiple_of(CONTROL_EVERY);
        self.round += 1;
        match method {
            AbMethod::Interleaved => self.interleaved_round(seed, has_control),
            AbMethod::Duet => self.duet_round(seed, has_control),
        }
    }

    /// Measures the servers in turn: in random order, and then in reverse order. B is compared only with the slices of
    /// A, not also with those of the control. Otherwise the numbers of slices would be unequal, and disturbances would
    /// bias the difference.
    fn interleaved_round(&mut self, seed: u64, has_control: bool) -> Result<Option<Round>, AbError> {
        let mut order = vec![Arm::A, Arm::B];
        order.extend(has_control.then_some(Arm::Control));
        order.shuffle(&mut self.random);
        let reversed: Vec<Arm> = order.iter().rev().copied().collect();
        let mut round = Round::default();
        for arm in order.into_iter().chain(reversed) {
            let slice = self.bench.measure(arm, seed)?;
            if self.bench.is_interrupted() {
                return Ok(None);
            }
            match arm {
                Arm::A => {
                    round.b_pairing.a.push(slice.clone());
                    round.control_pairing.a.push(slice);
                }
                Arm::Control => round.control_pairing.other.push(slice),
                Arm::B => round.b_pairing.other.push(slice),
            }
        }
        Ok(Some(round))
    }

    fn duet_round(&mut self, seed: u64, has_control: bool) -> Result<Option<Round>, AbError> {
        let mut order = vec![(Arm::B, false), (Arm::B, true)];
        order.extend(has_control.then_some([(Arm::Control, false), (Arm::Control, true)]).into_iter().flatten());
        order.shuffle(&mut self.random);
        let mut round = Round::default();
        for (arm, is_swapped) in order {
            let [a, other] = self.bench.measure_duet([Arm::A, arm], is_swapped, seed)?;
            if self.bench.is_interrupted() {
                return Ok(None);
            }
            // A disturbance of one of two simultaneous slices may affect the other, so both or neither are used.
            let pairing = if arm == Arm::B { &mut round.b_pairing } else { &mut round.control_pairing };
            let problem = main_problem(a.problem.iter().chain(&other.problem)).cloned();
            pairing.a.push(Slice { problem: problem.clone(), ..a });
            pairing.other.push(Slice { problem, ..other });
        }
        Ok(Some(round))
    }
}
