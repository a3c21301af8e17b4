//! Tests the ways in which a load chooses its requests: lists, sets of files, requests from files, and templates. Also
//! tests expected responses.

use crate::documents;
use crate::plan::{Files, path_argument};
use crate::program::run;
use brimful_core::record::Record;
use brimful_core::workload::Workload;
use brimful_testkit::{Nginx, NginxOptions};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn load(args: &[&str]) -> Record {
    let done = run(&[&["load", "--json"], args].concat());
    let record = documents::record(&done.stdout);
    // Exit code 1 means that more calls failed than succeeded. Exit code 4 is also accepted: on a busy machine, the
    // load generator may be late.
    let code = i32::from(record.verdict.failing == Some(true));
    assert_eq!(done.code, if record.verdict.valid { code } else { 4 }, "{:#?}", record.verdict);
    record
}

/// An nginx that responds to every request, and logs the method, the path and the variables in `what`.
fn recording(log: &Path, what: &str) -> Nginx {
    Nginx::start(NginxOptions {
        http: format!("log_format asked escape=none '$request_method $request_uri {what}';"),
        extra: format!("access_log {} asked; location / {{ return 200 \"yes\"; }}", log.display()),
        ..NginxOptions::default()
    })
}

/// Waits until the log has this number of lines. Returns how often each line occurs.
fn requests_in(log: &Path, lines: usize) -> BTreeMap<String, usize> {
    let read = || fs::read_to_string(log).unwrap_or_default();
    crate::program::wait_until(|| read().lines().count() >= lines);
    let mut asked = BTreeMap::new();
    for line in read().lines() {
        *asked.entry(line.trim().to_owned()).or_default() += 1;
    }
    fs::write(log, "").unwrap();
    asked
}

#[test]
fn two_shards_together_make_the_requests_of_one() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let nginx = recording(&log, "$http_x_id");
    let list = dir.path().join("urls");
    fs::write(&list, (0..50).map(|i| format!("/{i}\n")).collect::<String>()).unwrap();
    let csv = dir.path().join("users.csv");
    fs::write(&csv, "user\nann\nbob\ncyd\n").unwrap();
    let (list, csv) = (list.to_str().unwrap(), csv.to_str().unwrap());
    let template = format!("{}/{{seq}}/{{rand:1-9}}/{{csv.user}}", nginx.url().trim_end_matches('/'));
    let (log_of_urls, url) = (format!("y,{list}"), nginx.url());
    let cases: [&[&str]; 4] = [
        &[&url, "--urls", list, "--zipf", "0.9"],
        &[&url, "--wset", "100,0.5"],
        &[&url, "--wlog", &log_of_urls],
        &[&template, "--csv", csv, "-H", "X-Id: {uuid}"],
    ];
    for case in cases {
        let part = |shard: &[&str]| {
            let fixed = ["--rate", "1000", "--requests", "300", "--seed", "7"];
            let record = load(&[case, &fixed, shard].concat());
            assert_eq!(record.counts.status.s2xx, record.counts.scheduled);
            record.counts.scheduled
        };
        assert_eq!(part(&[]), 300);
        let whole = requests_in(&log, 300);
        assert_eq!(part(&["--shard", "1/2"]) + part(&["--shard", "2/2", "--threads", "2"]), 300);
        assert_eq!(requests_in(&log, 300), whole, "{case:?}");
        assert!(whole.len() >= 45, "{case:?}: {whole:?}");
    }
}

#[test]
fn clients_of_several_threads_have_different_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let nginx = recording(&log, "");
    let url = format!("{}{{seq}}", nginx.url());
    load(&[&url, "--clients", "6", "--threads", "3", "--requests", "300"]);
    let asked = requests_in(&log, 300);
    assert!(asked.len() == 300 && asked.contains_key("GET /0"), "{asked:?}");
}

