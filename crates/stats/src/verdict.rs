//! Was it the server that was measured, or the generator? A run of which that is in doubt is marked invalid: wrong
//! numbers are worse than none.
//!
//! Each message has two parts: its first sentence says what happened, the rest what to do next.

use brimful_core::Nanos;
use brimful_core::record::{Counts, Generator, Reason, ReasonCode, Summary, Verdict};

/// The busiest thread may have had work for this share of its time. Near 1 it is a saturated server itself: work waits
/// for the thread, not for the network. The 5 % below leave room for how coarsely a thread's own time is accounted.
const BUSIEST: f64 = 0.95;

/// Lateness is part of every response time. Mean lateness up to this share of the mean response time is within what
/// runs differ by anyway; above it, a noticeable part of the response time was made here.
const LATE_SHARE: f64 = 0.10;

/// Unless so few calls are late that it does not matter: when 99 % begin within two milliseconds, it is the
/// preemptions that every virtual machine suffers now and then, and a schedule that is kept. Without this floor a
/// server that answers in 50 µs could not be measured at all.
const LATE_TOLERATED: Nanos = Nanos::from_millis(2);

/// More than 1 % of the calls later than this cannot be preemption: the generator does not keep up with its schedule
/// (its lateness then grows as long as the run lasts), whatever the response times are.
const LATE_ALWAYS: Nanos = Nanos::from_millis(10);

/// The client's maximum is known to a few percent only, and a random schedule brings a little more or less than its rate.
const BEYOND: f64 = 1.05;

/// A thread that stands still for this share of the run takes as much from the load of a closed workload and from its rates, and
/// puts it on the mean response time.
const GAP_SHARE: f64 = 0.01;

/// But for preemptions, which short runs on busy virtual machines meet now and then.
const GAP_TOLERATED_S: f64 = 0.1;

/// Calls that this host had no means for, by what was lacking. Together they are [`Counts::client_limited`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limited {
    /// For want of a file descriptor.
    pub descriptors: u64,
    /// For want of a local port.
    pub ports: u64,
    /// For want of socket memory.
    pub memory: u64,
}

/// What a verdict rests on.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// What became of the calls.
    pub counts: &'a Counts,
    /// Calls due per second: connection attempts per second for S-Clients, who begin each call with one.
    pub offered: f64,
    /// What the generator's host ran out of.
    pub limited: Limited,
    /// How long load was offered.
    pub window: Nanos,
    /// What the load cost the generator.
    pub generator: &'a Generator,
    /// From due to the last byte, if any call was completed.
    pub response_time_us: Option<&'a Summary>,
    /// From due to the moment the generator acted, if it ever did.
    pub lateness_us: Option<&'a Summary>,
    /// Whether calls were due by a schedule of their own. In a closed workload a late call delays the next one too, so
    /// lateness lowers the load but falsifies no time; it is not judged.
    pub open: bool,
    /// Whether the user ended the run early.
    pub interrupted: bool,
}

/// Weighs the evidence. Any call for which the generator's host had no means makes a run invalid. An interruption does
/// so only when it left nothing to measure: calls completed until then are as good as in a shorter run.
pub fn judge(evidence: &Evidence<'_>) -> Verdict {
    let reason = |code, message| Reason { code, message };
    let Limited { descriptors, ports, memory } = evidence.limited;
    let lacking = |n: u64, code, what: &str, remedy: &str| {
        let message = format!("{n} of {} calls could not begin: {what}. {remedy}.", evidence.counts.scheduled);
        (n > 0).then(|| reason(code, message))
    };
    let reasons = [
        left_over(evidence).map(|message| reason(ReasonCode::GeneratorLate, message)),
        late(evidence).map(|message| reason(ReasonCode::GeneratorLate, message)),
        busy(evidence.generator).map(|message| reason(ReasonCode::GeneratorCpu, message)),
        stalled(evidence).map(|message| reason(ReasonCode::GeneratorStalled, message)),
        beyond(evidence).map(|message| reason(ReasonCode::BeyondClientMax, message)),
        lacking(
            descriptors,
            ReasonCode::Descriptors,
            "the generator had no file descriptor left",
            "Raise the limit with `ulimit -n`, or keep fewer connections open: lower --rate or --clients, shorten \
             --timeout and --connect-timeout",
        ),
        lacking(
            ports,
            ReasonCode::Ports,
            "this host had no local port left",
            "Widen the range with `sysctl -w net.ipv4.ip_local_port_range='1024 65535'`, reuse connections (no \
             --new-connection), lower --rate, or shorten --connect-timeout",
        ),
        lacking(
            memory,
            ReasonCode::Memory,
            "the kernel had no memory left for another socket",
            "Free memory or raise `sysctl net.ipv4.tcp_mem`, or keep fewer connections open: lower --rate or \
             --clients, shorten --timeout and --connect-timeout",
        ),
        (evidence.interrupted && evidence.counts.completed == 0).then(|| {
            let message = "The run was interrupted before any call was completed. Let it run longer.";
            reason(ReasonCode::Interrupted, message.to_owned())
        }),
    ];
    Verdict::from_reasons(reasons.into_iter().flatten().collect())
}

