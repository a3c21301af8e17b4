//! Tests URLs and bodies as users of curl, wrk, oha and httperf write them.

use crate::documents;
use crate::plan::Files;
use crate::program::{Running, WAIT_LIMIT, brimful, lock_machine_shared, run};
use brimful_core::record::Record;
use brimful_testkit::{Nginx, NginxOptions, RawServer, Request, with_length};
use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

/// An nginx that responds 200 to requests with exactly this target, and 404 to all others.
fn nginx(target: &str, listen: &str) -> Nginx {
    let extra = format!("if ($request_uri = '{target}') {{ return 200; }} return 404;");
    Nginx::start(NginxOptions { extra, listen: listen.to_owned(), ..NginxOptions::default() })
}

/// A server that stores the requests that it receives, and responds with the result of `answer`.
fn recorder(answer: impl Fn(&Request) -> Vec<u8> + Send + Sync + 'static) -> (RawServer, Arc<Mutex<Vec<Request>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let server = RawServer::with_handler(move |request| {
        kept.lock().unwrap().push(request.clone());
        answer(request)
    });
    (server, seen)
}

fn targets(seen: &Mutex<Vec<Request>>) -> Vec<String> {
    seen.lock().unwrap().iter().map(|request| request.target.clone()).collect()
}

fn load(url: &str, flags: &[&str]) -> Record {
    let args = [&["load", url, "--json", "-c", "1", "-n", "3"], flags].concat();
    documents::record(&run(&args).exits(&[0, 4]).stdout)
}

#[test]
fn characters_that_are_not_ascii_are_percent_encoded_in_urls_lists_and_workloads() {
    let files = Files::new();
    let encoded = "/%C3%BC%20x?q=%C3%9F%27&r=%20";
    let urls = files.write("urls", "/ü%20x?q=ß'&r=%20#part\n");
    let requests = files.write("requests", "{\"path\": \"/ü%20x?q=ß'&r=%20\"}\n");
    let workload = files.write("workload.toml", "[[class]]\nname = \"a\"\npath = \"/ü%20x?q=ß'&r=%20\"\n");
    let rows = files.write("rows.csv", "wört\nü%20x\n");
    let log = files.write("wlog", "/ü%20x?q=ß'&r=%20\0");
    for (listen, http) in [("", "1.1"), ("http2", "2")] {
        let server = nginx(encoded, listen);
        let [root, url] = ["/", "/ü x?q=ß'&r=%20#part"].map(|path| format!("http://{}{path}", server.addr()));
        let template = format!("http://{}/{{csv.wört}}?q=ß'&r=%20", server.addr());
        for (url, flags) in [
            (&url, &[][..]),
            (&root, &["--urls", &urls]),
            (&root, &["--requests-file", &requests]),
            (&root, &["--workload", &workload]),
            (&root, &["--wlog", &format!("y,{log}")]),
            (&template, &["--csv", &rows]),
        ] {
            for engine in ["epoll", "uring"] {
                let record = load(url, &[flags, &["--http", http, "--engine", engine]].concat());
                assert_eq!(record.counts.status.s2xx, 3, "{url} {flags:?} by HTTP/{http}: {:?}", record.counts);
            }
        }
    }
}

#[test]
fn a_log_with_raw_and_escaped_characters_is_replayed_percent_encoded() {
    let (server, seen) = recorder(|_| with_length(b"hello"));
    let log = tempfile::NamedTempFile::new().unwrap();
    let line = |target: &[u8]| {
        [&b"192.0.2.1 - - [26/Nov/2026:10:00:00 +0000] \"GET "[..], target, b" HTTP/1.1\" 200 5 \"-\" \"x\"\n"].concat()
    };
    let lines = [line("/ü?q=ß".as_bytes()), line(b"/\\xC3\\xBC?q=\\xc3\\x9f"), line(b"/\xfc"), line(b"/%C3%BC")];
    fs::write(log.path(), lines.concat()).unwrap();
    let map = "--map=/%FC=/ö";
    run(&["replay", log.path().to_str().unwrap(), &server.url(), map, "--json"]).exits(&[0, 4]);
    let mut found = targets(&seen);
    found.sort();
    assert_eq!(found, ["/%C3%B6", "/%C3%BC", "/%C3%BC?q=%C3%9F", "/%C3%BC?q=%C3%9F"]);
}