#[test]
fn a_list_that_is_requested_once_ends_the_load() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let nginx = recording(&log, "");
    let list = dir.path().join("urls");
    fs::write(&list, "/a\0/b\0/a\0/c?d=e\0").unwrap();
    let wlog = format!("n,{}", list.display());
    for pace in [["--rate", "200"], ["--clients", "2"]] {
        let record = load(&[&[&*nginx.url(), "--wlog", &wlog], &pace[..]].concat());
        assert_eq!(record.counts.completed, 4);
        let expected = [("GET /a", 2), ("GET /b", 1), ("GET /c?d=e", 1)].map(|(line, n)| (line.to_owned(), n));
        assert_eq!(requests_in(&log, 4), expected.into());
    }
}

#[test]
fn requests_of_a_file_are_reported_by_class() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let nginx = recording(&log, "$http_x_a $content_length");
    let file = dir.path().join("requests.jsonl");
    let lines = "{\"path\":\"/r\",\"class\":\"read\",\"weight\":3}\n\
                 {\"path\":\"/w\",\"class\":\"write\",\"method\":\"POST\",\"headers\":{\"X-A\":\"b\"},\"body\":\"1{seq}\"}\n";
    fs::write(&file, lines).unwrap();
    let file = file.to_str().unwrap();
    let record = load(&[&nginx.url(), "--requests-file", file, "--rate", "1000", "--requests", "400", "--seed", "1"]);
    let (read, write) = (record.classes["read"].counts, record.classes["write"].counts);
    assert_eq!((read.completed + write.completed, record.classes.len()), (400, 2));
    assert!((240..360).contains(&read.completed), "{read:?}");
    let asked = requests_in(&log, 400);
    let of =
        |start: &str| asked.iter().filter(|(line, _)| line.starts_with(start)).map(|(_, n)| *n as u64).sum::<u64>();
    assert_eq!((of("GET /r"), of("POST /w b ")), (read.completed, write.completed));
}

#[test]
fn an_unexpected_response_is_a_failure() {
    let nginx = Nginx::start(NginxOptions::default());
    let hello = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
    let other = hello.replace('5', "6");
    for (expect, good) in [
        (&["--expect-status", "2xx"][..], true),
        (&["--expect-status", "200,304", "--expect-length", "6", "--expect-sha256", hello], true),
        (&["--expect-status", "304"], false),
        (&["--expect-length", "7"], false),
        (&["--expect-sha256", &other], false),
    ] {
        for engine in ["auto", "epoll"] {
            for pace in [&["--rate", "500"][..], &["--clients", "2"], &["--clients", "2", "--new-connection"]] {
                let fixed = [&*nginx.url(), "--requests", "20", "--engine", engine];
                let counts = load(&[&fixed, pace, expect].concat()).counts;
                let expected = if good { (20, 0) } else { (0, 20) };
                assert_eq!((counts.completed, counts.unexpected), expected, "{expect:?} {counts:#?}");
                assert_eq!((counts.status.s2xx, counts.imbalance()), (20, (0, 0)));
            }
        }
    }
    let text = run(&["load", &nginx.url(), "--requests", "5", "--clients", "1", "--expect-status", "404", "--full"]);
    let text = text.exits(&[1, 4]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("malformed 0, unexpected 5 "), "{text}");
    assert!(text.contains("not what was expected (all: status 404)"), "{text}");
}

#[test]
fn sessions_end_with_an_unexpected_response() {
    let nginx = Nginx::start(NginxOptions::default());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("workload.toml");
    let toml =
        "[[class]]\nname = 'x'\npath = '/'\nexpect = { status = 404 }\n[load.sessions]\nrate = 100\nbursts = 3\n";
    fs::write(&file, toml).unwrap();
    let record = load(&[&nginx.url(), "--workload", file.to_str().unwrap(), "--duration", "500ms"]);
    let sessions = record.sessions.unwrap();
    assert_eq!((sessions.completed, record.counts.unexpected), (0, sessions.failed));
    assert!(sessions.failed > 0);
}

/// `brimful fileset` must create all files that the workload requests.
#[test]
fn the_example_workloads_find_all_their_files() {
    let nginx = Nginx::start(NginxOptions::default());
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for name in ["webstone-a", "webstone-b", "specweb96-like", "surge-like"] {
        let path = examples.join(format!("{name}.toml"));
        let workload: Workload = toml::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(workload.validate(), Ok(()));
        let path = path.to_str().unwrap();
        let root = nginx.directory().join("www");
        let made = run(&["fileset", path, root.to_str().unwrap()]).exits(&[0]).stdout;
        assert!(made.contains(" files, "), "{made}");
        let args = [&*nginx.url(), "--workload", path, "--duration", "500ms", "--timeout", "60s", "--seed", "3"];
        let record = load(&args);
        assert!(record.counts.completed > 10, "{name}: {:#?}", record.counts);
        assert_eq!(record.counts.status.s2xx, record.counts.completed, "{name}: {:#?}", record.counts);
    }
}

