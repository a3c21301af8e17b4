//! Tests the Server Module's file from end to end: the server's code in `server-module/` writes it, and the monitor
//! reads it.

use brimful_core::Nanos;
use brimful_core::server::Module;
use brimful_monitor::module::{ServerSample, servers_in_containers, start_ns};
use brimful_monitor::{MonitorConfig, ProcessSelector, Rates, Sample, Sampler};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Compiles the C program `source`, which writes a Server Module's file. Returns the path of the executable.
fn compiled(source: &Path, directory: &Path) -> PathBuf {
    let program = directory.join("program");
    let recorder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../server-module");
    let compiler = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-pthread", "-I"])
        .arg(&recorder)
        .arg("-o")
        .arg(&program)
        .arg(source)
        .output()
        .expect("a C compiler: apt install gcc");
    assert!(compiler.status.success(), "{}", String::from_utf8_lossy(&compiler.stderr));
    program
}

fn servers(sample: &Sample) -> &[std::sync::Arc<ServerSample>] {
    sample.groups.module.as_ref().map_or(&[], |module| &module.servers)
}

/// The running program `module/server.c`.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Server {
    fn start(directory: &Path, file: &Path) -> Server {
        let program = compiled(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/module/server.c"), directory);
        Server::started(Command::new(program).arg(file))
    }

    /// Starts the program in its own mount namespace, like a container. In this namespace, an empty file system hides
    /// the directory `hidden`.
    fn start_elsewhere(directory: &Path, hidden: &Path) -> Server {
        let program = compiled(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/module/server.c"), directory);
        let script = "mount -t tmpfs none \"$1\" && exec \"$0\" \"$1/brimful-made-up\"";
        let mut shell = Command::new("unshare");
        Server::started(shell.args(["--mount", "sh", "-c", script]).arg(program).arg(hidden))
    }

    fn started(command: &mut Command) -> Server {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut server = Server { child, input, output };
        server.answer("ready");
        server
    }

    fn serve(&mut self, requests: u32) {
        self.begin(requests);
        self.answer("done");
    }

    fn begin(&mut self, requests: u32) {
        writeln!(self.input, "{requests}").unwrap();
    }

    fn answer(&mut self, expected: &str) {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), expected);
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

#[test]
fn a_file_of_known_content_is_read_as_it_was_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let recorder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../server-module/tests/record.c");
    let file = directory.path().join("known");
    assert!(Command::new(compiled(&recorder, directory.path())).arg(&file).status().unwrap().success());
    let mut sampler =
        Sampler::open(&MonitorConfig { modules: vec![file.clone()], ..MonitorConfig::default() }).unwrap();
    let sample = sampler.sample();
    let [server] = servers(&sample) else { panic!("{sample:?}") };
    assert_eq!(
        (server.name.as_str(), server.cpu_one_in, server.workers_most, server.enabled),
        ("test/1.0", 10, 8, true)
    );
    assert_eq!((server.connections, server.lost), (3, 0));
    let class = |name: &str| server.classes.iter().find(|class| class.name == name).unwrap();
    let small = class("small");
    assert_eq!((small.requests, small.failed, small.aborted), (1000, 1, 1));
    assert_eq!(small.bytes, (0..1000).map(|i| 100 + i).sum::<u64>());
    assert_eq!(small.resumed, (0..1000).map(|i| i % 3).sum::<u64>());
    assert_eq!((small.cpu_count, small.cpu_mixed), (100, 1));
    assert_eq!((small.cpu_ns, small.cpu_sum_us2), ([500_000, 2_000_000, 200_000], 100 * 27 * 27));
    let [head, parse, process, upstream, send, log] = &small.times;
    assert_eq!((head.count, head.sum_ns), (1000, 499_500_000));
    assert_eq!((parse.count, parse.sum_ns, parse.sum_us2), (1000, 10_000_000, 100_000));
    assert_eq!((process.count, process.sum_ns), (1000, 1_499_500_000));
    assert_eq!((upstream.count, send.count, send.sum_ns, log.sum_ns), (0, 1000, 0, 2_000_000));
    let in_bucket = |bucket: usize| {
        let range = start_ns(bucket)..start_ns(bucket + 1);
        (0..1000).filter(|i| range.contains(&(1e6 + 1e3 * f64::from(*i)))).count() as u64
    };
    assert!(process.buckets.len() > 3);
    assert!(process.buckets.iter().all(|&(bucket, count)| count == in_bucket(bucket.into())), "{:?}", process.buckets);
    assert_eq!((class("images").requests, class("images").times[3].sum_ns), (10, 50_000_000));
    assert_eq!((class("other").requests, class("other").bytes), (1, 5000));
    let source = &sampler.sources()["module"];
    assert!(source.ends_with("known of test/1.0, CPU time of 1 request in 10"), "{source}");
}

