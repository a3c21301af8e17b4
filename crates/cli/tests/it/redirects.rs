//! Tests redirects by nginx. Without `--follow`, they are counted as responses; with `--follow`, they are followed if
//! they lead to the same server.

use crate::documents;
use crate::program::run;
use brimful_core::record::{Interval, NotFollowed, Record, Redirects};
use brimful_testkit::{Nginx, NginxOptions};
use std::fs;

/// An nginx with redirects: `/old` leads to a page, `/chain` leads to a page in two steps, `/loop` leads to itself, and
/// `/away` leads to another server.
fn nginx() -> Nginx {
    let extra = "location = /old { return 301 /index.html; } location = /chain { return 302 old; } \
                 location = /loop { return 301 /loop; } location = /away { return 301 http://other.example/; } \
                 location = /form { return 303 /index.html; } location = /again { return 307 /index.html; } \
                 location = /login { add_header Set-Cookie s=1; return 302 /home; } \
                 location = /home { if ($http_cookie != s=1) { return 403; } return 200 'welcome'; }";
    Nginx::start(NginxOptions { extra: extra.to_owned(), ..NginxOptions::default() })
}

fn record(nginx: &Nginx, path: &str, flags: &[&str]) -> Record {
    let url = format!("http://{}{path}", nginx.addr());
    let args = [&["load", &url, "--json"][..], flags].concat();
    documents::record(&run(&args).exits(&[0, 4]).stdout)
}

fn redirects(record: &Record) -> &Redirects {
    record.redirects.as_ref().unwrap()
}

#[test]
fn without_follow_redirects_are_responses() {
    let nginx = nginx();
    let record = record(&nginx, "/old", &["-c", "1", "-n", "5"]);
    assert_eq!((record.counts.status.s3xx, record.counts.completed, record.redirects), (5, 5, None));
    let url = format!("http://{}/old", nginx.addr());
    run(&["load", &url, "-L"]).fails(2, "--follow 10");
    let text = run(&["load", &url, "-c", "1", "-n", "5"]).exits(&[0, 4]).stdout;
    assert!(text.contains("--follow 10"), "{text}");
}

#[test]
fn a_client_waits_for_the_last_response_and_the_schedule_does_not_change() {
    let nginx = nginx();
    for engine in ["epoll", "uring"] {
        for load in [&["-c", "2", "-n", "40"][..], &["-R", "200", "-n", "40"]] {
            let chain = record(&nginx, "/chain", &[load, &["--follow", "5", "--engine", engine]].concat());
            assert_eq!((chain.counts.scheduled, chain.counts.completed, chain.counts.status.s3xx), (40, 40, 40));
            let of_intervals = |figure: fn(&Interval) -> u64| chain.intervals.iter().map(figure).sum::<u64>();
            assert_eq!(
                (of_intervals(|i| i.offered), of_intervals(|i| i.sent), of_intervals(|i| i.completed)),
                (40, 40, 40)
            );
            let followed = &redirects(&chain).followed;
            let counts = followed.counts;
            assert_eq!((counts.scheduled, counts.completed, counts.status.s3xx), (80, 80, 40), "{counts:?}");
            assert_eq!((counts.status.s2xx, counts.imbalance(), counts.errors()), (40, (0, 0), 0));
            assert_eq!(redirects(&chain).not_followed, NotFollowed::default());
            // The response time begins when the first call was due, so it is at least the service time.
            let (whole, service) = (followed.response_time_us.unwrap(), followed.service_time_us.unwrap());
            assert!(whole.min > service.min && whole.mean > chain.response_time_us.unwrap().mean);
            match load[0] {
                // Each connection makes three calls in a row: the two redirects and the page.
                "-c" => assert_eq!(chain.counts.connect_attempts + counts.connect_attempts, 2),
                _ => assert!((chain.rates.offered - 200.0).abs() < 1.0, "{}", chain.rates.offered),
            }
        }
    }
}

#[test]
fn loops_end_and_redirects_to_other_servers_are_not_followed() {
    let nginx = nginx();
    let one = |path: &str, flags: &[&str]| {
        let record = record(&nginx, path, &[&["-c", "1", "-n", "10", "--follow", "3"][..], flags].concat());
        assert_eq!((record.counts.scheduled, record.counts.completed), (10, 10));
        redirects(&record).clone()
    };
    let looping = one("/loop", &[]);
    assert_eq!((looping.followed.counts.completed, looping.not_followed.too_many), (30, 10));
    let away = one("/away", &[]);
    assert_eq!((away.followed.counts.scheduled, away.not_followed.other_server), (0, 10));
    assert_eq!(one("/form", &["--data", "x"]).followed.counts.status.s2xx, 10);
    assert_eq!(one("/again", &["--data", "x"]).not_followed.needs_body, 10);
    assert_eq!(one("/again", &[]).followed.counts.status.s2xx, 10);
    let url = format!("http://{}/away", nginx.addr());
    let text = run(&["load", &url, "-n", "5", "--follow", "3"]).exits(&[0, 4]).stdout;
    assert!(text.contains("5 lead to another server") && text.contains("Give the URL that they lead to"), "{text}");
    run(&["load", &url, "-n", "5", "--follow", "3", "--s-clients", "2"]).fails(2, "leave out --follow");
}

#[test]
fn a_session_keeps_its_cookies_across_redirects() {
    let nginx = nginx();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("login.toml");
    let workload = "[[class]]\nname = \"login\"\npath = \"/login\"\n[load.sessions]\nsessions = 5\nusers = 1\n\
                    cookies = true\ncalls_per_burst = 1\nbursts = 1\n";
    fs::write(&file, workload).unwrap();
    let record = record(&nginx, "/", &["--workload", &file.display().to_string(), "--follow", "1"]);
    let status = redirects(&record).followed.counts.status;
    assert_eq!((record.counts.status.s3xx, status.s2xx, status.s4xx), (5, 5, 0), "{record:?}");
    assert_eq!(record.sessions.unwrap().completed, 5);
}

#[test]
fn counts_of_redirects_are_merged() {
    let nginx = nginx();
    let dir = tempfile::tempdir().unwrap();
    let url = format!("http://{}/chain", nginx.addr());
    let files = ["1/2", "2/2"].map(|shard| {
        let file = dir.path().join(format!("{}.json", &shard[..1])).display().to_string();
        let args =
            ["load", &url, "-c", "2", "-n", "20", "--follow", "2", "--seed", "1", "--shard", shard, "--out", &file];
        run(&args).exits(&[0, 4]);
        file
    });
    let merged = documents::record(&run(&["merge", &files[0], &files[1], "--json"]).exits(&[0, 4]).stdout);
    assert_eq!((merged.counts.completed, redirects(&merged).followed.counts.completed), (20, 40));
}
