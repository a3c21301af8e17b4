//! Tests that the server withstands clients that misbehave, and a host without free file descriptors.

use crate::client::{Client, request};
use crate::start;
use proptest::prelude::*;
use rustix::net::{self, AddressFamily, SocketType};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

static TARGET: LazyLock<brimful_target::Target> = LazyLock::new(|| start("a=0", 2));

/// A piece of input for the server. Sequences of these pieces are complete or nearly complete requests more often than
/// random bytes.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let words: [&[u8]; 14] = [
        b"GET / HTTP/1.1\r\n",
        b"POST /a HTTP/1.1\r\n",
        b"HEAD /a HTTP/1.0\r\n",
        b"Host: a\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: 18446744073709551616\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Expect: 100-continue\r\n",
        b"Connection: close\r\n",
        b"\r\n",
        b"5\r\nhello\r\n",
        b"0\r\n\r\n",
        b"\n",
        b"\0",
    ];
    prop_oneof![
        4 => prop::sample::select(words.map(<[u8]>::to_vec).to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ]
}

proptest! {
    #[test]
    fn no_input_stops_the_server(pieces in prop::collection::vec(piece(), 0..30), reset in any::<bool>()) {
        let mut stream = TcpStream::connect(TARGET.addr()).unwrap();
        for piece in &pieces {
            // Writing fails if the server has already closed the connection.
            if stream.write_all(piece).is_err() {
                break;
            }
        }
        if !reset {
            let _ = stream.shutdown(Shutdown::Write);
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            if let Err(e) = stream.read_to_end(&mut Vec::new()) {
                prop_assert_ne!(e.kind(), ErrorKind::WouldBlock, "the server did not hang up");
            }
        }
        drop(stream);
        prop_assert_eq!(Client::new(TARGET.addr()).get("/a").status, 200);
    }
}

#[test]
fn a_client_that_does_not_read_delays_no_other() {
    let target = start("big=0/32MiB,small=0/1", 1);
    let mut slow = Client::new(target.addr());
    slow.send(request("/big").repeat(2));
    let mut other = Client::new(target.addr());
    for _ in 0..100 {
        assert_eq!(other.get("/small").status, 200);
    }
    for _ in 0..2 {
        let body = slow.reply().body;
        assert!(body.len() == 32 << 20 && body.chunks(8).all(|line| line == b"brimful\n"));
    }
}

#[test]
fn clients_that_disappear_leave_no_descriptors_behind() {
    let target = start("big=0/8MiB,small=0/1", 2);
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    for _ in 0..200 {
        // The client closes its socket without reading the response, so the kernel sends a reset.
        let client = Client::new(target.addr());
        client.send(request("/big"));
    }
    assert_eq!(Client::new(target.addr()).get("/small").status, 200);
    let patience = Instant::now() + Duration::from_secs(20);
    // Other tests in the same process may also have hundreds of open file descriptors, but only for a short time.
    while descriptors() > 200 {
        assert!(Instant::now() < patience, "{} descriptors are open", descriptors());
        std::thread::yield_now();
    }
}

#[test]
fn without_free_descriptors_the_server_keeps_serving() {
    const CHILD: &str = "BRIMFUL_TARGET_TEST_OF_DESCRIPTORS";
    if std::env::var_os(CHILD).is_some() {
        return without_descriptors();
    }
    // The limit of file descriptors applies to the whole process, so this test runs in a separate process.
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "robust::without_free_descriptors_the_server_keeps_serving"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn without_descriptors() {
    let target = start("a=0", 2);
    let mut old = Client::new(target.addr());
    assert_eq!(old.get("/a").status, 200);
    let maximum = getrlimit(Resource::Nofile).maximum;
    let limit = |n| {
        let current = Some(n);
        setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
    };
    let socket = net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    // The limit is now lower than the number of open file descriptors, so the server cannot accept connections.
    limit(3);
    net::connect(&socket, &target.addr()).unwrap();
    let mut new = Client::from_stream(TcpStream::from(socket));
    new.send(request("/a"));
    let (before, start) = (target.cpu_times().total_cpu_s, Instant::now());
    while start.elapsed() < Duration::from_millis(300) {
        assert_eq!(old.get("/a").status, 200);
        std::thread::sleep(Duration::from_millis(10));
    }
    let (spent, elapsed) = (target.cpu_times().total_cpu_s - before, start.elapsed().as_secs_f64());
    assert!(spent < elapsed / 3.0, "the server spun: {spent} s of CPU in {elapsed} s");
    assert_eq!(new.unread_bytes(), 0);
    limit(1000);
    // No event reports that file descriptors are free again. The server must try again by itself.
    assert_eq!(new.reply().status, 200);
}
