//! The method, in the order that keeps it honest: client, calibration, fit, predictions handed over, and only then the
//! levels that were predicted. It asks a [`Bench`] for all that it needs to know, and has no clock of its own.

use crate::SurveyError;
use crate::bench::Bench;
use crate::document::document;
use crate::found::{Found, Halt, Setup};
use crate::level::{About, Trial};
use crate::predictions::{Predicted, Predictions, times};
use brimful_core::quantity;
use brimful_core::record::{Reason, ReasonCode};
use brimful_core::server::Server;
use brimful_core::survey::{Level, Role, Stopped, Survey};
use brimful_core::workload::{Load, Workload};
use brimful_core::{Bytes, Nanos, Rate};
use brimful_estimate::{CalibrationRun, ServerFacts, ServerFit};
use brimful_run::client_limit;

/// Levels the model is fitted to, as fractions of the saturation rate as it is known by then.
const CALIBRATION: [f64; 3] = [0.2, 0.4, HIGHEST];
const HIGHEST: f64 = 0.6;
/// How often each of them is measured.
const REPLICATIONS: usize = 5;
/// Where each class is calibrated on its own, so that classes can be told apart.
const SINGLE_CLASS: [f64; 2] = [0.4, HIGHEST];
/// Length and greatest number of the short runs that find the capacity to take the levels from, and when they have.
const PILOT: Nanos = Nanos::from_millis(700);
const PILOTS: usize = 6;
const SETTLED: f64 = 0.06;
/// How many times as long as a calibration run the closed level lasts that finds the saturation rate, and its clients
/// per server CPU: enough to keep every CPU busy all the time.
const SATURATION: f64 = 2.0;
const SATURATING_CLIENTS: u64 = 32;
/// Open levels past saturation.
const PAST_SATURATION: [f64; 2] = [1.1, 1.3];
/// What an open level past saturation may leave waiting: its length is cut so that the backlog stays below this.
const BACKLOG: f64 = 1000.0;
/// How long the idle server is watched before any load.
const IDLE: Nanos = Nanos::from_millis(1500);
/// Added to the seed of a level that is measured again, so that it gets another schedule.
const AGAIN: u64 = 1 << 32;
/// The first look at what a call costs.
const PROBE: Nanos = Nanos::from_millis(1000);

/// News of a survey under way.
#[derive(Clone, Debug)]
pub enum Step {
    /// Something began that lasts about this long.
    Begin(String, Nanos),
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
    let mut method = Method { setup, bench, news, runs: 0, calibration: Vec::new(), found: Found::default() };
    let halt = method.run().err();
    let survey = document(setup, method.found, halt.as_ref());
    match halt {
        Some(Halt::Error(error)) if survey.levels.is_empty() => Err(error),
        _ => Ok(survey),
    }
}

struct Method<'a> {
    setup: &'a Setup,
    bench: &'a mut dyn Bench,
    news: &'a mut dyn FnMut(Step),
    /// Runs so far: gives each a seed of its own.
    runs: u64,
    calibration: Vec<CalibrationRun>,
    found: Found,
}

