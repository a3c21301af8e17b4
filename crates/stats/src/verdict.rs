//! Judges whether a run measured the server or the load generator. In case of doubt, the run is marked invalid, because
//! wrong numbers are worse than none. Whether the server worked is a separate question: if the generator kept up with
//! the load, the measurements of a failing server are valid.
//!
//! The first sentence of each message says what happened. The other sentences say what to do next.

use crate::thresholds::{
    MAX_BUSY_SHARE, MAX_CLIENT_RATIO, MAX_LATENESS_SHARE, MAX_OPEN_LATENESS, MAX_STALL_SHARE, MIN_CAUSE_SHARE,
    TOLERATED_LATENESS, TOLERATED_STALL_S,
};
use crate::{limited, parts};
use brimful_core::Nanos;
use brimful_core::account::HostLimitedCalls;
use brimful_core::counts::Counts;
use brimful_core::quantity::{count, rate, whole_percent};
use brimful_core::record::{ClassRecord, Generator, Reason, ReasonCode, ShardOrigin, Summary, Verdict};
use brimful_core::workload::LoadKind;
use std::collections::BTreeMap;

/// The advice of a message if the generator's host did not withhold CPU time.
const LESS_LOAD: &str = "Lower --rate or --clients, give the generator more --threads, or keep it off the server's CPUs \
                         with --cpus";

/// The data from which a run's verdict is computed.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Counts and times of the calls of all classes together.
    pub totals: &'a ClassRecord,
    /// Number of completed calls that were answered with status 5xx or 429. Classes for which the workload expects
    /// particular statuses are left out.
    pub error_answers: u64,
    /// Counts and times of the calls of each class.
    pub classes: &'a BTreeMap<String, ClassRecord>,
    /// Outcomes of the requests that followed redirects, which belong to no class; `None` if the run does not follow
    /// redirects.
    pub followed: Option<Counts>,
    /// Number of calls due per second. For S-Clients, it is the number of connection attempts per second, because each
    /// of their calls begins with an attempt.
    pub offered: f64,
    /// Calls that failed because the generator's host lacked a resource, by resource.
    pub limited: HostLimitedCalls,
    /// Length of the window in which load was offered.
    pub window: Nanos,
    /// Resources that the load used on the generator's host, and the CPU time that the host withheld from the
    /// generator.
    pub generator: &'a Generator,
    /// Time from the start of the run to the end of the last call.
    pub duration: Nanos,
    /// Whether the load was open, closed, or made by S-Clients (which abandon connection attempts after a timeout).
    pub load: LoadKind,
    /// Whether the user ended the run early.
    pub interrupted: bool,
    /// Whether a condition that the user set ended the run early.
    pub stopped: bool,
    /// The shards of the load; empty if the load was not split.
    pub shards: &'a [ShardOrigin],
}

/// Judges a run. If the generator's host lacked a resource for any call, the run is invalid. An interruption makes a
/// run invalid only if no call was completed. Otherwise, the completed calls are valid measurements of a shorter run.
/// Failures of the server never make a run invalid.
pub fn judge(evidence: &Evidence<'_>) -> Verdict {
    let reason = |code, message| Reason { code, message };
    let counts = &evidence.totals.counts;
    let reasons = [
        panicked(evidence.generator).map(|message| reason(ReasonCode::GeneratorPanicked, message)),
        unbalanced(evidence).map(|message| reason(ReasonCode::Unbalanced, message)),
        late(evidence).map(|message| reason(ReasonCode::GeneratorLate, message)),
        stalled(evidence).map(|message| reason(ReasonCode::GeneratorStalled, message)),
        busy(evidence).map(|message| reason(ReasonCode::GeneratorCpu, message)),
        beyond_client_max(evidence).map(|message| reason(ReasonCode::BeyondClientMax, message)),
    ];
    let mut reasons: Vec<Reason> = reasons.into_iter().flatten().collect();
    reasons.extend(limited::reasons(evidence.limited, counts.scheduled, evidence.generator));
    if evidence.interrupted && counts.completed == 0 {
        let message = "The run was interrupted before any call was completed. Let it run longer.";
        reasons.push(reason(ReasonCode::Interrupted, message.to_owned()));
    }
    let missing = parts::missing(evidence.shards, evidence.window);
    reasons.extend(missing.map(|message| reason(ReasonCode::ShardLost, message)));
    reasons.extend(parts::doubts(evidence.shards, &reasons));
    Verdict {
        failing: Some(failing(counts, evidence.load)),
        error_share: counts.share_of_calls(counts.errors() + evidence.error_answers),
        error_answers: evidence.error_answers,
        ..Verdict::from_reasons(reasons)
    }
}

