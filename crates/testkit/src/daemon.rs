//! Runs a real server as a child process, with a temporary directory and a free port. Starting waits until the server
//! is ready; stopping waits until the server has ended.
//!
//! The server is ready when the pid file in its directory contains the ID of the child process. nginx and Apache write
//! that file after they have bound their sockets, so no other program listens on the port. If another process binds the
//! chosen port first, the server exits, and the next attempt chooses another port.
//!
//! The server has a process group of its own, because Apache sends a signal to its whole group when it ends. So Ctrl-C
//! at the terminal does not stop the server. Instead, the kernel sends the server SIGTERM when the thread that started
//! it ends (`setpriv --pdeathsig`), even if the test was killed.
use crate::free_port;
use rustix::process::{Pid, Signal, geteuid, kill_process, kill_process_group};
use std::fs::{self, File, Permissions};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Component, Path};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const ATTEMPTS: usize = 5;
const START_LIMIT: Duration = Duration::from_secs(15);
const STOP_LIMIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(2);

/// The program of a server, and the arguments with which to start it.
pub(crate) struct Program {
    /// Path of the executable.
    pub(crate) path: &'static str,
    /// Debian package that contains the program.
    pub(crate) package: &'static str,
    /// Returns the arguments of the program for a temporary directory.
    pub(crate) args: fn(&str) -> Vec<String>,
}

/// A running server. Dropping this value stops it. Its directory contains `server.conf`, `server.pid`, `error.log` and
/// the document root `www`.
pub struct Daemon {
    /// The master process, whose ID is also the ID of its process group.
    pid: Pid,
    /// The thread that started the server and waits for its end.
    keeper: JoinHandle<()>,
    addr: SocketAddr,
    dir: TempDir,
}

impl Daemon {
    /// Starts `program` with `files` below its document root. `configure` returns the configuration for a directory and
    /// a port. Returns when the server accepts connections and has this number of `workers`.
    pub(crate) fn start(
        program: &Program,
        workers: usize,
        files: &[(String, Vec<u8>)],
        configure: impl Fn(&str, u16) -> String,
    ) -> Daemon {
        assert!(
            Path::new(program.path).exists(),
            "{} is missing and this test needs it: apt-get install {}, or scripts/setup.sh test",
            program.path,
            program.package
        );
        let mut last_log = String::new();
        for _ in 0..ATTEMPTS {
            match Self::try_start(program, workers, files, &configure) {
                Ok(daemon) => return daemon,
                Err(log) => last_log = log,
            }
        }
        panic!("{} did not start in {ATTEMPTS} attempts; the last one said:\n{last_log}", program.path);
    }

