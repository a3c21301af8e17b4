//! Tests the monitoring of a server on another host. Here, both sides are on the loopback interface. In some tests, a
//! relay between them delays, cuts or freezes the connection. In others, a program without the token acts as one of the
//! sides.

mod hostile;

use super::TEST_TIMEOUT;
use brimful_core::Nanos;
use brimful_core::server::Server;
use brimful_monitor::{
    Identity, Intervals, Monitor, MonitorConfig, MonitorServer, ProcessSelector, RemoteConfig, ServeConfig, Token,
};
use proptest::prelude::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A monitor configuration with one port, on which no program listens.
fn watch() -> MonitorConfig {
    MonitorConfig { ports: vec![1], ..MonitorConfig::default() }
}

/// Starts a monitor server. Also returns its token and the channel of its log lines.
fn serve(watch: MonitorConfig, identity: Option<Identity>) -> (MonitorServer, Token, Receiver<String>) {
    let token = Token::generate().unwrap();
    let (said, hears) = channel();
    let config = ServeConfig { address: ([127, 0, 0, 1], 0).into(), token: token.clone(), identity, watch };
    let serving = MonitorServer::start(config, move |text| drop(said.send(text))).unwrap();
    (serving, token, hears)
}

fn remote(address: impl ToString, token: &Token) -> RemoteConfig {
    let intervals = Intervals::uniform(Nanos::from_millis(10));
    RemoteConfig { address: address.to_string(), token: token.clone(), authority: None, intervals }
}

fn refused(config: &RemoteConfig) -> String {
    Monitor::connect(config).unwrap_err().to_string()
}

