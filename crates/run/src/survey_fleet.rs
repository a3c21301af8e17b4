//! The fleet of a survey: a separate program that generates the survey's loads. It is the Python program that runs
//! several load generators (shards) on this host or on other hosts, and it returns the merged Record (result document)
//! of each load.
//!
//! This process writes each order (the description of a load) to the program's stdin as one line of JSON. The program
//! writes each answer to its stdout as one line, and one more line when it is ready. A line `stop` ends the current
//! load, and the end of stdin ends the program. This process monitors the server during the load. The program runs on
//! this host, so it has the same wall clock as this process.

use crate::{MonitorTarget, RunError, RunOptions, RunPlan};
use brimful_core::Nanos;
use brimful_core::record::{ClientCalibration, Record};
use brimful_os::clock;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// The line that makes the program end the current load.
const STOP: &str = "stop";
/// Interval at which this process checks whether to stop while it waits for an answer.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// A program that runs load generators (shards) for this process. Dropping this value stops the program.
#[derive(Debug)]
pub struct SurveyFleet {
    shards: u64,
    program: Child,
    orders: Option<ChildStdin>,
    answers: Receiver<String>,
}

/// An order to the program: the load to generate.
#[derive(Serialize)]
struct Order {
    /// The workload as a TOML document, including its load.
    workload: String,
    seed: u64,
    /// Flags of `brimful load` for this load.
    flags: Vec<String>,
    /// Whether to measure the maximum load that the shards can generate, instead of generating this load.
    calibrate: bool,
}

/// The program's answer to an order.
#[derive(Deserialize)]
struct Answer {
    record: Option<Record>,
    calibration: Option<ClientCalibration>,
    /// The reason why the load has no Record, and what the user can do.
    error: Option<String>,
    /// Whether an error in the command line is the reason.
    #[serde(default)]
    usage: bool,
}

impl SurveyFleet {
    /// Starts `command`, a program that runs `shards` load generators, and waits until it is ready or `stop` is set.
    ///
    /// # Errors
    /// [`RunError::SurveyFleet`] if the program cannot be started or reports an error.
    pub fn start(shards: u64, mut command: Command, stop: &AtomicBool) -> Result<SurveyFleet, RunError> {
        // The program gets its own process group. Otherwise, Ctrl-C would stop it before it returns its results.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut program = command.spawn().map_err(|error| fleet_error(&format!("cannot be started ({error})")))?;
        let (sender, answers) = channel();
        if let Some(stdout) = program.stdout.take() {
            thread::spawn(move || forward_lines(stdout, &sender));
        }
        let mut fleet = SurveyFleet { shards, orders: program.stdin.take(), program, answers };
        fleet.wait_for_answer(stop).map(|_| fleet)
    }

    /// Number of shards: the processes that generate a load together.
    pub fn shards(&self) -> u64 {
        self.shards
    }

    /// Measures the maximum load that the shards can generate together, for the kind of load in `like`. The `curve` of
    /// the result is empty.
    ///
    /// # Errors
    /// [`RunError::SurveyFleet`] if a shard fails, or if the program has ended.
    pub fn client_limit(&mut self, like: &RunOptions, stop: &AtomicBool) -> Result<ClientCalibration, RunError> {
        self.send_order(&Order { calibrate: true, ..Order::from_options(like)? })?;
        self.wait_for_answer(stop)?.calibration.ok_or_else(|| fleet_error("did not report what it can offer"))
    }

    /// Generates the load of a plan with the program's shards, and monitors the server during the load.
    ///
    /// # Errors
    /// The errors of [`crate::run`], and [`RunError::SurveyFleet`] if the program has ended.
    pub fn run(&mut self, plan: &RunPlan, stop: &AtomicBool) -> Result<Record, RunError> {
        let options = plan.options();
        let order = Order::from_options(options)?;
        let monitor = options.monitor.as_ref().map(MonitorTarget::start).transpose()?;
        self.send_order(&order)?;
        let record = self.wait_for_answer(stop)?.record;
        let mut record = record.ok_or_else(|| fleet_error("returned no Record of the load"))?;
        let started_at = humantime::parse_rfc3339(&record.started_at)
            .map_err(|error| fleet_error(&format!("returned a Record without a valid start ({error})")))?;
        let start = clock::monotonic_at(started_at);
        let window = Nanos::from_secs_f64(record.window_s);
        record.started_monotonic_ns = start.0;
        record.server = monitor.map(|monitor| monitor.finish(start, Some((start, start + window))));
        Ok(record)
    }