/// Reproduces Table 5 of WebMonitor (Almeida, Almeida & Yates 1997): for each class, its share of the requests and the
/// mean size of its files.
#[test]
fn workload_b_has_the_size_classes_of_the_paper() {
    const KB: f64 = 1024.0;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/webstone-b.toml");
    let workload: toml::Table = fs::read_to_string(file).unwrap().parse().unwrap();
    let size = |class: &toml::Value| class["file_set"]["bytes"].as_integer().unwrap() as f64;
    for (from, to, share, mean) in
        [(0.0, 5.0, 0.842, 2.5), (5.0, 50.0, 0.138, 11.8), (50.0, 500.0, 0.016, 62.5), (500.0, 5000.0, 0.004, 567.0)]
    {
        let classes = workload["class"].as_array().unwrap().iter();
        let members: Vec<(f64, f64)> = classes
            .map(|class| (class["weight"].as_float().unwrap(), size(class)))
            .filter(|&(_, bytes)| bytes >= from * KB && bytes < to * KB)
            .collect();
        let found: f64 = members.iter().map(|(weight, _)| weight).sum();
        assert!((found - share).abs() < 1e-9, "{from} to {to} KB: {found}");
        let bytes = members.iter().map(|(weight, bytes)| weight * bytes).sum::<f64>() / found;
        assert!((bytes / KB / mean - 1.0).abs() < 0.005, "{from} to {to} KB: {} KB", bytes / KB);
    }
}

#[test]
fn errors_in_a_file_have_their_line() {
    let nginx = Nginx::start(NginxOptions::default());
    let files = Files::new();
    let fails = |args: &[&str], message: &str| {
        let url = nginx.url();
        run(&[&["load", &*url, "--requests", "1", "--rate", "10"], args].concat()).fails(2, message);
    };
    fails(&["--urls", &files.write("a", "/a\n/b c\n")], "a, line 2, column 4: a weight");
    fails(&["--urls", &files.write("b", "/a\r\nX: y\n")], "b, line 2, column 1: a path");
    fails(&["--wlog", &format!("y,{}", files.write("c", "/a\0/b\nX: y\0"))], "c, line 2, column 3: no space");
    fails(&["--urls", "nowhere"], "cannot read nowhere");
    fails(&["--requests-file", &files.write("d", "{\"path\":\"/\"}\n{\"path\":7}\n")], "d: line 2, column");
    fails(&["--csv", &files.write("e", "user\nann\nb c\n"), "--data", "{csv.mail}"], "its columns are: user");
    let injected = r#"{"path":"/","headers":{"A":"b\r\nX: y"}}"#;
    fails(&["--requests-file", &files.write("h", injected)], "h");
    fails(&["--requests-file", &files.write("i", r#"{"path":"/ HTTP/1.1\r\nX: y"}"#)], "i");
    fails(&["-H", "X: {csv.user}", "--csv", &files.write("j", "user\n\"ann\nX: y\"\n")], "j, line 2");
    fails(&["--wset", "100"], "--zipf 0.8");
    fails(&["--wset", "100,2"], "is not a set of files");
    fails(&["-H", "X: {csv.user}"], "name the file");
    let url = format!("{}{{csv.user}}", nginx.url());
    let csv = files.write("f", "user\nann\nb c\n");
    let done = run(&["load", &url, "--csv", &csv, "--rate", "10", "--requests", "1"]);
    done.fails(2, "f, line 3, column 1: in the field `user`, no spaces");
    let toml = files.write("g", "[[class]]\nname='x'\nrequests_file='nowhere'\n");
    run(&["fileset", &toml, &path_argument(&files.path(""))]).fails(2, "cannot read nowhere");
}
