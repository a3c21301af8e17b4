//! Tests workloads of sessions with a simulated server and in simulated time.

use brimful_core::workload::{BetweenBursts, ScriptedRequest, SessionArrivals, Sessions as Load, Spread};
use brimful_core::{CallSpec, End, Nanos, NextCall, Outcome, Rate, RequestId, SessionId, SessionOutcome, Workload};
use brimful_workload::{Mix, Scripts, Sessions, Shard, WorkloadLimits};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

const OK: End = End::Completed { status: 200 };
const SERVICE: Nanos = Nanos::from_millis(100);

fn open(rate: f64, arrivals: &str) -> Load {
    Load::with_arrivals(SessionArrivals::Open { rate: Rate(rate), arrivals: arrivals.to_owned() })
}

fn spread(text: &str) -> Spread {
    text.parse().unwrap()
}

fn closed(users: u64, rest_s: &str) -> Load {
    Load { session_arrivals: SessionArrivals::Closed { users, rest_s: spread(rest_s) }, ..open(1.0, "constant") }
}

/// Gives `load` the bursts and think times of people who browse a site.
fn browsing(load: Load) -> Load {
    Load {
        bursts: spread("geometric:4.2"),
        calls_per_burst: spread("quantiles:0=1,0.3=1,1=5"),
        think_s: spread("lognormal:20,1.5"),
        ..load
    }
}

fn sessions(load: &Load, window_s: u64, seed: u64, shard: Shard) -> Sessions {
    let limits = WorkloadLimits { window: Nanos::from_secs(window_s), calls: u64::MAX };
    let scripts = brimful_core::workload::Workload {
        load: Some(brimful_core::workload::Load::Sessions(load.clone())),
        ..brimful_core::workload::Workload::single_class("GET", "/")
    };
    let sessions = Sessions::new(load, Mix::new(&[1.0, 2.0], seed).unwrap(), limits, seed, shard).unwrap();
    sessions.with_scripts(Scripts::from_workload(&scripts).map(Arc::new))
}

/// Adds three scripted sessions to `load`. They have one to three bursts.
fn scripted(load: Load) -> Load {
    let text = "users = 1
        [[script]]
        bursts = [{ calls = [{}, {}, {}], think_s = 2 }, { calls = [{}] }]
        [[script]]
        bursts = [{ calls = [{}] }]
        [[script]]
        bursts = [{ calls = [{}, {}], think_s = 0 }, { calls = [{}] }, { calls = [{}] }]";
    Load { scripts: toml::from_str::<Load>(text).unwrap().scripts, ..load }
}

/// A call that the workload has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Made {
    session: SessionId,
    due: Nanos,
    ready: Nanos,
    class: u16,
    request: RequestId,
}

#[derive(Default)]
struct Seen {
    made: Vec<Made>,
    ended: Vec<(SessionId, SessionOutcome)>,
    /// Maximum number of calls of one session that were in flight at the same time.
    at_once: u32,
    in_progress: u64,
}

/// Runs the workload to its end with a simulated server. `answer` returns the response time of the call with the given
/// index, and how it ends.
fn run(mut workload: Sessions, answer: impl Fn(usize) -> (Nanos, End)) -> Seen {
    let (mut seen, mut now) = (Seen::default(), Nanos::ZERO);
    let mut in_flight: BinaryHeap<Reverse<(Nanos, usize)>> = BinaryHeap::new();
    let mut calls: Vec<(Nanos, CallSpec)> = Vec::new();
    let mut of_session: BTreeMap<SessionId, u32> = BTreeMap::new();
    loop {
        let next = workload.next(now, in_flight.len());
        if let NextCall::Due { due, call } | NextCall::Delayed { due, call, .. } = next {
            let ready = if let NextCall::Delayed { ready, .. } = next { ready } else { due };
            assert!(due <= now && due <= ready && ready <= now, "{due} {ready} {now}");
            let session = call.session.unwrap();
            in_flight.push(Reverse((now + answer(calls.len()).0, calls.len())));
            calls.push((due, call));
            seen.made.push(Made { session, due, ready, class: call.class.0, request: call.request });
            let at_once = of_session.entry(session).or_default();
            *at_once += 1;
            seen.at_once = seen.at_once.max(*at_once);
            continue;
        }
        let ends = in_flight.peek().map(|Reverse((at, _))| *at);
        match (next, ends) {
            (NextCall::NotBefore(at), None) => now = at,
            (NextCall::NotBefore(at), Some(end)) if at < end => now = at,
            (NextCall::Done | NextCall::WaitForOutcome, None) => break,
            _ => {
                let Reverse((at, nth)) = in_flight.pop().unwrap();
                now = at;
                let (due, call) = calls[nth];
                let session = call.session.unwrap();
                workload.on_outcome(&Outcome { call, due, at, end: answer(nth).1, bytes_sent: 1, bytes_received: 1 });
                *of_session.get_mut(&session).unwrap() -= 1;
                if let Some(outcome) = workload.session_ended(session) {
                    assert_eq!(of_session.remove(&session), Some(0), "the session must have no calls in flight");
                    seen.ended.push((session, outcome));
                }
            }
        }
    }
    seen.in_progress = workload.sessions_in_progress();
    seen
}