#[test]
fn redirects_to_locations_that_are_not_ascii_are_followed() {
    for location in ["/ü x?q=ß".as_bytes().to_vec(), b"/\xfc x?q=\xdf".to_vec()] {
        let expected = if location[1] == 0xfc { "/%FC%20x?q=%DF" } else { "/%C3%BC%20x?q=%C3%9F" };
        let answer = [b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: ", &location[..], b"\r\n\r\n"].concat();
        let (server, seen) = recorder(move |request| match request.target.as_str() {
            "/" => answer.clone(),
            _ => with_length(b"hello"),
        });
        let record = load(&server.url(), &["--follow", "3"]);
        assert_eq!(record.redirects.unwrap().followed.counts.status.s2xx, 3);
        assert_eq!(targets(&seen)[1], expected);
    }
}

#[test]
fn an_international_host_name_is_refused_with_its_ascii_form() {
    run(&["load", "http://bücher.example/ü", "-n", "1"]).fails(2, "xn--bcher-kva.example");
    run(&["load", "http://127.0.0.1/a\tb", "-n", "1"]).fails(2, "control character");
}

#[test]
fn data_from_standard_input_is_sent_with_every_call() {
    for (data, bytes) in [("@-", 100_000), ("@/dev/stdin", 5), ("@-", 0)] {
        let (server, seen) = recorder(|_| with_length(b"hello"));
        let body = vec![b'{'; bytes];
        let _machine = lock_machine_shared();
        let mut command = brimful(&["load", &server.url(), "--json", "-c", "2", "-n", "6", "--data", data]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(&body).unwrap();
        let done = child.wait_with_output().unwrap();
        let record = documents::record(&String::from_utf8(done.stdout).unwrap());
        assert_eq!(record.counts.status.s2xx, 6, "{:?}", record.counts);
        let seen = seen.lock().unwrap();
        assert!(seen.iter().filter(|request| request.method == "POST").all(|request| request.body == body));
        assert!(seen.iter().filter(|request| request.method == "POST").count() >= 6);
    }
}

#[test]
fn httperf_sends_a_whole_url_as_httperf_does() {
    let directory = tempfile::tempdir().unwrap();
    let sessions = directory.path().join("sessions");
    fs::write(&sessions, "http://h.example/a\n\n/b\n").unwrap();
    let sessions = format!("--wsesslog=2,0,{}", sessions.display());
    for flags in [
        &["--uri=http://h.example/path?x", "--num-conns=2"][..],
        &["--uri=http://h.example", "--num-conns=1"],
        &["--uri=https://h.example/p", "--wset=3,1", "--num-conns=2"],
        &[&sessions],
    ] {
        let lines = ["/usr/bin/httperf", env!("CARGO_BIN_EXE_brimful")].map(|program| {
            let (server, seen) = recorder(|_| with_length(b"hello"));
            let port = format!("--port={}", server.addr().port());
            let mut command = std::process::Command::new(program);
            command.args((program != "/usr/bin/httperf").then_some("httperf"));
            command.args(["--server=127.0.0.1", &port]).args(flags);
            Running::start(command).finish().exits(&[0]);
            let seen = seen.lock().unwrap();
            let line = |request: &Request| (request.target.clone(), request.header("host").map(str::to_owned));
            seen.iter().map(line).collect::<Vec<_>>()
        });
        assert_eq!(lines[0], lines[1], "{flags:?}");
        assert!(!lines[0].is_empty(), "{flags:?} within {WAIT_LIMIT:?}");
    }
}