/// Whether more calls failed than were completed. Calls that failed because the generator's host lacked a resource are
/// not failures of the server. S-Clients abandon connection attempts by design, so abandoned attempts count only if no
/// call was completed.
fn failing(counts: &Counts, load: LoadKind) -> bool {
    let failed = counts.errors() - counts.client_limited;
    let by_design = if load == LoadKind::SClients { counts.abandoned } else { 0 };
    failed - by_design > counts.completed || (failed > 0 && counts.completed == 0)
}

/// A message if threads of the generator panicked, because their share of the load was missing from then on.
fn panicked(generator: &Generator) -> Option<String> {
    let first = generator.panics.first()?;
    let [ended, all] = [generator.panics.len() as u64, generator.threads].map(count);
    Some(format!(
        "{ended} of the generator's {all} threads ended early, and their part of the load with them: \"{first}\". This is a \
         defect of brimful: please report it with this Record.",
    ))
}

/// A message if the counts violate a conservation law: every scheduled call ends exactly once, and every sent call has
/// an outcome.
fn unbalanced(evidence: &Evidence<'_>) -> Option<String> {
    let followed = evidence.followed.as_ref().map(|counts| ("redirects", counts));
    let classes = evidence.classes.iter().map(|(name, class)| (name.as_str(), &class.counts));
    let (name, counts) = classes.chain(followed).find(|(_, counts)| counts.imbalance() != (0, 0))?;
    let Counts { scheduled, sent, .. } = *counts;
    let (scheduled_less_ended, sent_less_ended) = counts.imbalance();
    Some(format!(
        "The calls of class `{name}` do not add up: {scheduled} were scheduled and {} are accounted for, {sent} were sent \
         and {} of those are accounted for. This is a defect of brimful: do not use these figures, and report it with \
         this Record.",
        scheduled as i64 - scheduled_less_ended,
        sent as i64 - sent_less_ended,
    ))
}

/// A message if the generator began calls too late after they were due, or did not begin some of them.
fn late(evidence: &Evidence<'_>) -> Option<String> {
    let what = match (left_over(evidence), begun_late(evidence)) {
        (None, None) => return None,
        (Some(left_over), None) => left_over,
        (None, Some(late)) => format!("The generator began {late}"),
        (Some(left_over), Some(late)) => format!("{left_over}, and it began {late}"),
    };
    Some(explained(what, evidence, LESS_LOAD))
}

/// A clause about calls that were due inside the window but that the generator did not begin.
fn left_over(evidence: &Evidence<'_>) -> Option<String> {
    let Counts { unsent_at_end, scheduled, .. } = evidence.totals.counts;
    let lost = evidence.shards.iter().any(|shard| shard.lost_at_s.is_some());
    let expected = evidence.interrupted || evidence.stopped || lost || evidence.load != LoadKind::Open;
    let [unsent, all] = [unsent_at_end, scheduled].map(count);
    (!expected && unsent_at_end > 0)
        .then(|| format!("The generator fell so far behind that {unsent} of {all} calls were never begun"))
}