fn steady(_: usize) -> (Nanos, End) {
    (SERVICE, OK)
}

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

#[test]
fn the_first_call_of_a_burst_is_answered_before_the_others_go_out() {
    let load = Load {
        bursts: spread("2"),
        calls_per_burst: spread("5"),
        think_s: spread("10"),
        connections: 2,
        ..open(0.001, "constant")
    };
    let seen = run(sessions(&load, 60, 1, Shard::WHOLE), steady);
    let due: Vec<(u64, u64)> =
        seen.made.iter().map(|made| (made.due.0 / 1_000_000, made.ready.0 / 1_000_000)).collect();
    // The due time and the time of sending of each call, in milliseconds. The first call is answered after 100 ms. Then
    // four calls are due: two are sent immediately, and the other two after the answers to these. The next burst is due
    // ten seconds after the last answer.
    let burst = [(0, 0), (100, 100), (100, 100), (100, 200), (100, 200)];
    let next = burst.map(|(due, ready)| (due + 10_300, ready + 10_300));
    assert_eq!(due, [burst, next].concat());
    assert_eq!(seen.at_once, 2);
    let outcome = SessionOutcome {
        began: Nanos::ZERO,
        ended: ms(10_600),
        calls: 10,
        bursts: 2,
        failed: false,
        began_before_run: false,
    };
    assert_eq!((seen.ended, seen.in_progress), (vec![(SessionId(0), outcome)], 0));
}

/// Returns three values for each call: its session, the time at which it was due, and the time at which it could be
/// made. Times are in milliseconds.
fn times(seen: &Seen) -> Vec<(u32, u64, u64)> {
    let ms = |at: Nanos| at.0 / 1_000_000;
    seen.made.iter().map(|made| (made.session.0, ms(made.due), ms(made.ready))).collect()
}

#[test]
fn pipelined_calls_of_a_burst_go_out_together() {
    let load = Load { calls_per_burst: spread("5"), connections: 2, pipelined: true, ..open(0.001, "constant") };
    let seen = run(sessions(&load, 60, 1, Shard::WHOLE), steady);
    assert_eq!(times(&seen), [(0, 0, 0), (0, 100, 100), (0, 100, 100), (0, 100, 100), (0, 100, 100)]);
    assert_eq!((seen.at_once, seen.ended.len()), (4, 1));
}

#[test]
fn a_session_with_a_number_of_calls_has_the_bursts_that_they_need() {
    let load = Load {
        calls_per_session: Some(spread("7")),
        calls_per_burst: spread("3"),
        think_s: spread("10"),
        ..open(0.001, "constant")
    };
    let seen = run(sessions(&load, 60, 1, Shard::WHOLE), steady);
    let due: Vec<u64> = times(&seen).into_iter().map(|(_, due, _)| due).collect();
    assert_eq!(due, [0, 100, 100, 10_200, 10_300, 10_300, 20_400]);
    let [(_, outcome)] = seen.ended[..] else { panic!("{:?}", seen.ended) };
    assert_eq!((outcome.calls, outcome.bursts, outcome.failed), (7, 3, false));
}

