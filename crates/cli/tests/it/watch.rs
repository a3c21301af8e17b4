//! Tests `brimful watch`: its output, how it ends, and servers that are not running.

mod bad_input;
mod logs;
mod prometheus;
mod requests;
mod screen;

use crate::documents;
use crate::program::{Running, brimful, lock_machine_shared, run, wait_until};
use brimful_core::server::{Server, ServerInterval};
use brimful_testkit::{Nginx, NginxOptions, RefusingPort, full_backlog_listener};
use rustix::process::Signal;
use std::fs;
use std::process::{Child, Command};

/// Flags for frequent samples, so that the tests are short.
const OFTEN: [&str; 2] = ["--interval", "50ms"];

fn nginx() -> (Nginx, String) {
    let nginx = Nginx::start(NginxOptions::default());
    let port = nginx.addr().port().to_string();
    (nginx, port)
}

#[test]
fn once_prints_one_server_object() {
    let (nginx, port) = nginx();
    let done = run(&["watch", "--port", &port, "--once", "--json", "--interval", "200ms"]).exits(&[0]);
    let server: Server = documents::document(&done.stdout);
    assert!(server.kernel.cpu.is_some() && !server.kernel.cores.is_empty(), "{:#?}", server.kernel);
    assert_eq!(server.process.len(), 1);
    assert!(server.process[0].pids.contains(&nginx.pid()), "{:#?}", server.process);
    assert_eq!(server.process[0].processes, 2, "nginx has a master and a worker");
    assert!(server.network.is_some());
    let probe = server.host_probe.expect("this host was probed at the start");
    assert!(probe.arithmetic_mops > 0.0 && probe.memory_mreads > 0.0, "{probe:?}");
    let listener = server.connections.listener.expect("nginx listens");
    assert_eq!((listener.backlog, listener.accept_queue), (511, 0));
    assert_eq!(server.intervals.len(), 1);
    // If the first sample is late, the interval is shorter than 200 ms, but its end is not before the second sample is
    // due.
    let ServerInterval { t_s, length_s, .. } = server.intervals[0];
    assert!(length_s > 0.0 && t_s < 60.0 && t_s + length_s >= 0.2, "{:?}", server.intervals);
    assert!(server.overhead.samples == 3 && server.overhead.monitor_cpu_s > 0.0, "{:?}", server.overhead);
    for figures in
        ["cpu", "disk", "paging", "memory", "interrupts", "pressure", "process", "network", "tcp", "listener"]
    {
        assert!(server.sources.contains_key(figures), "{figures}: {:#?}", server.sources);
    }
    assert_eq!(done.stderr, "");
}

#[test]
fn programs_and_ports_have_short_forms() {
    let (nginx, port) = nginx();
    let (other, another) = self::nginx();
    let pid = nginx.pid().to_string();
    let once = ["--once", "--json", "--interval", "100ms", "--groups", "process,connections"];
    let watch = |what: &[&str]| -> Server {
        documents::document(&run(&[&["watch"], what, &once[..]].concat()).exits(&[0]).stdout)
    };
    let pids = |server: &Server| server.process.iter().flat_map(|program| program.pids.clone()).collect::<Vec<_>>();
    assert!(pids(&watch(&[&pid])).contains(&nginx.pid()));
    let both = pids(&watch(&["-p", &format!("{port},{another}")]));
    assert!(both.contains(&nginx.pid()) && both.contains(&other.pid()), "{both:?}");
}

#[test]
fn the_text_of_one_interval_has_every_figure_of_webmonitor() {
    let (_nginx, port) = nginx();
    let text = run(&["watch", "--port", &port, "--once", "--interval", "100ms"]).exits(&[0]).stdout;
    // The rows of the Kernel Module in Table 2 of the WebMonitor paper (Almeida, Almeida & Yates 1997), under the names
    // that brimful uses.
    for name in [
        "user",
        "system",
        "idle",
        "reads_per_s",
        "blocks_read_per_s",
        "writes_per_s",
        "blocks_written_per_s",
        "page_ins_per_s",
        "page_outs_per_s",
        "all_per_s",
        "network_per_s",
        "disk_per_s",
        "context_switches_per_s",
        "cores",
        "memory_share",
        "processes",
        "running",
        "rx_packets_per_s",
        "tx_packets_per_s",
        "rx_errors_per_s",
        "tx_errors_per_s",
        "established",
        "syn_received",
        "time_wait",
        "accepted_per_s",
        "tx_bytes_per_s",
    ] {
        assert!(text.split_ascii_whitespace().any(|word| word == name), "{name} in\n{text}");
    }
    assert!(text.contains("\nsources\n") && text.contains("/proc/stat"), "{text}");
}

#[test]
fn lines_have_fixed_columns_and_a_summary_follows() {
    let (_nginx, port) = nginx();
    let text = run(&[&["watch", "--port", &port, "-n", "3"], &OFTEN[..]].concat()).exits(&[0]).stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("time ") && lines[0].contains(" cores ") && lines[1].starts_with("UTC "), "{text}");
    let columns = lines[0].split_ascii_whitespace().count();
    for line in &lines[2..5] {
        assert_eq!(line.split_ascii_whitespace().count(), columns, "{text}");
        assert_eq!(line.chars().count(), lines[0].chars().count(), "{text}");
    }
    assert!(lines[5].starts_with(&format!("port {port} for ")), "{text}");
    for what in ["CPU  ", "programs  ", "listener  ", "monitor  "] {
        assert!(lines[6..].iter().any(|line| line.starts_with(what)), "{what} in\n{text}");
    }
}