    fn try_start(
        program: &Program,
        workers: usize,
        files: &[(String, Vec<u8>)],
        configure: &impl Fn(&str, u16) -> String,
    ) -> Result<Daemon, String> {
        let dir = private_dir(files);
        let path = dir.path().to_str().expect("a temporary directory whose name is UTF-8 (see TMPDIR)");
        let port = free_port();
        fs::write(dir.path().join("server.conf"), configure(path, port)).expect("write the server's configuration");
        let output = File::create(dir.path().join("output.log")).expect("create the server's log");
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "TERM", program.path])
            .args((program.args)(path))
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("duplicate a log's descriptor"))
            .stderr(output);
        let (pid, keeper) = spawn_with_keeper(command);
        // If the server does not become ready, or if this function panics, `daemon` is dropped, which stops the server.
        let daemon = Daemon { pid, keeper, addr: SocketAddr::from((Ipv4Addr::LOCALHOST, port)), dir };
        match daemon.wait_until_ready(workers) {
            true => Ok(daemon),
            false => Err(daemon.log()),
        }
    }

    fn wait_until_ready(&self, workers: usize) -> bool {
        let deadline = Instant::now() + START_LIMIT;
        while Instant::now() < deadline && !self.keeper.is_finished() {
            let pid_file = fs::read_to_string(self.dir.path().join("server.pid")).unwrap_or_default();
            let is_bound = pid_file.trim() == self.pid().to_string();
            if is_bound && self.workers().len() >= workers && TcpStream::connect(self.addr).is_ok() {
                return true;
            }
            sleep(POLL);
        }
        false
    }

    /// The server's temporary directory.
    pub fn directory(&self) -> &Path {
        self.dir.path()
    }

    /// The address on which the server listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The URL of the server: `http://ADDRESS/`.
    pub fn url(&self) -> String {
        format!("http://{}/", self.addr)
    }

    /// ID of the server's master process.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// IDs of the current child processes of the master process, from `/proc/*/stat`.
    pub fn workers(&self) -> Vec<u32> {
        let processes = fs::read_dir("/proc").expect("read /proc");
        let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        numbers.filter(|&pid| parent_of(pid) == Some(self.pid())).collect()
    }

    /// The text that the server has written so far to its log, its standard output and its standard error.
    pub fn log(&self) -> String {
        let read = |name| {
            let bytes = fs::read(self.dir.path().join(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        read("error.log") + &read("output.log")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if !self.keeper.is_finished() {
            // Sending a signal fails only if the master process has just ended.
            let _ = kill_process(self.pid, Signal::TERM);
        }
        let deadline = Instant::now() + STOP_LIMIT;
        while !self.keeper.is_finished() && Instant::now() < deadline {
            sleep(POLL);
        }
        // Sending a signal fails if the process group is empty: the master process has already ended its workers.
        let _ = kill_process_group(self.pid, Signal::KILL);
        while !self.keeper.is_finished() {
            sleep(POLL);
        }
    }
}

/// Starts a command on a new thread, which ends when the command has ended. Returns the process and the thread.
fn spawn_with_keeper(mut command: Command) -> (Pid, JoinHandle<()>) {
    let (started, pid) = mpsc::channel();
    let keeper = thread::spawn(move || {
        let mut child = command.spawn().expect("run setpriv (Debian's package util-linux)");
        started.send(Pid::from_child(&child)).expect("the starting thread waits for the process ID");
        child.wait().expect("wait for our own child");
    });
    (pid.recv().expect("the server's process was started"), keeper)
}

/// Whether the tests run as root. If so, the configuration must name a user under which the server's workers run.
pub(crate) fn is_root() -> bool {
    geteuid().is_root()
}

/// The files of a server with a single page.
pub(crate) fn default_files() -> Vec<(String, Vec<u8>)> {
    vec![("index.html".to_owned(), b"hello\n".to_vec())]
}

/// Creates a temporary directory with `files` below `www`. The permissions are set explicitly, so that the user
/// www-data can read the directory: by default, only its owner can.
fn private_dir(files: &[(String, Vec<u8>)]) -> TempDir {
    let dir = tempfile::Builder::new().prefix("brimful-").tempdir().expect("create a temporary directory");
    let set_mode = |path: &Path, mode| {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("set permissions in our own directory")
    };
    let root = dir.path().join("www");
    fs::create_dir(&root).expect("create the document root");
    set_mode(dir.path(), 0o755);
    set_mode(&root, 0o755);
    for (name, bytes) in files {
        let name = Path::new(name.trim_start_matches('/'));
        let inside = name.components().all(|part| matches!(part, Component::Normal(_)));
        assert!(inside, "a served file must lie below the document root: {}", name.display());
        let path = root.join(name);
        let parent = path.parent().expect("a path below the document root has a parent");
        fs::create_dir_all(parent).expect("create a directory below the document root");
        for folder in parent.ancestors().take_while(|folder| *folder != root) {
            set_mode(folder, 0o755);
        }
        fs::write(&path, bytes).expect("write a served file");
        set_mode(&path, 0o644);
    }
    dir
}

/// The parent of a process: the fourth field of `/proc/PID/stat`. The second field is the program's name in
/// parentheses, which may itself contain parentheses, so the search for its end starts from the right.
fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}
