//! The speed of the host in the course of a level, and what the model says given it.

use super::drift::drift_share;
use super::variable::quantile;
use super::{Once, ServerFacts, ServerFit};
use crate::EstimateError;
use crate::window::{Stretch, stretches};
use brimful_core::record::Record;
use brimful_model::{Course, station_demands, trajectory};

/// How often the arrivals are passed through the model, each time with other times of service.
const PASSES: u64 = 5;

/// From this share of idle servers on, the cost of a call depends on it.
const LEISURE: f64 = 0.05;

/// What a call costs at a place, of which a part is paid by those who find the server idle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usual {
    /// CPU seconds where nothing is idle, and on average here.
    pub busiest: f64,
    pub here: f64,
    /// Share of the servers that is idle here.
    pub idle: f64,
    /// The most of them that requests can have, 0..1.
    pub free: f64,
    pub servers: f64,
    pub idle_busy: f64,
}

impl Usual {
    /// How slow the host was in a stretch: what a call cost over what it would have with as much idleness as there was.
    pub fn slowness(&self, stretch: &Stretch) -> f64 {
        let work = (stretch.work - self.idle_busy * stretch.seconds).max(0.0);
        // Where there is hardly any leisure, how much of it there was says nothing.
        let leisure = if self.idle < LEISURE {
            1.0
        } else {
            (self.free - work / stretch.seconds / self.servers).max(0.0) / self.idle
        };
        let usual = self.busiest + (self.here - self.busiest) * leisure;
        work / stretch.calls / usual
    }
}

/// Response times of a level, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answered {
    /// Of all calls.
    pub mean: f64,
    /// Percentiles: 50, 95, 99.
    pub percentiles: [f64; 3],
}

impl Answered {
    /// Of what the network says, with another shape. `None` of none.
    pub(super) fn of(mut times: Vec<f64>, shape: [f64; 3]) -> Option<Answered> {
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        times.sort_unstable_by(f64::total_cmp);
        let percentile = |(q, factor): (f64, f64)| factor * quantile(&times, q);
        let [p50, p95, p99] = shape;
        (!times.is_empty())
            .then(|| Answered { mean, percentiles: [(0.5, p50), (0.95, p95), (0.99, p99)].map(percentile) })
    }
}

impl ServerFit {
    /// How slow the host was in the course of a level at which requests in these proportions came at `rate`. `None`
    /// where the Record does not tell.
    pub fn course_of(&self, record: &Record, rate: f64, mix: &[f64]) -> Option<Course> {
        self.once.course(&self.facts, &stretches(record, 0.0)?, rate, mix)
    }

    /// The response times of these arrivals (instants in seconds, classes) on a host of that course. `None` of none.
    ///
    /// # Errors
    /// When the model cannot be followed.
    pub fn given(
        &self,
        rate: f64,
        mix: &[f64],
        course: &Course,
        arrivals: &[(f64, usize)],
    ) -> Result<Option<Answered>, EstimateError> {
        self.once.replay(rate, mix, course, arrivals)
    }
}

impl Once {
    /// What is usual where requests of the mix need `here` CPU seconds each at this rate.
    pub(super) fn usual(&self, facts: &ServerFacts, busiest: f64, here: f64, rate: f64) -> Usual {
        let servers = f64::from(facts.servers);
        let free = 1.0 - self.cpu.0.background;
        let idle = (free - rate * here / servers).max(0.0);
        Usual { busiest, here, idle, free, servers, idle_busy: facts.idle_busy }
    }

    /// How slow the host was in these stretches: the CPU time of each request over what the law says.
    pub(super) fn course(&self, facts: &ServerFacts, stretches: &[Stretch], rate: f64, mix: &[f64]) -> Option<Course> {
        let rates: Vec<f64> = mix.iter().map(|share| rate * share).collect();
        let mean = |demands: &[f64]| demands.iter().zip(mix).map(|(demand, share)| demand * share).sum::<f64>();
        let (cpu, demands) = &self.cpu;
        let usual = self.usual(facts, mean(demands), mean(&station_demands(cpu, demands, &rates)), rate);
        let seen: Vec<(f64, f64, f64)> = stretches.iter().map(|s| (s.seconds, usual.slowness(s), s.calls)).collect();
        // What the calls of a stretch happened to need is not the host's, and the model draws it itself.
        let level = seen.iter().map(|(seconds, slowness, _)| seconds * slowness).sum::<f64>()
            / seen.iter().map(|(seconds, ..)| seconds).sum::<f64>();
        let share = drift_share(seen.iter().map(|(_, s, calls)| (s / level, *calls)), self.variability(mix));
        let shrunk = |(seconds, slowness, _): (f64, f64, f64)| (seconds, level + share * (slowness - level));
        let course: Vec<(f64, f64)> = seen.into_iter().map(shrunk).collect();
        let begun = stretches.first().map(|stretch| stretch.begins).filter(|begun| *begun > 0.0);
        let before = begun.zip(course.first().map(|(_, slowness)| *slowness));
        (!course.is_empty()).then(|| Course::of_stretches(before.into_iter().chain(course)))
    }

    /// The response times of these arrivals (instants in seconds, classes) on a host of that course.
    pub(super) fn replay(
        &self,
        rate: f64,
        mix: &[f64],
        course: &Course,
        arrivals: &[(f64, usize)],
    ) -> Result<Option<Answered>, EstimateError> {
        let model = self.model_at(rate, mix);
        let mut times = Vec::with_capacity(arrivals.len() * PASSES as usize);
        for seed in 0..PASSES {
            let sojourns = trajectory(&model, course.clone(), seed, arrivals.iter().copied())?;
            times.extend(sojourns.map(|sojourn| sojourn.response));
        }
        Ok(Answered::of(times, self.shape))
    }
}
