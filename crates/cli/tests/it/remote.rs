//! Tests a server on another host, with `brimful watch --serve` and `brimful load --watch-from`. The other host is
//! simulated by a time namespace, which has another clock.

use crate::documents;
use crate::program::{Done, Running, brimful, lock_machine_shared, wait_until};
use brimful_core::record::Record;
use brimful_testkit::{Nginx, NginxOptions, RawServer};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// How far the clock of the other host is ahead of this host's clock, in seconds.
const AHEAD: f64 = 54_321.0;
/// A wrong token: no server in these tests has it.
const TOKEN: &str = "00112233445566778899aabbccddeeff";

/// Starts `brimful watch --serve` on the simulated other host. Returns the program, its address and its token.
pub fn serve(args: &[&str]) -> (Running, String, String) {
    let watch = brimful(&[&["watch", "--serve", "127.0.0.1:0", "--quiet"], args].concat());
    let mut command = Command::new("unshare");
    command.args(["--time", "--monotonic", &AHEAD.to_string()]).arg(watch.get_program()).args(watch.get_args());
    command.env_remove("BRIMFUL_TOKEN");
    let mut serving = Running::start(command);
    let line = serving.stderr_line("samples are served at ");
    let (_, address) = line.trim().split_once(" at ").unwrap();
    let (address, token) = address.split_once(", token ").unwrap_or((address, TOKEN));
    let (address, token) = (address.to_owned(), token.to_owned());
    (serving, address, token)
}

/// Starts a relay between the load generator and the monitor. Returns the address of the relay, and the number of lines
/// that the monitor has sent.
fn relay(server: &str) -> (String, Arc<AtomicUsize>) {
    let (listener, server) = (TcpListener::bind("127.0.0.1:0").unwrap(), server.to_owned());
    let (address, lines) = (listener.local_addr().unwrap().to_string(), Arc::new(AtomicUsize::new(0)));
    let counted = lines.clone();
    thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut server = TcpStream::connect(server).unwrap();
        client.set_nodelay(true).unwrap();
        server.set_nodelay(true).unwrap();
        let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        thread::spawn(move || drop(std::io::copy(&mut from, &mut to)));
        let mut chunk = [0; 4096];
        while let Ok(n @ 1..) = server.read(&mut chunk) {
            counted.fetch_add(chunk[..n].iter().filter(|&&byte| byte == b'\n').count(), Ordering::Relaxed);
            if client.write_all(&chunk[..n]).is_err() {
                break;
            }
        }
    });
    (address, lines)
}

/// Number of lines that the monitor sends before its first sample: greeting, welcome, sixteen readings of the clock,
/// and the list of watched programs and ports.
const BEFORE_SAMPLES: usize = 19;

fn port(url: &str) -> String {
    url.trim_end_matches('/').rsplit_once(':').unwrap().1.to_owned()
}

fn load(args: &[&str], token: Option<&str>) -> Command {
    let mut command = brimful(&[&["load", "--json", "--quiet"], args].concat());
    match token {
        Some(token) => command.env("BRIMFUL_TOKEN", token),
        None => command.env_remove("BRIMFUL_TOKEN"),
    };
    command
}

fn finish(command: Command) -> Done {
    Running::start(command).finish()
}

fn record(done: &Done, token: &str) -> Record {
    assert!(!done.stdout.contains(token) && !done.stderr.contains(token), "{done:?}");
    documents::record(&done.stdout)
}

#[test]
fn samples_of_another_clock_are_mapped_to_the_loads_clock() {
    let _machine = lock_machine_shared();
    let nginx = Nginx::start(NginxOptions::default());
    let (port, pid) = (port(&nginx.url()), nginx.pid().to_string());
    let (_serving, address, token) = serve(&["--port", &port, "--process", &pid]);
    let (address, lines) = relay(&address);
    let args = [&nginx.url(), "--clients", "2", "--duration", "1h", "--watch-from", &address];
    let loading = Running::start(load(&args, Some(&token)));
    // The load ends after the seventh sample, even if responses take long.
    wait_until(|| lines.load(Ordering::Relaxed) >= BEFORE_SAMPLES + 7);
    loading.ctrl_c();
    let record = record(&loading.finish().exits(&[130]), &token);
    let server = record.server.expect("a server was watched");

    let clock = server.clock.expect("clocks were compared");
    assert!((clock.offset_s - AHEAD).abs() <= clock.uncertainty_s && clock.uncertainty_s < 0.1, "{clock:?}");
    let [process] = &server.process[..] else { panic!("one program was named: {:#?}", server.process) };
    assert!(process.pids.contains(&nginx.workers()[0]) && process.cpu_s > 0.0, "{process:#?}");
    assert!(server.connections.listener.is_some_and(|listener| listener.backlog > 0));
    assert!(server.intervals.len() >= 4, "{:#?}", server.intervals);
    let during = |t_s: f64| (-1.0..record.duration_s + 1.0).contains(&t_s);
    assert!(server.intervals.iter().all(|interval| during(interval.t_s)), "{:#?}", server.intervals);
    let busy: f64 = server.intervals.iter().filter_map(|i| Some(i.process_cores? * i.length_s)).sum();
    // On a busy machine, samples are late, so the samples do not cover the whole window. The CPU time of the rest is
    // extrapolated, so the tolerance is large.
    assert!(busy >= 0.5 * process.cpu_s, "{busy} s of {process:?}");
    for part in ["clock", "monitor", "process", "listener", "cpu"] {
        assert!(!server.sources[part].starts_with("none"), "{:#?}", server.sources);
    }
    assert!(server.sources["monitor"].ends_with(&address) && server.overhead.samples >= 5, "{:?}", server.overhead);
}