/// Calls that were due inside the window and that the generator never came to.
fn left_over(evidence: &Evidence<'_>) -> Option<String> {
    let Counts { unsent_at_end, scheduled, .. } = *evidence.counts;
    (evidence.open && !evidence.interrupted && unsent_at_end > 0).then(|| {
        format!(
            "The generator fell so far behind that {unsent_at_end} of {scheduled} calls were never begun. Lower --rate, \
             give the generator more --threads, or keep it off the server's CPUs with --cpus."
        )
    })
}

fn late(evidence: &Evidence<'_>) -> Option<String> {
    let lateness = evidence.lateness_us.filter(|_| evidence.open)?;
    let nanos = |us: f64| Nanos::from_secs_f64(us / 1e6);
    let p99 = nanos(lateness.p99);
    let distorts = evidence
        .response_time_us
        .filter(|response| p99 > LATE_TOLERATED && lateness.mean > LATE_SHARE * response.mean)
        .map(|response| format!("; the mean response time of {} contains it", nanos(response.mean).rounded()));
    if distorts.is_none() && p99 <= LATE_ALWAYS {
        return None;
    }
    Some(format!(
        "The generator began calls {} late on average, one in a hundred more than {}{}. Lower --rate, give the \
         generator more --threads, or keep it off the server's CPUs with --cpus.",
        nanos(lateness.mean).rounded(),
        p99.rounded(),
        distorts.unwrap_or_default(),
    ))
}

fn busy(generator: &Generator) -> Option<String> {
    (generator.busy > BUSIEST).then(|| {
        format!(
            "The generator's busiest thread had work {:.0} % of the time, so it may have been the limit and not the \
             server. Lower --rate or --clients, give the generator more --threads, or keep it off the server's CPUs \
             with --cpus.",
            100.0 * generator.busy
        )
    })
}

/// A generator that stood still offered no load meanwhile, and read no answer: whatever the workload, its figures have the gap
/// in them.
fn stalled(evidence: &Evidence<'_>) -> Option<String> {
    let gap = evidence.generator.longest_gap_s?;
    let window = evidence.window.as_secs_f64();
    (gap > GAP_TOLERATED_S && gap > GAP_SHARE * window).then(|| {
        format!(
            "The generator stood still for {}, which is in the rates and in the times of the calls that were under way. Let \
             nothing stop it (SIGSTOP, a suspended machine), or keep other work off its CPUs with --cpus, and measure again.",
            Nanos::from_secs_f64(gap).rounded()
        )
    })
}