    fn send_order(&mut self, order: &Order) -> Result<(), RunError> {
        let line = serde_json::to_string(order)
            .map_err(|error| fleet_error(&format!("cannot be sent this order ({error})")))?;
        self.send_line(&line)
    }

    fn send_line(&mut self, line: &str) -> Result<(), RunError> {
        let orders = self.orders.as_mut().ok_or_else(|| fleet_error("has ended"))?;
        writeln!(orders, "{line}")
            .and_then(|()| orders.flush())
            .map_err(|error| fleet_error(&format!("has ended ({error})")))
    }

    /// Waits for the program's next answer. If `stop` is set, requests that the program ends the load early.
    fn wait_for_answer(&mut self, stop: &AtomicBool) -> Result<Answer, RunError> {
        let mut stop_sent = false;
        let line = loop {
            match self.answers.recv_timeout(STOP_CHECK_INTERVAL) {
                Ok(line) => break line,
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) && !stop_sent => {
                    self.send_line(STOP)?;
                    stop_sent = true;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(fleet_error("has ended; see its message above")),
            }
        };
        let answer: Answer =
            serde_json::from_str(&line).map_err(|error| fleet_error(&format!("says `{line:.60}`: {error}")))?;
        match answer.error {
            Some(message) => Err(RunError::SurveyFleet { message, usage: answer.usage }),
            None => Ok(answer),
        }
    }
}

impl Drop for SurveyFleet {
    fn drop(&mut self) {
        // Closes the program's stdin, which makes the program and its shards exit.
        self.orders = None;
        // An error is not possible, because nothing else waits for the program.
        let _ = self.program.wait();
    }
}

impl Order {
    fn from_options(options: &RunOptions) -> Result<Order, RunError> {
        let RunOptions { server, load, generator, record, .. } = options;
        let workload = toml::to_string(&load.workload).map_err(|error| RunError::BadLoad(error.to_string()))?;
        let mut flags = vec![
            format!("--duration={}ns", load.window.0),
            format!("--interval={}ns", record.interval.0),
            format!("--warm-connections={}", server.connections.warm_connections),
        ];
        if let Some(most) = options.max_connections_per_shard() {
            flags.push(format!("--max-connections={}", most.saturating_mul(generator.threads)));
        }
        Ok(Order { workload, seed: load.seed, flags, calibrate: false })
    }
}

/// Forwards the lines of `stdout` to the channel until either is closed.
fn forward_lines(stdout: ChildStdout, answers: &Sender<String>) {
    let lines = BufReader::new(stdout).lines().map_while(Result::ok);
    lines.take_while(|line| answers.send(line.clone()).is_ok()).for_each(drop);
}

fn fleet_error(what: &str) -> RunError {
    RunError::SurveyFleet { message: format!("the fleet that makes the load {what}"), usage: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a shell script in place of the program that runs the shards.
    fn fleet(script: &str) -> Result<SurveyFleet, RunError> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        SurveyFleet::start(2, command, &AtomicBool::new(false))
    }

    #[test]
    fn errors_of_a_fleet_are_reported() {
        let refuses = fleet(r#"echo '{"error": "no such flag", "usage": true}'"#);
        assert!(matches!(refuses, Err(error) if error.is_usage() && error.to_string() == "no such flag"));
        let ends = fleet("exit 3").unwrap_err().to_string();
        assert!(ends.contains("has ended"), "{ends}");
        let babbles = fleet("echo hello").unwrap_err().to_string();
        assert!(babbles.contains("says `hello`"), "{babbles}");
    }

    #[test]
    fn a_fleet_is_asked_to_stop_and_ends_with_its_stdin() {
        let script = r#"echo '{}'; while read order; do [ "$order" = stop ] && echo '{"error": "stopped"}'; done"#;
        let mut fleet = fleet(script).unwrap();
        let answer = fleet.wait_for_answer(&AtomicBool::new(true)).map(|_| ()).unwrap_err();
        assert_eq!(answer.to_string(), "stopped");
        // The program ends at the end of its stdin. Expects that dropping the fleet closes it; otherwise, the test
        // hangs.
        drop(fleet);
    }
}
