//! The speed of the host in the course of a level, and what the model says given it.

use super::ServerFit;
use super::variable::drift_share;
use crate::EstimateError;
use crate::window::{Span, course, overlap};
use brimful_core::record::Record;
use brimful_model::{Course, station_demands, trajectory};

/// A stretch of the course has at least so many calls.
const CALLS: f64 = 20.0;
/// How often the arrivals are passed through the model, each time with other times of service.
const PASSES: u64 = 5;

impl ServerFit {
    /// How slow the host was in the course of a level at which requests in these proportions came at `rate`: the CPU time
    /// of each request over what the law says. `None` where the Record does not tell.
    pub fn course_of(&self, record: &Record, rate: f64, mix: &[f64]) -> Option<Course> {
        let rates: Vec<f64> = mix.iter().map(|share| rate * share).collect();
        let mean = |demands: &[f64]| demands.iter().zip(mix).map(|(demand, share)| demand * share).sum::<f64>();
        let (cpu, demands) = &self.once.cpu;
        let (busiest, here) = (mean(demands), mean(&station_demands(cpu, demands, &rates)));
        let servers = f64::from(self.facts.servers);
        let free = 1.0 - cpu.background;
        let idle = (free - rate * here / servers).max(1e-9);
        let server = record.server.as_ref()?;
        let (mut stretches, mut length, mut work, mut calls) = (Vec::new(), 0.0, 0.0, 0.0);
        let mut begun = None;
        let course = course(server, true)?;
        for ((from, to), completed) in finest(record, &course) {
            let inside =
                |(span, busy): &(Span, f64)| (busy - self.facts.idle_busy).max(0.0) * overlap(*span, (from, to));
            begun.get_or_insert(from);
            length += to - from;
            work += course.iter().map(inside).sum::<f64>();
            calls += completed;
            if calls >= CALLS {
                // Of the cost, what is paid at leisure is paid by as many as found the server idle in this stretch.
                let leisure = (free - work / length / servers).max(0.0) / idle;
                let law = busiest + (here - busiest) * leisure;
                stretches.push((length, work / calls / law, calls));
                (length, work, calls) = (0.0, 0.0, 0.0);
            }
        }
        // What the calls of a stretch happened to need is not the host's, and the model draws it itself.
        let level: f64 = stretches.iter().map(|(length, slowness, _)| length * slowness).sum::<f64>()
            / stretches.iter().map(|(length, ..)| length).sum::<f64>();
        let share = drift_share(stretches.iter().map(|(_, s, calls)| (s / level, *calls)), self.once.variability(mix));
        let shrunk = |(length, slowness, _): (f64, f64, f64)| (length, level + share * (slowness - level));
        let stretches: Vec<(f64, f64)> = stretches.into_iter().map(shrunk).collect();
        let before = begun.filter(|begun| *begun > 0.0).zip(stretches.first().map(|(_, slowness)| *slowness));
        (!stretches.is_empty()).then(|| Course::of_stretches(before.into_iter().chain(stretches)))
    }

    /// The mean response time of these arrivals (instants in seconds, classes) on a host of that course.
    ///
    /// # Errors
    /// When the model cannot be followed.
    pub fn given(
        &self,
        rate: f64,
        mix: &[f64],
        course: &Course,
        arrivals: &[(f64, usize)],
    ) -> Result<Option<f64>, EstimateError> {
        let model = self.once.model_at(rate, mix);
        let (mut sum, mut calls) = (0.0, 0_u64);
        for seed in 0..PASSES {
            let sojourns = trajectory(&model, course.clone(), seed, arrivals.iter().copied())?;
            for sojourn in sojourns {
                sum += sojourn.response;
                calls += 1;
            }
        }
        Ok((calls > 0).then(|| sum / calls as f64))
    }
}

/// Stretches of the window of which both the generator and the monitor can tell what happened in them, and the calls that
/// were completed in each: the intervals of the one that looked less often.
fn finest(record: &Record, course: &[(Span, f64)]) -> Vec<(Span, f64)> {
    let window = (0.0, record.window_s);
    let calls: Vec<(Span, f64)> =
        record.intervals.iter().map(|i| ((i.t_s, i.t_s + i.length_s), i.completed as f64)).collect();
    let length = |spans: &[(Span, f64)]| spans.first().map_or(f64::INFINITY, |((from, to), _)| to - from);
    let watched = (course.first().map_or(0.0, |(span, _)| span.0), course.last().map_or(0.0, |(span, _)| span.1));
    let spans: Vec<Span> = if length(&calls) >= length(course) {
        calls.iter().map(|(span, _)| *span).collect()
    } else {
        course.iter().map(|(span, _)| *span).collect()
    };
    let whole = spans
        .into_iter()
        .filter(|span| overlap(*span, window) > 0.0 && overlap(*span, watched) > 0.99 * (span.1 - span.0));
    let completed =
        |span: Span| calls.iter().map(|(own, calls)| calls * overlap(*own, span) / (own.1 - own.0)).sum::<f64>();
    whole.map(|span| (span, completed(span))).collect()
}
