//! Tests `brimful load --shard` and `brimful merge`: the Records of a load's shards, and the merged Record of the whole
//! load.

use crate::documents;
use crate::plan::Files;
use crate::program::{Done, Running, brimful, lock_machine_shared, run, wait_until, words};
use crate::target;
use brimful_core::record::{ReasonCode, Record, ShardOrigin};
use brimful_stats::Account;
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

const CLASSES: &str = r#"
    [[class]]
    name = "light"
    path = "/light"
    weight = 0.7

    [[class]]
    name = "heavy"
    path = "/heavy"
    weight = 0.3
"#;

/// Records of a load of two classes by two shards that start at the same time, and of the same load by one process.
struct Runs {
    files: Files,
    shards: [Record; 2],
    whole: Record,
}

fn runs(load: &[&str]) -> Runs {
    let files = Files::new();
    let workload = files.write("workload.toml", CLASSES);
    let _machine = lock_machine_shared();
    let (_target, address) = target::start(&["--service", "light=50us,heavy=200us"]);
    let start = |more: &[&str]| {
        let common = ["load", &address, "--json", "--workload", &workload, "--seed", "7"];
        Running::start(brimful(&[&common, load, more].concat()))
    };
    let record = |running: Running| documents::record(&running.finish().exits(&[0, 4]).stdout);
    let agreed = SystemTime::now() + Duration::from_secs(2);
    let agreed = agreed.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64().to_string();
    // Shards may have different numbers of threads.
    let shards = [("1/2", "1"), ("2/2", "2")];
    let shards = shards.map(|(shard, threads)| start(&["--shard", shard, "--start-at", &agreed, "--threads", threads]));
    let shards = shards.map(record);
    let runs = Runs { files, shards, whole: record(start(&[])) };
    for (i, record) in runs.shards.iter().enumerate() {
        runs.files.write(&format!("{}.json", i + 1), serde_json::to_string(record).unwrap());
        let [shard] = &record.shards[..] else { panic!("{:?}", record.shards) };
        assert_eq!((shard.index, shard.total), (i as u64 + 1, 2));
        assert!(shard.offset_us.is_some_and(|offset| offset >= 0.0) && !shard.host.is_empty(), "{shard:?}");
    }
    assert!(runs.whole.shards.is_empty());
    runs
}

impl Runs {
    fn merge(&self, names: &[&str], flags: &[&str]) -> Done {
        let paths: Vec<String> = names.iter().map(|name| crate::plan::path_argument(&self.files.path(name))).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        run(&[&["merge"], &paths[..], flags].concat())
    }

    /// Writes a changed copy of the Record of the second shard to `changed.json`.
    fn change(&self, change: impl FnOnce(&mut Value)) {
        let mut record = serde_json::to_value(&self.shards[1]).unwrap();
        change(&mut record);
        self.files.write("changed.json", record.to_string());
    }
}

#[test]
fn two_shards_of_a_schedule_make_the_whole_schedule() {
    let runs = runs(&["--rate", "300", "--arrivals", "poisson", "--duration", "1200ms"]);
    let [a, b] = &runs.shards;
    let merged = documents::record(&runs.merge(&["2.json", "1.json"], &["--json"]).exits(&[0, 4]).stdout);
    assert_eq!(merged.counts.scheduled, runs.whole.counts.scheduled);
    assert_eq!((merged.rates.offered, merged.window_s), (runs.whole.rates.offered, 1.2));
    for (name, class) in &runs.whole.classes {
        assert_eq!(merged.classes[name].counts.scheduled, class.counts.scheduled, "{name}");
    }
    let offered = |record: &Record| record.intervals.iter().map(|i| i.offered).take(2).collect::<Vec<_>>();
    assert_eq!(offered(&merged), offered(&runs.whole));

    let account = |record: &Record| Account::unpack(record.account.as_ref().unwrap()).unwrap();
    let both = account(a).merge(account(b)).unwrap();
    assert_eq!(account(&merged), both, "the histograms are merged bin for bin");
    assert_eq!(merged.generator.threads, 3);
    assert!(merged.generator.host_probe.unwrap().arithmetic_mops <= a.generator.host_probe.unwrap().arithmetic_mops);
    assert_eq!(merged.generator.busy, a.generator.busy.max(b.generator.busy));
    // Verdicts depend on how busy the machine is, so they are removed before the comparison.
    let unjudged = |mut shards: Vec<ShardOrigin>| {
        shards.iter_mut().for_each(|shard| shard.reasons.clear());
        shards
    };
    assert_eq!(unjudged(merged.shards.clone()), unjudged([&a.shards[..], &b.shards].concat()));
    assert_eq!(merged.started_at, a.started_at.clone().min(b.started_at.clone()));

    let text = words(&runs.merge(&["1.json", "2.json"], &[]).exits(&[0, 4]).stdout);
    assert!(
        text.contains("note: These are all 2 shards of the load, on one host, and they began within ")
            && text.contains("Verdict"),
        "{text}"
    );
    let one = words(&runs.merge(&["2.json"], &[]).exits(&[0, 4]).stdout);
    assert!(one.contains("note: This is shard 2/2 of a load: `brimful merge` it with the others."), "{one}");

    // If the shards did not start at the same time, the merged load did not have the requested rate. `merge` must print
    // a warning.
    runs.change(|record| record["started_at"] = json!("2024-01-01T00:00:00Z"));
    assert!(runs.merge(&["1.json", "changed.json"], &[]).stderr.contains("give all shards the same --start-at"));
    assert_eq!(runs.merge(&["1.json", "changed.json"], &["--quiet"]).stderr, "");
}

