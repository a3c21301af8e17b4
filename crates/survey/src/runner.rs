//! The state that all phases of a survey share: the server, the listener to events, the number of runs, and a log of
//! the results so far.

use crate::SurveyError;
use crate::bench::Bench;
use crate::level::LevelContext;
use crate::predicted::Predictions;
use crate::setup::{Setup, closed};
use crate::trial::{Throttled, Trial};
use brimful_core::record::{ClientCalibration, Reason, ReasonCode};
use brimful_core::survey::{Level, Stopped};
use brimful_core::workload::Workload;
use brimful_core::{Bytes, Nanos};

/// Number that is added to the seed of a load that is repeated, so that its arrivals are different.
const REPEAT_SEED_OFFSET: u64 = 1 << 32;
/// Maximum number of attempts to reach an overloaded server.
const RECOVERY_ATTEMPTS: usize = 20;
/// Duration of an attempt to reach an overloaded server, and of the pause after it.
const RECOVERY_ATTEMPT: Nanos = Nanos::from_millis(250);
/// Number that is added to the seeds of attempts to reach an overloaded server. The number of attempts depends on the
/// server, so they must not change the seeds of later loads.
const RECOVERY_SEED_OFFSET: u64 = 1 << 34;

/// An event during a survey, for a progress display.
#[derive(Clone, Debug)]
pub enum SurveyEvent {
    /// A step of the survey began: its name, and its approximate duration.
    Begin(String, Nanos),
    /// Approximate duration of the whole survey.
    EstimatedDuration(Nanos),
    /// A message for the user.
    Note(String),
    /// All predictions. This event comes before the measurement of the predicted load levels.
    Predicted(Predictions),
    /// A load level was measured.
    Level(Box<Level>),
}

/// The reason why a survey ends early.
#[derive(Debug)]
pub(crate) enum Halt {
    Error(SurveyError),
    Stopped(ReasonCode, Stopped),
}

impl<E: Into<SurveyError>> From<E> for Halt {
    fn from(error: E) -> Halt {
        Halt::Error(error.into())
    }
}

/// The results of the survey so far.
#[derive(Debug, Default)]
pub(crate) struct RunLog {
    /// Name of the last step of the survey that began.
    pub step: String,
    /// The measured load levels, for the survey's document.
    pub levels: Vec<Level>,
    /// Reasons to distrust the whole survey.
    pub doubts: Vec<Reason>,
    /// The run in which a CPU quota stopped the server for the largest share of the time; `None` if there was none.
    pub throttled: Option<Throttled>,
}

/// Offers loads for the phases of a survey, and logs the results.
pub(crate) struct Runner<'a> {
    /// The options of the survey.
    pub setup: &'a Setup,
    /// The server under test.
    pub bench: &'a mut dyn Bench,
    listener: &'a mut dyn FnMut(SurveyEvent),
    /// Number of runs so far. It determines the seed of the next run.
    runs: u64,
    /// The results so far.
    pub log: RunLog,
}