#[test]
fn a_server_is_found_by_its_process_and_its_figures_are_those_of_the_stretch() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("brimful-made-up");
    let mut server = Server::start(directory.path(), &file);
    server.serve(5_000);
    let processes = vec![ProcessSelector::Pid(server.child.id())];
    let config = MonitorConfig { processes, ..MonitorConfig::default() };
    let mut sampler = Sampler::open(&config).unwrap();
    let before = sampler.sample();
    server.serve(1_000);
    let after = sampler.sample();
    let [now] = servers(&after) else { panic!("{after:?}, {:?}", sampler.sources()) };
    assert_eq!((now.requests(), now.workers, now.in_progress), (6_000, 1, 1));
    let Module { servers: found, classes } = Rates::between(&before, &after).module.unwrap().metrics;
    let ([server_now], [small, other]) = (&*found, &*classes) else { panic!("{found:?} {classes:?}") };
    assert_eq!(
        (small.name.as_str(), small.requests, other.name.as_str(), other.requests),
        ("small", 1_000, "other", 0)
    );
    let process = small.phases_us.process.unwrap();
    assert!((process.mean - 1_499.5).abs() < 1e-6, "{process:?}");
    assert!((process.stddev - 288.8).abs() < 1.0, "{process:?}");
    for (found, truth) in [(process.p50, 1_500.0), (process.p90, 1_900.0), (process.p99, 1_990.0)] {
        assert!((found / truth - 1.0_f64).abs() < 0.06, "{found}, not {truth}: {process:?}");
    }
    assert_eq!(small.phases_us.upstream, None);
    let (cpu, demand) = (small.cpu_us.unwrap(), small.demand_us.unwrap());
    assert_eq!((cpu.count, cpu.mean, cpu.stddev), (100, 27.0, 0.0));
    assert!(
        (demand.mean - 30.0).abs() < 1e-9 && (server_now.unexplained_cpu_us.unwrap() - 3.0).abs() < 1e-9,
        "{demand:?}"
    );
    assert!((server_now.workers_busy.unwrap() - 1.0).abs() < 0.2, "the server is busy all the time: {server_now:?}");

    // The file is removed. The monitor must still read it, because a process maps it.
    std::fs::remove_file(&file).unwrap();
    server.serve(1);
    assert_eq!(servers(&sampler.sample())[0].requests(), 6_001);
    server.end();
    super::wait_for("a sample without the server", || servers(&sampler.sample()).is_empty().then_some(()));
    let source = &sampler.sources()["module"];
    assert!(source.starts_with("none: "), "{source}");
}

/// The number of requests of the only server. Checks that the server's other counters match this number.
fn consistent(sample: &Sample) -> u64 {
    let [server] = servers(sample) else { panic!("{sample:?}") };
    let small = &server.classes[0];
    let [_, parse, process, _, _, log] = &small.times;
    assert_eq!((small.bytes, server.requests()), (1000 * small.requests, small.requests));
    // The latest request may be counted a moment before its times are recorded.
    assert!((small.requests.saturating_sub(1)..=small.requests).contains(&parse.count), "{small:?}");
    assert_eq!((parse.count, process.count), (log.count, log.count));
    assert_eq!((parse.sum_ns, parse.sum_us2, log.sum_ns), (10_000 * parse.count, 100 * parse.count, 2_000 * log.count));
    small.requests
}