impl Method<'_> {
    fn run(&mut self) -> Result<(), Halt> {
        let (demand, response) = self.probe()?;
        self.check_client(response)?;
        let idle_busy = self.watch_idle()?;
        let fit = self.calibrate(demand, idle_busy)?;
        self.found.fit = Some(fit.clone());
        let predictions = Predictions::of(&fit, self.setup.level)?;
        (self.news)(Step::Predicted(predictions.clone()));
        for level in &predictions.levels {
            self.held_out(level, predictions.saturation)?;
        }
        self.saturate(&fit)?;
        self.overload(&fit)
    }

    fn begin(&mut self, what: String, lasts: Nanos) {
        self.found.step.clone_from(&what);
        (self.news)(Step::Begin(what, lasts));
    }

    fn note(&mut self, text: String) {
        (self.news)(Step::Note(text));
    }

    /// One client for a moment: does the server answer as it should, and what does a call roughly cost?
    fn probe(&mut self) -> Result<(f64, Bytes), Halt> {
        self.begin("a first look at the server".to_owned(), PROBE);
        let load = Load::Closed { clients: 1, think: Nanos::ZERO };
        let trial = self.try_once(&with_load(&self.setup.workload, load), PROBE)?;
        self.check(&trial)?;
        let counts = &trial.record.counts;
        if counts.status.s2xx + counts.status.s3xx == 0 {
            let what = format!(
                "the server answered all {} calls with an error status: check the path, or the classes of the workload",
                counts.completed
            );
            return Err(SurveyError::Unfit(what).into());
        }
        let demand = trial.mean_demand()?;
        if demand <= 0.0 {
            let what =
                "the processes named used no CPU while the server answered: name those that serve, with --process";
            return Err(SurveyError::Unfit(what.to_owned()).into());
        }
        Ok((demand, Bytes(trial.record.bytes.received / counts.completed)))
    }

    fn check_client(&mut self, response: Bytes) -> Result<(), Halt> {
        self.begin("what this client can offer before it is the limit itself".to_owned(), client_limit::LASTS);
        let news = &mut *self.news;
        let calibration = self.bench.client_limit(response, &mut |text| news(Step::Note(text)))?;
        self.found.client_max = calibration.max_rate;
        let at_least = if calibration.lower_bound { "at least " } else { "" };
        self.note(match calibration.max_rate {
            Some(rate) => format!("this client can offer {at_least}{} without being the limit", quantity::rate(rate)),
            None => "this client could not be trusted at any rate; each level is judged by itself".to_owned(),
        });
        Ok(())
    }

    /// What the server's CPUs do without load. Returns the busy servers of its own processes.
    fn watch_idle(&mut self) -> Result<f64, Halt> {
        self.begin("the idle server".to_owned(), IDLE);
        let Server { kernel, process, .. } = self.bench.watch_idle(IDLE)?;
        self.found.background = kernel.cpu.map(|cpu| (1.0 - cpu.idle).clamp(0.0, 0.9));
        Ok(process.iter().map(|program| program.cores).sum())
    }

    fn calibrate(&mut self, demand: f64, idle_busy: f64) -> Result<ServerFit, Halt> {
        let mix = self.setup.workload.clone();
        let servers = self.setup.servers();
        let capacity = self.find_capacity(&mix, f64::from(servers) / demand)?;
        let base = self.within_client(capacity);
        for fraction in (0..REPLICATIONS).flat_map(|_| CALIBRATION) {
            self.calibration_run("mix", &mix, fraction * base, capacity)?;
        }
        if mix.classes.len() > 1 {
            for index in 0..mix.classes.len() {
                let mut alone = mix.clone();
                for (other, class) in alone.classes.iter_mut().enumerate() {
                    class.weight = if other == index { 1.0 } else { 0.0 };
                }
                let name = alone.classes[index].name.clone();
                let capacity = self.find_capacity(&alone, capacity)?;
                let base = self.within_client(capacity);
                for fraction in SINGLE_CLASS {
                    self.calibration_run(&name, &alone, fraction * base, capacity)?;
                }
            }
        }
        // What requests cannot have: the server's own work without them, and that of others.
        let taken = others_under_load(&self.found.levels) + idle_busy / f64::from(servers);
        let facts = ServerFacts {
            classes: mix.classes.iter().map(|class| class.name.clone()).collect(),
            mix: mix.mix(),
            servers,
            idle_busy,
            background: self.found.background.unwrap_or(0.0).min(taken),
        };
        Ok(ServerFit::new(facts, &self.calibration)?)
    }

    /// The rate at which the server would saturate, roughly. A call costs the less the busier the server is, so each
    /// short run at the highest calibration level improves on the one before, until that makes little difference.
    fn find_capacity(&mut self, workload: &Workload, first_guess: f64) -> Result<f64, Halt> {
        let mut capacity = first_guess;
        for _ in 0..PILOTS {
            let rate = Rate(HIGHEST * self.within_client(capacity));
            self.begin(format!("looking for the levels: {}", quantity::rate(rate.0)), PILOT);
            let trial = self.try_once(&with_load(workload, Load::poisson(rate)), PILOT)?;
            self.check(&trial)?;
            let found = f64::from(self.setup.servers()) / trial.mean_demand()?.max(1e-12);
            let settled = (found / capacity - 1.0).abs() < SETTLED;
            capacity = found;
            if settled {
                break;
            }
        }
        Ok(capacity)
    }

    /// What the calibration levels are fractions of: the capacity, or less where the client could not offer the
    /// highest.
    fn within_client(&self, capacity: f64) -> f64 {
        self.found.client_max.map_or(capacity, |max| capacity.min(max / HIGHEST))
    }

    /// Nothing is measured that the client would be the limit of.
    fn check_offerable(&self, rate: f64) -> Result<(), Halt> {
        let Some(max) = self.found.client_max.filter(|max| rate > *max) else { return Ok(()) };
        let reason = format!(
            "it needs {}, more than the {} that this client was shown to offer without being the limit; give the \
             generator more --threads and --cpus, or a machine of its own",
            quantity::rate(rate),
            quantity::rate(max)
        );
        Err(self.halt(ReasonCode::BeyondClientMax, &reason))
    }

    fn calibration_run(&mut self, name: &str, workload: &Workload, rate: f64, saturation: f64) -> Result<(), Halt> {
        self.begin(format!("calibration: {name} at {}", quantity::rate(rate)), self.setup.level);
        let about = About { role: Role::Calibration, workload: name, saturation, predicted: None };
        let trial = self.level(&with_load(workload, Load::poisson(Rate(rate))), self.setup.level, &about)?;
        let response = trial.response().filter(|_| name == "mix");
        let ci = trial.record.response_mean_ci95_us.map(|us| us / 1e6);
        self.calibration
            .push(CalibrationRun { observed: trial.observed()?.clone(), response: response.map(|mean| (mean, ci)) });
        Ok(())
    }

    fn held_out(&mut self, level: &Predicted, saturation: f64) -> Result<(), Halt> {
        let what = format!("held out: {:.0} %, {}", 100.0 * level.fraction, quantity::rate(level.rate));
        self.begin(what, level.lasts);
        self.check_offerable(level.rate)?;
        let about = About { role: Role::HeldOut, workload: "mix", saturation, predicted: Some(&level.prediction) };
        self.level(&with_load(&self.setup.workload, Load::poisson(Rate(level.rate))), level.lasts, &about)?;
        Ok(())
    }

    /// Finds what the server really can take: closed, with more clients than it can serve at once. That keeps it busy
    /// without overrunning it.
    fn saturate(&mut self, fit: &ServerFit) -> Result<(), Halt> {
        let saturation = fit.saturation();
        let lasts = times(SATURATION, self.setup.level);
        self.begin("saturation".to_owned(), lasts);
        self.check_offerable(saturation)?;
        let clients = SATURATING_CLIENTS * u64::from(self.setup.servers());
        let workload = with_load(&self.setup.workload, Load::Closed { clients, think: Nanos::ZERO });
        let prediction = fit.predict(1.001 * saturation)?;
        let about = About { role: Role::PastSaturation, workload: "mix", saturation, predicted: Some(&prediction) };
        let before = self.bench.truth();
        let trial = self.try_level(&workload, lasts)?;
        let after = self.bench.truth();
        self.keep(&trial, &workload, &about)?;
        let record = &trial.record;
        if record.verdict.valid {
            self.found.saturation = Some((record.rates.completed, record.reply_rate.ci95_half_width));
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
            let lasts = (BACKLOG / (rate - saturation)).max(1.0).min(self.setup.level.as_secs_f64());
            let what = format!("past saturation: {:.0} %, {}", 100.0 * fraction, quantity::rate(rate));
            if self.found.client_max.is_some_and(|max| rate > max) {
                self.note(format!("left out, for this client cannot offer it: {what}"));
                continue;
            }
            let lasts = Nanos::from_secs_f64(lasts);
            self.begin(what, lasts);
            let prediction = fit.predict(rate)?;
            let about = About { role: Role::PastSaturation, workload: "mix", saturation, predicted: Some(&prediction) };
            self.level(&with_load(&self.setup.workload, Load::poisson(Rate(rate))), lasts, &about)?;
        }
        Ok(())
    }

    fn level(&mut self, workload: &Workload, lasts: Nanos, about: &About<'_>) -> Result<Trial, Halt> {
        let trial = self.try_level(workload, lasts)?;
        self.keep(&trial, workload, about)?;
        Ok(trial)
    }

    /// Measures a level. One that the host disturbed is measured again, once: what decides is the health of the
    /// generator and of the server's CPUs, never what the model said.
    fn try_level(&mut self, workload: &Workload, lasts: Nanos) -> Result<Trial, Halt> {
        let trial = self.try_once(workload, lasts)?;
        let disturbed = |reason: &Reason| {
            matches!(reason.code, ReasonCode::GeneratorLate | ReasonCode::GeneratorStalled | ReasonCode::OtherWork)
        };
        let reasons = trial.verdict(self.setup.servers()).reasons;
        let Some(reason) = reasons.iter().find(|reason| disturbed(reason)).filter(|_| !trial.record.interrupted) else {
            return Ok(trial);
        };
        let what = reason.message.split(". ").next().unwrap_or_default();
        self.note(format!("once more, for it was disturbed: {what}"));
        self.measure(workload, lasts, self.setup.seed.wrapping_add(self.runs).wrapping_add(AGAIN))
    }

    fn try_once(&mut self, workload: &Workload, lasts: Nanos) -> Result<Trial, Halt> {
        self.runs += 1;
        self.measure(workload, lasts, self.setup.seed.wrapping_add(self.runs))
    }

    fn measure(&mut self, workload: &Workload, lasts: Nanos, seed: u64) -> Result<Trial, Halt> {
        // A server whose processes are gone cannot be watched either; Ctrl-C in a terminal ends them as well.
        match self.bench.measure(workload, lasts, seed) {
            Ok(record) => Ok(Trial::new(record, &workload.classes)),
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
    fn check(&self, trial: &Trial) -> Result<(), Halt> {
        if trial.record.interrupted {
            Err(self.interrupted())
        } else if !self.bench.is_alive() {
            Err(self.died())
        } else if trial.record.counts.completed == 0 {
            Err(self.halt(ReasonCode::ServerDied, "the server completed no call"))
        } else {
            Ok(())
        }
    }

    fn interrupted(&self) -> Halt {
        self.halt(ReasonCode::Interrupted, "it was interrupted")
    }

    fn died(&self) -> Halt {
        self.halt(ReasonCode::ServerDied, "the server no longer accepts connections")
    }

    fn halt(&self, code: ReasonCode, reason: &str) -> Halt {
        Halt::Stopped(code, Stopped { level: self.found.step.clone(), reason: reason.to_owned() })
    }
}

fn with_load(workload: &Workload, load: Load) -> Workload {
    Workload { load: Some(load), classes: workload.classes.clone() }
}

/// Share of the server's CPUs that was busy with something else than the server while calibration ran: the median of
/// the runs, for what happens to run in one of them is not there all the time.
fn others_under_load(levels: &[Level]) -> f64 {
    let other = |level: &Level| Some((1.0 - level.cpu?.idle - level.utilization.measured?).max(0.0));
    let mut others: Vec<f64> = levels.iter().filter_map(other).collect();
    others.sort_by(f64::total_cmp);
    others.get(others.len() / 2).copied().unwrap_or(0.0)
}