/// A clause about calls that began late, if their lateness matters. Lateness is judged by class, because the same
/// lateness may be negligible for a heavy class and dominate the response time of a light class.
fn begun_late(evidence: &Evidence<'_>) -> Option<String> {
    let several = evidence.classes.len() > 1;
    let classes = evidence.classes.iter().map(|(name, class)| (several.then_some(name), class));
    let distorted = classes
        .chain([(None, evidence.totals)])
        .filter_map(|(name, calls)| Some((lateness_within_response(calls)?, name, calls)))
        .max_by(|(a, ..), (b, ..)| a.total_cmp(b));
    let time = |us| nanos(us).to_rounded_string();
    let how_late =
        |l: &Summary| format!("{} late on average, one in a hundred more than {}", time(l.mean), time(l.p99));
    if let Some((_, name, ClassRecord { response_time_us: Some(response), lateness_us: Some(lateness), .. })) =
        distorted
    {
        let (of_class, its) = match name {
            Some(name) => (format!(" of class `{name}`"), "their"),
            None => (String::new(), "the"),
        };
        let late = how_late(lateness);
        return Some(format!(
            "calls{of_class} {late}; {its} mean response time of {} includes lateness",
            time(response.mean)
        ));
    }
    let lateness = evidence.totals.lateness_us.as_ref()?;
    let behind = evidence.load == LoadKind::Open && nanos(lateness.p99) > MAX_OPEN_LATENESS;
    behind.then(|| format!("calls {}", how_late(lateness)))
}

/// Mean lateness of the calls as a share of their mean response time; `None` if the lateness is acceptable, or if one
/// of the times is not known.
fn lateness_within_response(calls: &ClassRecord) -> Option<f64> {
    let (lateness, response) = (calls.lateness_us?, calls.response_time_us?);
    let too_much = nanos(lateness.p99) > TOLERATED_LATENESS && lateness.mean > MAX_LATENESS_SHARE * response.mean;
    too_much.then(|| lateness.mean / response.mean)
}

fn nanos(us: f64) -> Nanos {
    Nanos::from_secs_f64(us / 1e6)
}

/// A message if the generator's busiest thread had almost no idle time.
fn busy(evidence: &Evidence<'_>) -> Option<String> {
    let busy = evidence.generator.busy;
    let what = format!(
        "The generator's busiest thread had work {} of the time, so it may have been the limit and not the server",
        whole_percent(busy)
    );
    (busy > MAX_BUSY_SHARE).then(|| explained(what, evidence, LESS_LOAD))
}

/// Completes the message `what`. If the generator's host withheld CPU time, adds the amount and the remedy. Otherwise
/// adds the advice `otherwise`.
fn explained(what: String, evidence: &Evidence<'_>, otherwise: &str) -> String {
    match largest_loss_to_host(evidence) {
        Some((cause, remedy)) => format!("{what}; {cause}. {remedy}."),
        None => format!("{what}. {otherwise}."),
    }
}

/// The cause that withheld the most CPU time from the generator (such as steal or a quota), and its remedy; `None` if
/// no cause matters.
fn largest_loss_to_host(evidence: &Evidence<'_>) -> Option<(String, &'static str)> {
    let host = evidence.generator.host;
    let duration = evidence.duration.as_secs_f64();
    let time = |seconds: f64| Nanos::from_secs_f64(seconds).to_rounded_string();
    let share = |seconds: f64| if duration > 0.0 { seconds / duration } else { 0.0 };
    // The kernel also counts a thread that a quota has stopped as waiting for a CPU. If both times are equal, the quota
    // is the cause: `max_by` returns the last of equal values, so the quota must be last.
    let losses = [
        host.steal.map(|steal| {
            let cause = format!("the hypervisor gave {} of its CPUs' time to other guests", whole_percent(steal));
            (steal, cause, "Run it where CPUs are not shared with other guests, or at a quieter time")
        }),
        host.cpu_wait_s.map(|wait| {
            let cause = format!("a thread of it waited {} of {} for a CPU that something else had", time(wait), time(duration));
            let remedy = "Stop what else runs on its CPUs (`top` shows it), keep the server off them with --cpus, or use \
                          fewer --threads";
            (share(wait), cause, remedy)
        }),
        host.throttled_s.map(|throttled| {
            let cause = format!("a CPU quota stopped it for {} of {}", time(throttled), time(duration));
            let remedy = "Raise the quota (`cpu.max` of its control group, the CPU limit of its container), or lower \
                          --rate or --clients";
            (share(throttled), cause, remedy)
        }),
    ];
    let largest = losses.into_iter().flatten().max_by(|(a, ..), (b, ..)| a.total_cmp(b));
    largest.filter(|(share, ..)| *share >= MIN_CAUSE_SHARE).map(|(_, cause, remedy)| (cause, remedy))
}

