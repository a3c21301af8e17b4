//! Builds the `AbTest`, the JSON document of a comparison, from the measured rounds.

use crate::AbError;
use crate::method::{AbPlan, MIN_ROUNDS, Measured};
use crate::rounds::Rounds;
use brimful_core::ab::{AbControl, AbDesign, AbRun, AbSide, AbStopReason, AbStopping, AbTest, ControlOutcome, SCHEMA};
use brimful_core::comparison::MetricComparison;
use brimful_core::quantity::{count, percent, pluralize, whole_percent};
use brimful_core::record::{Reason, Verdict};
use brimful_core::workload::Workload;
use brimful_stats::{difference_clause, half_width, paired_differences, round_differences};

/// If A and B do not differ significantly, the headline states the largest difference that the confidence interval
/// allows. Above this value, the headline states only that the difference may exceed this value.
const LARGEST_BOUND: f64 = 0.5;
/// Maximum share of invalid slices. Above it, the whole comparison is not valid.
const MAX_LEFT_OUT: f64 = 0.5;

/// The circumstances of a comparison, which its JSON document repeats.
pub(crate) struct Origin {
    /// Start time, host and command line of the comparison.
    pub run: AbRun,
    /// The URLs of A and B.
    pub urls: [String; 2],
    /// The requests that are sent to both servers.
    pub workload: Workload,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Whether the control, which should not differ from A, is a second process of A's command rather than A itself.
    pub control_is_second_process: bool,
    /// Whether A and B are the same server.
    pub is_same_server: bool,
}

/// Builds the JSON document of a comparison from its measured rounds.
pub(crate) fn document(plan: &AbPlan, measured: Measured, origin: Origin) -> Result<AbTest, AbError> {
    let figures = paired_differences(&measured.rounds.b_paired_rounds(), &measured.stopping_metric);
    let control = control(&measured, &figures);
    let main = figures.iter().find(|figure| figure.name == measured.stopping_metric).cloned();
    let verdict = verdict(&measured);
    let stopping = AbStopping {
        figure: measured.stopping_metric.clone(),
        until: plan.target_half_width,
        half_width: main.as_ref().and_then(half_width),
        reason: measured.stop_reason,
        rounds: round_differences(&measured.rounds.b_paired_rounds(), &measured.stopping_metric).len() as u64,
        elapsed_s: measured.elapsed.as_secs_f64(),
    };
    let mut warnings = measured.warnings.clone();
    warnings.extend(left_out(&measured.rounds, &measured.stopping_metric).filter(|_| verdict.valid));
    warnings.extend(late_slices(&measured.rounds, &measured.stopping_metric));
    warnings.extend(
        origin
            .is_same_server
            .then(|| "A and B are the same server, so every difference between them is a false alarm".to_owned()),
    );
    let limits = if figures.is_empty() {
        Vec::new()
    } else {
        plan.limits.iter().map(|limit| limit.judge(&figures)).collect::<Result<_, _>>()?
    };
    let [a, b] = [0, 1].map(|side| describe(plan, &measured, &origin, side));
    Ok(AbTest {
        schema: SCHEMA.to_owned(),
        headline: headline(main.as_ref(), &stopping, &control, &verdict),
        run: origin.run,
        a,
        b,
        design: AbDesign {
            method: measured.method,
            method_reason: measured.method_reason,
            pilot: measured.pilot,
            workload: Workload { load: Some(measured.load), ..origin.workload },
            slice_s: plan.slice_duration.as_secs_f64(),
            seed: origin.seed,
            control_is_second_process: origin.control_is_second_process,
        },
        stopping,
        limits,
        figures,
        control,
        verdict,
        warnings,
    })
}

fn describe(plan: &AbPlan, measured: &Measured, origin: &Origin, side: usize) -> AbSide {
    let slices = measured.rounds.pairings().flat_map(|pairing| if side == 0 { &pairing.a } else { &pairing.other });
    let (valid, invalid): (Vec<_>, Vec<_>) =
        slices.partition(|slice| slice.problem_with(&measured.stopping_metric).is_none());
    AbSide {
        name: plan.names[side].clone(),
        url: origin.urls[side].clone(),
        server_software: measured.server_software[side].clone(),
        slices: valid.len() as u64,
        left_out: invalid.len() as u64,
    }
}

/// The result of the control: whether A differs from itself in the metric that decides when the measurement ends.
fn control(measured: &Measured, figures: &[MetricComparison]) -> AbControl {
    let control = paired_differences(&measured.rounds.control_paired_rounds(), &measured.stopping_metric);
    let interval = |figures: &[MetricComparison]| {
        figures.iter().find(|figure| figure.name == measured.stopping_metric).and_then(|figure| figure.interval95)
    };
    let outcome = match (interval(&control), interval(figures)) {
        (None, _) => ControlOutcome::NotKnown,
        (Some(own), _) if contains_zero(own) => ControlOutcome::Equal,
        (Some(own), Some(difference)) if !contains_zero(difference) && nearest(difference) > farthest(own) => {
            ControlOutcome::Small
        }
        _ => ControlOutcome::Differs,
    };
    AbControl { figures: control, outcome }
}

