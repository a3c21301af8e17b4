//! Tests how clients connect: the addresses, the number of connections, and clients that cannot connect.

use crate::documents;
use crate::program::{Done, Running, brimful, lock_machine_shared, run, wait_until};
use brimful_core::record::Record;
use brimful_testkit::{RawServer, Request, Step, script, with_length};
use rustix::process::Signal;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

const ENGINES: [&str; 2] = ["epoll", "auto"];

/// A server at this address that responds to every request.
fn server_at(address: SocketAddr) -> RawServer {
    let listener = TcpListener::bind(address).unwrap();
    let answering = [Step::Request, Step::Send(with_length(b"hello"))];
    RawServer::start_on(listener, script(answering))
}

/// Two servers on the same port, at 127.0.0.2 and 127.0.0.3.
fn two_servers() -> [RawServer; 2] {
    (0..100)
        .find_map(|_| {
            let first = TcpListener::bind("127.0.0.2:0").unwrap();
            let port = first.local_addr().unwrap().port();
            let second = TcpListener::bind(("127.0.0.3", port)).ok()?;
            let answering = || script([Step::Request, Step::Send(with_length(b"hello"))]);
            Some([first, second].map(|listener| RawServer::start_on(listener, answering())))
        })
        .expect("one port is free at both addresses")
}

fn load(args: &[&str]) -> Done {
    run(&[&["load", "--json"], args].concat())
}

/// For each address: its name, its number of calls, and its number of connections.
fn shares(record: &Record) -> Vec<(&str, u64, u64)> {
    record.addresses.iter().map(|of| (of.address.as_str(), of.calls, of.connections)).collect()
}

/// Clients that cannot connect must wait before they try again. The bug: five clients caused 80,083 refused connections
/// in one second.
#[test]
fn closed_loop_clients_do_not_spin_while_a_server_is_away() {
    for engine in ENGINES {
        let server = RawServer::dies_after(20);
        let done = load(&[&server.url(), "-c", "5", "-d", "1s", "--engine", engine]).exits(&[1, 4]);
        let counts = documents::record(&done.stdout).counts;
        assert_eq!(counts.completed, 20);
        // The upper bounds of the waits between a client's attempts are 10, 20, 40 … 640 ms. Each wait is at least half
        // of its bound.
        assert!((5..=60).contains(&counts.refused), "{engine}: {counts:?}");
    }
}

#[test]
fn users_in_sessions_do_not_spin_while_a_server_is_away() {
    let server = RawServer::dies_after(20);
    let done = load(&[&server.url(), "--wsess", "100000,1,0", "--users", "5", "-d", "1s"]).exits(&[1, 4]);
    let counts = documents::record(&done.stdout).counts;
    assert!((1..=60).contains(&counts.refused), "{counts:?}");
}

#[test]
fn closed_loop_clients_do_not_spin_on_a_proxy_that_resets_each_connection() {
    let server = RawServer::start(script([Step::Reset]));
    let done = load(&[&server.url(), "-c", "5", "-d", "1s"]).exits(&[1, 4]);
    let counts = documents::record(&done.stdout).counts;
    assert_eq!(counts.completed, 0);
    assert!((5..=100).contains(&counts.scheduled), "{counts:?}");
}

#[test]
fn an_open_load_is_not_delayed_by_refusals() {
    let server = RawServer::dies_after(20);
    let done = load(&[&server.url(), "--rate", "500", "-d", "1s", "--new-connection"]).exits(&[1, 4]);
    let counts = documents::record(&done.stdout).counts;
    assert_eq!(counts.scheduled, 500, "{counts:?}");
}

/// A load must not start if there are not enough file descriptors for its clients. The bug: the clients caused
/// 3,060,904 failures in one second.
#[test]
fn more_clients_than_descriptors_are_refused_at_the_start() {
    let server = RawServer::content_length("hello");
    let limited = |engine: &str, clients: &str| {
        let _machine = lock_machine_shared();
        let load = brimful(&["load", &server.url(), "-c", clients, "-n", "2000", "--engine", engine]);
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -n 60; exec \"$0\" \"$@\""]).arg(load.get_program()).args(load.get_args());
        Running::start(shell).finish()
    };
    for engine in ENGINES {
        let done = limited(engine, "200");
        for part in ["200 connections", "`ulimit -n 300`"] {
            assert!(done.stderr.contains(part), "{engine}: {}", done.stderr);
        }
        assert_eq!((done.code, done.stdout.as_str()), (3, ""), "{engine}: {}", done.stderr);
        limited(engine, "20").exits(&[0, 4]);
    }
    assert!(server.connections() <= 2 * (20 + 2), "{} connections", server.connections());
}

