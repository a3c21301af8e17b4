//! Foreign programs: found, run without a shell, and never waited for longer than is said.

use crate::exit::UsageError;
use anyhow::Context;
use brimful_core::text::one_line;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// For what answers a question about itself.
pub const QUESTION: Duration = Duration::from_secs(60);
/// For what compiles.
pub const BUILD: Duration = Duration::from_secs(900);

/// Of what a program says, more is not kept.
const KEPT_BYTES: u64 = 1 << 20;
/// How long after its end somebody it started may hold its output open.
const AFTERWARDS: Duration = Duration::from_secs(2);
/// Where servers are whose directory is not in PATH.
const PLACES: [&str; 7] = [
    "/usr/sbin",
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/local/nginx/sbin",
    "/usr/local/apache2/bin",
    "/opt/nginx/sbin",
    "/usr/bin",
];

/// How a program ended.
#[derive(Debug)]
pub struct Ran {
    /// Whether it says that it did what it was asked.
    pub ok: bool,
    /// Its stdout.
    pub stdout: String,
    /// Its stderr.
    pub stderr: String,
}

impl Ran {
    /// What it complained of: the last lines of stderr, or of stdout where it has none.
    pub fn complaint(&self) -> String {
        let said = if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr };
        let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines.get(lines.len().saturating_sub(4)..).unwrap_or_default();
        if last.is_empty() { "it did not say why".to_owned() } else { one_line(&last.join("; ")).into_owned() }
    }
}

/// Runs a program in a directory, or in this one's, without input, with messages in English.
///
/// # Errors
/// When it is not there, cannot be started, or has not ended within the limit; it is killed then.
pub fn run<S: AsRef<OsStr>>(
    program: &Path,
    args: &[S],
    directory: Option<&Path>,
    limit: Duration,
) -> anyhow::Result<Ran> {
    let name = program.display();
    let mut command = Command::new(program);
    command.args(args).env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    let mut child = command.spawn().with_context(|| format!("cannot run {name}"))?;
    let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
    let status = wait(&mut child, limit).with_context(|| format!("cannot wait for {name}"))?;
    let text = |pipe: Receiver<Vec<u8>>| {
        String::from_utf8_lossy(&pipe.recv_timeout(AFTERWARDS).unwrap_or_default()).into_owned()
    };
    let (stdout, stderr) = (text(stdout), text(stderr));
    match status {
        Some(status) => Ok(Ran { ok: status.success(), stdout, stderr }),
        None => anyhow::bail!("{name} was still running after {} s and was ended; try it by hand", limit.as_secs()),
    }
}

/// Reads a pipe on a thread of its own, so that the program never waits for us.
fn read(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut kept = Vec::new();
        if let Some(mut pipe) = pipe {
            // What cannot be read was not said.
            let _ = pipe.by_ref().take(KEPT_BYTES).read_to_end(&mut kept);
            let _ = io::copy(&mut pipe, &mut io::sink());
        }
        // Fails when nobody waits any longer.
        let _ = sender.send(kept);
    });
    receiver
}

/// `None` if it had to be killed.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let began = Instant::now();
    let mut pause = Duration::from_millis(1);
    while began.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// The first of some programs that PATH or the usual places have.
pub fn find(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = std::env::split_paths(&path).chain(PLACES.iter().map(PathBuf::from)).collect();
    let candidates = names.iter().flat_map(|name| directories.iter().map(move |directory| directory.join(name)));
    candidates.into_iter().find(|file| is_executable(file))
}

/// A program that somebody named, from the root directory.
///
/// # Errors
/// When it is no program.
pub fn named(path: &Path) -> anyhow::Result<PathBuf> {
    let whole = std::path::absolute(path).with_context(|| format!("no path: {}", path.display()))?;
    match is_executable(&whole) {
        true => Ok(whole),
        false => Err(UsageError(format!("{}: no program that may be run; check the path", path.display())).into()),
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let error = run(Path::new("/bin/sleep"), &["1000"], None, Duration::from_millis(20)).unwrap_err();
        assert!(error.to_string().contains("was still running"), "{error:#}");
    }

    #[test]
    fn the_end_of_what_it_said_is_the_complaint() {
        let ran = Ran { ok: false, stdout: "out".to_owned(), stderr: "1\n2\n\n3\n4\n5\x1b[2J\n".to_owned() };
        assert_eq!(ran.complaint(), "2; 3; 4; 5\\u001b[2J");
        let ran = Ran { ok: false, stdout: "out\n".to_owned(), stderr: " \n".to_owned() };
        assert_eq!(ran.complaint(), "out");
        let ran = Ran { ok: false, stdout: String::new(), stderr: String::new() };
        assert_eq!(ran.complaint(), "it did not say why");
    }

    #[test]
    fn what_is_not_there_is_named() {
        let error = run(Path::new("/nonexistent/program"), &["-V"], None, QUESTION).unwrap_err();
        assert_eq!(error.to_string(), "cannot run /nonexistent/program");
    }

    #[test]
    fn arguments_are_no_shell() {
        let ran = run(Path::new("/bin/echo"), &["$(false); a  b"], None, QUESTION).unwrap();
        assert_eq!((ran.ok, ran.stdout.as_str()), (true, "$(false); a  b\n"));
    }
}