#[test]
fn the_limit_of_sessions_is_kept() {
    let max_sessions = Some(10);
    let open = Load { max_sessions, ..browsing(open(100.0, "poisson")) };
    // Three users begin 4, 3 and 3 of ten sessions. With twenty users, ten users begin no session.
    for load in
        [open, Load { max_sessions, ..browsing(closed(3, "1")) }, Load { max_sessions, ..browsing(closed(20, "1")) }]
    {
        for shards in [1, 2, 7] {
            let seen: Vec<Seen> =
                Shard::WHOLE.split(shards).map(|shard| run(sessions(&load, 1_000_000, 3, shard), steady)).collect();
            assert_eq!(seen.iter().map(|seen| seen.ended.len()).sum::<usize>(), 10, "{shards} shards: {load:?}");
            assert_eq!(seen.iter().map(|seen| seen.in_progress).sum::<u64>(), 0);
        }
    }
}

/// Expects that a single user makes all sessions, one after another, even if one of them fails.
#[test]
fn a_single_user_makes_all_sessions() {
    let load = Load { max_sessions: Some(4), bursts: spread("2"), think_s: spread("1"), ..closed(1, "0") };
    let seen = run(sessions(&load, 60, 1, Shard::WHOLE), |nth| (SERVICE, if nth == 2 { End::TimedOut } else { OK }));
    let due: Vec<u64> = times(&seen).into_iter().map(|(_, due, _)| due).collect();
    assert_eq!(due, [0, 1_100, 1_200, 1_300, 2_400, 2_500, 3_600]);
    let failed: Vec<bool> = seen.ended.iter().map(|(_, outcome)| outcome.failed).collect();
    assert_eq!(failed, [false, true, false, false]);
}

#[test]
fn scripted_sessions_are_made_in_turn() {
    let load = scripted(Load { max_sessions: Some(4), think_s: spread("1"), ..closed(1, "0") });
    let seen = run(sessions(&load, 60, 1, Shard::WHOLE), steady);
    let made: Vec<(usize, u64)> = seen
        .made
        .iter()
        .map(|made| (ScriptedRequest::index_of(made.request).unwrap(), made.due.0 / 1_000_000))
        .collect();
    let first = |at| [(0, at), (1, at + 100), (2, at + 100), (3, at + 2_200)];
    // The script specifies no think time after the second burst of the third session, so the think time of the load
    // applies.
    let third = [(5, 2_400), (6, 2_500), (7, 2_600), (8, 3_700)];
    assert_eq!(made, [&first(0)[..], &[(4, 2_300)], &third, &first(3_800)].concat());
    let calls: Vec<(u32, u32)> = seen.ended.iter().map(|(_, outcome)| (outcome.calls, outcome.bursts)).collect();
    assert_eq!(calls, [(4, 2), (1, 1), (4, 3), (4, 2)]);
}

#[test]
fn a_call_that_fails_ends_its_session() {
    let load = Load { bursts: spread("9"), calls_per_burst: spread("9"), connections: 3, ..open(0.001, "constant") };
    for (failing, calls) in [(0, 1), (1, 4), (2, 5), (4, 7)] {
        let answer = |nth| if nth == failing { (SERVICE, End::TimedOut) } else { (SERVICE + ms(nth as u64), OK) };
        let seen = run(sessions(&load, 60, 1, Shard::WHOLE), answer);
        let [(_, outcome)] = seen.ended[..] else { panic!("{:?}", seen.ended) };
        assert!(outcome.failed && outcome.bursts == 1 && seen.in_progress == 0, "{outcome:?}");
        assert!((1..=calls).contains(&outcome.calls), "call {failing} failed, {} were made", outcome.calls);
        assert_eq!(outcome.calls as usize, seen.made.len(), "no call may be made after the session has failed");
    }
    // After a failed session, a user of a closed load begins its next session.
    let users = Load { bursts: spread("2"), ..closed(1, "1") };
    let seen = run(sessions(&users, 60, 1, Shard::WHOLE), |nth| (SERVICE, if nth == 0 { End::Refused } else { OK }));
    assert!(seen.ended[0].1.failed && !seen.ended[1].1.failed);
    assert_eq!((seen.ended[1].1.began, seen.ended[1].1.calls), (ms(1_100), 2));
}

