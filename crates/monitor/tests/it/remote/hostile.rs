//! Tests a malicious monitor that knows the token: its messages must not exhaust the load generator's memory.

use super::{monotonic, remote, serve, watch, welcome};
use brimful_core::Nanos;
use brimful_core::server::{Overhead, Server};
use brimful_monitor::{Intervals, Monitor, RemoteConfig, Token};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of bytes by which the messages may increase the load generator's memory.
const MAX_MEMORY_GROWTH: u64 = 64 << 20;
/// The longest message of the protocol, in bytes.
const LONGEST: usize = 4 << 20;

/// The peak resident memory of this process, in bytes.
fn high_water_mark() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

/// A sample that contains `groups`, as JSON.
fn sample(groups: &str) -> String {
    let overhead = serde_json::to_string(&Overhead::default()).unwrap();
    format!("{{\"sample\":{{\"sample\":{{\"at\":1,\"groups\":{groups}}},\"overhead\":{overhead}}}}}\n")
}

/// Sends a greeting like `brimful watch --serve`, compares clocks and sends a first sample.
fn begin(socket: &mut TcpStream, token: &Token) {
    welcome(socket, token).unwrap();
    let clocks = "{\"clock\":{\"at\":1}}\n".repeat(16);
    let watching = "{\"watching\":{\"every\":{\"kernel\":10000000},\"sources\":{}}}\n";
    socket.write_all((clocks + watching + &sample("{}")).as_bytes()).unwrap();
}

/// Runs a load generator's monitor against a malicious monitor. The malicious monitor begins correctly, and then sends
/// `line` repeatedly: `times` times, with a pause of `apart`. Returns the resulting metrics.
fn run(line: &Arc<str>, times: usize, interval: Nanos, apart: Duration) -> Server {
    let token = Token::generate().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let config =
        RemoteConfig { intervals: Intervals::uniform(interval), ..remote(listener.local_addr().unwrap(), &token) };
    let (sent, all_sent) = channel();
    let line = line.clone();
    let hostile = thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        begin(&mut socket, &token);
        // Sending fails as soon as the other side closes the connection.
        for _ in 0..times {
            thread::sleep(apart);
            if socket.write_all(line.as_bytes()).is_err() {
                break;
            }
        }
        sent.send(()).unwrap();
        let _ = socket.shutdown(Shutdown::Write);
        let _ = socket.read_to_end(&mut Vec::new());
    });
    let epoch = monotonic();
    let monitor = Monitor::connect(&config).unwrap();
    all_sent.recv().unwrap();
    let server = monitor.finish(epoch, None);
    hostile.join().unwrap();
    server
}