fn until(what: &str, happened: impl Fn() -> bool) {
    let began = Instant::now();
    while !happened() {
        assert!(began.elapsed() < TEST_TIMEOUT, "timed out waiting for {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until a line with this text is logged.
fn wait_for_log(lines: &Receiver<String>, part: &str) {
    let mut all = Vec::new();
    while !all.last().is_some_and(|text: &String| text.contains(part)) {
        let next = lines.recv_timeout(TEST_TIMEOUT);
        all.push(next.unwrap_or_else(|_| panic!("{part:?} is not among {all:?}")));
    }
}

fn monotonic() -> Nanos {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// Forwards data between clients and a server.
struct Relay {
    address: SocketAddr,
    /// Number of lines sent to the client so far.
    lines: Arc<AtomicUsize>,
    sockets: Arc<Mutex<Vec<TcpStream>>>,
    /// While a test holds this lock, the relay forwards nothing.
    gate: Arc<Mutex<()>>,
}

impl Relay {
    /// Starts a relay. `there` is the delay of data to the server, `back` the delay of data from the server.
    fn start(server: SocketAddr, there: Duration, back: Duration) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Relay {
            address: listener.local_addr().unwrap(),
            lines: Arc::default(),
            sockets: Arc::default(),
            gate: Arc::default(),
        };
        let (lines, sockets, gate) = (relay.lines.clone(), relay.sockets.clone(), relay.gate.clone());
        thread::spawn(move || {
            let (client, _) = listener.accept().unwrap();
            let server = TcpStream::connect(server).unwrap();
            for socket in [&client, &server] {
                socket.set_nodelay(true).unwrap();
                sockets.lock().unwrap().push(socket.try_clone().unwrap());
            }
            let (from, to, open) = (client.try_clone().unwrap(), server.try_clone().unwrap(), gate.clone());
            thread::spawn(move || pass(from, to, there, &AtomicUsize::new(0), &open));
            pass(server, client, back, &lines, &gate);
        });
        relay
    }

    fn cut(&self) {
        for socket in self.sockets.lock().unwrap().iter() {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    fn passes_lines(&self, count: usize) {
        let before = self.lines.load(Ordering::Relaxed);
        until("a sample", || self.lines.load(Ordering::Relaxed) >= before + count);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, delay: Duration, lines: &AtomicUsize, gate: &Mutex<()>) {
    let mut chunk = [0; 4096];
    while let Ok(n @ 1..) = from.read(&mut chunk) {
        thread::sleep(delay);
        let _open = gate.lock().unwrap_or_else(PoisonError::into_inner);
        // Lines are counted before they are sent, so that every line that the client has is counted.
        lines.fetch_add(chunk[..n].iter().filter(|&&byte| byte == b'\n').count(), Ordering::Relaxed);
        if to.write_all(&chunk[..n]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// The error of a client that connects to a server that sends exactly these bytes.
fn error_after(sent: impl Into<Vec<u8>>) -> String {
    let sent = sent.into();
    error_with_server(&Token::generate().unwrap(), move |socket| {
        let _ = socket.write_all(&sent);
    })
}

/// The error of a client that uses this token, while `other` acts as the server.
fn error_with_server(token: &Token, other: impl FnOnce(&mut TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let speaker = thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        other(&mut socket);
        let _ = socket.shutdown(Shutdown::Write);
        let _ = socket.read_to_end(&mut Vec::new());
    });
    let error = refused(&remote(address, token));
    speaker.join().unwrap();
    error
}

const NONCE: &str = "ffeeddccbbaa99887766554433221100";

fn greeting(protocol: &str) -> String {
    format!("{{\"greeting\":{{\"protocol\":\"{protocol}\",\"version\":\"9\",\"nonce\":\"{NONCE}\"}}}}\n")
}

/// HMAC-SHA-256 keyed by the token, in hexadecimal digits.
fn proof(token: &Token, statement: &str) -> String {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, token.reveal().as_bytes());
    ring::hmac::sign(&key, statement.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Sends a greeting, receives the client's hello, and answers it with a valid proof.
fn welcome(socket: &mut TcpStream, token: &Token) -> Option<String> {
    socket.write_all(greeting("brimful.watch/3").as_bytes()).ok()?;
    let mut hello = String::new();
    BufReader::new(&*socket).read_line(&mut hello).ok()?;
    let message: serde_json::Value = serde_json::from_str(&hello).ok()?;
    let nonce = message["hello"]["nonce"].as_str()?;
    let proof = proof(token, &format!("brimful.watch/3 server {NONCE} {nonce}"));
    writeln!(socket, "{{\"welcome\":{{\"proof\":\"{proof}\"}}}}").ok()?;
    Some(hello)
}

#[test]
fn figures_come_with_their_sources_on_this_hosts_clock() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let pid = ProcessSelector::Pid(std::process::id());
    let watch = MonitorConfig { processes: vec![pid], ports: vec![address.port()], ..MonitorConfig::default() };
    let (serving, token, _) = serve(watch, None);
    let relay = Relay::start(serving.address(), Duration::ZERO, Duration::ZERO);
    let epoch = monotonic();
    let monitor = Monitor::connect(&remote(relay.address, &token)).unwrap();
    relay.passes_lines(3);
    let _waiting = [(); 3].map(|()| TcpStream::connect(address).unwrap());
    let Server { sources, overhead, clock, process, connections, intervals, kernel, .. } = monitor.finish(epoch, None);

    let clock = clock.unwrap();
    assert!(clock.offset_s.abs() <= clock.uncertainty_s && clock.uncertainty_s < 5e-3, "{clock:?}");
    assert!(sources["clock"].contains("before and after the load"), "{sources:#?}");
    assert_eq!(sources["monitor"], format!("brimful {} at {}", env!("CARGO_PKG_VERSION"), relay.address));
    assert!(!sources["process"].starts_with("none") && !sources["listener"].starts_with("none"), "{sources:#?}");
    assert!(overhead.samples >= 4 && overhead.per_sample_us > 0.0 && overhead.monitor_cpu_s > 0.0, "{overhead:?}");
    assert!(kernel.cpu.is_some());
    assert!(process[0].pids.contains(&std::process::id()), "{process:#?}");
    assert_eq!(connections.listener.unwrap().accept_queue, 3, "the last sample is taken on request");
    // The times of all intervals were converted to this host's clock. They must lie between the two moments at which
    // this test read the clock.
    let (error, end) = (clock.uncertainty_s, (monotonic() - epoch).as_secs_f64());
    let during = |t_s: f64| t_s >= -error && t_s <= end + error;
    assert!(intervals.iter().all(|i| during(i.t_s) && during(i.t_s + i.length_s)), "{clock:?} {intervals:#?}");
}

#[test]
fn a_way_that_is_slower_in_one_direction_stays_within_the_uncertainty() {
    for (there, back) in [(4, 0), (0, 4)] {
        let (serving, token, _) = serve(watch(), None);
        let relay = Relay::start(serving.address(), Duration::from_millis(there), Duration::from_millis(back));
        let clock = Monitor::connect(&remote(relay.address, &token)).unwrap().finish(monotonic(), None).clock.unwrap();
        assert!(clock.offset_s.abs() <= clock.uncertainty_s, "{clock:?}");
        // With a delay of 4 ms in one direction only, the measured offset is wrong by about 2 ms.
        let wrong = if there > back { clock.offset_s } else { -clock.offset_s };
        assert!(wrong > 1e-3 && clock.uncertainty_s > 2e-3, "{there} {back} {clock:?}");
    }
}

#[test]
fn a_clock_that_cannot_be_told_is_refused() {
    let (serving, token, _) = serve(watch(), None);
    let relay = Relay::start(serving.address(), Duration::from_millis(6), Duration::from_millis(6));
    let error = refused(&remote(relay.address, &token));
    assert!(error.contains("need 5ms: generate the load on a host closer"), "{error}");
}

#[test]
fn who_does_not_know_the_token_is_told_nothing() {
    let (serving, token, said) = serve(watch(), None);
    let error = refused(&remote(serving.address(), &Token::generate().unwrap()));
    assert!(error.contains("the token is not that of `brimful watch --serve`"), "{error}");
    wait_for_log(&said, "refused: the token");
    let hello = |proof: &str| format!(r#"{{"hello":{{"nonce":"{NONCE}","proof":"{proof}"}}}}"#);
    for first in [r#"{"clock":{}}"#, r#"{"watch":{"every":{}}}"#, &hello(""), &hello(token.reveal())] {
        let mut stranger = TcpStream::connect(serving.address()).unwrap();
        writeln!(stranger, "{first}").unwrap();
        let mut heard = String::new();
        stranger.read_to_string(&mut heard).unwrap();
        let lines: Vec<&str> = heard.lines().collect();
        assert!(
            matches!(lines[..], [greeting, no] if greeting.contains("brimful.watch/3") && no.contains("refused")),
            "{heard}"
        );
        assert!(!heard.contains(token.reveal()));
    }
    Monitor::connect(&remote(serving.address(), &token)).unwrap();
}

#[test]
fn what_was_overheard_opens_nothing() {
    let token = Token::generate().unwrap();
    // A program that listens at the server's address must not receive the token, and must not pass for a server that
    // knows it.
    let (heard, hello) = channel();
    let impostor = move |socket: &mut TcpStream| drop(heard.send(welcome(socket, &Token::generate().unwrap())));
    let error = error_with_server(&token, impostor);
    assert!(error.contains("it does not know the token"), "{error}");
    let hello = hello.recv().unwrap().unwrap();
    assert!(!hello.contains(token.reveal()), "{hello}");
    // The client's proof that it knows the token, as the impostor received it, is refused on another connection.
    let (said, news) = channel();
    let config = ServeConfig { address: ([127, 0, 0, 1], 0).into(), token, identity: None, watch: watch() };
    let serving = MonitorServer::start(config, move |text| drop(said.send(text))).unwrap();
    let mut replayed = TcpStream::connect(serving.address()).unwrap();
    replayed.write_all(hello.as_bytes()).unwrap();
    wait_for_log(&news, "refused: the token");
}

#[test]
fn plain_tcp_does_not_leave_the_host() {
    let token = Token::generate().unwrap();
    for address in ["0.0.0.0:7411", "[::]:7411", "192.0.2.1:7411"] {
        let address = address.parse().unwrap();
        let config = ServeConfig { address, token: token.clone(), identity: None, watch: watch() };
        let error = MonitorServer::start(config, drop).unwrap_err().to_string();
        assert!(error.contains("ssh -N -L 7411:127.0.0.1:7411 USER@HOST") && error.contains("--tls-cert"), "{error}");
    }
    for address in ["192.0.2.1:7411", "[2001:db8::1]:7411"] {
        let error = refused(&remote(address, &token));
        assert!(error.contains("ssh -N -L 7411:127.0.0.1:7411 USER@HOST") && error.contains("--watch-ca"), "{error}");
    }
    for address in ["", "7411", ":7411", "localhost", "localhost:http", "localhost:99999"] {
        assert!(refused(&remote(address, &token)).contains("like 127.0.0.1:7411"), "{address}");
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = ServeConfig { address: taken.local_addr().unwrap(), token, identity: None, watch: watch() };
    assert!(MonitorServer::start(config, drop).unwrap_err().to_string().contains("cannot serve at 127.0.0.1"));
}

#[test]
fn a_stream_that_is_cut_leaves_what_was_seen() {
    let (serving, token, said) = serve(watch(), None);
    let relay = Relay::start(serving.address(), Duration::ZERO, Duration::ZERO);
    let epoch = monotonic();
    let monitor = Monitor::connect(&remote(relay.address, &token)).unwrap();
    relay.passes_lines(4);
    relay.cut();
    // The monitor server must log that the client closed the connection.
    wait_for_log(&said, "closed the connection");
    let server = monitor.finish(epoch, None);
    let monitor = &server.sources["monitor"];
    assert!(monitor.starts_with("none after") && monitor.contains("of the load: the stream of brimful"), "{monitor}");
    assert!(server.sources["clock"].contains("before the load only"), "{:?}", server.sources);
    for figures in ["cpu", "memory", "interrupts", "paging", "network"] {
        assert!(server.sources[figures].starts_with("/proc/"), "{:?}", server.sources);
    }
    assert!(server.kernel.cpu.is_some() && server.intervals.len() >= 3 && server.overhead.samples >= 4, "{server:#?}");
    assert!(server.clock.is_some_and(|clock| clock.offset_s.abs() <= clock.uncertainty_s));
}

#[test]
fn a_server_that_falls_silent_is_given_up() {
    let (serving, token, _) = serve(watch(), None);
    let relay = Relay::start(serving.address(), Duration::ZERO, Duration::ZERO);
    let monitor = Monitor::connect(&remote(relay.address, &token)).unwrap();
    relay.passes_lines(4);
    let shut = relay.gate.lock().unwrap();
    let server = monitor.finish(monotonic(), None);
    assert!(server.sources["monitor"].contains("within 5s"), "{:?}", server.sources);
    assert!(server.kernel.cpu.is_some());
    drop(shut);
}

#[test]
fn clients_are_told_when_the_watch_ends() {
    let (serving, token, _) = serve(watch(), None);
    let relay = Relay::start(serving.address(), Duration::ZERO, Duration::ZERO);
    let monitor = Monitor::connect(&remote(relay.address, &token)).unwrap();
    relay.passes_lines(2);
    drop(serving);
    until("the end of the stream", || relay.sockets.lock().unwrap()[0].peek(&mut [0]).is_ok_and(|n| n == 0));
    let server = monitor.finish(monotonic(), None);
    assert!(server.sources["monitor"].contains("was ended there"), "{:?}", server.sources);
}

#[test]
fn a_few_clients_at_a_time_each_with_what_it_wants() {
    let (serving, token, _) = serve(watch(), None);
    let config = remote(serving.address(), &token);
    let monitors = [(); 4].map(|()| Monitor::connect(&config).unwrap());
    let error = refused(&config);
    assert!(error.contains("it samples for 4 clients already"), "{error}");
    for monitor in monitors {
        assert!(monitor.finish(monotonic(), None).overhead.samples >= 2);
    }
    until("a free seat", || Monitor::connect(&config).is_ok());
    // The monitor server must report that it cannot find the process.
    let no_such = MonitorConfig { processes: vec![ProcessSelector::Pid(4_000_000)], ..MonitorConfig::default() };
    let (serving, token, _) = serve(no_such, None);
    let served = Monitor::connect(&remote(serving.address(), &token));
    assert!(served.is_err_and(|error| error.to_string().contains("4000000")));
    let mut nothing = MonitorConfig::default().intervals;
    for group in brimful_monitor::GroupName::ALL {
        nothing.set(group, None);
    }
    let (serving, token, _) = serve(MonitorConfig { intervals: nothing, ..MonitorConfig::default() }, None);
    assert!(refused(&remote(serving.address(), &token)).contains("none of the requested groups"));
}

#[test]
fn strangers_disturb_nobody() {
    let (serving, token, said) = serve(watch(), None);
    let relay = Relay::start(serving.address(), Duration::ZERO, Duration::ZERO);
    let monitor = Monitor::connect(&remote(relay.address, &token)).unwrap();
    let connect = || TcpStream::connect(serving.address()).unwrap();
    let silent: Vec<TcpStream> = (0..100).map(|_| connect()).collect();
    // More clients without the token connect than may be pending, so the monitor server closes the oldest of their
    // connections. A client with the token must still be able to connect.
    Monitor::connect(&remote(serving.address(), &token)).unwrap();
    let turned_away = |mut socket: &TcpStream| {
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        matches!(socket.read(&mut [0; 500]), Ok(0))
    };
    until("a stranger turned away", || silent.iter().any(turned_away));
    drop(silent);
    for bytes in [&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], b"\0\xff\n", b"{\"hello\":\n", &[b'['; 100_000], b"\n"] {
        until("an end", || {
            let mut socket = connect();
            // The monitor server may have closed the connection already, because of the data or because too many are
            // pending.
            let _ = socket.write_all(bytes);
            let _ = socket.read_to_end(&mut Vec::new());
            said.try_iter().any(|text| text.contains("not of brimful's protocol"))
        });
    }
    relay.passes_lines(2);
    let server = monitor.finish(monotonic(), None);
    assert!(server.sources["monitor"].starts_with("brimful"), "{:?}", server.sources);
    until("a free seat", || Monitor::connect(&remote(serving.address(), &token)).is_ok());
}

#[test]
fn who_is_not_brimful_is_recognized() {
    assert!(error_after("HTTP/1.1 400 Bad Request\r\n\r\n").contains("it begins with `HTTP/1.1 400 Bad Request`"));
    assert!(error_after("SSH-2.0-OpenSSH_9.2\x1b[31m\r\n").contains(r"SSH-2.0-OpenSSH_9.2\u001b[31m`"));
    assert!(error_after("").contains("closed the connection"));
    assert!(error_after(vec![b'x'; 5 << 20]).contains("a line of more than 4194304 bytes"));
    assert!(error_after(greeting("brimful.watch/0")).contains("update brimful on 127.0.0.1:"));
    assert!(error_after(greeting("brimful.watch/4")).contains("update brimful on this host"));
    let before = "{\"greeting\":{\"protocol\":\"brimful.watch/1\",\"version\":\"0.1.0\"}}\n";
    assert!(error_after(before).contains("update brimful on 127.0.0.1:"));
    assert!(error_after(greeting("other/1")).contains("check the port"));
    assert!(error_after(greeting("brimful.watch/3") + "{\"refused\":\"go\\u0007away\"}\n").contains(r"go\u0007away"));
    assert!(
        error_after(greeting("brimful.watch/3") + "{\"clock\":{\"at\":1}}\n")
            .contains("does not belong to the request")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever bytes a server sends, the client must report an error in words.
    #[test]
    fn no_answer_is_too_strange(
        bytes in proptest::collection::vec(any::<u8>(), 0..300), at in any::<u64>(), greeted in any::<bool>(),
    ) {
        let token = Token::generate().unwrap();
        let known = token.clone();
        let error = error_with_server(&token, move |socket| {
            if greeted {
                welcome(socket, &known).unwrap();
                let clocks = format!("{{\"clock\":{{\"at\":{at}}}}}\n").repeat(16);
                let _ = socket.write_all(clocks.as_bytes());
            }
            let _ = socket.write_all(&bytes);
        });
        prop_assert!(error.starts_with("cannot watch from 127.0.0.1:"));
        prop_assert!(!error.contains("does not know the token"));
    }
}

/// Creates a certificate for these names with the command from the documentation. If `authority` is true, the
/// certificate may only sign other certificates.
fn certificate(directory: &Path, names: &str, authority: bool) -> Identity {
    let file = |suffix: &str| directory.join(format!("{}-{authority}.{suffix}", names.replace([':', ','], "-")));
    let (key, certificate): (PathBuf, PathBuf) = (file("key"), file("cert"));
    let constraint = if authority { "basicConstraints=critical,CA:TRUE" } else { "basicConstraints=critical,CA:FALSE" };
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"])
        .args(["-subj", "/CN=brimful", "-addext", constraint, "-addext", &format!("subjectAltName={names}")])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap_or_else(|error| panic!("{error}: install openssl (apt-get install openssl)"));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Identity { certificate, key }
}

#[test]
fn tls_lets_those_through_who_trust_and_those_alone() {
    let directory = tempfile::tempdir().unwrap();
    let make = |names, authority| certificate(directory.path(), names, authority);
    let own = make("IP:127.0.0.1,DNS:localhost", false);
    let (serving, token, said) = serve(watch(), Some(own.clone()));
    let trusting = |address: String, authority: &Path| RemoteConfig {
        authority: Some(authority.to_owned()),
        ..remote(address, &token)
    };
    let (address, port) = (serving.address().to_string(), serving.address().port());
    for address in [address.clone(), format!("localhost:{port}")] {
        let server = Monitor::connect(&trusting(address, &own.certificate)).unwrap().finish(monotonic(), None);
        assert!(server.clock.is_some() && server.overhead.samples >= 2 && server.intervals.len() == 1, "{server:#?}");
        assert!(server.sources["monitor"].starts_with("brimful"), "{:?}", server.sources);
        wait_for_log(&said, ": done");
    }

    let other = make("DNS:other.example", false);
    let error = refused(&trusting(address.clone(), &other.certificate));
    assert!(error.contains("not signed by the given authority"), "{error}");
    wait_for_log(&said, "does not trust this certificate");
    let (elsewhere, other_token, _) = serve(watch(), Some(other.clone()));
    let to_other = RemoteConfig { token: other_token, ..trusting(elsewhere.address().to_string(), &other.certificate) };
    let error = refused(&to_other);
    assert!(error.contains("is for another host"), "{error}");
    let authority = make("IP:127.0.0.1", true);
    let (signing, _, _) = serve(watch(), Some(authority.clone()));
    let error = refused(&trusting(signing.address().to_string(), &authority.certificate));
    assert!(error.contains("an authority's own") && error.contains("CA:FALSE"), "{error}");
    let (plain, _, _) = serve(watch(), None);
    let error = refused(&trusting(plain.address().to_string(), &own.certificate));
    assert!(error.contains("does not speak TLS"), "{error}");

    // None of these files contains what its option requires.
    for (certificate, key) in
        [(&own.key, &own.key), (&own.certificate, &own.certificate), (&own.certificate, &other.key)]
    {
        let identity = Some(Identity { certificate: certificate.clone(), key: key.clone() });
        let config =
            ServeConfig { address: ([127, 0, 0, 1], 0).into(), token: token.clone(), identity, watch: watch() };
        let error = MonitorServer::start(config, drop).unwrap_err().to_string();
        assert!(error.contains("holds no usable") && error.contains("openssl req -x509"), "{error}");
    }
    assert!(refused(&trusting(address, Path::new("/no/such/file"))).contains("/no/such/file"));
}
