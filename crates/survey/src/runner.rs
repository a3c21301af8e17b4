//! The state that all phases of a survey share: the bench, the seed of the next run, the listener to progress messages,
//! and a log of the levels measured so far.

use crate::SurveyError;
use crate::bench::Bench;
use crate::level::LevelContext;
use crate::predictions::Predictions;
use crate::setup::{Setup, closed};
use crate::trial::{Throttled, Trial};
use brimful_core::record::{ClientCalibration, Reason, ReasonCode};
use brimful_core::survey::{Level, Stopped};
use brimful_core::workload::Workload;
use brimful_core::{Bytes, Nanos};

/// Offset that is added to the seed of a level that is measured again, so that the level gets another schedule.
const REPEAT_SEED: u64 = 1 << 32;
/// Number of attempts to reach an overloaded server.
const RECOVERY_ATTEMPTS: usize = 20;
/// Duration of each attempt, and of the pause after it.
const RECOVERY_ATTEMPT: Nanos = Nanos::from_millis(250);
/// Offset of the seeds of these attempts. The number of attempts depends on the server, so they must not use up the
/// seeds of the later loads.
const RECOVERY_SEEDS: u64 = 1 << 34;

/// A step in the progress of a survey.
#[derive(Clone, Debug)]
pub enum SurveyEvent {
    /// A step began: its name, and its approximate duration.
    Begin(String, Nanos),
    /// Approximate duration of the whole survey.
    EstimatedDuration(Nanos),
    /// A remark for the user.
    Note(String),
    /// All predictions. This event precedes the measurement of the predicted levels.
    Predicted(Predictions),
    /// A level was measured.
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

/// A log of the survey so far.
#[derive(Debug, Default)]
pub(crate) struct RunLog {
    /// Name of the last step that began.
    pub step: String,
    /// The levels that the document shows.
    pub levels: Vec<Level>,
    /// Reasons to distrust the survey as a whole.
    pub doubts: Vec<Reason>,
    /// The run during which a CPU quota stopped the server for the largest share of the time.
    pub throttled: Option<Throttled>,
}

/// Runs loads for the phases of a survey.
pub(crate) struct Runner<'a> {
    pub setup: &'a Setup,
    pub bench: &'a mut dyn Bench,
    listener: &'a mut dyn FnMut(SurveyEvent),
    /// Number of runs so far, from which each run's seed is derived.
    runs: u64,
    pub log: RunLog,
}

impl<'a> Runner<'a> {
    pub fn new(setup: &'a Setup, bench: &'a mut dyn Bench, listener: &'a mut dyn FnMut(SurveyEvent)) -> Runner<'a> {
        Runner { setup, bench, listener, runs: 0, log: RunLog::default() }
    }

    pub fn announce(&mut self, step: SurveyEvent) {
        (self.listener)(step);
    }

    pub fn begin(&mut self, step: String, duration: Nanos) {
        self.log.step.clone_from(&step);
        self.announce(SurveyEvent::Begin(step, duration));
    }

    pub fn note(&mut self, text: String) {
        self.announce(SurveyEvent::Note(text));
    }

    /// Measures the load that this client can offer, up to the rate `needed`. Announces the remarks of that measurement.
    pub fn client_limit(&mut self, response: Bytes, needed: Option<f64>) -> Result<ClientCalibration, Halt> {
        let listener = &mut *self.listener;
        Ok(self.bench.client_limit(response, needed, &mut |text| listener(SurveyEvent::Note(text)))?)
    }

    /// Offers a load and returns its trial.
    pub fn measure(&mut self, workload: &Workload, duration: Nanos) -> Result<Trial, Halt> {
        self.runs += 1;
        self.measure_with_seed(workload, duration, self.setup.seed.wrapping_add(self.runs))
    }

    /// Measures a level, and measures it once more if the host disturbed it. Whether a level was disturbed depends on
    /// the generator and on the server's CPUs, never on the predictions.
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
            "measured again, which takes {} more, because of a disturbance: {cause}",
            duration.to_rounded_string()
        ));
        let seed = self.setup.seed.wrapping_add(self.runs).wrapping_add(REPEAT_SEED);
        let trial = self.measure_with_seed(workload, duration, seed)?;
        self.recover_after(&trial);
        Ok(trial)
    }

    /// Logs and announces a level, then halts if the survey cannot go on.
    pub fn record_level(&mut self, trial: &Trial, workload: &Workload, context: &LevelContext<'_>) -> Result<(), Halt> {
        let level = context.level(trial, workload, self.setup.servers());
        self.announce(SurveyEvent::Level(Box::new(level.clone())));
        self.log.levels.push(level);
        self.check(trial)
    }

    /// Runs `measure` without logging that a quota stops the server, because the survey itself set that quota.
    pub fn under_own_quota<T>(&mut self, measure: impl FnOnce(&mut Runner<'a>) -> Result<T, Halt>) -> Result<T, Halt> {
        let throttled = self.log.throttled.clone();
        let result = measure(self);
        self.log.throttled = throttled;
        result
    }

    /// Waits until the server answers again.
    pub fn wait_for_recovery(&mut self) {
        let one_client = self.setup.workload_with(closed(1));
        for attempt in 0..RECOVERY_ATTEMPTS {
            let seed = self.setup.seed.wrapping_add(RECOVERY_SEEDS).wrapping_add(attempt as u64);
            // An error of this run is ignored: if the server does not answer at all, the next regular run reports it.
            if self
                .measure_with_seed(&one_client, RECOVERY_ATTEMPT, seed)
                .is_ok_and(|trial| trial.record.counts.completed > 0)
            {
                break;
            }
            self.bench.rest(RECOVERY_ATTEMPT);
        }
    }

    /// Halts if the user interrupted the run or the server no longer answers.
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

    /// Halts if the server limits the rate of its clients.
    pub fn check_rate_limit(&self, trial: &Trial) -> Result<(), Halt> {
        match trial.rate_limit() {
            Some(message) => Err(self.halt(ReasonCode::RateLimited, message.trim_end_matches('.'))),
            None => Ok(()),
        }
    }

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

    /// Offers a load with a seed that does not depend on the number of runs so far, and returns its trial.
    pub fn measure_with_seed(&mut self, workload: &Workload, duration: Nanos, seed: u64) -> Result<Trial, Halt> {
        // The monitor fails when the server's processes have ended. Ctrl-C in a terminal ends them together with the
        // survey.
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

    /// Waits until the server has finished the calls in its queues. After an overload, these are calls that the
    /// generator gave up.
    fn recover_after(&mut self, trial: &Trial) {
        if trial.failed_share() > 0.0 && !trial.record.interrupted {
            self.wait_for_recovery();
        }
    }
}
