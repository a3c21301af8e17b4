//! Tests the programs with real sockets, each test in its own network namespace. These tests must run as root.

use super::*;
use crate::ebpf::connections::tests::{client, in_own_namespace, listener};
use crate::ebpf::own_network_namespace;
use crate::fixture::TEST_TIMEOUT;
use rustix::fs::sendfile;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

const PORT: u16 = 8080;
const OTHER: u16 = 9090;
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

/// The two sockets of a connection: the client's socket, then the server's socket.
type Pair = (TcpStream, TcpStream);

fn probe() -> RequestProbe {
    let mut probe = RequestProbe::load(&[OTHER, PORT], own_network_namespace().unwrap()).unwrap();
    probe.begin(Nanos::ZERO, Nanos::MAX).unwrap();
    probe
}

fn pairs<const N: usize>(port: u16) -> [Pair; N] {
    let listener = listener(port);
    std::array::from_fn(|_| (client(port), listener.accept().unwrap().0))
}

fn pair(port: u16) -> Pair {
    let [pair] = pairs(port);
    pair
}

fn read(mut from: &TcpStream, bytes: usize) {
    from.read_exact(&mut vec![0; bytes]).unwrap();
}

/// Sends one request, and then a response in parts of the given sizes in bytes.
fn exchange((client, server): &Pair, parts: &[usize]) {
    let (mut asks, mut answers) = (client, server);
    asks.write_all(REQUEST).unwrap();
    read(server, REQUEST.len());
    for &part in parts {
        answers.write_all(&vec![b'x'; part]).unwrap();
    }
    read(client, parts.iter().sum());
}

/// The numbers of begun, answered and unanswered requests of `PORT`.
fn counts(probe: &RequestProbe) -> (u64, u64, u64) {
    let tally = &probe.read().unwrap()[1];
    (tally.begun, tally.sizes.iter().map(|size| size.answered).sum(), tally.unanswered)
}

/// Waits until the counts have the expected values. The program may see the server's send a moment after the client has
/// received the bytes.
#[track_caller]
fn settle(probe: &RequestProbe, expected: (u64, u64, u64)) {
    let begun = Instant::now();
    while counts(probe) != expected {
        assert!(begun.elapsed() < TEST_TIMEOUT, "{:?} instead of {expected:?}", counts(probe));
        thread::yield_now();
    }
}

#[test]
fn every_request_counts_once_with_its_bytes_and_the_size_of_its_answer() {
    in_own_namespace(|| {
        let mut probe = probe();
        let pairs: [Pair; 4] = pairs(PORT);
        for pair in &pairs[..3] {
            (0..50).for_each(|_| exchange(pair, &[100]));
            (0..7).for_each(|_| exchange(pair, &[2_000, 2_000, 2_000]));
        }
        settle(&probe, (171, 171, 0));
        // Neither the end of a connection nor a connection without a request counts as a request.
        drop(pairs);
        probe.end();
        let tally = &probe.read().unwrap()[1];
        let [small, medium, ..] = &tally.sizes;
        assert_eq!((tally.begun, small.answered, medium.answered, tally.unanswered), (171, 150, 21, 0));
        assert_eq!((small.received, small.sent), (150 * REQUEST.len() as u64, 15_000));
        assert_eq!((medium.received, medium.sent), (21 * REQUEST.len() as u64, 126_000));
        for times in [&small.wait, &small.service] {
            assert_eq!(times.buckets.iter().sum::<u64>(), 150);
            assert!(times.sum_ns > 0);
        }
        assert_eq!(probe.read().unwrap()[0].begun, 0, "requests to one port do not count for the other port");
    });
}

#[test]
fn waiting_ends_with_the_first_read_and_service_with_the_last_send() {
    const PAUSE: Duration = Duration::from_millis(20);
    in_own_namespace(|| {
        let probe = probe();
        let listener = listener(PORT);
        let mut asks = client(PORT);
        asks.write_all(REQUEST).unwrap();
        thread::sleep(3 * PAUSE); // the connection has not been accepted yet
        let mut answers = listener.accept().unwrap().0;
        read(&answers, 5);
        thread::sleep(PAUSE);
        read(&answers, REQUEST.len() - 5);
        answers.write_all(b"head").unwrap();
        thread::sleep(PAUSE);
        answers.write_all(b"body").unwrap();
        settle(&probe, (1, 1, 0));
        let size = || probe.read().unwrap()[1].sizes[0].clone();
        let begun = Instant::now();
        // At the second send, the record of the first send is subtracted again.
        while size().sent != 8 {
            assert!(begun.elapsed() < TEST_TIMEOUT, "{:?}", size());
        }
        let ms = |ns: u64| Duration::from_nanos(ns);
        let SizeTally { wait, service, received, .. } = size();
        assert!(ms(wait.sum_ns) >= 3 * PAUSE && ms(service.sum_ns) >= 2 * PAUSE, "{wait:?} {service:?}");
        assert_eq!(received, REQUEST.len() as u64);
        assert_eq!(wait.buckets[..64].iter().sum::<u64>(), 0, "a wait of 60 ms must not be in a bucket below 16 ms");
        let root_of_squares = Duration::from_micros((wait.sum_us2 as f64).sqrt() as u64);
        assert!(root_of_squares.abs_diff(ms(wait.sum_ns)) < Duration::from_millis(1), "{root_of_squares:?} {wait:?}");
    });
}

