//! The method, in the order that keeps it honest: client, calibration, fit, predictions handed over, and only then the
//! levels that were predicted. It asks a [`Bench`] for all that it needs to know, and has no clock of its own.

use crate::SurveyError;
use crate::bench::Bench;
use crate::calibration::pooled;
use crate::document::document;
use crate::found::{Found, Halt, Setup};
use crate::handshakes;
use crate::level::{About, Given, Trial};
use crate::predictions::{Predicted, Predictions};
use brimful_core::quantity;
use brimful_core::record::{Reason, ReasonCode};
use brimful_core::survey::{Level, Role, Stopped, Survey};
use brimful_core::workload::{Load, Workload};
use brimful_core::{Bytes, Nanos, Rate};
use brimful_estimate::{Answered, ProgramSeen, ServerFit};
use brimful_run::client_limit;

/// Open levels past saturation.
pub(crate) const PAST_SATURATION: [f64; 2] = [1.1, 1.3];
/// What an open level past saturation may leave waiting: its length is cut so that the backlog stays below this.
const BACKLOG: f64 = 1000.0;
/// How long the idle server is watched before any load.
pub(crate) const IDLE: Nanos = Nanos::from_millis(1500);
/// Added to the seed of a level that is measured again, so that it gets another schedule.
const AGAIN: u64 = 1 << 32;
/// How long it takes to find out what is to be expected, about.
pub(crate) const EXPECTING: Nanos = Nanos::from_secs(1);
/// A server that has been overrun is asked so often whether it answers again, and for so long.
const SETTLING: (usize, Nanos) = (20, Nanos::from_millis(250));
/// The first look at what a call costs.
pub(crate) const PROBE: Nanos = Nanos::from_millis(1000);

/// News of a survey under way.
#[derive(Clone, Debug)]
pub enum Step {
    /// Something began that lasts about this long.
    Begin(String, Nanos),
    /// How long the survey takes, about.
    Foreseen(Nanos),
    /// Something worth knowing.
    Note(String),
    /// All predictions, before anything of what they say is measured.
    Predicted(Predictions),
    /// A level was measured.
    Level(Box<Level>),
}

/// Surveys what is on the bench. Once the first level is measured there is always a document: what stopped it early is
/// in it.
pub(crate) fn conduct(setup: &Setup, bench: &mut dyn Bench, news: &mut dyn FnMut(Step)) -> Result<Survey, SurveyError> {
    let mut method = Method { setup, bench, news, runs: 0, found: Found::default() };
    let halt = method.run().err();
    // Calibration that was cut short is shown as well.
    let pieces = std::mem::take(&mut method.found.pieces);
    method.found.levels.extend(pooled(&pieces));
    let survey = document(setup, method.found, halt.as_ref());
    match halt {
        Some(Halt::Error(error)) if survey.levels.is_empty() => Err(error),
        _ => Ok(survey),
    }
}

pub(crate) struct Method<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) bench: &'a mut dyn Bench,
    pub(crate) news: &'a mut dyn FnMut(Step),
    /// Runs so far: gives each a seed of its own.
    runs: u64,
    pub(crate) found: Found,
}

