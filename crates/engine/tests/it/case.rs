//! Runs each test with epoll and with io_uring. A test can run in its own process or in its own network namespace.

use brimful_engine::Engine;
use brimful_testkit::CLOSE_INHERITED;
use std::io::Write;
use std::process::Command;

/// The environment variable by which a test recognizes that it runs alone in its own process. Its value is an argument
/// of the test.
const ISOLATED: &str = "BRIMFUL_TEST_ISOLATED";

/// A test function together with the kernel interface (epoll or io_uring) that it tests.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The kernel interface for I/O.
    pub engine: Engine,
    /// Path of the test in the test program, which selects the test on the command line.
    name: &'static str,
}

/// Defines two tests, `epoll::NAME` and `uring::NAME`, for each function that takes a [`Case`].
macro_rules! on_each_engine {
    ($($test:ident),+ $(,)?) => {
        mod epoll { $crate::case::on_engine!(Epoll $($test)+); }
        mod uring { $crate::case::on_engine!(Uring $($test)+); }
    };
}

macro_rules! on_engine {
    ($engine:ident $($test:ident)+) => {
        $(#[test]
        fn $test() {
            let path = concat!(module_path!(), "::", stringify!($test));
            if let Some(case) = $crate::case::Case::new(brimful_engine::Engine::$engine, path) {
                super::$test(case);
            }
        })+
    };
}

pub(crate) use {on_each_engine, on_engine};

impl Case {
    /// Creates the case of the test with this path. If the kernel interface is not available on this host, prints a
    /// message and returns `None`.
    pub fn new(engine: Engine, path: &'static str) -> Option<Case> {
        let (_program, name) = path.split_once("::").expect("a path of more than one part");
        let case = Case { engine, name };
        let can_run = engine != Engine::Uring || uring_is_allowed();
        can_run
            .then_some(case)
            .or_else(|| case.cannot_run("io_uring is forbidden: `sysctl kernel.io_uring_disabled=0`"))
    }

    /// Runs the test again in its own process, which bash starts after it has run `setup`. The process inherits only
    /// the three standard descriptors. In that process, this function returns `argument`. In the calling process, it
    /// returns `None` once the test has passed there.
    pub fn in_own_process(self, setup: &str, argument: &str) -> Option<String> {
        self.again(Command::new("bash"), setup, argument)
    }

    /// Like [`Case::in_own_process`], but as root in its own network namespace, which has only a loopback interface.
    pub fn in_own_network(self, setup: &str) -> Option<String> {
        let unshare = || {
            let mut command = Command::new("unshare");
            command.args(["--net", "--map-root-user"]);
            command
        };
        if !unshare().arg("true").status().is_ok_and(|status| status.success()) {
            return self.cannot_run("making a network namespace is forbidden: run the tests as root");
        }
        let mut command = unshare();
        command.arg("bash");
        self.again(command, &format!("ip link set lo up && {setup}"), "")
    }

    fn again(self, mut shell: Command, setup: &str, argument: &str) -> Option<String> {
        if let Ok(argument) = std::env::var(ISOLATED) {
            return Some(argument);
        }
        shell.args(["-c", &format!("{CLOSE_INHERITED}; {setup} && exec \"$0\" \"$@\"")]);
        shell.arg(std::env::current_exe().expect("the path of this program"));
        let output = shell.args([self.name, "--exact", "--nocapture"]).env(ISOLATED, argument).output();
        let output = output.expect("start a shell");
        let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
        assert!(output.status.success() && said.contains("1 passed"), "{}\n{said}", output.status);
        None
    }

    /// Reports that the test cannot run on this host. In continuous integration, this is a failure.
    fn cannot_run<T>(self, why: &str) -> Option<T> {
        assert!(std::env::var_os("CI").is_none(), "{} cannot run: {why}", self.name);
        // Writes to standard error directly, because the test program shows captured output only if the test fails.
        let _ = writeln!(std::io::stderr(), "NOT RUN: {}: {why}", self.name);
        None
    }
}

/// Whether the kernel allows this process to create an io_uring ring.
fn uring_is_allowed() -> bool {
    // SAFETY: the parameters are a null pointer, so the kernel writes no memory and the call always fails. The error is
    // EFAULT if io_uring is allowed.
    let result = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, std::ptr::null_mut::<libc::c_void>()) };
    result == -1 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT)
}