/// A message if a thread was stalled. A stalled thread neither sends calls nor reads answers, so the stall affects all
/// metrics of any workload.
fn stalled(evidence: &Evidence<'_>) -> Option<String> {
    let gap = evidence.generator.longest_gap_s?;
    let window = evidence.window.as_secs_f64();
    let time = Nanos::from_secs_f64(gap).to_rounded_string();
    let what = format!(
        "The generator did not run for {time}: this pause distorts the rates, and the times of the calls then under way"
    );
    (gap > TOLERATED_STALL_S && gap > MAX_STALL_SHARE * window)
        .then(|| explained(what, evidence, "Let nothing stop it (SIGSTOP, a suspended machine), and measure again"))
}

/// A message if the load exceeds the measured maximum rate of this client. The run is then invalid even if no other
/// reason applies (Banga & Druschel 1997, §4.3).
fn beyond_client_max(evidence: &Evidence<'_>) -> Option<String> {
    let max = evidence.generator.max_rate.filter(|max| evidence.offered > MAX_CLIENT_RATIO * max)?;
    Some(format!(
        "The load was {}, but this client can offer only {} without being the limit, as measured before. \
         Lower the load, or give the generator more --threads and --cpus.",
        rate(evidence.offered),
        rate(max)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::record::HostContention;

    /// The data of a run from which [`Evidence`] is made. `classes` is empty if the run has a single class.
    struct Run {
        totals: ClassRecord,
        classes: BTreeMap<String, ClassRecord>,
        offered: f64,
        limited: HostLimitedCalls,
        window: Nanos,
        generator: Generator,
        load: LoadKind,
        interrupted: bool,
        stopped: bool,
    }

    /// The counts and times of completed calls. `lateness` is the mean and the p99 of their lateness, in µs;
    /// `response_mean` is their mean response time, in µs.
    fn calls(lateness: (f64, f64), response_mean: f64) -> ClassRecord {
        ClassRecord {
            counts: Counts { scheduled: 1_000, sent: 1_000, completed: 1_000, ..Counts::default() },
            lateness_us: Some(Summary { count: 1_000, mean: lateness.0, p99: lateness.1, ..Summary::default() }),
            response_time_us: Some(Summary { count: 1_000, mean: response_mean, ..Summary::default() }),
            ..ClassRecord::default()
        }
    }

    fn run(totals: ClassRecord) -> Run {
        Run {
            totals,
            classes: BTreeMap::new(),
            offered: 100.0,
            limited: HostLimitedCalls::default(),
            window: Nanos::from_secs(10),
            generator: Generator { busy: 0.5, ..Generator::default() },
            load: LoadKind::Open,
            interrupted: false,
            stopped: false,
        }
    }

    /// A run with these counts and without late calls.
    fn run_with_counts(counts: Counts) -> Run {
        run(ClassRecord { counts, ..ClassRecord::default() })
    }

    impl Run {
        fn verdict(&self) -> Verdict {
            let all = BTreeMap::from([("all".to_owned(), self.totals.clone())]);
            judge(&Evidence {
                totals: &self.totals,
                error_answers: 0,
                classes: if self.classes.is_empty() { &all } else { &self.classes },
                offered: self.offered,
                limited: self.limited,
                window: self.window,
                generator: &self.generator,
                duration: Nanos::from_secs(10),
                load: self.load,
                interrupted: self.interrupted,
                stopped: self.stopped,
                shards: &[],
                followed: None,
            })
        }

        fn codes(&self) -> Vec<ReasonCode> {
            self.verdict().reasons.iter().map(|reason| reason.code).collect()
        }

        /// The message of the verdict's only reason.
        fn message(&self) -> String {
            let [reason] = &self.verdict().reasons[..] else { panic!("{:?}", self.verdict()) };
            reason.message.clone()
        }
    }

    #[test]
    fn a_run_without_fault_is_valid() {
        let verdict = run(calls((5.0, 60.0), 2_000.0)).verdict();
        assert_eq!(verdict, Verdict { failing: Some(false), error_share: Some(0.0), ..Verdict::from_reasons(vec![]) });
    }

    #[test]
    fn a_server_that_fails_is_measured_well_and_said_to_fail() {
        let refused = Counts { scheduled: 600, sent: 199, completed: 199, refused: 401, ..Counts::default() };
        let verdict = run_with_counts(refused).verdict();
        assert!(verdict.valid);
        assert_eq!(verdict.failing, Some(true));
        assert_eq!(verdict.error_share, Some(401.0 / 600.0));
        let some = Counts { scheduled: 600, sent: 600, completed: 400, timed_out: 200, ..Counts::default() };
        assert_eq!(run_with_counts(some).verdict().failing, Some(false), "most calls were completed");
        let none = Counts { scheduled: 5, sent: 5, timed_out: 1, in_flight_at_end: 4, ..Counts::default() };
        assert_eq!(run_with_counts(none).verdict().failing, Some(true), "calls in flight at the end are not completed");
        assert_eq!(run_with_counts(Counts::default()).verdict().error_share, None);
        let limited = Counts { scheduled: 9, client_limited: 9, ..Counts::default() };
        assert_eq!(
            run_with_counts(limited).verdict().failing,
            Some(false),
            "calls that this host could not make do not count"
        );
    }

    #[test]
    fn what_s_clients_abandon_is_how_they_overload_a_server() {
        let abandoned = Counts { scheduled: 25_059, sent: 586, completed: 586, abandoned: 24_473, ..Counts::default() };
        let failing = |counts, load| Run { load, ..run_with_counts(counts) }.verdict().failing == Some(true);
        assert!(!failing(abandoned, LoadKind::SClients));
        assert!(failing(abandoned, LoadKind::Open));
        let reset = Counts { reset: 586, completed: 0, ..abandoned };
        assert!(failing(reset, LoadKind::SClients));
        let nobody = Counts { scheduled: 100, abandoned: 100, ..Counts::default() };
        assert!(failing(nobody, LoadKind::SClients), "no call was completed");
    }

    #[test]
    fn an_account_that_does_not_add_up_is_not_believed() {
        // In each case, the counts of class `b` violate a conservation law, although the totals and the counts of class
        // `a` satisfy it.
        let lost = Counts { scheduled: 600, sent: 600, completed: 599, ..Counts::default() };
        let twice = Counts { scheduled: 600, sent: 590, completed: 589, reset: 12, reset_before_sending: 10, ..lost };
        let class = |counts| ClassRecord { counts, ..ClassRecord::default() };
        let whole = Counts { scheduled: 600, sent: 600, completed: 600, ..Counts::default() };
        assert!(run_with_counts(whole).verdict().valid);
        for (counts, figures) in [
            (lost, "600 were scheduled and 600 are accounted for, 600 were sent and 599 of those are accounted for"),
            (twice, "600 were scheduled and 600 are accounted for, 590 were sent and 591 of those are accounted for"),
            (
                Counts { reset: 1, reset_before_sending: 1, ..whole },
                "600 were scheduled and 601 are accounted for, 600 were sent and 600 of those are accounted for",
            ),
        ] {
            let broken = Run {
                classes: BTreeMap::from([("a".to_owned(), class(whole)), ("b".to_owned(), class(counts))]),
                ..run_with_counts(whole)
            };
            assert_eq!(broken.codes(), [ReasonCode::Unbalanced]);
            let expected = format!("The calls of class `b` do not add up: {figures}. This is a defect of brimful:");
            assert!(broken.message().starts_with(&expected), "{}", broken.message());
        }
    }

    #[test]
    fn calls_that_were_never_begun_make_an_open_run_invalid() {
        let counts = Counts { scheduled: 1_000, sent: 900, completed: 900, unsent_at_end: 100, ..Counts::default() };
        let run = |interrupted| Run { interrupted, ..run_with_counts(counts) };
        assert_eq!(run(false).codes(), [ReasonCode::GeneratorLate]);
        assert!(run(true).verdict().valid, "unsent calls do not make an interrupted run invalid");
        let stopped = Run { stopped: true, ..run_with_counts(counts) };
        assert!(stopped.verdict().valid, "unsent calls do not make a run invalid that a condition stopped");
    }

    #[test]
    fn lateness_is_one_reason_however_it_shows() {
        let mut late = run(calls((50_000.0, 99_000.0), 60_000.0));
        late.totals.counts = Counts { sent: 900, completed: 900, unsent_at_end: 100, ..late.totals.counts };
        assert_eq!(late.codes(), [ReasonCode::GeneratorLate]);
        let expected = "The generator fell so far behind that 100 of 1,000 calls were never begun, and it began calls 50 ms late on \
                        average, one in a hundred more than 99 ms; the mean response time of 60 ms includes lateness. Lower --rate";
        assert!(late.message().starts_with(expected), "{}", late.message());
    }

    #[test]
    fn a_preemption_now_and_then_is_forgiven() {
        // Lateness of about 2 ms in 1 % of the calls is tolerated, even if the server answers in 50 µs.
        assert!(run(calls((20.0, 1_990.0), 50.0)).verdict().valid);
        // A p99 lateness of 8 ms is acceptable, because it is small compared with the response time of 20 ms.
        assert!(run(calls((300.0, 8_000.0), 20_000.0)).verdict().valid);
    }

    #[test]
    fn lateness_that_makes_the_response_time_is_not() {
        for load in [LoadKind::Open, LoadKind::Closed, LoadKind::SClients] {
            let late = Run { load, ..run(calls((1_234.5, 3_000.0), 4_000.0)) };
            assert_eq!(late.codes(), [ReasonCode::GeneratorLate]);
            assert_eq!(
                late.message(),
                "The generator began calls 1.23 ms late on average, one in a hundred more than 3 ms; the mean response \
                 time of 4 ms includes lateness. Lower --rate or --clients, give the generator more --threads, or keep it \
                 off the server's CPUs with --cpus."
            );
        }
    }

    #[test]
    fn a_light_class_is_not_lost_behind_a_heavy_one() {
        let (light, heavy) = (calls((5_000.0, 9_000.0), 6_000.0), calls((5_000.0, 9_000.0), 400_000.0));
        assert!(run(heavy.clone()).verdict().valid && run(calls((5_000.0, 9_000.0), 203_000.0)).verdict().valid);
        let mixed = Run {
            classes: BTreeMap::from([("heavy".to_owned(), heavy), ("light".to_owned(), light)]),
            ..run(calls((5_000.0, 9_000.0), 203_000.0))
        };
        assert_eq!(mixed.codes(), [ReasonCode::GeneratorLate]);
        let expected = "The generator began calls of class `light` 5 ms late on average, one in a hundred more than 9 ms; \
                        their mean response time of 6 ms includes lateness. ";
        assert!(mixed.message().starts_with(expected), "{}", mixed.message());
    }

    #[test]
    fn a_generator_that_does_not_keep_up_is_late_whatever_the_server_does() {
        let mut late = run(calls((50_000.0, 99_000.0), 9e6));
        assert_eq!(late.codes(), [ReasonCode::GeneratorLate]);
        late.totals.response_time_us = None;
        assert_eq!(late.codes(), [ReasonCode::GeneratorLate], "lateness counts even without any answer");
        assert!(Run { load: LoadKind::Closed, ..run(calls((50_000.0, 99_000.0), 9e6)) }.verdict().valid);
    }

    #[test]
    fn a_generator_that_did_not_run_for_a_while_invalidates_any_run() {
        let stopped = |gap_s, window_s, load| {
            let generator = Generator { busy: 0.5, longest_gap_s: Some(gap_s), ..Generator::default() };
            Run { window: Nanos::from_secs(window_s), generator, load, ..run(calls((5.0, 60.0), 2_000.0)) }
        };
        for load in [LoadKind::Open, LoadKind::Closed] {
            let stalled = stopped(1.0, 10, load);
            assert_eq!(stalled.codes(), [ReasonCode::GeneratorStalled]);
            assert!(stalled.message().starts_with("The generator did not run for 1 s: this pause distorts"));
            assert!(stalled.message().contains("SIGSTOP"));
            assert!(stopped(1.0, 101, load).verdict().valid, "a stall of less than 1 % of the run is tolerated");
            assert!(stopped(0.09, 1, load).verdict().valid, "a stall below 0.1 s is tolerated");
        }
        let mut preempted = stopped(1.0, 10, LoadKind::Open);
        preempted.generator.host.cpu_wait_s = Some(1.2);
        assert!(preempted.message().contains("waited 1.2 s of 10 s for a CPU"), "{}", preempted.message());
    }

    #[test]
    fn a_thread_that_panicked_is_said_before_what_follows_from_it() {
        let generator =
            Generator { busy: 0.5, threads: 4, panics: vec!["no slot 7".to_owned()], ..Generator::default() };
        let run =
            Run { generator, ..run_with_counts(Counts { scheduled: 3, sent: 2, completed: 2, ..Counts::default() }) };
        assert_eq!(run.codes(), [ReasonCode::GeneratorPanicked, ReasonCode::Unbalanced]);
        let expected =
            "1 of the generator's 4 threads ended early, and their part of the load with them: \"no slot 7\". ";
        let verdict = run.verdict();
        assert!(verdict.reasons[0].message.starts_with(expected), "{verdict:?}");
    }

    #[test]
    fn a_saturated_generator_is_named() {
        let saturated = Generator { busy: 0.97, ..Generator::default() };
        let run = Run { generator: saturated, load: LoadKind::Closed, ..run_with_counts(Counts::default()) };
        assert_eq!(run.codes(), [ReasonCode::GeneratorCpu]);
        assert!(run.message().contains("had work 97 % of the time"));
    }

    /// In runs of ten seconds, expects that the message names the largest loss of CPU time to the host, and its remedy.
    #[test]
    fn what_the_host_took_is_named_before_the_load_is_blamed() {
        let message = |host| {
            let generator = Generator { busy: 0.5, host, ..Generator::default() };
            Run { generator, ..run(calls((1_234.5, 3_000.0), 4_000.0)) }.message()
        };
        let unknown = HostContention::default();
        let little = HostContention { cpu_wait_s: Some(0.05), throttled_s: Some(0.0), steal: Some(0.009) };
        for host in [unknown, little] {
            assert!(message(host).contains("includes lateness. Lower --rate"), "{}", message(host));
        }
        for (host, cause, remedy) in [
            (
                HostContention { cpu_wait_s: Some(0.812), ..little },
                "waited 812 ms of 10 s for a CPU that something",
                "`top`",
            ),
            (
                HostContention { steal: Some(0.12), ..little },
                "the hypervisor gave 12 % of its CPUs' time",
                "other guests",
            ),
            (
                HostContention { cpu_wait_s: Some(3.0), throttled_s: Some(3.0), steal: Some(0.02) },
                "a CPU quota stopped it for 3 s of 10 s",
                "`cpu.max`",
            ),
        ] {
            let message = message(host);
            let (what, advice) = message.split_once(". ").unwrap();
            assert!(what.contains(cause) && advice.contains(remedy) && !advice.contains("Lower"), "{message}");
        }
    }

    #[test]
    fn more_than_the_client_was_shown_to_do_is_in_doubt() {
        let offered = |max_rate, offered| {
            let generator = Generator { max_rate, ..Generator::default() };
            Run { generator, offered, load: LoadKind::Closed, ..run_with_counts(Counts::default()) }
        };
        assert!(offered(None, 1e6).verdict().valid);
        assert!(offered(Some(1_000.0), 1_040.0).verdict().valid, "a rate 4 % above the maximum is tolerated");
        let beyond = offered(Some(1_000.0), 1_234.0);
        assert_eq!(beyond.codes(), [ReasonCode::BeyondClientMax]);
        assert!(beyond.message().starts_with("The load was 1,234/s, but this client can offer only 1,000/s"));
    }

    #[test]
    fn each_thing_the_host_lacked_is_its_own_reason() {
        let limited = HostLimitedCalls { descriptors: 7, ports: 1, memory: 2, bodies: 0 };
        let lacking = Run { limited, ..run(calls((5.0, 60.0), 2_000.0)) };
        assert_eq!(lacking.codes(), [ReasonCode::Descriptors, ReasonCode::Ports, ReasonCode::Memory]);
        let message = &lacking.verdict().reasons[0].message;
        assert!(message.starts_with("7 of 1,000 calls could not begin: the generator had no file"));
    }

    #[test]
    fn an_interruption_counts_only_when_nothing_was_measured() {
        assert!(Run { interrupted: true, ..run(calls((5.0, 60.0), 2_000.0)) }.verdict().valid);
        assert_eq!(Run { interrupted: true, ..run_with_counts(Counts::default()) }.codes(), [ReasonCode::Interrupted]);
    }
}