/// What was not shown to be within this client's power, however well it seems to have gone (Banga & Druschel 1997, §4.3).
fn beyond(evidence: &Evidence<'_>) -> Option<String> {
    let max = evidence.generator.max_rate.filter(|max| evidence.offered > BEYOND * max)?;
    Some(format!(
        "{:.0}/s were offered, more than the {max:.0}/s that this client was shown to offer without being the limit. \
         Lower the load, or give the generator more --threads and --cpus.",
        evidence.offered
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sound run with the given lateness and response time (mean, p99; µs).
    fn verdict(lateness: (f64, f64), response_mean: f64, change: impl Fn(&mut Evidence<'_>)) -> Verdict {
        let lateness = Summary { count: 1_000, mean: lateness.0, p99: lateness.1, ..Summary::default() };
        let response = Summary { count: 1_000, mean: response_mean, ..Summary::default() };
        let mut evidence = Evidence {
            counts: &Counts { scheduled: 1_000, completed: 1_000, ..Counts::default() },
            offered: 100.0,
            limited: Limited::default(),
            window: Nanos::from_secs(10),
            generator: &Generator { busy: 0.5, ..Generator::default() },
            response_time_us: Some(&response),
            lateness_us: Some(&lateness),
            open: true,
            interrupted: false,
        };
        change(&mut evidence);
        judge(&evidence)
    }

    #[test]
    fn calls_that_were_never_begun_make_an_open_run_invalid() {
        let counts = Counts { scheduled: 1_000, completed: 900, unsent_at_end: 100, ..Counts::default() };
        let generator = Generator::default();
        let judged = |interrupted| {
            judge(&Evidence {
                counts: &counts,
                offered: 100.0,
                limited: Limited::default(),
                window: Nanos::from_secs(10),
                generator: &generator,
                response_time_us: None,
                lateness_us: None,
                open: true,
                interrupted,
            })
        };
        assert_eq!(codes(&judged(false)), [ReasonCode::GeneratorLate]);
        assert!(judged(true).valid, "whoever interrupts a run leaves calls unsent");
    }

    fn codes(verdict: &Verdict) -> Vec<ReasonCode> {
        verdict.reasons.iter().map(|r| r.code).collect()
    }

    #[test]
    fn a_sound_run_is_valid() {
        let verdict = verdict((5.0, 60.0), 2_000.0, |_| ());
        assert_eq!(verdict, Verdict { valid: true, reasons: vec![] });
    }

    #[test]
    fn a_preemption_now_and_then_is_forgiven() {
        // 1 % of the calls 2 ms late beside a server that answers in 50 µs.
        assert!(verdict((20.0, 1_990.0), 50.0, |_| ()).valid);
        // A longer tail that is lost in the response time.
        assert!(verdict((300.0, 8_000.0), 20_000.0, |_| ()).valid);
    }

    #[test]
    fn lateness_that_makes_the_response_time_is_not() {
        let verdict = verdict((1_234.5, 3_000.0), 4_000.0, |_| ());
        assert_eq!(codes(&verdict), [ReasonCode::GeneratorLate]);
        assert_eq!(
            verdict.reasons[0].message,
            "The generator began calls 1.23ms late on average, one in a hundred more than 3ms; the mean response time \
             of 4ms contains it. Lower --rate, give the generator more --threads, or keep it off the server's CPUs \
             with --cpus."
        );
    }

    #[test]
    fn a_generator_that_does_not_keep_up_is_late_whatever_the_server_does() {
        assert_eq!(codes(&verdict((50_000.0, 99_000.0), 9e6, |_| ())), [ReasonCode::GeneratorLate]);
        let nothing_answered = verdict((50_000.0, 99_000.0), 0.0, |e| e.response_time_us = None);
        assert_eq!(codes(&nothing_answered), [ReasonCode::GeneratorLate]);
        assert!(verdict((50_000.0, 99_000.0), 9e6, |e| e.open = false).valid);
    }

    #[test]
    fn a_generator_that_stood_still_spoils_any_run_that_it_is_a_part_of() {
        let judged = |gap_s, window_s, open| {
            let generator = Generator { busy: 0.5, longest_gap_s: Some(gap_s), ..Generator::default() };
            let (counts, limited) = (Counts { scheduled: 10, completed: 10, ..Counts::default() }, Limited::default());
            judge(&Evidence {
                counts: &counts,
                offered: 100.0,
                limited,
                window: Nanos::from_secs(window_s),
                generator: &generator,
                response_time_us: None,
                lateness_us: None,
                open,
                interrupted: false,
            })
        };
        for open in [true, false] {
            let verdict = judged(1.0, 10, open);
            assert_eq!(codes(&verdict), [ReasonCode::GeneratorStalled]);
            assert!(verdict.reasons[0].message.starts_with("The generator stood still for 1s, which is in the rates"));
            assert!(judged(1.0, 101, open).valid, "less than the hundredth part");
            assert!(judged(0.09, 1, open).valid, "a preemption");
        }
    }

    #[test]
    fn a_saturated_generator_is_named() {
        let saturated = Generator { busy: 0.97, ..Generator::default() };
        let verdict = judge(&Evidence {
            counts: &Counts::default(),
            offered: 0.0,
            limited: Limited::default(),
            window: Nanos::from_secs(10),
            generator: &saturated,
            response_time_us: None,
            lateness_us: None,
            open: false,
            interrupted: false,
        });
        assert_eq!(codes(&verdict), [ReasonCode::GeneratorCpu]);
        assert!(verdict.reasons[0].message.contains("had work 97 % of the time"));
    }

    #[test]
    fn more_than_the_client_was_shown_to_do_is_in_doubt() {
        let judged = |max_rate, offered| {
            let generator = Generator { max_rate, ..Generator::default() };
            let counts = Counts::default();
            judge(&Evidence {
                counts: &counts,
                offered,
                limited: Limited::default(),
                window: Nanos::from_secs(10),
                generator: &generator,
                response_time_us: None,
                lateness_us: None,
                open: false,
                interrupted: false,
            })
        };
        assert!(judged(None, 1e6).valid);
        assert!(judged(Some(1_000.0), 1_040.0).valid, "a random schedule at the maximum is not beyond it");
        let verdict = judged(Some(1_000.0), 1_234.0);
        assert_eq!(codes(&verdict), [ReasonCode::BeyondClientMax]);
        assert!(verdict.reasons[0].message.starts_with("1234/s were offered, more than the 1000/s that this client"));
    }

    #[test]
    fn each_thing_the_host_lacked_is_its_own_reason() {
        let verdict = verdict((5.0, 60.0), 2_000.0, |e| e.limited = Limited { descriptors: 7, ports: 1, memory: 2 });
        assert_eq!(codes(&verdict), [ReasonCode::Descriptors, ReasonCode::Ports, ReasonCode::Memory]);
        assert!(verdict.reasons[0].message.starts_with("7 of 1000 calls could not begin: the generator had no file"));
    }

    #[test]
    fn an_interruption_counts_only_when_nothing_was_measured() {
        assert!(verdict((5.0, 60.0), 2_000.0, |e| e.interrupted = true).valid);
        let nothing = Counts::default();
        let evidence = Evidence {
            counts: &nothing,
            offered: 0.0,
            limited: Limited::default(),
            window: Nanos::from_secs(10),
            generator: &Generator::default(),
            response_time_us: None,
            lateness_us: None,
            open: true,
            interrupted: true,
        };
        assert_eq!(codes(&judge(&evidence)), [ReasonCode::Interrupted]);
    }
}