#[test]
fn shards_share_the_clients_and_the_calls_of_a_closed_loop() {
    let runs = runs(&["--clients", "5", "--requests", "101", "--timeout", "1m"]);
    let counts = |record: &Record| (record.counts.scheduled, record.counts.completed);
    assert_eq!(runs.shards.iter().map(counts).collect::<Vec<_>>(), [(51, 51), (50, 50)]);
    let merged = documents::record(&runs.merge(&["1.json", "2.json"], &["--json"]).exits(&[0, 4]).stdout);
    assert_eq!((counts(&merged), counts(&runs.whole)), ((101, 101), (101, 101)));
    assert!(merged.generator.max_open_connections <= 5, "{:?}", merged.generator);
    assert_eq!(merged.window_s, runs.shards[0].window_s.max(runs.shards[1].window_s), "up to the last response");
}

#[test]
fn a_shard_without_clients_was_not_busy() {
    let runs = runs(&["--clients", "1", "--requests", "6", "--timeout", "1m"]);
    let [working, idle] = &runs.shards;
    assert_eq!((working.counts.completed, idle.counts.scheduled), (3, 0));
    assert_eq!((idle.generator.busy, &idle.verdict.reasons[..]), (0.0, &[][..]));
}

#[test]
fn records_that_cannot_be_merged_are_refused_with_the_reason() {
    let runs = runs(&["--rate", "100", "--requests", "20"]);
    let refused = |message: &str| runs.merge(&["1.json", "changed.json"], &[]).fails(2, message);
    runs.merge(&["1.json", "1.json"], &[]).fails(2, "both hold shard 1/2: name each Record once");
    runs.merge(&["1.json", "none.json"], &[]).fails(2, "none.json");
    let whole = serde_json::to_string(&runs.whole).unwrap();
    for (text, message) in [
        ("", "EOF while parsing"),
        ("{}", "changed.json is not a Record (missing field"),
        ("# Markdown", "changed.json is not a Record"),
        (&whole[..whole.len() / 2], "changed.json is not a Record"),
        (r#"{"schema": "brimful.survey/1"}"#, "it is a `brimful.survey/1`, and a Record is a `brimful.record/1`"),
        (&whole, "changed.json: it is a whole load and no part of one"),
    ] {
        runs.files.write("changed.json", text);
        refused(message);
    }
    runs.change(|record| record["schema"] = json!("brimful.record/2"));
    refused("it is a `brimful.record/2`");
    runs.change(|record| drop(record.as_object_mut().unwrap().remove("account")));
    refused("it has no `account`, which merging needs: it was written by an older brimful");
    runs.change(|record| record["account"]["classes"][0]["name"] = json!("other"));
    refused("are not of one load: their classes differ (light, heavy and other, heavy)");
    runs.change(|record| record["account"]["window_ns"] = json!(1));
    refused("are not of one load: their planned durations differ");
    runs.change(|record| record["account"]["classes"][0]["response_time"]["histogram"] = json!("AAAA"));
    refused("changed.json: its account is damaged (a histogram: it is cut short)");
    runs.change(|record| record["shards"][0]["of"] = json!(3));
    refused("the number of shards of the one is 2, that of the other 3");
    runs.change(|record| record["seed"] = json!(8));
    refused("the seed of the one is 7, that of the other 8");
    runs.change(|record| record["target"] = json!("http://elsewhere/"));
    refused("that of the other http://elsewhere/; merge runs that differ in --shard only");
    run(&["merge"]).fails(2, "<RECORD>");
}

#[test]
fn invalid_parts_and_instants_are_refused() {
    let load = |flags: &[&str]| run(&[&["load", "http://127.0.0.1:1/", "--rate", "10"], flags].concat());
    load(&["--shard", "3/2", "--seed", "1"]).fails(2, "write 1/4 to 4/4 for four parts");
    load(&["--shard", "1/2"]).fails(2, "--seed");
    load(&["--start-at", "tomorrow"]).fails(2, "write it like 2026-03-01T14:00:00Z");
    load(&["--start-at", "1772373600"]).fails(2, "the instant of --start-at has passed");
}

#[test]
fn calls_of_a_lost_shard_are_kept_and_its_share_is_missing_afterwards() {
    let files = Files::new();
    let [kept, whole] = ["kept.json", "whole.json"].map(|name| crate::plan::path_argument(&files.path(name)));
    let machine = lock_machine_shared();
    let (_target, address) = target::start(&["--service", "page=50us"]);
    let common = ["load", &address, "--rate", "100", "--seed", "7", "--json", "--quiet"];
    let start = |more: &[&str]| Running::start(brimful(&[&common, more].concat()));
    let other = start(&["--duration", "8s", "--shard", "1/3", "--keep", &whole]);
    let lost = start(&["--duration", "8s", "--shard", "3/3", "--keep", &kept]);
    let completed = |path: &str| {
        let text = std::fs::read_to_string(path).ok()?;
        Some(serde_json::from_str::<Record>(&text).expect("the kept Record is complete at any time").counts.completed)
    };
    wait_until(|| completed(&kept).is_some_and(|calls| calls > 0));
    lost.kill();
    let own = documents::record(&other.finish().exits(&[0, 4]).stdout);
    drop(machine);

    let part: Record = serde_json::from_str(&std::fs::read_to_string(&kept).unwrap()).unwrap();
    let at = part.shards[0].lost_at_s.unwrap();
    assert!((0.1..8.0).contains(&at) && part.duration_s == at, "{at}");
    assert_eq!((part.counts.imbalance(), part.counts.scheduled > 0), ((0, 0), true), "{:?}", part.counts);
    let kept_whole: Record = serde_json::from_str(&std::fs::read_to_string(&whole).unwrap()).unwrap();
    assert_eq!((&kept_whole, kept_whole.shards[0].lost_at_s), (&own, None), "the file has the complete Record");

    let merged = run(&["merge", &whole, &kept, "--lost", "2", "--json", "--slo", "p99<1ns"]).exits(&[4]);
    let record = documents::record(&merged.stdout);
    assert_eq!(record.counts.scheduled, own.counts.scheduled + part.counts.scheduled);
    assert_eq!(record.shards.iter().map(|shard| shard.lost_at_s).collect::<Vec<_>>(), [None, Some(0.0), Some(at)]);
    let reason = record.verdict.reasons.iter().find(|reason| reason.code == ReasonCode::ShardLost).unwrap();
    assert!(reason.message.contains("shard 2/3 never began; shard 3/3 on "), "{}", reason.message);
    assert_eq!(record.objectives.iter().map(|one| one.met).collect::<Vec<_>>(), [false]);
    for (lost, message) in [("4", "the load has shards 1 to 3"), ("1", "shard 1 is not lost")] {
        run(&["merge", &whole, &kept, "--lost", lost]).fails(2, message);
    }
    let text = words(&run(&["merge", &whole, &kept]).exits(&[4]).stdout);
    assert!(text.contains("missing: 2. Merge them as well. Lost: 3/3 on "), "{text}");
}

#[test]
fn a_shard_starts_by_the_fleets_clock_and_ends_with_its_parent() {
    let files = Files::new();
    let kept = crate::plan::path_argument(&files.path("kept.json"));
    let _machine = lock_machine_shared();
    let (_target, address) = target::start(&["--service", "page=50us"]);
    // This host's clock is 100 s behind the fleet's clock. On the fleet's clock, the time in 2 s is this host's current
    // time plus 102 s.
    let agreed = SystemTime::now() + Duration::from_secs(102);
    let agreed_s = agreed.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64().to_string();
    let mut shard = brimful(&[
        "load",
        &address,
        "--rate",
        "100",
        "--seed",
        "7",
        "--quiet",
        "--shard",
        "1/1",
        "--keep",
        &kept,
        "--duration",
        "10m",
        "--until-stdin-ends",
        "--start-at",
        &agreed_s,
        "--clock-ahead",
        "-100s/250us",
    ]);
    let mut shard = shard.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let stdin = shard.stdin.take();
    wait_until(|| std::path::Path::new(&kept).exists());
    drop(stdin);
    assert_eq!(shard.wait().unwrap().code(), Some(130));
    let record: Record = serde_json::from_str(&std::fs::read_to_string(&kept).unwrap()).unwrap();
    let [shard] = &record.shards[..] else { panic!("{:?}", record.shards) };
    assert_eq!((shard.clock_ahead_us, shard.clock_error_us), (Some(-100e6), Some(250.0)));
    let began = humantime::parse_rfc3339(&record.started_at).unwrap();
    assert!(began >= agreed - Duration::from_millis(1), "too early: {} by the fleet's clock", record.started_at);
    assert!(record.interrupted && record.counts.completed > 0 && shard.lost_at_s.is_none(), "{shard:?}");
}

#[test]
fn a_fleet_without_its_package_says_what_to_install() {
    let nowhere = Files::new();
    let mut command = brimful(&["fleet", "run", "--help"]);
    command.env("PATH", nowhere.path("."));
    Running::start(command).finish().fails(3, "`pip install brimful`");
}