#[test]
fn only_the_given_groups_are_read() {
    let text = run(&[&["watch", "--groups", "network", "-n", "2"], &OFTEN[..]].concat()).exits(&[0]).stdout;
    let titles: Vec<&str> = text.lines().next().unwrap().split_ascii_whitespace().collect();
    assert_eq!(titles, ["time", "in", "out", "again"]);
    let args = ["watch", "--groups", "kernel,network", "--interval", "20ms,kernel=1h", "-n", "9", "--json"];
    let server: Server = documents::document(&run(&args).exits(&[0]).stdout);
    let with = |figure: fn(&brimful_core::server::ServerInterval) -> bool| {
        server.intervals.iter().filter(|i| figure(i)).count()
    };
    let (kernel, network) = (with(|i| i.cpu.is_some()), with(|i| i.network_bytes_per_s.is_some()));
    assert!(kernel <= 1 && network >= 8, "{kernel} and {network} of {}", server.intervals.len());
    assert!(server.sources["connections"].contains("not watched"), "{:#?}", server.sources);
}

#[test]
fn ctrl_c_ends_an_endless_watch_normally_and_interrupts_others() {
    let _machine = lock_machine_shared();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("server.json");
    for (signal, args, code) in [
        (Signal::INT, &[][..], 0),
        (Signal::TERM, &[], 0),
        (Signal::INT, &["--duration", "1h"], 130),
        (Signal::INT, &["-n", "1000000"], 130),
    ] {
        let all = [&["watch", "--out", out.to_str().unwrap()], &OFTEN[..], args].concat();
        let mut watch = Running::start(brimful(&all));
        for _ in 0..4 {
            watch.stdout_line();
        }
        watch.signal(signal);
        let done = watch.finish().exits(&[code]);
        assert!(done.stdout.contains("this machine for "), "{}", done.stdout);
        let server: Server = documents::document(&fs::read_to_string(&out).unwrap());
        assert!(server.intervals.len() >= 2, "{server:#?}");
        fs::remove_file(&out).unwrap();
    }
}

#[test]
fn a_closed_pipe_ends_the_watch() {
    let _machine = lock_machine_shared();
    let mut command = brimful(&[&["watch"], &OFTEN[..]].concat());
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ended = || fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap().contains(") Z ");
    wait_until(ended);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_summary_names_dropped_connections_as_the_bottleneck() {
    let server = full_backlog_listener();
    let port = server.addr().port().to_string();
    let _machine = lock_machine_shared();
    let mut watch =
        Running::start(brimful(&[&["watch", "--port", &port, "--groups", "connections"], &OFTEN[..]].concat()));
    watch.stdout_line();
    watch.stdout_line();
    watch.stdout_line();
    let late = std::net::TcpStream::connect_timeout(&server.addr(), std::time::Duration::from_millis(200));
    assert!(late.is_err(), "a full queue accepts no further connection");
    watch.stdout_line();
    watch.ctrl_c();
    let text = watch.finish().exits(&[0]).stdout;
    assert!(text.contains("accept queue 1/0") && text.contains("SYN/s dropped"), "{text}");
}

/// A process with a unique name, which sleeps.
struct Sleeper {
    _dir: tempfile::TempDir,
    path: std::path::PathBuf,
    name: String,
}

impl Sleeper {
    fn new() -> Sleeper {
        let dir = tempfile::tempdir().unwrap();
        let name = format!("sleeper{}", std::process::id());
        let path = dir.path().join(&name);
        // The name of a process is the name of the link that was executed.
        std::os::unix::fs::symlink("/bin/sleep", &path).unwrap();
        Sleeper { _dir: dir, path, name }
    }

    fn start(&self) -> Child {
        Command::new(&self.path).arg("3600").spawn().unwrap()
    }
}

#[test]
fn the_start_and_end_of_a_program_are_reported() {
    let _machine = lock_machine_shared();
    let sleeper = Sleeper::new();
    let mut watch = Running::start(brimful(&[&["watch", "--process", &sleeper.name], &OFTEN[..]].concat()));
    watch.stderr_line(&format!("no process named `{}` is running yet: waiting for one", sleeper.name));
    for _ in 0..2 {
        let mut child = sleeper.start();
        watch.stderr_line("is running now");
        child.kill().unwrap();
        child.wait().unwrap();
        watch.stderr_line("has ended: waiting for another");
    }
    watch.ctrl_c();
    let done = watch.finish().exits(&[0]);
    assert!(done.stdout.contains(&format!("programs  {} ", sleeper.name)), "{}", done.stdout);
}

#[test]
fn the_end_of_a_pid_is_reported() {
    let _machine = lock_machine_shared();
    let mut child = Command::new("/bin/sleep").arg("3600").spawn().unwrap();
    let pid = child.id().to_string();
    let mut watch = Running::start(brimful(&[&["watch", "--process", &pid], &OFTEN[..]].concat()));
    watch.stdout_line();
    child.kill().unwrap();
    child.wait().unwrap();
    watch.stderr_line(&format!("the process with pid {pid} has ended"));
    watch.ctrl_c();
    watch.finish().exits(&[0]);
}

#[test]
fn a_port_is_watched_before_a_server_listens() {
    let _machine = lock_machine_shared();
    let silent = RefusingPort::reserve();
    let port = silent.port();
    let port_text = port.to_string();
    let mut watch = Running::start(brimful(&[&["watch", "--port", &port_text, "--json"], &OFTEN[..]].concat()));
    watch.stderr_line(&format!("no process that listens on TCP port {port} is running yet"));
    let listener = silent.listen();
    watch.stderr_line("is running now");
    drop(listener);
    watch.ctrl_c();
    let server: Server = documents::document(&watch.finish().exits(&[0]).stdout);
    assert!(server.process[0].pids.contains(&std::process::id()), "{:#?}", server.process);
}
