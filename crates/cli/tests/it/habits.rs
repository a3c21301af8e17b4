//! Tests command lines in the style of other load generators. Checks the requests that the server receives, and the
//! Record.

use crate::documents;
use crate::program::run;
use brimful_core::workload::Load;
use brimful_testkit::{Nginx, NginxOptions};
use std::fs;

fn nginx() -> Nginx {
    let extra = "location /form { return 200 'taken'; }".to_owned();
    Nginx::start(NginxOptions { extra, ..NginxOptions::default() })
}

#[test]
fn a_url_alone_defines_a_load() {
    let nginx = nginx();
    let done = run(&["load", &nginx.url(), "-z", "300ms", "--json"]).exits(&[0, 4]);
    let said = "no load is defined, so 10 clients call, each waiting for a response before its next call, for 300 ms";
    assert!(done.stderr.contains(said) && done.stderr.contains("--rate N"), "{}", done.stderr);
    let record = documents::record(&done.stdout);
    assert!(matches!(record.workload.unwrap().load, Some(Load::Closed { clients: 10, .. })));
    let done = run(&["load", &nginx.url(), "-n", "20"]).exits(&[0, 4]);
    assert!(done.stderr.contains("until 20 calls are made"), "{}", done.stderr);
    let done = run(&["load", &nginx.url(), "-n", "20", "--quiet"]).exits(&[0, 4]);
    assert!(!done.stderr.contains("no load is defined"), "{}", done.stderr);
    // Without `--rate`, a load is closed, so a flag of open loads is an error whose message names `--rate`.
    run(&["load", &nginx.url(), "--arrivals", "poisson"]).fails(2, "--rate 1000");
}

#[test]
fn a_body_is_posted_from_the_command_line_or_a_file() {
    let nginx = nginx();
    let url = format!("{}form", nginx.url().trim_end_matches("index.html"));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("order.json");
    fs::write(&file, r#"{"seq":"{seq}"}"#).unwrap();
    let from_file = format!("@{}", file.display());
    for (flags, line, body) in [
        (&["-b", "a=1"][..], "> POST /form HTTP/1.1", "a=1"),
        (&["--data", "a=1", "-X", "put"], "> PUT /form HTTP/1.1", "a=1"),
        // Braces in a body from a file are not a template: the content is sent unchanged.
        (&["--body", &from_file], "> POST /form HTTP/1.1", r#"{"seq":"{seq}"}"#),
    ] {
        let args = ["load", &url, "-c", "1", "-n", "2", "--print", "1"];
        let shown = run(&[&args[..], flags].concat()).exits(&[0, 4]).stderr;
        let length = format!("> Content-Length: {}", body.len());
        assert!(shown.contains(line) && shown.contains(&length), "{shown}");
        assert!(shown.contains("taken"), "{shown}");
    }
    run(&["load", &url, "-c", "1", "-n", "1", "--data", "@/no/such/file"]).fails(2, "/no/such/file");
}

#[test]
fn credentials_are_sent_but_not_recorded() {
    let nginx = nginx();
    let args = ["load", &nginx.url(), "-c", "1", "-n", "2", "-u", "me:hunter2", "--print", "1", "--json"];
    let done = run(&args).exits(&[0, 4]);
    let output = format!("{}{}", done.stdout, done.stderr);
    assert!(done.stderr.contains("> Authorization: •••"), "{}", done.stderr);
    assert!(!output.contains("hunter2") && !output.contains("bWU6aHVudGVyMg"), "{output}");
    assert!(documents::record(&done.stdout).command.iter().any(|word| word == "•••"));
    run(&["load", &nginx.url(), "-u", "me"]).fails(2, "NAME:PASSWORD");
}

#[test]
fn the_header_connection_close_has_the_effect_of_the_flag() {
    let nginx = nginx();
    let connections = |flags: &[&str]| {
        let url = nginx.url();
        let args = [&["load", &url, "-c", "1", "-n", "20", "--json"][..], flags].concat();
        let counts = documents::record(&run(&args).exits(&[0, 4]).stdout).counts;
        assert_eq!(counts.completed, 20, "{counts:?}");
        counts.established
    };
    assert_eq!(connections(&[]), 1);
    assert_eq!(connections(&["-H", "Connection: close"]), 20);
    assert_eq!(connections(&["--disable-keepalive"]), 20);
}