/// Expects that a retry is due when the unexpected answer arrives, and counts as a call. The rest of the burst must
/// wait for the answer to the retry.
#[test]
fn a_call_with_an_unexpected_answer_is_retried_if_the_load_says_so() {
    let load = Load {
        bursts: spread("2"),
        calls_per_burst: spread("3"),
        think_s: spread("1"),
        retry: true,
        ..open(0.001, "constant")
    };
    let wrong = End::Unexpected { status: 503 };
    let failing = [0, 1, 3, 5];
    let seen =
        run(sessions(&load, 60, 1, Shard::WHOLE), |nth| (SERVICE, if failing.contains(&nth) { wrong } else { OK }));
    let [(_, outcome)] = seen.ended[..] else { panic!("{:?}", seen.ended) };
    assert_eq!((outcome.failed, outcome.calls, outcome.bursts), (false, 6 + 4, 2));
    let due: Vec<u64> = seen.made.iter().map(|made| made.due.0 / 1_000_000).collect();
    assert_eq!(due, [0, 100, 200, 300, 300, 400, 500, 1_600, 1_700, 1_700]);
    let same = |nth: usize, again: usize| {
        let [first, second] = [nth, again].map(|nth| (seen.made[nth].class, seen.made[nth].request));
        assert_eq!(first, second, "{nth} {again}");
    };
    [(0, 1), (1, 2), (3, 5), (5, 6)].into_iter().for_each(|(nth, again)| same(nth, again));
    // Unlike an unexpected answer, any other failure ends the session. If the run ends between retries, the session is
    // in progress.
    let seen = run(sessions(&load, 60, 1, Shard::WHOLE), |nth| (SERVICE, if nth == 1 { End::TimedOut } else { OK }));
    assert!(seen.ended[0].1.failed && seen.in_progress == 0);
    let seen = run(sessions(&load, 1, 1, Shard::WHOLE), |_| (SERVICE, wrong));
    assert_eq!((seen.made.len(), seen.ended.len(), seen.in_progress), (10, 0, 1));
    let once = Load { retry: false, ..load };
    let seen = run(sessions(&once, 60, 1, Shard::WHOLE), |_| (SERVICE, wrong));
    assert_eq!((seen.made.len(), seen.ended[0].1.failed), (1, true));
}

#[test]
fn sessions_that_the_end_of_the_run_cuts_off_are_in_progress() {
    let load =
        Load { bursts: spread("3"), calls_per_burst: spread("2"), think_s: spread("10"), ..open(1.0, "constant") };
    let seen = run(sessions(&load, 25, 1, Shard::WHOLE), steady);
    // A session begins every second and lasts for 20.6 s. At the end, five sessions have ended and twenty are in
    // progress.
    assert_eq!((seen.ended.len(), seen.in_progress), (5, 20));
    assert!(seen.made.iter().all(|made| made.due < Nanos::from_secs(25)));
    let cut = |nth| (SERVICE, if nth < 10 { OK } else { End::Unfinished { sent: true } });
    let seen = run(sessions(&load, 25, 1, Shard::WHOLE), cut);
    assert_eq!((seen.ended.len(), seen.in_progress), (0, 25));
    let slow = Load { calls_per_burst: spread("3"), connections: 1, ..load };
    let seen = run(sessions(&slow, 1, 1, Shard::WHOLE), |_| (ms(600), OK));
    assert_eq!(seen.made.len(), 2, "the third call must wait, and the run ends first");
}

#[test]
fn the_limit_of_calls_is_kept() {
    let load = browsing(open(10.0, "poisson"));
    for shards in [1, 3] {
        let made = Shard::WHOLE.split(shards).map(|shard| {
            let limits = WorkloadLimits { window: Nanos::from_secs(600), calls: 100 };
            let mix = Mix::new(&[1.0], 1).unwrap();
            run(Sessions::new(&load, mix, limits, 1, shard).unwrap(), steady).made.len()
        });
        assert_eq!(made.sum::<usize>(), 100);
    }
}

