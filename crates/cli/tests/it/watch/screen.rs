//! Tests the live screen of `brimful watch`, on a terminal that the program `script` provides: the screen opens and
//! closes, and the summary follows.

use super::nginx;
use crate::program::{WAIT_LIMIT, lock_machine_shared, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};

const SCREEN_OPENED: &str = "\x1b[?1049h";
const SCREEN_CLOSED: &str = "\x1b[?1049l";

/// A terminal of 80 × 24 characters, in which `brimful` runs. Dropping this value kills both programs.
struct Terminal {
    script: Child,
    keys: ChildStdin,
    output: Arc<Mutex<String>>,
}

impl Terminal {
    fn start(args: &str, variables: &[(&str, &str)]) -> Terminal {
        let brimful = env!("CARGO_BIN_EXE_brimful");
        let mut command = Command::new("script");
        command.args(["-qec", &format!("stty cols 80 rows 24; exec {brimful} {args}"), "/dev/null"]);
        command.env("TERM", "xterm-256color").env_remove("NO_COLOR").envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut script = command.spawn().expect("this test needs `script` of util-linux");
        let keys = script.stdin.take().unwrap();
        let (mut pipe, output) = (script.stdout.take().unwrap(), Arc::new(Mutex::new(String::new())));
        let written = output.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = pipe.read(&mut buffer) {
                written.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..n]));
            }
        });
        Terminal { script, keys, output }
    }

    fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }

    fn shows(&self, text: &str) {
        let began = std::time::Instant::now();
        wait_until(|| {
            let (output, late) = (self.output(), began.elapsed() > WAIT_LIMIT / 2);
            assert!(!late, "{text:?} does not appear: {:?}", output.get(output.len().saturating_sub(3000)..));
            self.output().contains(text)
        });
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    fn brimful(&self) -> Pid {
        let script = self.script.id();
        let children = fs::read_to_string(format!("/proc/{script}/task/{script}/children")).unwrap();
        Pid::from_raw(children.split_ascii_whitespace().next().unwrap().parse().unwrap()).unwrap()
    }

    /// Waits for the end with this exit code. Returns the output after the screen was closed.
    fn end(mut self, code: i32) -> String {
        let status = self.script.wait().unwrap();
        self.shows(SCREEN_CLOSED);
        let output = self.output();
        assert_eq!(status.code(), Some(code), "{output}");
        let after = output.rsplit(SCREEN_CLOSED).next().unwrap().to_owned();
        assert!(!after.contains(SCREEN_OPENED) && !after.contains("\x1b[?25l"), "{after:?}");
        after
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Both calls fail only if the process has already ended.
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

#[test]
fn the_screen_shows_the_server_and_the_terminal_is_restored() {
    let _machine = lock_machine_shared();
    let (_nginx, port) = nginx();
    let mut terminal = Terminal::start(&format!("watch --port {port} --interval 100ms"), &[]);
    terminal.shows("accept queue");
    assert!(terminal.output().contains(SCREEN_OPENED), "{:?}", terminal.output());
    // Only cells that have changed are drawn. Ctrl-L makes the program draw the whole screen again.
    terminal.press("?\x0c");
    terminal.shows("hypervisor");
    terminal.press("? \x0c");
    terminal.shows("PAUSED");
    terminal.press("q");
    let after = terminal.end(0);
    assert!(after.contains(&format!("port {port} for ")) && after.contains("listener"), "{after:?}");
}

#[test]
fn signals_and_ctrl_c_restore_the_terminal() {
    let _machine = lock_machine_shared();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let terminal = Terminal::start("watch --interval 100ms", &[]);
        terminal.shows("CPUs");
        kill_process(terminal.brimful(), signal).unwrap();
        assert!(terminal.end(0).contains("this machine for "));
    }
    let mut terminal = Terminal::start("watch --interval 100ms --duration 1h", &[]);
    terminal.shows("CPUs");
    terminal.press("\x03");
    assert!(terminal.end(130).contains("this machine for "));
}

#[test]
fn no_color_is_respected_and_a_dumb_terminal_gets_lines() {
    let _machine = lock_machine_shared();
    let coloured = |variables: &[(&str, &str)]| {
        let mut terminal = Terminal::start("watch --interval 100ms", variables);
        terminal.shows("CPUs");
        terminal.shows("busy");
        terminal.press("q");
        let output = terminal.output();
        terminal.end(0);
        output.contains("[38;5;") || (30..38).any(|colour| output.contains(&format!("\x1b[{colour}m")))
    };
    assert!(coloured(&[]));
    assert!(!coloured(&[("NO_COLOR", "1")]));
    let mut dumb = Terminal::start("watch --interval 100ms -n 2", &[("TERM", "dumb")]);
    assert_eq!(dumb.script.wait().unwrap().code(), Some(0));
    dumb.shows("this machine for ");
    assert!(!dumb.output().contains('\x1b') && dumb.output().starts_with("time "), "{:?}", dumb.output());
}