impl Method<'_> {
    fn run(&mut self) -> Result<(), Halt> {
        let (first_rate, response) = self.probe()?;
        let change = self.rehearse()?;
        let foreseen = self.foreseen(first_rate, change);
        (self.news)(Step::Foreseen(foreseen));
        self.check_client(response)?;
        let idle_busy = self.watch_idle()?;
        let fit = self.calibrate(first_rate, idle_busy)?;
        self.found.fit = Some(fit.clone());
        self.begin("what is to be expected".to_owned(), EXPECTING);
        let predictions = Predictions::of(&fit, &self.setup.workload, self.setup.level, self.bench)?;
        self.found.saturation_interval = predictions.saturation_spread.map(|spread| spread.interval90);
        (self.news)(Step::Predicted(predictions.clone()));
        for level in &predictions.levels {
            if self.setup.gentle && level.fraction > self.setup.max_load {
                self.note(format!(
                    "left out, for it is more than --max-load: {} at {}",
                    level.name,
                    quantity::whole_percent(level.fraction)
                ));
                continue;
            }
            self.held_out(&fit, level)?;
        }
        if self.setup.gentle {
            self.note(
                "the capacity itself is not measured, for that is more than --max-load; what may be full before the CPUs \
                 are, light load does not show"
                    .to_owned(),
            );
            return Ok(());
        }
        if !self.found.filled {
            return self.leave_out_capacity(predictions.saturation);
        }
        self.saturate(&fit, &predictions)?;
        self.overload(&fit)?;
        change.map_or(Ok(()), |change| self.what_if(&fit, change))
    }

    pub(crate) fn begin(&mut self, what: String, lasts: Nanos) {
        self.found.step.clone_from(&what);
        (self.news)(Step::Begin(what, lasts));
    }

    pub(crate) fn note(&mut self, text: String) {
        (self.news)(Step::Note(text));
    }

    /// One client for a moment: does the server answer as it should, and what does a call roughly cost?
    fn probe(&mut self) -> Result<(f64, Bytes), Halt> {
        self.begin("a first look at the server".to_owned(), PROBE);
        let load = Load::Closed { clients: 1, think: Nanos::ZERO };
        let trial = self.try_once(&with_load(&self.setup.workload, load), PROBE)?;
        if trial.record.wants_tls {
            let what = "the server speaks TLS on this port: write https:// in place of http://";
            return Err(SurveyError::Unfit(what.to_owned()).into());
        }
        self.check_rate_limit(&trial)?;
        self.check_first_answers(&trial)?;
        self.check(&trial)?;
        let counts = &trial.record.counts;
        if !self.setup.is_black_box() && trial.mean_demand()? <= 0.0 {
            let what =
                "the processes named used no CPU while the server answered: name those that serve, with --process";
            return Err(SurveyError::Unfit(what.to_owned()).into());
        }
        let response = Bytes(trial.record.bytes.received / counts.completed);
        self.choose_connections(&trial)?;
        Ok((trial.record.rates.completed, response))
    }

    fn check_client(&mut self, response: Bytes) -> Result<(), Halt> {
        self.begin(
            "what this client can offer before it is the limit itself".to_owned(),
            client_limit::TYPICAL_DURATION,
        );
        let news = &mut *self.news;
        let calibration = self.bench.client_limit(response, &mut |text| news(Step::Note(text)))?;
        self.found.client_max = calibration.max_rate;
        self.found.client_limit = calibration.limit();
        self.note(match calibration.max_rate {
            Some(rate) if calibration.lower_bound => format!(
                "this client can offer {} and more without being the limit; beyond that each level is judged by itself",
                quantity::rate(rate)
            ),
            Some(rate) => format!("this client can offer {} without being the limit", quantity::rate(rate)),
            None if calibration.curve.is_empty() => "each level is judged by itself".to_owned(),
            None => "this client could not be trusted at any rate; each level is judged by itself".to_owned(),
        });
        Ok(())
    }

    /// What the server's CPUs do without load. Returns the busy servers of its own processes.
    fn watch_idle(&mut self) -> Result<f64, Halt> {
        if self.setup.is_black_box() {
            self.note(
                "nothing is seen of the server but its answers: what it costs and what is full is not known".to_owned(),
            );
            return Ok(0.0);
        }
        self.begin("the idle server".to_owned(), IDLE);
        let idle = self.bench.watch_idle(IDLE)?;
        self.found.background = idle.kernel.cpu.map(|cpu| (1.0 - cpu.idle).clamp(0.0, 0.9));
        let busy = idle.process.iter().map(|program| program.cores).sum();
        self.found.idle_programs = ProgramSeen::of(&idle, busy);
        Ok(busy)
    }

    /// Nothing is measured that the client would be the limit of. A client that cannot offer this rate is told what the
    /// whole survey takes, which goes to the saturation.
    pub(crate) fn check_offerable(&self, rate: f64, saturation: f64) -> Result<(), Halt> {
        let Some(max) = self.found.client_limit.filter(|max| rate > *max) else { return Ok(()) };
        // Threads and shards share nothing, so of as many times as many comes about as many times as much.
        let (parts, name, how) = match self.setup.shards {
            Some(shards) => (shards, "shard", "(--shards, each on a CPU of its own)"),
            None => (
                self.setup.client_cpus.len().max(1) as u64,
                "CPU",
                "for the generator (--cpus), or a machine of its own",
            ),
        };
        let needed = (saturation / max * parts as f64).ceil();
        let reason = format!(
            "it needs {}, more than the {} that this client was shown to offer without being the limit on {}; to \
             survey the server to its saturation takes some {needed} {name}s like these {how}",
            quantity::rate(rate),
            quantity::rate(max),
            if parts == 1 { format!("one {name}") } else { format!("{parts} {name}s") },
        );
        Err(self.halt(ReasonCode::BeyondClientMax, &reason))
    }

    fn held_out(&mut self, fit: &ServerFit, level: &Predicted) -> Result<(), Halt> {
        let share = quantity::whole_percent(level.fraction);
        let what = format!("held out: {}, {share}, {}", level.name, quantity::rate(level.rate));
        self.begin(what, level.lasts);
        self.check_offerable(level.rate, level.rate / level.fraction)?;
        let before = self.anchor(level.lasts)?;
        let trial = self.try_level(&level.workload, level.lasts)?;
        if let Some(text) = handshakes::say(&trial.record.counts) {
            self.note(text);
        }
        let answered = self.given_host(fit, level, &trial)?;
        let given = Given { speed: both(before, self.anchor(level.lasts)?), answered };
        let about = About {
            role: Role::HeldOut,
            workload: &level.name,
            saturation: level.rate / level.fraction,
            predicted: Some(&level.prediction),
            expected: Some(&level.expected),
            given,
        };
        self.keep(&trial, &level.workload, &about)
    }

    /// What the model says of the very arrivals of a level, given the speed that its host had in the course of it.
    fn given_host(&self, fit: &ServerFit, level: &Predicted, trial: &Trial) -> Result<Option<Answered>, Halt> {
        let mix = level.workload.mix();
        let Some(course) = fit.course_of(&trial.record, level.rate, &mix) else { return Ok(None) };
        let arrivals = self.bench.schedule(&level.workload, level.lasts, trial.record.seed)?;
        Ok(fit.given(level.rate, &mix, &course, &arrivals)?)
    }

    /// What was extrapolated cannot be measured either: as many clients as there may be do not fill the server.
    fn leave_out_capacity(&mut self, saturation: f64) -> Result<(), Halt> {
        self.begin("saturation".to_owned(), Nanos::ZERO);
        self.check_offerable(saturation, saturation)?;
        self.check_not_too_much_for_client()?;
        let clients = self.found.clients;
        self.note(format!("the capacity itself is not measured, for the {clients} clients that may be do not fill it"));
        Ok(())
    }

    /// Whether it was the generator that so many clients filled.
    pub(crate) fn check_not_too_much_for_client(&self) -> Result<(), Halt> {
        let Some(clients) = self.found.too_much_for_client else { return Ok(()) };
        let clients = if clients == 1 { "one client".to_owned() } else { format!("{clients} clients") };
        let reason = format!(
            "the capacity could not be measured, for the generator itself was the limit with {clients}; give it more \
             --threads and --cpus than the server's, or a machine of its own (--shards makes the load from several)"
        );
        Err(self.halt(ReasonCode::BeyondClientMax, &reason))
    }

    /// Finds what the server really can take: closed, with as many clients as left it no rest in calibration. That keeps it
    /// busy without overrunning it.
    fn saturate(&mut self, fit: &ServerFit, predictions: &Predictions) -> Result<(), Halt> {
        let (saturation, lasts) = (predictions.saturation, predictions.saturation_lasts);
        self.begin("saturation".to_owned(), lasts);
        self.check_offerable(saturation, saturation)?;
        let load = Load::Closed { clients: self.found.clients, think: Nanos::ZERO };
        let workload = with_load(&self.setup.workload, load);
        let prediction = fit.predict(1.001 * saturation)?;
        let speed_before = self.anchor(lasts)?;
        let before = self.bench.truth();
        let trial = self.try_level(&workload, lasts)?;
        let after = self.bench.truth();
        let speed = both(speed_before, self.anchor(lasts)?);
        let about = About {
            role: Role::PastSaturation,
            workload: "mix",
            saturation,
            predicted: Some(&prediction),
            expected: None,
            given: Given { speed, answered: None },
        };
        self.keep(&trial, &workload, &about)?;
        let record = &trial.record;
        if record.verdict.valid {
            self.found.saturation = Some((record.rates.completed, record.reply_rate.ci95_half_width));
            self.found.saturation_speed = speed;
            self.found.truth = before.zip(after);
        }
        Ok(())
    }

    /// Shows what becomes of the server beyond what it can take. Its capacity is known by then, so nothing depends on
    /// it.
    fn overload(&mut self, fit: &ServerFit) -> Result<(), Halt> {
        let saturation = fit.saturation();
        for fraction in PAST_SATURATION {
            let rate = fraction * saturation;
            let lasts = overload_lasts(rate - saturation, self.setup.level);
            let what = format!("past saturation: {}, {}", quantity::whole_percent(fraction), quantity::rate(rate));
            if self.found.client_limit.is_some_and(|max| rate > max) {
                self.note(format!("left out, for this client cannot offer it: {what}"));
                continue;
            }
            self.begin(what, lasts);
            let prediction = fit.predict(rate)?;
            let about = About {
                role: Role::PastSaturation,
                workload: "mix",
                saturation,
                predicted: Some(&prediction),
                expected: None,
                given: Given::default(),
            };
            let workload = with_load(&self.setup.workload, Load::poisson(Rate(rate)));
            let trial = self.try_level(&workload, lasts)?;
            self.keep(&trial, &workload, &about)?;
        }
        Ok(())
    }

    /// Measures a level. One that the host disturbed is measured again, once: what decides is the health of the
    /// generator and of the server's CPUs, never what the model said.
    fn try_level(&mut self, workload: &Workload, lasts: Nanos) -> Result<Trial, Halt> {
        let trial = self.try_once(workload, lasts)?;
        self.settle(&trial);
        let disturbed = |reason: &Reason| {
            matches!(reason.code, ReasonCode::GeneratorLate | ReasonCode::GeneratorStalled | ReasonCode::OtherWork)
        };
        let reasons = trial.verdict(self.setup.servers()).reasons;
        let Some(reason) = reasons.iter().find(|reason| disturbed(reason)).filter(|_| !trial.record.interrupted) else {
            return Ok(trial);
        };
        let what = reason.message.split(". ").next().unwrap_or_default();
        self.note(format!("once more, {} longer than foreseen, for it was disturbed: {what}", lasts.rounded()));
        let trial = self.measure(workload, lasts, self.setup.seed.wrapping_add(self.runs).wrapping_add(AGAIN))?;
        self.settle(&trial);
        Ok(trial)
    }

    /// Lets the server get done with what a load left it with that was too much for it: calls that were given up are in
    /// its queues still.
    fn settle(&mut self, after: &Trial) {
        if after.failed_share() > 0.0 && !after.record.interrupted {
            self.recover();
        }
    }

    /// Waits until the server answers again.
    pub(crate) fn recover(&mut self) {
        let one = with_load(&self.setup.workload, Load::Closed { clients: 1, think: Nanos::ZERO });
        for _ in 0..SETTLING.0 {
            // Whoever does not answer at all is noticed where that is kept.
            if self.try_once(&one, SETTLING.1).is_ok_and(|trial| trial.record.counts.completed > 0) {
                break;
            }
            self.bench.rest(SETTLING.1);
        }
    }

    pub(crate) fn try_once(&mut self, workload: &Workload, lasts: Nanos) -> Result<Trial, Halt> {
        self.runs += 1;
        self.measure(workload, lasts, self.setup.seed.wrapping_add(self.runs))
    }

    fn measure(&mut self, workload: &Workload, lasts: Nanos, seed: u64) -> Result<Trial, Halt> {
        // A server whose processes are gone cannot be watched either; Ctrl-C in a terminal ends them as well.
        match self.bench.measure(workload, lasts, seed) {
            Ok(record) => {
                let trial = Trial::new(record, &workload.classes);
                self.found.note_throttled(trial.throttled());
                Ok(trial)
            }
            Err(_) if self.bench.is_interrupted() => Err(self.interrupted()),
            Err(_) if !self.bench.is_alive() => Err(self.died()),
            Err(error) => Err(Halt::Error(error)),
        }
    }

    /// Keeps a level, and goes on only if it can.
    fn keep(&mut self, trial: &Trial, workload: &Workload, about: &About<'_>) -> Result<(), Halt> {
        let level = trial.level(workload, about, self.setup.servers());
        (self.news)(Step::Level(Box::new(level.clone())));
        self.found.levels.push(level);
        self.check(trial)
    }

    /// Goes on only while the server answers and nobody has asked to stop.
    pub(crate) fn check(&self, trial: &Trial) -> Result<(), Halt> {
        if trial.record.interrupted {
            Err(self.interrupted())
        } else if !self.bench.is_alive() {
            Err(self.died())
        } else if trial.record.counts.completed == 0 && trial.record.counts.scheduled > 0 {
            Err(self.halt(ReasonCode::ServerDied, "the server completed no call"))
        } else {
            Ok(())
        }
    }

    pub(crate) fn interrupted(&self) -> Halt {
        self.halt(ReasonCode::Interrupted, "it was interrupted")
    }

    fn died(&self) -> Halt {
        self.halt(ReasonCode::ServerDied, "the server no longer accepts connections")
    }

    pub(crate) fn halt(&self, code: ReasonCode, reason: &str) -> Halt {
        Halt::Stopped(code, Stopped { level: self.found.step.clone(), reason: reason.to_owned() })
    }
}

/// How long a level past saturation lasts, at so many calls per second more than are served.
pub(crate) fn overload_lasts(excess: f64, level: Nanos) -> Nanos {
    Nanos::from_secs_f64((BACKLOG / excess).max(1.0).min(0.5 * level.as_secs_f64()))
}

pub(crate) fn with_load(workload: &Workload, load: Load) -> Workload {
    Workload { load: Some(load), ..workload.clone() }
}

/// The mean of what an anchor before a level and one after it say.
pub(crate) fn both(before: Option<f64>, after: Option<f64>) -> Option<f64> {
    match (before, after) {
        (Some(before), Some(after)) => Some(f64::midpoint(before, after)),
        (one, other) => one.or(other),
    }
}