#[test]
fn bursts_and_calls_keep_their_means() {
    let load = Load { think_s: spread("0"), ..browsing(open(10.0, "poisson")) };
    let seen = run(sessions(&load, 4_000, 7, Shard::WHOLE), steady);
    let n = seen.ended.len() as f64;
    // The number of sessions has a Poisson distribution with the mean 40,000. The number of bursts per session has a
    // geometric distribution with the variance m(m − 1) for the mean m. The tolerances are five standard errors.
    assert!((n - 40_000.0).abs() < 5.0 * 200.0, "{n}");
    let bursts = seen.ended.iter().map(|(_, outcome)| f64::from(outcome.bursts)).sum::<f64>();
    assert!((bursts / n - 4.2).abs() < 5.0 * (4.2f64 * 3.2 / n).sqrt(), "{}", bursts / n);
    // The mean number of calls per burst is 0.3 · 1 + 0.7 · 3.
    let calls = seen.ended.iter().map(|(_, outcome)| f64::from(outcome.calls)).sum::<f64>();
    assert!((calls / bursts - load.calls_per_burst.mean()).abs() < 0.02, "{}", calls / bursts);
    assert!((load.calls_per_burst.mean() - 2.4).abs() < 1e-12);
    let heavy = seen.made.iter().filter(|made| made.class == 1).count() as f64 / seen.made.len() as f64;
    assert!((heavy - 2.0 / 3.0).abs() < 0.01, "{heavy}");
}

/// The number of calls in the first tenth of the run, divided by the number of calls in the last tenth.
fn first_over_last(load: &Load, window_s: u64) -> f64 {
    let seen = run(sessions(load, window_s, 11, Shard::WHOLE), steady);
    let part = |tenth: u64| {
        let (from, to) = (Nanos::from_secs(window_s / 10 * tenth), Nanos::from_secs(window_s / 10 * (tenth + 1)));
        seen.made.iter().filter(|made| from <= made.due && made.due < to).count() as f64
    };
    part(0) / part(9)
}

#[test]
fn a_load_in_progress_begins_in_its_stationary_state() {
    // In a tenth of the run, 8,000 sessions begin. A session has ten calls on average, with a variance of 85, so the
    // relative error of the number of calls is about 1.5 %. Sessions last 64 s on average, but some last many minutes.
    // Without sessions that began before the run, a sixth of the calls in the first tenth would be missing.
    for load in [browsing(open(20.0, "poisson")), browsing(closed(1_800, "exponential:30"))] {
        let steady = first_over_last(&Load { in_progress: true, ..load.clone() }, 4_000);
        assert!((steady - 1.0).abs() < 0.1, "{steady}: {load:?}");
        if matches!(load.session_arrivals, SessionArrivals::Open { .. }) {
            let from_nothing = first_over_last(&load, 4_000);
            assert!(from_nothing < 0.92, "{from_nothing}");
        }
    }
}

#[test]
fn sessions_from_before_the_run_are_marked() {
    let load = Load { bursts: spread("3"), think_s: spread("10"), in_progress: true, ..open(1.0, "constant") };
    let seen = run(sessions(&load, 60, 1, Shard::WHOLE), steady);
    let before: Vec<u32> =
        seen.ended.iter().filter(|(_, outcome)| outcome.began_before_run).map(|(_, outcome)| outcome.bursts).collect();
    // At the start of the run, the ten sessions that began 20 to 11 s before have one burst left. The ten sessions that
    // began 10 to 1 s before have two bursts left.
    assert_eq!([1, 2].map(|bursts| before.iter().filter(|n| **n == bursts).count()), [10, 10]);
    assert!(seen.ended.iter().filter(|(_, outcome)| !outcome.began_before_run).all(|(_, outcome)| outcome.bursts == 3));
}

