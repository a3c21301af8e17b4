//! Runs the program under test as a child process. All waits have a time limit: a program that does not end is killed,
//! and its test fails.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit of all waits. It is long enough even for a busy host, and only prevents tests from hanging.
pub const WAIT_LIMIT: Duration = Duration::from_secs(600);

/// A lock for the load on the machine. Tests that generate load hold it shared; tests whose results other load would
/// change hold it exclusively.
static MACHINE: RwLock<()> = RwLock::new(());

/// Locks the machine in shared mode, for tests that run several programs at the same time. While a test holds this
/// lock, it must not call [`run`]: `run` also locks the machine, and would wait forever if another thread waits for the
/// exclusive lock.
pub fn lock_machine_shared() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the machine exclusively, for tests whose measurements other load would change.
pub fn lock_machine_exclusively() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the reference server on a free port, with these additional arguments. Returns the program and its URL.
pub fn start_target(args: &[&str]) -> (Running, String) {
    let mut target = Running::start(brimful(&[&["target", "--listen", "127.0.0.1:0"], args].concat()));
    let line = target.stdout_line();
    let url = line.trim_end().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).to_owned();
    (target, url)
}

/// The command `brimful` with these arguments. It does not depend on the terminal in which the tests run.
pub fn brimful<S: AsRef<str>>(args: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brimful"));
    command.args(args.iter().map(AsRef::as_ref)).env("COLUMNS", "100");
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command
}

/// Runs `brimful` until it ends, while the machine is locked in shared mode.
pub fn run<S: AsRef<str>>(args: &[S]) -> Done {
    let _machine = lock_machine_shared();
    Running::start(brimful(args)).finish()
}

/// Replaces line breaks and runs of spaces in a text by single spaces.
pub fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Waits until a condition is true, by polling.
pub fn wait_until(happened: impl Fn() -> bool) {
    let began = Instant::now();
    while !happened() {
        assert!(began.elapsed() < WAIT_LIMIT, "the condition was not true within the time limit");
        thread::sleep(Duration::from_millis(2));
    }
}

/// The exit code and the output of a program that has ended.
#[derive(Debug)]
pub struct Done {
    /// The exit code.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    /// Asserts that the exit code is one of `codes`.
    pub fn exits(self, codes: &[i32]) -> Done {
        assert!(codes.contains(&self.code), "one of {codes:?} was expected: {self:#?}");
        self
    }

    /// Asserts that the program failed with this exit code, that stderr contains this message, and that stdout is
    /// empty.
    pub fn fails(self, code: i32, message: &str) {
        assert!(self.stderr.contains(message), "{message:?} was expected: {self:#?}");
        assert!(!says_something_twice(&self.stderr), "{}", self.stderr);
        assert_eq!(self.exits(&[code]).stdout, "");
    }
}

/// Whether an error message repeats the message of its cause.
fn says_something_twice(stderr: &str) -> bool {
    let Some((rest, cause)) = stderr.trim_end().rsplit_once(": ") else { return false };
    cause.len() > 10 && rest.contains(cause)
}

/// A running program, in a process group of its own. Dropping this value kills it.
pub struct Running {
    child: Child,
    stdout: Lines,
    stderr: Lines,
    watchdog: Option<Sender<()>>,
}

impl Running {
    /// Starts the program in a process group of its own, and captures its stdout and stderr. Kills it if it runs longer
    /// than [`WAIT_LIMIT`].
    pub fn start(mut command: Command) -> Running {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().expect("start the program under test");
        let stdout = Lines::of(child.stdout.take().unwrap());
        let stderr = Lines::of(child.stderr.take().unwrap());
        let (ended, wait_for_end) = channel();
        let pid = Pid::from_child(&child);
        thread::spawn(move || {
            if wait_for_end.recv_timeout(WAIT_LIMIT) == Err(RecvTimeoutError::Timeout) {
                // Sending the signal fails only if the program has just ended.
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        Running { child, stdout, stderr, watchdog: Some(ended) }
    }

    /// The process ID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the next line on stdout.
    pub fn stdout_line(&mut self) -> String {
        self.stdout.next().expect("stdout has another line")
    }

    /// Waits for a line on stderr that contains `part`.
    pub fn stderr_line(&mut self, part: &str) -> String {
        while let Some(line) = self.stderr.next() {
            if line.contains(part) {
                return line;
            }
        }
        panic!("no line with {part:?} came: {}", self.stderr.seen)
    }

    /// Sends a signal to the program.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("signal the program under test");
    }

    /// Sends SIGINT to the process group, like Ctrl-C on a terminal.
    pub fn ctrl_c(&self) {
        kill_process_group(Pid::from_child(&self.child), Signal::INT)
            .expect("signal the group of the program under test");
    }

    /// Kills the program with SIGKILL, which it cannot handle.
    pub fn kill(mut self) {
        self.child.kill().expect("kill the program under test");
        self.child.wait().expect("wait for the program under test");
    }

    /// Waits until the program ends. Asserts that its output contains no escape sequences.
    pub fn finish(mut self) -> Done {
        let status = self.child.wait().expect("wait for the program under test");
        self.watchdog = None;
        let (stdout, stderr) = (self.stdout.rest(), self.stderr.rest());
        let code = status.code().unwrap_or_else(|| panic!("ended by {status}:\n{stdout}\n{stderr}"));
        assert!(!stdout.contains('\x1b') && !stderr.contains('\x1b'), "escape codes in a pipe:\n{stdout}\n{stderr}");
        Done { code, stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both calls fail only if the program has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines from a pipe. A separate thread reads them, so that the program never waits for the test to read.
struct Lines {
    source: Receiver<String>,
    seen: String,
}

impl Lines {
    fn of(pipe: impl Read + Send + 'static) -> Lines {
        let (sender, source) = channel();
        thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            while matches!(pipe.read_until(b'\n', &mut line), Ok(1..)) {
                // Sending fails if the test has ended. Continue to read, so that the program does not wait.
                let _ = sender.send(String::from_utf8(std::mem::take(&mut line)).expect("output is UTF-8"));
            }
        });
        Lines { source, seen: String::new() }
    }

    fn next(&mut self) -> Option<String> {
        let line = self.source.recv().ok()?;
        self.seen += &line;
        Some(line)
    }

    fn rest(&mut self) -> String {
        while self.next().is_some() {}
        std::mem::take(&mut self.seen)
    }
}