#[test]
fn an_answer_by_sendfile_is_seen() {
    in_own_namespace(|| {
        let probe = probe();
        let (mut asks, answers) = pair(PORT);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[b'x'; 60_000]).unwrap();
        asks.write_all(REQUEST).unwrap();
        read(&answers, REQUEST.len());
        assert_eq!(sendfile(&answers, &file, Some(&mut 0), 60_000).unwrap(), 60_000);
        read(&asks, 60_000);
        settle(&probe, (1, 1, 0));
        let begun = Instant::now();
        while probe.read().unwrap()[1].sizes[2].sent != 60_000 {
            assert!(begun.elapsed() < TEST_TIMEOUT, "{:?}", probe.read().unwrap());
        }
    });
}

#[test]
fn a_request_is_open_until_it_is_answered_or_its_connection_closed() {
    in_own_namespace(|| {
        let probe = probe();
        let [answered, read_and_closed, closed_unread] = pairs(PORT);
        for (mut asks, _) in [&answered, &read_and_closed, &closed_unread].map(|(asks, _)| (asks, ())) {
            asks.write_all(REQUEST).unwrap();
        }
        settle(&probe, (3, 0, 0));
        read(&answered.1, REQUEST.len());
        read(&read_and_closed.1, REQUEST.len());
        assert_eq!(counts(&probe), (3, 0, 0));
        (&answered.1).write_all(b"answer").unwrap();
        settle(&probe, (3, 1, 0));
        drop(read_and_closed.1);
        settle(&probe, (3, 1, 1));
        drop(closed_unread.1);
        settle(&probe, (3, 1, 2));
        drop(answered);
        assert_eq!(counts(&probe), (3, 1, 2));
    });
}

#[test]
fn an_answer_that_fills_the_sockets_buffer_has_not_ended() {
    in_own_namespace(|| {
        let probe = probe();
        let (mut asks, answers) = pair(PORT);
        asks.write_all(REQUEST).unwrap();
        read(&answers, REQUEST.len());
        answers.set_nonblocking(true).unwrap();
        let mut sent = 0;
        loop {
            match (&answers).write(&[b'x'; 1 << 16]) {
                Ok(bytes) => sent += bytes,
                Err(error) => break assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        settle(&probe, (1, 0, 0));
        read(&asks, sent);
        answers.set_nonblocking(false).unwrap();
        (&answers).write_all(b"end").unwrap();
        settle(&probe, (1, 1, 0));
    });
}

#[test]
fn what_a_slice_cuts_is_not_counted_in_the_next() {
    in_own_namespace(|| {
        let mut probe = probe();
        let [before, within] = pairs(PORT);
        let ask = |pair: &Pair| (&pair.0).write_all(REQUEST).unwrap();
        let answer = |pair: &Pair| {
            read(&pair.1, REQUEST.len());
            (&pair.1).write_all(b"answer").unwrap();
            read(&pair.0, 6);
        };
        ask(&before);
        settle(&probe, (1, 0, 0));
        probe.end();
        ask(&within); // between two slices
        answer(&within);
        probe.begin(Nanos::ZERO, Nanos::MAX).unwrap();
        answer(&before);
        ask(&within);
        settle(&probe, (2, 0, 0));
        answer(&within);
        settle(&probe, (2, 1, 0));
        probe.end();
        // A request does not count if it begins before `from` or after `until`.
        for (from, until) in [(Nanos::ZERO, Nanos::ZERO), (Nanos::MAX, Nanos::MAX)] {
            probe.begin(from, until).unwrap();
            (0..5).for_each(|_| exchange(&within, &[10]));
        }
        drop((before, within));
        probe.end();
        assert_eq!(counts(&probe), (2, 1, 0));
    });
}

#[test]
fn other_namespaces_other_ports_and_clients_do_not_count() {
    in_own_namespace(|| {
        let mut probe = probe();
        in_own_namespace(|| exchange(&pair(PORT), &[10]));
        exchange(&pair(7070), &[10]);
        exchange(&pair(OTHER), &[10]);
        probe.end();
        let [other, port] = probe.read().unwrap().try_into().unwrap();
        assert_eq!((other.begun, port.begun), (1, 0));
    });
}

#[test]
fn a_port_that_is_named_twice_is_one() {
    in_own_namespace(|| {
        let mut probe = RequestProbe::load(&[PORT, PORT], own_network_namespace().unwrap()).unwrap();
        probe.begin(Nanos::ZERO, Nanos::MAX).unwrap();
        exchange(&pair(PORT), &[10]);
        probe.end();
        let [first, second] = probe.read().unwrap().try_into().unwrap();
        assert_eq!((first.begun, &first), (1, &second));
        let many: Vec<u16> = (1..=17).collect();
        assert!(matches!(RequestProbe::load(&many, 1), Err(EbpfError::TooManyPorts(17))));
    });
}
