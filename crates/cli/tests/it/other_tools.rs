//! Tests `docs/from-other-tools.md`: every brimful command on this page is run for a moment against nginx.

use crate::program::{Running, brimful, lock_machine_shared};
use brimful_testkit::{Nginx, NginxOptions, words};
use std::fs;
use std::path::Path;

/// The command with a shorter duration, against this nginx.
fn short(mut words: Vec<String>, nginx: &Nginx) -> Vec<String> {
    for word in &mut words {
        *word = word.replace("http://server/", &nginx.url());
    }
    for at in 1..words.len() {
        let shorter = match words[at - 1].as_str() {
            "--duration" => "300ms".to_owned(),
            "--requests" => "40".to_owned(),
            "--num-conns" => "20".to_owned(),
            "--rate" => "200".to_owned(),
            "--think" => "20ms".to_owned(),
            "--server" => "127.0.0.1".to_owned(),
            "--port" => nginx.addr().port().to_string(),
            "--stage" => format!("100ms:{}", words[at].split_once(':').unwrap().1),
            // A busy host may be slow, so replace the objective by one that it meets.
            "--slo" => words[at].replace("200ms", "10m"),
            _ => continue,
        };
        words[at] = shorter;
    }
    words
}

#[test]
fn every_brimful_command_on_the_page_works() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/from-other-tools.md");
    let page = fs::read_to_string(page).unwrap();
    let files = ["index.html", "file"].map(|name| (name.to_owned(), b"hello\n".to_vec())).to_vec();
    let extra = "error_page 405 =200 /index.html;".to_owned();
    let nginx = Nginx::start(NginxOptions { files, extra, ..NginxOptions::default() });
    let lines: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("brimful ")).collect();
    assert!(lines.len() >= 12, "{lines:#?}");
    let tools = ["httperf", "wrk", "wrk2", "oha", "vegeta", "ab", "k6"];
    assert!(tools.iter().all(|tool| page.contains(&format!("\n## {tool}\n"))));
    for line in lines {
        let dir = tempfile::tempdir().unwrap();
        let _machine = lock_machine_shared();
        let mut command = brimful(&short(words(line), &nginx));
        command.current_dir(dir.path());
        let done = Running::start(command).finish();
        // Exit code 4 means that the load generator was late, because the host was busy.
        let done = done.exits(&[0, 4]);
        // The report in httperf's format counts the responses in the line `Reply status`.
        let answered = done.stdout.contains("\nErrors      none\n") || done.stdout.contains("Reply status");
        let failed = done.stdout.contains("FAILING") || !answered;
        assert!(!failed, "{line}: {}", done.stdout);
        assert_eq!(dir.path().join("calls.jsonl").exists(), line.contains("--trace"));
    }
}