#[test]
fn a_name_with_several_addresses_is_loaded_at_all_of_them() {
    for engine in ENGINES {
        let servers = two_servers();
        let port = servers[0].addr().port();
        let rule = format!("web.test::127.0.0.2,127.0.0.3:{port}");
        let done = load(&[
            "http://web.test/",
            "--connect-to",
            &rule,
            "--new-connection",
            "-c",
            "2",
            "-n",
            "40",
            "--engine",
            engine,
        ]);
        let record = documents::record(&done.exits(&[0, 4]).stdout);
        let [first, second] = servers.each_ref().map(|server| server.addr().to_string());
        assert_eq!(shares(&record), [(first.as_str(), 20, 20), (second.as_str(), 20, 20)]);
        assert!(record.addresses.iter().all(|address| address.response_time_us.is_some() && address.share == 0.5));
        // Before the load, brimful has opened one connection to each server, to check that it accepts connections.
        assert_eq!(servers.each_ref().map(RawServer::connections), [21, 21]);
    }
}

#[test]
fn the_text_says_how_much_went_to_each_address() {
    let servers = two_servers();
    let rule = format!("::127.0.0.2,127.0.0.3:{}", servers[0].addr().port());
    let done = run(&["load", "http://web.test/", "--connect-to", &rule, "-c", "4", "-n", "40", "-t", "2"]);
    let text = done.exits(&[0, 4]).stdout;
    let line = text.lines().find(|line| line.starts_with("Addresses ")).expect("the text has a line about addresses");
    assert!(servers.iter().all(|server| line.contains(&server.addr().to_string())), "{text}");
}

#[test]
fn only_the_first_address_is_loaded_with_the_flag() {
    let servers = two_servers();
    let rule = format!("::127.0.0.2,127.0.0.3:{}", servers[0].addr().port());
    let args =
        ["http://web.test/", "--connect-to", &rule, "--first-address", "-n", "20", "-c", "2", "--new-connection"];
    load(&args).exits(&[0, 4]);
    let mut connections = servers.each_ref().map(RawServer::connections);
    connections.sort_unstable();
    assert!(connections[0] <= 1 && connections[1] >= 20, "{connections:?}");
}

/// If one address of a name refuses connections, the load must use the other addresses. For example, `localhost` also
/// has the address ::1, but many servers listen only at 127.0.0.1.
#[test]
fn an_address_that_refuses_at_the_start_is_not_loaded() {
    let server = server_at("127.0.0.2:0".parse().unwrap());
    let rule = format!("::127.0.0.3,127.0.0.2:{}", server.addr().port());
    let done = load(&["http://web.test/", "--connect-to", &rule, "-n", "20", "-c", "2", "--new-connection"]);
    let record = documents::record(&done.exits(&[0, 4]).stdout);
    assert_eq!((record.counts.completed, record.counts.refused), (20, 0));
}

#[test]
fn an_address_that_refuses_later_still_counts() {
    let [stays, goes] = two_servers();
    let rule = format!("::127.0.0.2,127.0.0.3:{}", stays.addr().port());
    let args =
        ["load", "http://web.test/", "--connect-to", &rule, "--rate", "200", "--new-connection", "--json", "-d", "1m"];
    let _machine = lock_machine_shared();
    let load = Running::start(brimful(&args));
    wait_until(|| goes.connections() > 10);
    let address = goes.addr().to_string();
    drop(goes);
    let before = stays.connections();
    wait_until(|| stays.connections() > before + 50);
    load.signal(Signal::INT);
    let record = documents::record(&load.finish().exits(&[130]).stdout);
    let gone = record.addresses.iter().find(|of| of.address == address).unwrap();
    assert!(gone.failed > 10 && gone.completed > 0, "{:?}", record.addresses);
}

