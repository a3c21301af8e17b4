//! `brimful load` with sessions against nginx, whose access log says who came, how often and when.

use crate::documents;
use crate::program::run;
use brimful_core::record::{Record, SessionFigures};
use brimful_core::workload::{BetweenBursts, Load};
use brimful_testkit::{Nginx, NginxOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Forty sessions a second with three bursts of three calls each.
fn workload(between_bursts: &str) -> String {
    format!(
        "[[class]]\nname = \"page\"\npath = \"/page\"\n[[class]]\nname = \"image\"\nweight = 2\npath = \"/image\"\n\
         [load.sessions]\nrate = 40\narrivals = \"constant\"\nbursts = 3\ncalls_per_burst = 3\nthink_s = \"0.3\"\n\
         connections = 2\nbetween_bursts = \"{between_bursts}\"\n"
    )
}

/// What a session asked for: when in milliseconds, and on which connection.
type Visits = BTreeMap<String, Vec<(u64, u64)>>;

/// Drives nginx for two seconds; what its log says of each address.
fn drive(dir: &Path, between_bursts: &str, threads: &str) -> (Record, Visits) {
    fs::set_permissions(dir, Permissions::from_mode(0o755)).unwrap();
    let at = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let (log, document) = (at("access.log"), at("workload.toml"));
    fs::write(&document, workload(between_bursts)).unwrap();
    let files = ["page", "image"].map(|name| (name.to_owned(), b"hello\n".to_vec())).to_vec();
    let http = "log_format sessions '$remote_addr $msec $connection';".to_owned();
    let extra = format!("access_log {log} sessions;");
    let nginx = Nginx::start(NginxOptions { files, http, extra, ..NginxOptions::default() });
    let args = ["load", &nginx.url(), "--workload", &document, "--duration", "2s", "--source-ip", "127.7.0.0/24"];
    let done = run(&[&args[..], &["--threads", threads, "--json"]].concat()).exits(&[0, 4]);
    drop(nginx);
    let mut visits = Visits::new();
    for line in fs::read_to_string(log).unwrap().lines() {
        let [address, time, connection] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let ms = time.replace('.', "").parse().unwrap();
        visits.entry(address.to_owned()).or_default().push((ms, connection.parse().unwrap()));
    }
    (documents::record(&done.stdout), visits)
}

fn check(between_bursts: &str, threads: &str) -> (SessionFigures, Visits) {
    let dir = tempfile::tempdir().unwrap();
    let (record, visits) = drive(dir.path(), between_bursts, threads);
    let figures = record.sessions.unwrap();
    let SessionFigures { started, completed, failed, in_progress, rate, .. } = figures;
    assert_eq!((started, failed, rate), (80, 0, 40.0), "{figures:?}");
    assert_eq!((completed + in_progress, visits.len()), (80, 80), "each has an address of its own");
    assert_eq!(visits.values().map(Vec::len).sum::<usize>() as u64, record.counts.completed);
    assert_eq!(figures.calls.map(|calls| (calls.mean, calls.max)), Some((9.0, 9.0)), "{figures:?}");
    assert_eq!(figures.bursts.map(|bursts| bursts.mean), Some(3.0));
    assert!(figures.lifetime_s.unwrap().mean >= 0.6, "two think times: {figures:?}");
    let whole: Visits = visits.into_iter().filter(|(_, visit)| visit.len() == 9).collect();
    // Not all calls of those that were cut off have to be missing.
    assert!(whole.len() as u64 >= completed && completed > 0);
    for (address, visit) in &whole {
        for burst in [3, 6] {
            let thought = visit[burst].0 - visit[burst - 1].0;
            // The log has whole milliseconds.
            assert!(thought + 2 >= 300, "{address} thought for {thought} ms");
        }
    }
    (figures, whole)
}

fn connections(visit: &[(u64, u64)]) -> usize {
    visit.iter().map(|(_, connection)| connection).collect::<BTreeSet<_>>().len()
}

#[test]
fn a_servers_log_has_the_sessions_that_were_asked_for() {
    for threads in ["1", "2"] {
        let (figures, visits) = check("keep", threads);
        assert!(visits.values().all(|visit| (1..=2).contains(&connections(visit))), "{visits:?}");
        assert!(figures.connections.unwrap().max <= 2.0);
    }
    let (figures, visits) = check("close", "1");
    for (address, visit) in &visits {
        let of_bursts: Vec<BTreeSet<u64>> = visit.chunks(3).map(|burst| burst.iter().map(|c| c.1).collect()).collect();
        assert!(of_bursts.windows(2).all(|pair| pair[0].is_disjoint(&pair[1])), "{address}: {visit:?}");
    }
    assert!(figures.connections.unwrap().p50 >= 3.0, "{figures:?}");
}

#[test]
fn what_does_not_go_with_sessions_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("workload.toml");
    let path = path.to_str().unwrap();
    let nginx = Nginx::start(NginxOptions::default());
    fs::write(path, workload("keep")).unwrap();
    let url = nginx.url();
    let load = |rest: &[&str]| run(&[&["load", &url, "--workload", path], rest].concat());
    load(&["--requests", "10"]).fails(2, "sessions end by themselves: leave out --requests");
    for flag in [&["--calls-per-connection", "3"][..], &["--new-connection"]] {
        load(flag).fails(2, "leave out --calls-per-connection and --new-connection");
    }
    load(&["--pipeline", "2"]).fails(2, "leave out --pipeline");
    for (text, message) in [
        ("rate = 2\nthink_s = \"weibull:1\"", "`weibull:1` is not a distribution: write a number, exponential:MEAN"),
        ("rate = 2\nbursts = \"geometric:0\"", "its mean is a number of 1 or more"),
        ("rate = 2\nusers = 2", "sessions need either a rate"),
        ("rate = 2\narrivals = \"sometimes\"", "`sometimes` is not an arrival process"),
        ("rate = 0", "a rate of sessions is above zero"),
    ] {
        fs::write(path, format!("[[class]]\nname = \"a\"\npath = \"/\"\n[load.sessions]\n{text}\n")).unwrap();
        load(&[]).fails(2, message);
    }
    // A rate on the command line is a load of its own.
    fs::write(path, workload("close")).unwrap();
    let done = load(&["--rate", "50", "--requests", "5", "--json"]).exits(&[0, 4]);
    assert_eq!(documents::record(&done.stdout).sessions, None);
}