/// Expects that the number of ended sessions satisfies the interactive response time law X = N / (R + Z). R is the sum
/// of a session's response times and think times, and Z is the user's rest time between sessions.
#[test]
fn users_keep_the_interactive_response_time_law() {
    let load = Load {
        bursts: spread("geometric:3"),
        calls_per_burst: spread("4"),
        think_s: spread("exponential:2"),
        ..closed(200, "exponential:5")
    };
    for in_progress in [false, true] {
        let seen = run(sessions(&Load { in_progress, ..load.clone() }, 4_000, 5, Shard::WHOLE), steady);
        // A session has three bursts on average. In each burst, two answers follow one another (3 · 0.2 s in total).
        // There are two think times between the bursts (2 · 2 s). Then the user rests for 5 s.
        let expected = 200.0 * 4_000.0 / (0.6 + 4.0 + 5.0);
        let sessions = seen.ended.len() as f64;
        assert!((sessions / expected - 1.0).abs() < 0.03, "{sessions} of {expected}");
        assert!(seen.in_progress <= 200);
    }
}

#[test]
fn connections_are_closed_while_the_user_thinks_if_asked() {
    for (between_bursts, closes) in [(BetweenBursts::Keep, false), (BetweenBursts::Close, true)] {
        let load = Load {
            bursts: spread("2"),
            calls_per_burst: spread("2"),
            think_s: spread("9"),
            between_bursts,
            ..open(0.001, "constant")
        };
        let mut workload = sessions(&load, 60, 1, Shard::WHOLE);
        let mut closings = Vec::new();
        for at in [0, 100, 9_101, 9_200].map(ms) {
            while let NextCall::Due { due, call } = workload.next(at, 0) {
                let at = at + Nanos(1);
                workload.on_outcome(&Outcome { call, due, at, end: OK, bytes_sent: 1, bytes_received: 1 });
                let over = workload.session_ended(SessionId(0)).is_some();
                closings.push((workload.closes_between_bursts(SessionId(0)), over));
            }
        }
        assert_eq!(closings, [(false, false), (closes, false), (false, false), (false, true)]);
    }
}

#[test]
fn an_invalid_arrival_process_is_refused() {
    let limits = WorkloadLimits { window: Nanos::from_secs(1), calls: u64::MAX };
    let load = open(1.0, "sometimes");
    assert!(Sessions::new(&load, Mix::new(&[1.0], 1).unwrap(), limits, 1, Shard::WHOLE).is_err());
}

/// Sessions that are in progress when the run starts have had bursts before. Expects that these bursts are skipped in
/// one step, because simulating each burst would take too long.
#[test]
fn the_past_of_long_sessions_takes_no_time() {
    let load = Load { bursts: spread("1e6"), think_s: spread("0.01"), in_progress: true, ..open(0.01, "constant") };
    let seen = run(sessions(&load, 5, 1, Shard::WHOLE), |_| (Nanos(1), OK));
    // Every 100 s, a session of 10,000 s begins. So a hundred sessions are in progress, each with a hundred bursts per
    // second.
    assert!(seen.made.len().abs_diff(50_000) < 2_500, "{}", seen.made.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_split_load_has_the_same_sessions(
        seed: u64, shards in 1u64..5, in_progress: bool, kind in 0usize..3, rate in 0.5f64..20.0, length in 0usize..3,
        number in prop::option::of(1u64..200), pipelined: bool,
    ) {
        let load = match kind {
            0 => open(rate, "poisson"),
            1 => open(rate, "selfsimilar:0.8"),
            _ => closed((rate * 10.0) as u64, "exponential:7"),
        };
        let load = Load { connections: 2, pipelined, max_sessions: number, ..browsing(load) };
        let load = match length {
            0 => Load { in_progress: in_progress && number.is_none(), ..load },
            1 => Load { calls_per_session: Some(spread("geometric:9")), ..load },
            _ => scripted(load),
        };
        let sorted = |mut made: Vec<Made>| {
            made.sort_unstable();
            made
        };
        let whole = sorted(run(sessions(&load, 60, seed, Shard::WHOLE), steady).made);
        let parts = Shard::WHOLE.split(shards).flat_map(|shard| {
            let made = run(sessions(&load, 60, seed, shard), steady).made;
            assert!(made.iter().all(|made| u64::from(made.session.0) % shard.count == shard.index));
            made
        });
        prop_assert_eq!(sorted(parts.collect()), whole);
    }
}