#[test]
fn a_load_whose_monitor_is_killed_has_a_record() {
    let _machine = lock_machine_shared();
    // The monitor is killed while the load is in progress: the server responds only after that.
    let killed = Arc::new(AtomicBool::new(false));
    let may_answer = killed.clone();
    let server = RawServer::with_handler(move |_| {
        wait_until(|| may_answer.load(Ordering::Relaxed));
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()
    });
    let (mut serving, address, token) = serve(&["--port", &port(&server.url())]);
    let url = server.url();
    let args = [&url, "--clients", "1", "--requests", "100", "--timeout", "80s", "--watch-from", &address];
    let loading = Running::start(load(&args, Some(&token)));
    serving.stderr_line(" watches");
    serving.kill();
    killed.store(true, Ordering::Relaxed);
    let done = loading.finish().exits(&[0, 4]);
    let record = record(&done, &token);
    assert_eq!((record.counts.scheduled, record.counts.completed), (100, 100));
    let sources = record.server.expect("a server was watched").sources;
    assert!(sources["monitor"].starts_with("none after") && sources["monitor"].contains("broke"), "{sources:#?}");
}

#[test]
fn tls_with_a_certificate_and_a_token_from_files() {
    let _machine = lock_machine_shared();
    let nginx = Nginx::start(NginxOptions::default());
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (certificate, key, token) = (path("cert.pem"), path("key.pem"), path("token"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"])
        .args(["-subj", "/CN=brimful", "-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", &key, "-out", &certificate])
        .output()
        .expect("install openssl: apt-get install openssl");
    assert!(made.status.success(), "{made:?}");
    std::fs::write(&token, format!("{TOKEN}\n")).unwrap();
    let mode = |file: &str, mode| std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).unwrap();
    let refused = |args: &[&str], file: &str| {
        let done = finish(brimful(&[&["watch", "--serve", "127.0.0.1:0"], args].concat()));
        done.fails(2, &format!("other users of this host can read the secret in it (mode 0644): `chmod 600 {file}`"));
    };
    mode(&token, 0o644);
    refused(&["--token-file", &token], &token);
    mode(&token, 0o600);
    mode(&key, 0o644);
    refused(&["--tls-cert", &certificate, "--tls-key", &key], &key);
    mode(&key, 0o600);
    let port = port(&nginx.url());
    let (_serving, address, _) =
        serve(&["--port", &port, "--token-file", &token, "--tls-cert", &certificate, "--tls-key", &key]);
    let url = nginx.url();
    let args = [&url, "--clients", "1", "--duration", "600ms", "--watch-from", &address, "--token-file", &token];
    let done = finish(load(&[&args[..], &["--watch-ca", &certificate]].concat(), None)).exits(&[0, 4]);
    assert!(record(&done, TOKEN).server.is_some_and(|server| server.clock.is_some() && !server.intervals.is_empty()));
    let (other, _) = (path("other"), std::fs::copy(&key, path("other")).unwrap());
    finish(load(&[&args[..], &["--watch-ca", &other]].concat(), None)).fails(2, "holds no usable certificate");
}

#[test]
fn unsafe_and_wrong_options_are_refused() {
    let _machine = lock_machine_shared();
    let nginx = Nginx::start(NginxOptions::default());
    let url = nginx.url();
    let run = |args: &[&str], token| finish(load(&[&[url.as_str(), "--rate", "1", "-d", "1s"], args].concat(), token));
    run(&["--watch-from", "127.0.0.1:1"], None).fails(2, "in the environment as BRIMFUL_TOKEN, or by --token-file");
    run(&["--watch-from", "127.0.0.1:1"], Some("short")).fails(2, "BRIMFUL_TOKEN: not a token");
    run(&["--watch-from", "127.0.0.1:1", "--token-file", "/no/such"], None).fails(2, "/no/such");
    run(&["--watch-from", "192.0.2.1:7411"], Some(TOKEN)).fails(2, "ssh -N -L 7411:127.0.0.1:7411");
    run(&["--watch-from", "here"], Some(TOKEN)).fails(2, "write host and port, like 127.0.0.1:7411");
    run(&["--watch-from", "127.0.0.1:1", "--process", "1"], Some(TOKEN)).fails(2, "cannot be used with");
    run(&["--watch-ca", "/no/such"], Some(TOKEN)).fails(2, "--watch-from");
    run(&["--watch-from", "127.0.0.1:1"], Some(TOKEN)).fails(3, "start `brimful watch --serve` there");
    let nothing = url.trim_start_matches("http://").trim_end_matches('/');
    run(&["--watch-from", nothing], Some(TOKEN)).fails(3, "cannot watch from");
    let (_serving, address, _) = serve(&[]);
    run(&["--watch-from", &address], Some(TOKEN)).fails(3, "the token is not that of `brimful watch --serve`");

    let watch = |args: &[&str]| finish(brimful(&[&["watch"], args].concat()));
    watch(&["--serve", "0.0.0.0:7411"]).fails(2, "ssh -N -L 7411:127.0.0.1:7411");
    watch(&["--serve", &address]).fails(3, "cannot serve at");
    watch(&["--serve", "127.0.0.1:0", "--tls-cert", "/no/such"]).fails(2, "--tls-key");
    watch(&["--serve", "127.0.0.1:0", "--tls-cert", "/no/such", "--tls-key", "/no/such"]).fails(2, "/no/such");
}
