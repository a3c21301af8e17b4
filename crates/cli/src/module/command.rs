//! Finds other programs, and runs them without a shell and within a time limit.

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

/// Time limit for a program that prints information or tests a configuration.
pub const QUERY_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit for the compilation of a module.
pub const BUILD_TIMEOUT: Duration = Duration::from_secs(900);

/// Maximum number of bytes that are kept of each output of a program.
const MAX_OUTPUT_BYTES: u64 = 1 << 20;
/// Time to wait for the end of the output after the program has ended. The program's children may still have the pipe
/// open.
const OUTPUT_DELAY: Duration = Duration::from_secs(2);
/// Directories that often contain servers but are not in PATH.
const SERVER_DIRECTORIES: [&str; 7] = [
    "/usr/sbin",
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/local/nginx/sbin",
    "/usr/local/apache2/bin",
    "/opt/nginx/sbin",
    "/usr/bin",
];

/// The exit status and the output of a program that has run.
#[derive(Debug)]
pub struct ProgramOutput {
    /// Whether the exit status was 0.
    pub succeeded: bool,
    /// The text that the program wrote to stdout.
    pub stdout: String,
    /// The text that the program wrote to stderr.
    pub stderr: String,
}

impl ProgramOutput {
    /// The last lines of stderr, or of stdout if stderr is empty.
    pub fn error_text(&self) -> String {
        let output = if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr };
        let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines.get(lines.len().saturating_sub(4)..).unwrap_or_default();
        if last.is_empty() { "it printed no reason".to_owned() } else { one_line(&last.join("; ")).into_owned() }
    }
}

/// Runs a program without input and with messages in English. The working directory is `directory` or, with `None`, the
/// current one.
///
/// # Errors
/// Returns an error if the program does not exist, cannot be started, or exceeds the time limit. In the last case, the
/// program is killed.
pub fn run<S: AsRef<OsStr>>(
    program: &Path,
    args: &[S],
    directory: Option<&Path>,
    limit: Duration,
) -> anyhow::Result<ProgramOutput> {
    let name = program.display();
    let mut command = Command::new(program);
    command.args(args).env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    let mut child = command.spawn().with_context(|| format!("cannot run {name}"))?;
    let stdout = read(child.stdout.take());
    let stderr = read(child.stderr.take());
    let status = wait(&mut child, limit).with_context(|| format!("cannot wait for {name}"))?;
    let text = |pipe: Receiver<Vec<u8>>| {
        String::from_utf8_lossy(&pipe.recv_timeout(OUTPUT_DELAY).unwrap_or_default()).into_owned()
    };
    let stdout = text(stdout);
    let stderr = text(stderr);
    match status {
        Some(status) => Ok(ProgramOutput { succeeded: status.success(), stdout, stderr }),
        None => anyhow::bail!("{name} was still running after {} s and was killed; try it by hand", limit.as_secs()),
    }
}

/// Reads a pipe on a thread of its own, so that the program never blocks on a full pipe.
fn read(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut kept = Vec::new();
        if let Some(mut pipe) = pipe {
            // Read errors are ignored: unread output is dropped.
            let _ = pipe.by_ref().take(MAX_OUTPUT_BYTES).read_to_end(&mut kept);
            let _ = io::copy(&mut pipe, &mut io::sink());
        }
        // Sending fails if the receiver has stopped waiting.
        let _ = sender.send(kept);
    });
    receiver
}

/// Waits for a process to end. Returns `None` if the process exceeded the limit and was killed.
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

/// The first of these programs that is found in PATH or in the usual directories.
pub fn find_in_path(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> =
        std::env::split_paths(&path).chain(SERVER_DIRECTORIES.iter().map(PathBuf::from)).collect();
    let candidates = names.iter().flat_map(|name| directories.iter().map(move |directory| directory.join(name)));
    candidates.into_iter().find(|file| is_executable(file))
}

/// The absolute path of a program that the user named.
///
/// # Errors
/// Returns an error if the path is not an executable file.
pub fn resolve_program(path: &Path) -> anyhow::Result<PathBuf> {
    let whole = std::path::absolute(path).with_context(|| format!("not a path: {}", path.display()))?;
    match is_executable(&whole) {
        true => Ok(whole),
        false => Err(UsageError(format!("{}: not an executable program; check the path", path.display())).into()),
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_exceeds_its_limit_is_killed() {
        let error = run(Path::new("/bin/sleep"), &["1000"], None, Duration::from_millis(20)).unwrap_err();
        assert!(error.to_string().contains("was still running"), "{error:#}");
    }

    #[test]
    fn the_complaint_is_the_end_of_the_output() {
        let ran =
            ProgramOutput { succeeded: false, stdout: "out".to_owned(), stderr: "1\n2\n\n3\n4\n5\x1b[2J\n".to_owned() };
        assert_eq!(ran.error_text(), "2; 3; 4; 5\\u001b[2J");
        let ran = ProgramOutput { succeeded: false, stdout: "out\n".to_owned(), stderr: " \n".to_owned() };
        assert_eq!(ran.error_text(), "out");
        let ran = ProgramOutput { succeeded: false, stdout: String::new(), stderr: String::new() };
        assert_eq!(ran.error_text(), "it printed no reason");
    }

    #[test]
    fn the_error_names_a_missing_program() {
        let error = run(Path::new("/nonexistent/program"), &["-V"], None, QUERY_TIMEOUT).unwrap_err();
        assert_eq!(error.to_string(), "cannot run /nonexistent/program");
    }

    #[test]
    fn arguments_are_not_read_by_a_shell() {
        let ran = run(Path::new("/bin/echo"), &["$(false); a  b"], None, QUERY_TIMEOUT).unwrap();
        assert_eq!((ran.succeeded, ran.stdout.as_str()), (true, "$(false); a  b\n"));
    }
}