#[test]
fn a_record_says_which_sessions_were_asked_for_and_its_text_what_became_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("workload.toml");
    let path = path.to_str().unwrap();
    let out = dir.path().join("record.json");
    let nginx = Nginx::start(NginxOptions::default());
    let users = "[[class]]\nname = \"a\"\npath = \"/\"\n[load.sessions]\nusers = 8\nrest_s = 0.05\nbursts = 2\n\
                 between_bursts = \"close\"\n";
    fs::write(path, users).unwrap();
    let args = ["load", &nginx.url(), "--workload", path, "--duration", "500ms", "--out", out.to_str().unwrap()];
    let done = run(&args).exits(&[0, 4]);
    assert!(
        done.stdout.contains("\nSessions         ") && done.stdout.contains("\nSession size     "),
        "{}",
        done.stdout
    );
    let record = documents::record(&fs::read_to_string(out).unwrap());
    let sessions = record.sessions.unwrap();
    assert_eq!((sessions.failed, sessions.bursts.unwrap().mean, sessions.connections.unwrap().mean), (0, 2.0, 2.0));
    let Some(Load::Sessions(asked)) = record.workload.unwrap().load else { panic!("the load is lost") };
    assert_eq!((asked.between_bursts, asked.connections), (BetweenBursts::Close, 6));
}