#[test]
fn a_sample_while_a_worker_writes_has_each_request_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("brimful-made-up");
    let mut server = Server::start(directory.path(), &file);
    let mut sampler = Sampler::open(&MonitorConfig { modules: vec![file], ..MonitorConfig::default() }).unwrap();
    server.begin(400_000);
    let mut seen = 0;
    let mut amounts = std::collections::BTreeSet::new();
    while seen < 400_000 {
        let now = consistent(&sampler.sample());
        assert!(now >= seen, "{now} after {seen}");
        amounts.insert(now);
        seen = now;
    }
    server.answer("done");
    assert!(amounts.len() > 1, "the server must be read while it records requests");
}

#[test]
fn a_worker_that_is_killed_leaves_its_requests_to_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("brimful-made-up");
    let mut counted = 0;
    for _ in 0..4 {
        // The file has only four slots, so some slots are used by several workers in turn.
        let mut server = Server::start(directory.path(), &file);
        let modules = vec![file.clone()];
        let mut sampler = Sampler::open(&MonitorConfig { modules, ..MonitorConfig::default() }).unwrap();
        let sum = |sampler: &mut Sampler| servers(&sampler.sample())[0].requests();
        assert_eq!(sum(&mut sampler), counted);
        server.begin(u32::MAX);
        super::wait_for("requests", || (sum(&mut sampler) > counted + 100).then_some(()));
        server.end();
        let left = sampler.sample();
        let [server] = servers(&left) else { panic!("{left:?}") };
        counted = server.requests();
        assert_eq!(server.classes[0].bytes, 1000 * counted);
        assert_eq!(sum(&mut sampler), counted, "the counters do not change after the server has ended");
    }
}

/// A server in another mount namespace, as in a container, must be found. Creating a mount namespace needs root;
/// without root this test fails and says so.
#[test]
fn a_server_in_a_mount_namespace_of_its_own_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let hidden = directory.path().join("hidden");
    std::fs::create_dir(&hidden).unwrap();
    let mut server = Server::start_elsewhere(directory.path(), &hidden);
    server.serve(21);
    assert!(!hidden.join("brimful-made-up").exists(), "needs root: the server must be in its own mount namespace");
    let pid = server.child.id();
    let mut elsewhere = servers_in_containers(Path::new("/proc"));
    let found = elsewhere.iter_mut().find(|found| found.pids == [pid]).unwrap();
    let sample = found.sample().unwrap();
    assert_eq!((sample.name.as_str(), sample.requests(), sample.workers), ("made-up/1.0", 21, 1));
    let root = Path::new("/proc").join(pid.to_string()).join("root");
    assert_eq!(found.path, root.join(hidden.strip_prefix("/").unwrap()).join("brimful-made-up"));
    assert!(found.path.exists());

    let processes = vec![ProcessSelector::Pid(pid)];
    let mut sampler = Sampler::open(&MonitorConfig { processes, ..MonitorConfig::default() }).unwrap();
    assert_eq!(servers(&sampler.sample())[0].requests(), 21);

    // A server in the test's own mount namespace must not be listed.
    let here = Server::start(directory.path(), &directory.path().join("brimful-here"));
    assert!(servers_in_containers(Path::new("/proc")).iter().all(|found| !found.pids.contains(&here.child.id())));
}

#[test]
fn a_file_that_is_cut_short_while_it_is_read_is_an_error_and_no_signal() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("brimful-made-up");
    let mut server = Server::start(directory.path(), &file);
    server.serve(10);
    let mut sampler =
        Sampler::open(&MonitorConfig { modules: vec![file.clone()], ..MonitorConfig::default() }).unwrap();
    assert_eq!(servers(&sampler.sample()).len(), 1);
    for length in [20_000, 1_000, 0] {
        std::fs::File::options().write(true).open(&file).unwrap().set_len(length).unwrap();
        assert!(servers(&sampler.sample()).is_empty());
        assert!(sampler.sources()["module"].starts_with("none: "), "{:?}", sampler.sources());
    }
    let server = Rates::between(&sampler.sample(), &sampler.sample());
    assert_eq!(server.module, None);
    assert!(server.kernel.is_some_and(|kernel| kernel.length() > Nanos::ZERO));
}
