//! Fixtures for tests: the samples of an invented run with a server that has the Server Module, and a directory of
//! invented processes that replaces /proc. The pids exceed the highest pid of Linux, so the kernel has no CPU clocks
//! for these processes. Their CPU time is read from the directory, in ticks of 10 ms.

use crate::module::{ClassSample, IoSample, ModuleSample, ServerSample};
use crate::{ConnectionsSample, CpuTicks, CpuTime, KernelSample, ListenerSample, PortSample, ProgramSample};
use crate::{PerGroup, Sample};
use brimful_core::Nanos;
use brimful_core::server::AcceptQueue;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A directory of invented processes that replaces /proc in a test.
pub struct Fixture {
    directory: tempfile::TempDir,
    proc: PathBuf,
}

/// Offset of the pids in a fixture. It exceeds the highest pid of Linux, so no real process has the pid of a fixture.
pub const PID_OFFSET: u32 = 5_000_000;

/// Time after which a test gives up waiting. It is long enough for the slowest host.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// Calls `answer` until it returns a value. Panics after [`TEST_TIMEOUT`]; the message names `what`, which the test
/// waits for.
#[track_caller]
pub fn wait_for<T>(what: &str, mut answer: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        assert!(begun.elapsed() < TEST_TIMEOUT, "timed out waiting for {what}");
        std::thread::yield_now();
    }
}

/// Creates one sample per second, from second 10 to second 10 + n. In second k, the program uses k tenths of a core,
/// half of it in user mode.
pub fn samples_of_run(n: u64) -> Vec<Sample> {
    let program = |k: u64| ProgramSample {
        name: "nginx".into(),
        pids: [7, 8].into(),
        cpu: CpuTime { total: Nanos::from_millis(50 * k * (k + 1)), user: Nanos::from_millis(25 * k * (k + 1)) },
        rss_bytes: 1000 + k,
        context_switches: Some(7 * k),
        ..ProgramSample::default()
    };
    let port = |k: u64| {
        let listener = ListenerSample {
            accept_queue: k,
            accept_queue_max: k,
            backlog: 511,
            sockets: 1,
            fullest: AcceptQueue { length: k, limit: 511 },
        };
        PortSample { port: 80, listener: Some(listener), drops: Some(3 * k), ..PortSample::default() }
    };
    let ticks = |k: u64| CpuTicks { user: 20 * k, system: 30 * k, idle: 140 * k, steal: 10 * k, ..CpuTicks::default() };
    let class = |k: u64| {
        let mut class =
            ClassSample { name: "small".to_owned(), requests: 30 * k, cpu_count: 2 * k, ..ClassSample::default() };
        class.cpu_ns[1] = 2_000 * k;
        class.times[2].count = 30 * k;
        class.times[2].buckets = vec![(3, 30 * k)];
        class
    };
    let server = |k: u64| ServerSample {
        at: Nanos::from_secs(10 + k),
        name: "nginx/1".to_owned(),
        enabled: true,
        cpu_one_in: 16,
        workers: 1,
        busy: Nanos::from_millis(500 * k),
        io: Some(IoSample { reads: 60 * k, requests: 30 * k, ..IoSample::default() }),
        classes: vec![class(k)],
        ..ServerSample::default()
    };
    let sample = |k: u64| Sample {
        at: Nanos::from_secs(10 + k),
        groups: PerGroup {
            kernel: Some(KernelSample {
                cpus: [(0, ticks(k))].into(),
                context_switches: Some(500 * k),
                ..KernelSample::default()
            }),
            process: Some(vec![program(k)]),
            connections: Some(ConnectionsSample { ports: vec![port(k)], passive_opens: Some(100 + 40 * k) }),
            module: Some(ModuleSample { servers: vec![server(k).into()] }),
            ..PerGroup::default()
        },
        ..Sample::default()
    };
    (0..=n).map(sample).collect()
}

impl Fixture {
    /// Creates a directory without processes.
    pub fn new() -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let proc = directory.path().join("proc");
        std::fs::create_dir(&proc).unwrap();
        Fixture { directory, proc }
    }

    /// The directory that replaces /proc in a test.
    pub fn proc_root(&self) -> &Path {
        &self.proc
    }

    /// The directory that replaces the root directory.
    pub fn system_root(&self) -> &Path {
        self.directory.path()
    }

    /// Creates a process that started before monitoring began. `ticks` are four CPU times: its own in user and in
    /// system mode, then those of its children.
    pub fn process(&self, pid: u32, parent: u32, comm: &str, ticks: [u64; 4]) {
        self.stat(pid, parent, comm, 'S', 9, ticks);
    }

    /// Sets the executable of an existing process.
    pub fn executable(&self, pid: u32, path: &str) {
        std::os::unix::fs::symlink(path, self.proc_root().join(format!("{pid}/exe"))).unwrap();
    }

    /// Sets the command line of a process: arguments that each end in NUL, or a title.
    pub fn command_line(&self, pid: u32, arguments: &str) {
        std::fs::write(self.proc_root().join(format!("{pid}/cmdline")), arguments).unwrap();
    }

    /// Creates a process that started after monitoring began. The parameters are those of [`Self::process`].
    pub fn process_started_during_watch(&self, pid: u32, parent: u32, comm: &str, ticks: [u64; 4]) {
        self.stat(pid, parent, comm, 'S', 1 << 40, ticks);
    }

    /// Creates or replaces a process. `state` and `started` (in clock ticks since boot) are as in /proc/PID/stat;
    /// `ticks` are as in [`Self::process`].
    pub fn stat(&self, pid: u32, parent: u32, comm: &str, state: char, started: u64, ticks: [u64; 4]) {
        let directory = self.proc_root().join(pid.to_string());
        std::fs::create_dir_all(directory.join(format!("task/{pid}"))).unwrap();
        let [a, b, c, d] = ticks;
        let text =
            format!("{pid} ({comm}) {state} {parent} 1 1 0 -1 0 0 0 5 6 {a} {b} {c} {d} 20 0 1 0 {started} 8 2 0\n");
        std::fs::write(directory.join("stat"), text).unwrap();
    }

    /// Writes the line that the kernel shows for a moment after a process has ended and its parent has waited for it.
    pub fn reap(&self, pid: u32, comm: &str) {
        let text = format!("{pid} ({comm}) X 0 -1 -1 0 -1 0 0 0 0 0 0 0 0 0 20 0 0 0 {} 0 0\n", 1_u64 << 40);
        std::fs::write(self.proc_root().join(format!("{pid}/stat")), text).unwrap();
    }

    /// Writes `text` into the file /proc/PID/task/TID/`file` of a thread.
    pub fn thread(&self, pid: u32, tid: u32, file: &str, text: &str) {
        let directory = self.proc_root().join(format!("{pid}/task/{tid}"));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(file), text).unwrap();
    }

    /// Ends a process. For a real process, the kernel refuses further reads of an open `stat` file. Here the file
    /// becomes empty, so that it cannot be parsed.
    pub fn end(&self, pid: u32) {
        std::fs::write(self.proc_root().join(format!("{pid}/stat")), "").unwrap();
    }
}