/// Every collection that a sample can contain, as two texts: the groups around the collection, with `*` in place of its
/// elements, and one element. In each element, `#` is replaced by a different number.
const COLLECTIONS: [(&str, &str); 13] = [
    (r#"{"module":{"servers":[{"classes":[*]}]}}"#, "{}"),
    (r#"{"module":{"servers":[{"classes":[*]}]}}"#, "[]"),
    (r#"{"module":{"servers":[*]}}"#, "{}"),
    (r#"{"module":{"servers":[{"classes":[{"times":[{"buckets":[*]},{},{},{},{},{}]}]}]}}"#, "[1,2]"),
    (r#"{"process":[*]}"#, "{}"),
    (r#"{"process":[{"pids":[*]}]}"#, "1"),
    (r#"{"process":[{"quotas":[*]}]}"#, "{}"),
    (r#"{"kernel":{"cpus":{*}}}"#, "\"#\":{}"),
    (r#"{"kernel":{"disks":{*}}}"#, DISK),
    (r#"{"network":{"interfaces":[*]}}"#, r#"{"name":""}"#),
    (r#"{"connections":{"ports":[*]}}"#, r#"{"connections":{"established":1}}"#),
    (r#"{"requests":{"ports":[*]}}"#, "{}"),
    (r#"{"requests":{"ports":[{"sizes":[*]}]}}"#, "{}"),
];

const DISK: &str = r##""#":{"reads":1,"blocks_read":1,"writes":1,"blocks_written":1,"busy_ms":1,"queued_ms":1}"##;

/// The groups of a sample with `count` elements in one collection, or with fewer elements if the message would be too
/// long.
fn filled((groups, element): (&str, &str), count: usize) -> String {
    let mut elements = String::new();
    for number in 0..count {
        let next = element.replace('#', &number.to_string());
        if groups.len() + elements.len() + next.len() + 500 > LONGEST {
            break;
        }
        if number > 0 {
            elements.push(',');
        }
        elements += &next;
    }
    groups.replace('*', &elements)
}

/// Runs `body` for each line in a separate process, because the kernel reports the peak memory only for a whole
/// process.
fn alone(test: &str, lines: usize, line: impl Fn(usize) -> String, body: impl Fn(&Arc<str>)) {
    const CHILD: &str = "BRIMFUL_MONITOR_TEST_OF_MEMORY";
    if let Some(index) = std::env::var(CHILD).ok().and_then(|index| index.parse::<usize>().ok()) {
        return body(&line(index).into());
    }
    for index in 0..lines {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("remote::hostile::{test}"), "--nocapture"])
            .env(CHILD, index.to_string())
            .output()
            .unwrap();
        let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && text.contains("1 passed"), "{text}{errors}");
    }
}

#[test]
fn the_largest_messages_break_the_stream_and_not_the_memory() {
    let line = |index| sample(&filled(COLLECTIONS[index], usize::MAX));
    alone("the_largest_messages_break_the_stream_and_not_the_memory", COLLECTIONS.len(), line, |line| {
        assert!(line.len() > LONGEST - 1000);
        let before = high_water_mark();
        let server = run(line, 3, Nanos::from_millis(10), Duration::ZERO);
        let (why, grown) = (&server.sources["monitor"], high_water_mark() - before);
        assert!(why.contains("the stream of brimful 9 at ") && why.contains(" in one message"), "{why}");
        assert!(grown <= MAX_MEMORY_GROWTH, "{grown} bytes of {:.160}", &**line);
    });
}

#[test]
fn messages_within_the_bounds_do_not_fill_the_memory_together() {
    let line = |index| match COLLECTIONS.get(index) {
        // Slightly fewer elements than the limit on objects allows, because the message also has other objects.
        Some(&collection) => sample(&filled(collection, 12_000 / objects(collection.1))),
        None => sample(&format!(r#"{{"process":[{{"name":"{}"}}]}}"#, "x".repeat(LONGEST - 1000))),
    };
    alone("messages_within_the_bounds_do_not_fill_the_memory_together", COLLECTIONS.len() + 1, line, |line| {
        let before = high_water_mark();
        // The messages arrive no faster than requested, so none is rejected for its rate.
        let server = run(line, 16, Nanos::from_millis(10), Duration::from_millis(10));
        let (why, grown) = (&server.sources["monitor"], high_water_mark() - before);
        assert!(why.contains("the other side closed the connection"), "{why}");
        assert!(grown <= MAX_MEMORY_GROWTH, "{grown} bytes of {:.160}", &**line);
    });
}

/// Number of objects and lists in an element.
fn objects(element: &str) -> usize {
    element.bytes().filter(|byte| b"[{".contains(byte)).count().max(1)
}

#[test]
fn samples_that_come_faster_than_asked_break_the_stream_and_the_figures_stay() {
    let line = sample(r#"{"kernel":{"context_switches":7}}"#).into();
    let server = run(&line, 200, Nanos::from_secs(1), Duration::ZERO);
    let why = &server.sources["monitor"];
    assert!(
        why.starts_with("none after ") && why.contains("the watching side sends more samples than requested: "),
        "{why}"
    );
    assert!(why.contains(", while "), "{why}");
    assert!(server.sources["clock"].contains("before the load only"), "{:?}", server.sources);
}

#[test]
fn strangers_cannot_fill_the_log() {
    let (serving, _, said) = serve(watch(), None);
    let begun = Instant::now();
    for _ in 0..100 {
        let mut stranger = TcpStream::connect(serving.address()).unwrap();
        // The connection may have been closed by now.
        let _ = stranger.write_all(b"no token\n");
        let _ = stranger.read_to_end(&mut Vec::new());
    }
    let seconds = begun.elapsed().as_secs() as usize;
    let lines = said.try_iter().count();
    assert!((1..=2 + seconds).contains(&lines), "{lines} lines in {seconds} s");
}
