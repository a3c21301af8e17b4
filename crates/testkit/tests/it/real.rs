//! Tests the real servers: nginx and Apache.
use super::{GET, LAST_GET, answers, connect, refused};
use brimful_testkit::{Apache, ApacheOptions, Mpm, Nginx, NginxOptions};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The server's temporary directory, from the command line of its master process. nginx separates its arguments by
/// spaces.
fn private_dir(master: u32) -> PathBuf {
    let line = fs::read_to_string(format!("/proc/{master}/cmdline")).unwrap();
    let word =
        line.split(['\0', ' ']).find(|word| word.contains("/brimful-")).expect("a directory among the arguments");
    PathBuf::from(word.trim_end_matches("/server.conf"))
}

fn alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn files() -> Vec<(String, Vec<u8>)> {
    vec![("index.html".into(), b"front".to_vec()), ("/deep/er/page.txt".into(), vec![b'x'; 100_000])]
}

const DEEP: &str = "GET /deep/er/page.txt HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";

#[test]
fn nginx_serves_its_files_and_leaves_nothing_behind() {
    let server = Nginx::start(NginxOptions { workers: 2, files: files(), ..Default::default() });
    let (addr, pids, dir) = (server.addr(), [vec![server.pid()], server.workers()].concat(), private_dir(server.pid()));
    assert_eq!(server.url(), format!("http://{addr}/"));
    assert!(answers(addr, LAST_GET).ends_with("\r\n\r\nfront"), "{}", server.log());
    assert!(answers(addr, DEEP).ends_with(&"x".repeat(100_000)), "{}", server.log());
    assert_eq!(pids.len(), 3, "a master and two workers");
    assert!(pids.iter().copied().all(alive) && dir.is_dir());
    drop(server);
    assert!(!pids.iter().copied().any(alive) && !dir.exists() && refused(addr));
}

#[test]
fn workers_whose_master_was_killed_end_with_the_handle() {
    let server = Nginx::start(NginxOptions::default());
    let (master, workers) = (server.pid(), server.workers());
    let pid = rustix::process::Pid::from_raw(i32::try_from(master).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    drop(server);
    // A process has ended if it does not exist, or is a zombie (Z). Process 1 removes the zombies of orphaned
    // processes, which may take a while.
    let ended = |&pid: &u32| {
        let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        state.is_empty() || state.contains(") Z ")
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    while !workers.iter().all(ended) {
        assert!(Instant::now() < deadline, "a worker is still alive");
        std::thread::yield_now();
    }
}

#[test]
fn nginx_keeps_connections_open_or_not_as_told() {
    let server = Nginx::start(NginxOptions::default());
    let answer = answers(server.addr(), &format!("{GET}{GET}{LAST_GET}"));
    assert_eq!(answer.matches("\r\n\r\nhello\n").count(), 3, "{answer}");
    let server = Nginx::start(NginxOptions { keepalive: false, ..Default::default() });
    let answer = answers(server.addr(), GET);
    assert!(answer.contains("Connection: close") && answer.ends_with("hello\n"), "{answer}");
}

#[test]
fn nginx_takes_extra_directives_and_logs_what_goes_wrong() {
    let extra = "location /status { stub_status; }".into();
    let server = Nginx::start(NginxOptions { extra, ..Default::default() });
    let status = answers(server.addr(), &LAST_GET.replace("GET / ", "GET /status "));
    assert!(status.contains("Active connections: 1"), "{status}");
    assert!(answers(server.addr(), &LAST_GET.replace("GET / ", "GET /none ")).starts_with("HTTP/1.1 404"));
    assert!(server.log().contains("No such file"), "{}", server.log());
}

#[test]
#[should_panic(expected = "unknown directive \"nonsense\"")]
fn a_server_that_cannot_start_is_quoted() {
    Nginx::start(NginxOptions { extra: "nonsense;".into(), ..Default::default() });
}

#[test]
#[should_panic(expected = "below the document root")]
fn a_served_file_cannot_leave_the_private_directory() {
    Nginx::start(NginxOptions { files: vec![("../x".into(), vec![])], ..Default::default() });
}

fn apache_serves_and_leaves_nothing_behind(mpm: Mpm, max_workers: usize, processes: usize) {
    let server = Apache::start(ApacheOptions { mpm, max_workers, files: files(), ..Default::default() });
    let addr = server.addr();
    // The master process writes its pid file before it starts the workers, but a response proves that a worker is
    // running.
    assert!(answers(addr, LAST_GET).ends_with("\r\n\r\nfront"), "{}", server.log());
    let (pids, dir) = ([vec![server.pid()], server.workers()].concat(), private_dir(server.pid()));
    assert_eq!(pids.len(), 1 + processes);
    assert!(answers(addr, LAST_GET).ends_with("\r\n\r\nfront"), "{}", server.log());
    assert!(answers(addr, DEEP).ends_with(&"x".repeat(100_000)), "{}", server.log());
    let answer = answers(addr, &format!("{GET}{LAST_GET}"));
    assert_eq!(answer.matches("\r\n\r\nfront").count(), 2, "{answer}");
    assert!(pids.iter().copied().all(alive) && dir.is_dir());
    drop(server);
    assert!(!pids.iter().copied().any(alive) && !dir.exists() && refused(addr));
}

#[test]
fn apache_prefork_serves_and_leaves_nothing_behind() {
    apache_serves_and_leaves_nothing_behind(Mpm::Prefork, 3, 3);
}

#[test]
fn apache_event_serves_and_leaves_nothing_behind() {
    apache_serves_and_leaves_nothing_behind(Mpm::Event, 5, 1);
}

#[test]
fn a_server_stops_although_a_connection_is_open() {
    for mpm in [Mpm::Prefork, Mpm::Event] {
        let server = Apache::start(ApacheOptions { mpm, max_workers: 2, ..Default::default() });
        let mut idle = connect(server.addr());
        idle.write_all(GET.as_bytes()).unwrap();
        assert!(idle.read(&mut [0; 4096]).unwrap() > 0);
        let master = server.pid();
        drop(server);
        assert!(!alive(master));
    }
}