fn contains_zero([low, high]: [f64; 2]) -> bool {
    low <= 0.0 && high >= 0.0
}

/// The larger absolute value of an interval's two ends.
fn farthest([low, high]: [f64; 2]) -> f64 {
    low.abs().max(high.abs())
}

/// The smaller absolute value of an interval's two ends.
fn nearest([low, high]: [f64; 2]) -> f64 {
    low.abs().min(high.abs())
}

/// The verdict: invalid if an error ended the measurement, or if most slices are not valid.
fn verdict(measured: &Measured) -> Verdict {
    let failure = measured.failure.iter().cloned();
    Verdict::from_reasons(failure.chain(mostly_invalid(&measured.rounds, &measured.stopping_metric)).collect())
}

/// The most common reason why slices are not valid, if more than half are not.
fn mostly_invalid(rounds: &Rounds, figure: &str) -> Option<Reason> {
    let all = rounds.slices().count();
    let problems: Vec<&Reason> = rounds.problems(figure).collect();
    let commonest =
        problems.iter().max_by_key(|reason| problems.iter().filter(|other| other.code == reason.code).count())?;
    (problems.len() as f64 > MAX_LEFT_OUT * all as f64).then(|| Reason {
        code: commonest.code,
        message: format!("{} of {} slices are not valid. One of them: {}", problems.len(), all, commonest.message),
    })
}

/// A warning with the number of invalid slices, which are not used; `None` if all slices are valid.
fn left_out(rounds: &Rounds, figure: &str) -> Option<String> {
    let number = rounds.problems(figure).count() as u64;
    let first = rounds.problems(figure).next()?;
    let what = first.message.split_once(". ").map_or(first.message.as_str(), |(what, _)| what);
    let are = if number == 1 { "is" } else { "are" };
    Some(
        format!(
            "{} {are} left out, because {are} not valid; the first: {}",
            pluralize(number, "slice"),
            what.trim_end_matches('.')
        )
        .replace("because is", "because it is")
        .replace("because are", "because they are"),
    )
}

/// A warning with the number of slices in which only the metric `figure` is valid, because the load generator was late.
fn late_slices(rounds: &Rounds, figure: &str) -> Option<String> {
    let number = rounds.late_slices(figure) as u64;
    (number > 0).then(|| {
        format!("the generator was late in {}: only their {} is used", pluralize(number, "slice"), in_words(figure))
    })
}

/// The sentences that state the result of the comparison.
fn headline(main: Option<&MetricComparison>, stopping: &AbStopping, control: &AbControl, verdict: &Verdict) -> String {
    let figure = in_words(&stopping.figure);
    if main.is_none_or(|main| main.interval95.is_none()) && !verdict.valid {
        return "NOT VALID: most slices measured the load generator or its host and not the servers, so A and B cannot be \
                compared."
            .to_owned();
    }
    let Some((main, interval)) = main.and_then(|main| Some((main, main.interval95?))) else {
        return format!(
            "There are too few valid rounds to compare A and B: {}, and {MIN_ROUNDS} are needed. Give it more time with \
             --duration.",
            count(stopping.rounds)
        );
    };
    let bound = farthest(interval);
    let result = match contains_zero(interval) {
        false => format!("{}.", difference_clause(main)),
        true if bound <= LARGEST_BOUND => {
            format!("The {figure} of B differs from that of A by at most {}.", percent(bound))
        }
        true => format!(
            "A and B cannot be distinguished by their {figure}: it could differ by more than {}.",
            whole_percent(LARGEST_BOUND)
        ),
    };
    let own = control.figures.iter().find(|figure| figure.name == stopping.figure);
    let own_interval = own.and_then(|own| own.interval95).unwrap_or_default();
    let size = percent(own.and_then(|own| own.difference).unwrap_or_default().abs());
    let control = match control.outcome {
        ControlOutcome::Equal => {
            format!(" The control confirms this: A differs from itself by at most {}.", percent(farthest(own_interval)))
        }
        ControlOutcome::Small => format!(" In the control, A differs from itself by {size}, which is much less."),
        ControlOutcome::Differs => {
            format!(" But this cannot be trusted: in the control, A differs from itself by {size}.")
        }
        ControlOutcome::NotKnown => " There is no result of the control.".to_owned(),
    };
    let narrow = match stopping.reason {
        AbStopReason::Narrow => String::new(),
        AbStopReason::OutOfTime | AbStopReason::Interrupted | AbStopReason::Failed => {
            let width = stopping.half_width.map_or(String::new(), |width| format!(" (± {})", percent(width)));
            format!(" The interval{width} is wider than the ± {} that was asked for.", percent(stopping.until))
        }
    };
    let narrow = if stopping.half_width.is_some_and(|width| width <= stopping.until) { String::new() } else { narrow };
    let valid = if verdict.valid { "" } else { "NOT VALID: " };
    format!("{valid}{result}{control}{narrow}")
}

fn in_words(figure: &str) -> String {
    match figure {
        "cpu" => "CPU time per request".to_owned(),
        "mean" => "mean response time".to_owned(),
        "errors" => "share of failed calls".to_owned(),
        other => other.to_owned(),
    }
}