#[test]
fn host_and_url_do_not_change_when_connections_go_elsewhere() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&seen);
    let server = RawServer::with_handler(move |request: &Request| {
        into.lock().unwrap().push(request.header("host").unwrap_or_default().to_owned());
        with_length(b"hello")
    });
    let rules = ["other.test:80:127.0.0.9:1", &format!("WEB.test:8443:{}", server.addr()), "::127.0.0.9:1"];
    let rules = rules.map(|rule| format!("--connect-to={rule}"));
    let done = load(&["http://web.test:8443/a", "-n", "2", "-c", "1", &rules[0], &rules[1], &rules[2]]);
    let record = documents::record(&done.exits(&[0, 4]).stdout);
    assert_eq!(record.target, "http://web.test:8443/a");
    assert_eq!(*seen.lock().unwrap(), ["web.test:8443"; 2]);
    run(&["load", "http://web.test/", "-n", "1", "--connect-to", "other.test:80:127.0.0.1:80"])
        .fails(2, "no --connect-to matches web.test:80");
}

/// Runs `brimful` in a separate mount namespace, in which this file replaces /etc/hosts.
fn with_hosts(hosts: &Path, args: &[&str]) -> Running {
    let load = brimful(args);
    let mut command = Command::new("unshare");
    let script = "mount --bind \"$1\" /etc/hosts && shift && exec \"$@\"";
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(hosts).arg(load.get_program()).args(load.get_args());
    command.env("COLUMNS", "100");
    Running::start(command)
}

#[test]
fn a_server_that_moves_to_another_address_is_found_again() {
    let [old, new] = two_servers();
    let hosts = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&hosts, "127.0.0.2 web.test\n").unwrap();
    let url = format!("http://web.test:{}/", old.addr().port());
    let _machine = lock_machine_shared();
    let load = with_hosts(hosts.path(), &["load", &url, "-c", "2", "-d", "5m", "--json"]);
    wait_until(|| old.connections() > 2);
    // Write to the same file: only this file is mounted, so a new file would not be visible.
    std::fs::write(&hosts, "127.0.0.3 web.test\n").unwrap();
    drop(old);
    // After the name was resolved again, the first connection checks the new address. The second connection belongs to
    // the load.
    wait_until(|| new.connections() > 1);
    load.signal(Signal::INT);
    let record = documents::record(&load.finish().exits(&[130]).stdout);
    let [before, after] = &record.addresses[..] else { panic!("{:?}", record.addresses) };
    assert_eq!((&*after.address, after.failed), (&*new.addr().to_string(), 0));
    assert!(before.completed > 0 && after.connections >= 1, "{:?}", record.addresses);
}

/// `brimful httperf` must use an address at which the server listens. The original httperf uses the first address of
/// the name, which may be an IPv6 address without a server.
#[test]
fn httperf_finds_the_address_that_a_server_listens_at() {
    let server = server_at("127.0.0.3:0".parse().unwrap());
    let hosts = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&hosts, "127.0.0.2 web.test\n127.0.0.3 web.test\n").unwrap();
    let port = server.addr().port().to_string();
    let _machine = lock_machine_shared();
    let args = ["httperf", "--server", "web.test", "--port", &port, "--num-conns", "4"];
    let text = with_hosts(hosts.path(), &args).finish().exits(&[0, 4]).stdout;
    assert!(text.contains("replies 4 "), "{text}");
}

#[test]
fn an_ipv6_zone_in_a_url_is_used_but_not_sent() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&seen);
    let listener = TcpListener::bind("[::1]:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let _server = RawServer::start_on(listener, move |conn, _| {
        let mut reader = BufReader::new(&conn);
        while let Some(request) = Request::read(&mut reader)
            && (&conn).write_all(&with_length(b"hello")).is_ok()
        {
            into.lock().unwrap().push(request.header("host").unwrap_or_default().to_owned());
        }
    });
    // The zone 1 is the loopback interface, by its number.
    for url in [format!("http://[::1%251]:{port}/"), format!("http://[::1%1]:{port}/")] {
        let done = load(&[&url, "-n", "1", "-c", "1"]).exits(&[0, 4]);
        assert_eq!(documents::record(&done.stdout).counts.completed, 1);
    }
    assert_eq!(*seen.lock().unwrap(), [format!("[::1]:{port}"), format!("[::1]:{port}")]);
}
