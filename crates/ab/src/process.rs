//! A server that brimful starts with a command, on a free port, in its own process group. Dropping the
//! [`ServerProcess`] ends the whole group. If brimful is killed, a separate process (the [`Guardian`]) ends the group.

use crate::AbError;
use brimful_core::Nanos;
use brimful_core::panics::lock;
use brimful_core::text::one_line;
use brimful_run::{Guardian, ServerChange};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time from the start of a server until it listens and answers.
const START_LIMIT: Nanos = Nanos::from_secs(30);
/// Time from SIGTERM to SIGKILL when a server must end.
const END_LIMIT: Duration = Duration::from_secs(5);
/// Interval between two checks whether a server answers or has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Number of bytes at the end of a server's output that are kept for error messages.
const OUTPUT_BYTES: usize = 600;

/// A running server. Dropping this value ends its process group.
#[derive(Debug)]
pub struct ServerProcess {
    side: &'static str,
    command: String,
    child: Child,
    port: u16,
    output: Arc<Mutex<Vec<u8>>>,
    /// The separate process that ends the process group if brimful is killed. It must be the last field, because fields
    /// are dropped in order.
    guardian: Guardian,
}

impl ServerProcess {
    /// Starts the command in a shell, and waits until the server answers a request for `path`. `side` is the name of
    /// the server in error messages.
    ///
    /// # Errors
    /// If the command cannot be started, ends, or does not listen within 30 s.
    pub fn start(side: &'static str, command: &str, path: &str, stop: &AtomicBool) -> Result<ServerProcess, AbError> {
        let spawn_error = |source| AbError::Spawn { command: command.to_owned(), source };
        let port = free_port().map_err(spawn_error)?;
        let mut guardian = Guardian::start().map_err(AbError::Guardian)?;
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec 2>&1; {}", command.replace("{port}", &port.to_string()))]);
        shell.env("PORT", port.to_string()).process_group(0);
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = shell.spawn().map_err(spawn_error)?;
        let announced = guardian.set_undo(&ServerChange::Started(child.id()));
        let output = Arc::default();
        let pipe = child.stdout.take();
        let mut server =
            ServerProcess { side, command: command.to_owned(), child, port, output: Arc::clone(&output), guardian };
        announced.map_err(AbError::Guardian)?;
        if let Some(pipe) = pipe {
            thread::spawn(move || keep_last_output(pipe, &output));
        }
        server.wait_until_it_answers(path, stop)?;
        Ok(server)
    }

    /// The URL of `path` on this server.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{}{path}", self.port, if path.starts_with('/') { "" } else { "/" })
    }

    /// Process ID of the server's shell, which leads the process group.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The error if the server's process has ended; `None` while it runs. `when` is the phase of the comparison, for
    /// the message.
    pub fn error_if_ended(&mut self, when: &str) -> Option<AbError> {
        let status = self.child.try_wait().ok().flatten()?;
        // Wait until the thread that reads the server's output has read the rest.
        thread::sleep(POLL_INTERVAL);
        let daemon = status.success() && self.status_line("/").is_some();
        let advice = "; something listens on its port nevertheless, so it has gone into the background: run it in the foreground";
        Some(AbError::Ended {
            side: self.side.to_owned(),
            status: status.to_string(),
            when: when.to_owned(),
            command: self.command.clone(),
            output: if daemon { advice.to_owned() } else { self.last_output() },
        })
    }

    fn wait_until_it_answers(&mut self, path: &str, stop: &AtomicBool) -> Result<(), AbError> {
        let began = Instant::now();
        let mut has_listened = false;
        while began.elapsed() < Duration::from(START_LIMIT) && !stop.load(Ordering::Relaxed) {
            if let Some(ended) = self.error_if_ended("before it answered") {
                return Err(ended);
            }
            if let Some(status) = self.status_line(path) {
                // Some servers respond with 502 or 503 until they are ready.
                if !status.starts_with(b"HTTP/1.1 5") && !status.starts_with(b"HTTP/1.0 5") {
                    return Ok(());
                }
                has_listened = true;
            }
            thread::sleep(POLL_INTERVAL);
        }
        if has_listened || stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(AbError::NotListening {
            side: self.side.to_owned(),
            command: self.command.clone(),
            port: self.port,
            waited: START_LIMIT,
            output: self.last_output(),
        })
    }

    /// The first 12 bytes of the response to a request for `path`. They are empty if the server does not speak HTTP/1.
    /// `None` if nothing listens on the port.
    fn status_line(&self, path: &str) -> Option<Vec<u8>> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
        let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
        let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n", self.port);
        let mut start = Vec::new();
        let _ = stream.write_all(request.as_bytes());
        let _ = stream.take(12).read_to_end(&mut start);
        Some(start)
    }

    fn last_output(&self) -> String {
        let output = lock(&self.output);
        let text = String::from_utf8_lossy(&output);
        match text.trim() {
            "" => "; it wrote nothing".to_owned(),
            text => format!("; it wrote: {}", one_line(text)),
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let Some(group) = Pid::from_raw(self.child.id() as i32) else { return };
        // Ignore errors: they mean that all processes of the group have ended.
        let _ = kill_process_group(group, Signal::TERM);
        let began = Instant::now();
        while began.elapsed() < END_LIMIT && !matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
            thread::sleep(POLL_INTERVAL);
        }
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
        let _ = self.guardian.set_undo(&ServerChange::None);
    }
}

/// A free TCP port of the loopback address.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Reads a server's output until the pipe is closed, and keeps the last [`OUTPUT_BYTES`] bytes.
fn keep_last_output(mut pipe: impl Read, output: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = pipe.read(&mut buffer) {
        let mut kept = lock(output);
        kept.extend_from_slice(&buffer[..count]);
        let excess = kept.len().saturating_sub(OUTPUT_BYTES);
        kept.drain(..excess);
    }
}