impl<'a> Runner<'a> {
    /// Creates the state at the start of a survey.
    pub fn new(setup: &'a Setup, bench: &'a mut dyn Bench, listener: &'a mut dyn FnMut(SurveyEvent)) -> Runner<'a> {
        Runner { setup, bench, listener, runs: 0, log: RunLog::default() }
    }

    /// Passes an event to the listener.
    pub fn announce(&mut self, step: SurveyEvent) {
        (self.listener)(step);
    }

    /// Begins a step of the survey. `duration` is its approximate duration.
    pub fn begin(&mut self, step: String, duration: Nanos) {
        self.log.step.clone_from(&step);
        self.announce(SurveyEvent::Begin(step, duration));
    }

    /// Passes a message for the user to the listener.
    pub fn note(&mut self, text: String) {
        self.announce(SurveyEvent::Note(text));
    }

    /// Measures the maximum rate of this client, with responses of this size. The search may end at the rate `needed`.
    pub fn client_limit(&mut self, response: Bytes, needed: Option<f64>) -> Result<ClientCalibration, Halt> {
        let listener = &mut *self.listener;
        Ok(self.bench.client_limit(response, needed, &mut |text| listener(SurveyEvent::Note(text)))?)
    }

    /// Offers a load with the seed of the next run.
    pub fn measure(&mut self, workload: &Workload, duration: Nanos) -> Result<Trial, Halt> {
        self.runs += 1;
        self.measure_with_seed(workload, duration, self.setup.seed.wrapping_add(self.runs))
    }

    /// Measures a load level. If the host disturbed the measurement, repeats it. A disturbance is recognized by the
    /// load generator's delays and by other work on the server's CPUs, never by a comparison with predictions.
    pub fn measure_level(&mut self, workload: &Workload, duration: Nanos) -> Result<Trial, Halt> {
        let trial = self.measure(workload, duration)?;
        self.recover_after(&trial);
        let is_disturbance = |reason: &&Reason| {
            matches!(reason.code, ReasonCode::GeneratorLate | ReasonCode::GeneratorStalled | ReasonCode::OtherWork)
        };
        let reasons = trial.verdict(self.setup.servers()).reasons;
        let Some(disturbance) = reasons.iter().find(is_disturbance).filter(|_| !trial.record.interrupted) else {
            return Ok(trial);
        };
        let cause = disturbance.message.split(". ").next().unwrap_or_default();
        self.note(format!(
            "a disturbance: {cause}. The run is repeated, which takes {} more",
            duration.to_rounded_string()
        ));
        let seed = self.setup.seed.wrapping_add(self.runs).wrapping_add(REPEAT_SEED_OFFSET);
        let trial = self.measure_with_seed(workload, duration, seed)?;
        self.recover_after(&trial);
        Ok(trial)
    }

    /// Logs and announces the measurement of a load level. Then halts if the survey cannot continue.
    pub fn record_level(&mut self, trial: &Trial, workload: &Workload, context: &LevelContext<'_>) -> Result<(), Halt> {
        let level = context.level(trial, workload, self.setup.servers());
        self.announce(SurveyEvent::Level(Box::new(level.clone())));
        self.log.levels.push(level);
        self.check(trial)
    }

    /// Runs `measure` under a CPU quota that the survey itself has set. Stops of the server by this quota are not
    /// logged.
    pub fn under_own_quota<T>(&mut self, measure: impl FnOnce(&mut Runner<'a>) -> Result<T, Halt>) -> Result<T, Halt> {
        let throttled = self.log.throttled.clone();
        let result = measure(self);
        self.log.throttled = throttled;
        result
    }

    /// Waits until the server completes calls again.
    pub fn wait_for_recovery(&mut self) {
        let one_client = self.setup.workload_with(closed(1));
        for attempt in 0..RECOVERY_ATTEMPTS {
            let seed = self.setup.seed.wrapping_add(RECOVERY_SEED_OFFSET).wrapping_add(attempt as u64);
            // Ignore an error of this run: if the server does not respond at all, the next regular run reports it.
            if self
                .measure_with_seed(&one_client, RECOVERY_ATTEMPT, seed)
                .is_ok_and(|trial| trial.record.counts.completed > 0)
            {
                break;
            }
            self.bench.rest(RECOVERY_ATTEMPT);
        }
    }

    /// Halts if the user interrupted the run, or if the server no longer responds.
    pub fn check(&self, trial: &Trial) -> Result<(), Halt> {
        if trial.record.interrupted {
            Err(self.interrupted())
        } else if !self.bench.is_alive() {
            Err(self.server_died())
        } else if trial.record.counts.completed == 0 && trial.record.counts.scheduled > 0 {
            Err(self.halt(ReasonCode::ServerDied, "the server completed no call"))
        } else {
            Ok(())
        }
    }

    /// Halts if the server limits the rate of its clients (status 429).
    pub fn check_rate_limit(&self, trial: &Trial) -> Result<(), Halt> {
        match trial.rate_limit() {
            Some(message) => Err(self.halt(ReasonCode::RateLimited, message.trim_end_matches('.'))),
            None => Ok(()),
        }
    }

    /// The reason to stop the survey if the user interrupted it.
    pub fn interrupted(&self) -> Halt {
        self.halt(ReasonCode::Interrupted, "it was interrupted")
    }

    /// The reason to stop the survey at the current step.
    pub fn halt(&self, code: ReasonCode, reason: &str) -> Halt {
        Halt::Stopped(code, Stopped { level: self.log.step.clone(), reason: reason.to_owned() })
    }

    fn server_died(&self) -> Halt {
        self.halt(ReasonCode::ServerDied, "the server no longer accepts connections")
    }

    /// Offers a load with this seed, which does not depend on the number of runs so far.
    pub fn measure_with_seed(&mut self, workload: &Workload, duration: Nanos, seed: u64) -> Result<Trial, Halt> {
        // The monitor returns an error when the server's processes have ended. Ctrl-C in a terminal ends them too, so
        // check for an interruption first.
        match self.bench.measure(workload, duration, seed) {
            Ok(record) => {
                let trial = Trial::new(record, &workload.classes);
                self.log_throttled(trial.throttled());
                Ok(trial)
            }
            Err(_) if self.bench.is_interrupted() => Err(self.interrupted()),
            Err(_) if !self.bench.is_alive() => Err(self.server_died()),
            Err(error) => Err(Halt::Error(error)),
        }
    }

    fn log_throttled(&mut self, throttled: Option<Throttled>) {
        let worst_share = self.log.throttled.as_ref().map_or(0.0, |worst| worst.share);
        if let Some(throttled) = throttled.filter(|throttled| throttled.share > worst_share) {
            self.log.throttled = Some(throttled);
        }
    }

    /// After failed calls, waits until the server's queues are empty. They may contain calls for which the load
    /// generator no longer waits.
    fn recover_after(&mut self, trial: &Trial) {
        if trial.failed_share() > 0.0 && !trial.record.interrupted {
            self.wait_for_recovery();
        }
    }
}
