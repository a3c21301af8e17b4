//! The program under test as a child process. Nothing waits without a limit: a program that does not end is killed, and
//! its test fails.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::{Duration, Instant};

/// No program and nothing that a program does takes longer, however busy the host: a guard against hanging, and no
/// measure.
pub const LIMIT: Duration = Duration::from_secs(600);

/// Held by everything that makes load, exclusively by what needs the machine for itself.
static MACHINE: RwLock<()> = RwLock::new(());

/// For tests that run several programs at once; they must not call [`run`] meanwhile, which takes its own share.
pub fn share_machine() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// For tests whose figures other load would distort.
pub fn own_machine() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// `brimful` with these arguments, whatever the terminal and the colours of whoever runs the tests.
pub fn brimful<S: AsRef<str>>(args: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brimful"));
    command.args(args.iter().map(AsRef::as_ref)).env("COLUMNS", "100");
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command
}

/// Runs `brimful` to its end.
pub fn run<S: AsRef<str>>(args: &[S]) -> Done {
    let _machine = share_machine();
    Running::start(brimful(args)).finish()
}

/// What a text says, wherever its lines are broken.
pub fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Waits for something that no pipe tells of.
pub fn until(happened: impl Fn() -> bool) {
    let began = Instant::now();
    while !happened() {
        assert!(began.elapsed() < LIMIT, "what the test waits for does not happen");
        thread::sleep(Duration::from_millis(2));
    }
}

/// What a program left behind.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    /// Asserts one of these exit codes.
    pub fn exits(self, codes: &[i32]) -> Done {
        assert!(codes.contains(&self.code), "one of {codes:?} was expected: {self:#?}");
        self
    }

    /// Asserts that it failed like this, with this said on stderr and nothing on stdout.
    pub fn fails(self, code: i32, message: &str) {
        assert!(self.stderr.contains(message), "{message:?} was expected: {self:#?}");
        assert!(!says_something_twice(&self.stderr), "{}", self.stderr);
        assert_eq!(self.exits(&[code]).stdout, "");
    }
}

/// Whether what an error ends with, its cause, stands earlier in it as well.
fn says_something_twice(stderr: &str) -> bool {
    let Some((rest, cause)) = stderr.trim_end().rsplit_once(": ") else { return false };
    cause.len() > 10 && rest.contains(cause)
}

/// A program that runs, in a process group of its own; killed when dropped.
pub struct Running {
    child: Child,
    stdout: Lines,
    stderr: Lines,
    watchdog: Option<Sender<()>>,
}

impl Running {
    pub fn start(mut command: Command) -> Running {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().expect("start the program under test");
        let stdout = Lines::of(child.stdout.take().unwrap());
        let stderr = Lines::of(child.stderr.take().unwrap());
        let (ended, wait_for_end) = channel();
        let pid = Pid::from_child(&child);
        thread::spawn(move || {
            if wait_for_end.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
                // Fails only if it has ended this very moment.
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        Running { child, stdout, stderr, watchdog: Some(ended) }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line of stdout.
    pub fn stdout_line(&mut self) -> String {
        self.stdout.next().expect("a line on stdout")
    }

    /// Waits for a line with `part` on stderr.
    pub fn stderr_line(&mut self, part: &str) -> String {
        while let Some(line) = self.stderr.next() {
            if line.contains(part) {
                return line;
            }
        }
        panic!("no line with {part:?} came: {}", self.stderr.seen)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("signal the program under test");
    }

    /// What Ctrl-C on a terminal does: the program's children are told as well.
    pub fn ctrl_c(&self) {
        kill_process_group(Pid::from_child(&self.child), Signal::INT)
            .expect("signal the group of the program under test");
    }

    /// Ends it at once, as a crash would.
    pub fn kill(mut self) {
        self.child.kill().expect("kill the program under test");
        self.child.wait().expect("wait for the program under test");
    }

    /// Waits for its end. What is written to pipes is never coloured.
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
        // Both fail only when it has been waited for already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines of a pipe, read on a thread of their own so that the program never waits for the test.
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
                // Fails when the test has ended; the pipe is emptied all the same.
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
