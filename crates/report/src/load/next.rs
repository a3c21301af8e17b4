//! Suggests the next command after a run, depending on its results.

use brimful_core::quantity::three_digits;
use brimful_core::record::{ReasonCode, Record};
use brimful_core::text::one_line;
use brimful_core::workload::{AttemptPace, Load};

use super::main_figures::server_share;
use crate::thresholds::{MIN_KEEP_UP_RATIO, NEAR_SATURATION, NOTABLE_ERRORS};

/// The suggested command, in one sentence.
pub(super) fn next(record: &Record) -> String {
    let url = quoted(&record.target);
    let counts = &record.counts;
    let pages = counts.status.s2xx + counts.status.s3xx;
    let abandons_by_design = matches!(load(record), Some(Load::SClients { .. }));
    let failed = counts.error_share().is_some_and(|share| share >= NOTABLE_ERRORS) && !abandons_by_design;
    if let [shard] = &record.shards[..]
        && shard.total > 1
    {
        format!("`brimful merge` this Record with those of the other {}", shard.total - 1)
    } else if !record.verdict.valid {
        after_invalid(record, &url)
    } else if counts.completed == 0 && counts.established == 0 {
        format!("`curl -v {url}` shows whether anything answers there")
    } else if failed {
        "the same with `--print 3` shows the first calls that fail; with `--trace calls.jsonl` every call".to_owned()
    } else if let Some(clients) = too_few_s_clients(record) {
        format!("the same with `--s-clients {}`: attempts were due while all {clients} had one pending", 2 * clients)
    } else if pages == 0 {
        "the same with `--print 1` shows an answer".to_owned()
    } else if let Some(less) = less(record).filter(|_| record.objectives.iter().any(|objective| !objective.met)) {
        format!("the same with `{less}`, to see from where on the objective is met")
    } else if counts.share_of_calls(record.verdict.error_answers).is_some_and(|share| share >= NOTABLE_ERRORS) {
        "the same with `--expect-status 2xx,3xx --print 1` shows the first answer that is none of these".to_owned()
    } else if at_unix_socket(record) {
        let more = more(record).map(|more| format!("the same with `{more}`"));
        more.unwrap_or_else(|| "the same with `--full` shows every figure".to_owned())
    } else if is_full(record) {
        format!("`{}` finds how much the server can take, and what is full", survey(record, &url))
    } else {
        let more = more(record).map(|more| format!("the same with `{more}`, or "));
        format!("{}`{}` to find how much the server can take", more.unwrap_or_default(), survey(record, &url))
    }
}

fn load(record: &Record) -> Option<&Load> {
    record.workload.as_ref()?.load.as_ref()
}

/// The suggestion after a run that is not valid: a command that shows or raises the limit of the load generator.
fn after_invalid(record: &Record, url: &str) -> String {
    use ReasonCode::{BeyondClientMax, Descriptors, GeneratorCpu, GeneratorLate, GeneratorStalled, Memory, Ports};
    let has = |codes: &[ReasonCode]| record.verdict.reasons.iter().any(|reason| codes.contains(&reason.code));
    if has(&[Descriptors, Ports, Memory]) {
        "`brimful doctor` shows what this host allows, and the command that raises each limit".to_owned()
    } else if let Some(max) = record.generator.max_rate.filter(|_| has(&[BeyondClientMax])) {
        format!("the same with `--rate {}`, which this client can offer", flag(max))
    } else if has(&[GeneratorLate, GeneratorCpu]) && at_unix_socket(record) {
        less(record).map_or_else(|| "the same with less load".to_owned(), |less| format!("the same with `{less}`"))
    } else if has(&[GeneratorLate, GeneratorCpu]) {
        let less = less(record).map(|less| format!("the same with `{less}`; "));
        format!("{}`brimful load {url} --calibrate` finds what this client can offer", less.unwrap_or_default())
    } else if has(&[GeneratorStalled]) {
        "the same again, while nothing else keeps this host busy".to_owned()
    } else {
        "the same again, once what the verdict names is mended".to_owned()
    }
}

