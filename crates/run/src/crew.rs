//! Loads that others make: a program that drives shards, wherever they are, and tells the Record of each load.
//!
//! It is asked by a line of JSON on its stdin and answers by one on its stdout, once for each load or question what it
//! can offer, and once more when it is ready; a line `stop` ends the load under way, the end of stdin all. The server is
//! watched from here meanwhile: the crew's driver is on this host, so that its wall clock is this one's.

use crate::{MonitorTarget, RunError, RunPlan};
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

/// What ends the load under way.
const STOP: &str = "stop";
/// Who is waited for looks up so often, to see whether all is to end.
const LOOK: Duration = Duration::from_millis(50);

/// The program; it ends with this.
#[derive(Debug)]
pub struct Crew {
    shards: u64,
    program: Child,
    orders: Option<ChildStdin>,
    answers: Receiver<String>,
}

/// A load to make.
#[derive(Serialize)]
struct Order {
    /// As a TOML document, with the load in it.
    workload: String,
    seed: u64,
    /// Flags of `brimful load` that are this load's alone.
    flags: Vec<String>,
    /// Not to make it, but to find what the shards can offer for loads like it.
    calibrate: bool,
}

/// What became of an order.
#[derive(Deserialize)]
struct Answer {
    record: Option<Record>,
    calibration: Option<ClientCalibration>,
    /// Why there is no Record, and what to do.
    error: Option<String>,
    /// Whether that is the command line's fault.
    #[serde(default)]
    usage: bool,
}

impl Crew {
    /// Starts it, with so many shards, and waits until it is ready or `stop` is set.
    ///
    /// # Errors
    /// [`RunError::Crew`] when it cannot be started, or with what it says against its own command line.
    pub fn start(shards: u64, mut command: Command, stop: &AtomicBool) -> Result<Crew, RunError> {
        // Ctrl-C is for who gives the orders.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut program = command.spawn().map_err(|error| lost(&format!("cannot be started ({error})")))?;
        let (tell, answers) = channel();
        if let Some(stdout) = program.stdout.take() {
            thread::spawn(move || pass_on(stdout, &tell));
        }
        let mut crew = Crew { shards, orders: program.stdin.take(), program, answers };
        crew.answer(stop).map(|_| crew)
    }

    /// How many processes make a load together.
    pub fn shards(&self) -> u64 {
        self.shards
    }

    /// Has it find what the shards can offer together for loads like this plan's. No curve comes with it.
    ///
    /// # Errors
    /// When one of them cannot, and when the crew is no more.
    pub fn client_limit(&mut self, like: &RunPlan, stop: &AtomicBool) -> Result<ClientCalibration, RunError> {
        self.order(&Order { calibrate: true, ..Order::of(like)? })?;
        self.answer(stop)?.calibration.ok_or_else(|| lost("does not tell what it can offer"))
    }

    /// Has it make the load of a plan, as [`crate::run`] would here.
    ///
    /// # Errors
    /// As [`crate::run`], and when the crew is no more.
    pub fn run(&mut self, plan: &RunPlan, stop: &AtomicBool) -> Result<Record, RunError> {
        let order = Order::of(plan)?;
        let monitor = plan.monitor.as_ref().map(MonitorTarget::start).transpose()?;
        self.order(&order)?;
        let record = self.answer(stop)?.record;
        let mut record = record.ok_or_else(|| lost("tells no Record of a load"))?;
        let started = humantime::parse_rfc3339(&record.started_at).map_err(|error| lost(&error.to_string()))?;
        let (epoch, window) = (clock::monotonic_at(started), Nanos::from_secs_f64(record.window_s));
        record.started_monotonic_ns = epoch.0;
        record.server = monitor.map(|monitor| monitor.finish(epoch, Some((epoch, epoch + window))));
        Ok(record)
    }

    fn order(&mut self, order: &Order) -> Result<(), RunError> {
        self.say(&serde_json::to_string(order).map_err(|error| lost(&error.to_string()))?)
    }

    fn say(&mut self, line: &str) -> Result<(), RunError> {
        let orders = self.orders.as_mut().ok_or_else(|| lost("is no more"))?;
        writeln!(orders, "{line}").and_then(|()| orders.flush()).map_err(|error| lost(&format!("is gone ({error})")))
    }

    /// Its next answer; when `stop` is set it is asked to give it at once.
    fn answer(&mut self, stop: &AtomicBool) -> Result<Answer, RunError> {
        let mut told = false;
        let line = loop {
            match self.answers.recv_timeout(LOOK) {
                Ok(line) => break line,
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) && !told => {
                    self.say(STOP)?;
                    told = true;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(lost("has ended; see its message above")),
            }
        };
        let answer: Answer =
            serde_json::from_str(&line).map_err(|error| lost(&format!("says `{line:.60}`: {error}")))?;
        match answer.error {
            Some(message) => Err(RunError::Crew { message, usage: answer.usage }),
            None => Ok(answer),
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        // It ends with its stdin, and takes its shards with it.
        self.orders = None;
        // Fails only when it has been waited for.
        let _ = self.program.wait();
    }
}

impl Order {
    fn of(plan: &RunPlan) -> Result<Order, RunError> {
        let workload = toml::to_string(&plan.workload).map_err(|error| RunError::BadLoad(error.to_string()))?;
        let mut flags = vec![
            format!("--duration={}ns", plan.window.0),
            format!("--interval={}ns", plan.interval.0),
            format!("--warm-connections={}", plan.connections.warm_connections),
        ];
        let most = plan.most_connections_per_shard();
        let most = most.map(|most| format!("--max-connections={}", most.saturating_mul(plan.threads)));
        flags.extend(most);
        Ok(Order { workload, seed: plan.seed, flags, calibrate: false })
    }
}

/// Until it ends, or nobody listens any more.
fn pass_on(stdout: ChildStdout, answers: &Sender<String>) {
    let lines = BufReader::new(stdout).lines().map_while(Result::ok);
    lines.take_while(|line| answers.send(line.clone()).is_ok()).for_each(drop);
}

fn lost(why: &str) -> RunError {
    RunError::Crew { message: format!("the fleet that was to make the load {why}"), usage: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crew that is a shell script.
    fn crew(script: &str) -> Result<Crew, RunError> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Crew::start(2, command, &AtomicBool::new(false))
    }

    #[test]
    fn what_a_crew_has_against_its_orders_is_told() {
        let refuses = crew(r#"echo '{"error": "no such flag", "usage": true}'"#);
        assert!(matches!(refuses, Err(error) if error.is_usage() && error.to_string() == "no such flag"));
        let ends = crew("exit 3").unwrap_err().to_string();
        assert!(ends.contains("has ended"), "{ends}");
        let babbles = crew("echo hello").unwrap_err().to_string();
        assert!(babbles.contains("says `hello`"), "{babbles}");
    }

    #[test]
    fn a_crew_is_told_to_stop_and_ends_with_its_orders() {
        let script = r#"echo '{}'; while read order; do [ "$order" = stop ] && echo '{"error": "stopped"}'; done"#;
        let mut crew = crew(script).unwrap();
        let answer = crew.answer(&AtomicBool::new(true)).map(|_| ()).unwrap_err();
        assert_eq!(answer.to_string(), "stopped");
        // Which would wait for ever.
        drop(crew);
    }
}