/// Whether the server listens on a Unix socket, which surveys and calibrations do not support.
fn at_unix_socket(record: &Record) -> bool {
    record.target.starts_with("http+unix://") || record.target.starts_with("https+unix://")
}

/// Whether the server was saturated: it did not keep up with an open load, its programs used nearly all CPU time, or
/// the load was made by S-Clients (clients that abandon slow connection attempts), which overload a server.
fn is_full(record: &Record) -> bool {
    let is_open =
        matches!(load(record), None | Some(Load::Open { .. } | Load::Stages { .. } | Load::Trace(_) | Load::Log(_)));
    let falls_behind = is_open && record.rates.completed < MIN_KEEP_UP_RATIO * record.rates.offered;
    let busy = record.server.as_ref().and_then(server_share).is_some_and(|share| share > NEAR_SATURATION);
    falls_behind || busy || matches!(load(record), Some(Load::SClients { .. }))
}

/// The number of S-Clients if there were too few for the scheduled rate: many attempts were due while every S-Client
/// still had an attempt under way.
fn too_few_s_clients(record: &Record) -> Option<u64> {
    let Load::SClients { attempts, pace: AttemptPace::Schedule(schedule) } = load(record)? else { return None };
    let Load::Open { rate, .. } = **schedule else { return None };
    (!record.interrupted && record.rates.offered < MIN_KEEP_UP_RATIO * rate.0).then_some(*attempts)
}

/// The flag that doubles the load, such as `--rate 2000`; `None` if no flag scales this kind of load.
fn more(record: &Record) -> Option<String> {
    scaled_load(record, 2.0)
}

/// The flag that halves the load, such as `--rate 500`; `None` if no flag scales this kind of load.
fn less(record: &Record) -> Option<String> {
    scaled_load(record, 0.5)
}

fn scaled_load(record: &Record, factor: f64) -> Option<String> {
    let whole = |n: u64| ((n as f64 * factor) as u64).max(1);
    match load(record)? {
        Load::Open { rate, .. } => Some(format!("--rate {}", flag(rate.0 * factor))),
        Load::Closed { clients, .. } => {
            Some(format!("--clients {}", whole(*clients))).filter(|_| whole(*clients) != *clients)
        }
        Load::Trace(trace) => Some(format!("--speed {}x", flag(trace.speed * factor))),
        Load::Log(log) => Some(format!("--speed {}x", flag(log.speed * factor))),
        _ => None,
    }
}

/// Formats a number for a flag: as a whole number from 100 on, otherwise with up to three significant digits.
fn flag(x: f64) -> String {
    if x >= 99.95 { format!("{x:.0}") } else { three_digits(x).trim_end_matches('0').trim_end_matches('.').to_owned() }
}

/// The suggested `brimful survey` command. For a server on another host, it has `--black-box`, because the server's
/// programs cannot be monitored.
fn survey(record: &Record, url: &str) -> String {
    let host = record.target.split_once("://").map_or("", |(_, rest)| rest);
    let here = ["127.", "localhost", "[::1]"].iter().any(|loopback| host.starts_with(loopback));
    if here { format!("brimful survey {url}") } else { format!("brimful survey {url} --black-box") }
}

/// Quotes a URL as one word for a shell, if it needs quotes.
fn quoted(url: &str) -> String {
    let url = one_line(url);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/:._-~%+,@=[]".contains(c);
    if url.chars().all(is_plain) { url.into_owned() } else { format!("'{}'", url.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::fixture::record;
    use brimful_core::counts::{Counts, StatusCounts};
    use brimful_core::record::{Reason, ShardOrigin, Verdict};
    use brimful_core::server::{Kernel, Program, Server};
    use brimful_core::workload::{Trace, Workload};
    use brimful_core::{Nanos, Rate};

    /// The Record of a successful run of this load.
    fn run(load: Load) -> Record {
        let record = record();
        let mut workload = Workload::single_class("GET", "/");
        workload.load = Some(load);
        let counts = Counts { completed: 27_000, timed_out: 0, ..record.counts };
        Record { workload: Some(workload), counts, ..record }
    }

    fn open(rate: f64) -> Record {
        run(Load::Open { rate: Rate(rate), arrivals: "constant".to_owned() })
    }

    #[test]
    fn a_server_that_keeps_up_is_asked_for_more() {
        let trace = |speed| run(Load::Trace(Trace { file: "t".to_owned(), speed }));
        for (record, flag) in [
            (open(150.0), "--rate 300"),
            (open(0.25), "--rate 0.5"),
            (run(Load::Closed { clients: 3, think: Nanos::ZERO }), "--clients 6"),
            (trace(1.25), "--speed 2.5x"),
        ] {
            assert!(
                next(&record).starts_with(&format!("the same with `{flag}`, or `brimful survey ")),
                "{}",
                next(&record)
            );
        }
        let of_sessions = Record { workload: None, ..open(150.0) };
        assert!(next(&of_sessions).starts_with("`brimful survey http://127.0.0.1:8080/` to find"));
    }

    #[test]
    fn a_server_that_is_full_is_surveyed() {
        let full = "`brimful survey http://127.0.0.1:8080/` finds how much the server can take, and what is full";
        let mut behind = open(150.0);
        behind.rates.completed = 120.0;
        assert_eq!(next(&behind), full);
        let mut busy = open(150.0);
        let program = Program { cores: 1.9, ..Program::default() };
        let kernel = Kernel { cpus: vec![0, 1], ..Kernel::default() };
        busy.server = Some(Server { kernel, process: vec![program], ..Server::default() });
        assert_eq!(next(&busy), full);
        let abandoned = Counts { completed: 10, abandoned: 26_990, ..open(150.0).counts };
        let overloaded = Record { counts: abandoned, ..run(Load::s_clients(500)) };
        assert_eq!(next(&overloaded), full);
        let there = Record { target: "https://shop.example/a?b=c&d".to_owned(), ..behind };
        assert!(next(&there).starts_with("`brimful survey 'https://shop.example/a?b=c&d' --black-box`"));
    }

    #[test]
    fn what_went_wrong_comes_first() {
        let invalid = |code| {
            let reason = Reason { code, message: "so it is".to_owned() };
            Record { verdict: Verdict::from_reasons(vec![reason]), ..open(4_000.0) }
        };
        let late = "the same with `--rate 2000`; `brimful load http://127.0.0.1:8080/ --calibrate` finds what this client \
                    can offer";
        assert_eq!(next(&invalid(ReasonCode::GeneratorLate)), late);
        assert!(next(&invalid(ReasonCode::Descriptors)).starts_with("`brimful doctor`"));
        let mut beyond = invalid(ReasonCode::BeyondClientMax);
        beyond.generator.max_rate = Some(3_100.4);
        assert_eq!(next(&beyond), "the same with `--rate 3100`, which this client can offer");
        let errors = Counts { completed: 20_000, reset: 7_000, ..open(150.0).counts };
        assert!(next(&Record { counts: errors, ..open(150.0) }).starts_with("the same with `--print 3`"));
        let status = StatusCounts { s4xx: 27_000, ..StatusCounts::default() };
        let absent = Counts { status, ..open(150.0).counts };
        assert_eq!(next(&Record { counts: absent, ..open(150.0) }), "the same with `--print 1` shows an answer");
        let mut refused = open(150.0);
        refused.verdict.error_answers = 270;
        assert!(next(&refused).starts_with("the same with `--expect-status 2xx,3xx --print 1`"), "{}", next(&refused));
        let shard = ShardOrigin { index: 1, total: 3, ..ShardOrigin::default() };
        let part = Record { shards: vec![shard], ..open(150.0) };
        assert_eq!(next(&part), "`brimful merge` this Record with those of the other 2");
    }
}
