//! The survey's document, from what was predicted and what was measured, however far the survey came.

use crate::SurveyError;
use crate::fit::Fit;
use crate::server::per_second;
use crate::survey::{Halt, Surveyor};
use brimful_core::Nanos;
use brimful_core::record::{Reason, ReasonCode, Verdict};
use brimful_core::survey::{Comparison, Demand, Role, SCHEMA, Stopped, Survey};

impl Surveyor<'_> {
    /// Sums up. `halt` is what ended the survey early, if anything did.
    pub(crate) fn finish(&mut self, halt: Option<&Halt>) -> Result<Survey, SurveyError> {
        let stopped = match halt {
            None => None,
            Some(Halt::Stopped(code, stopped)) => {
                let message = format!("The survey stopped at the level «{}»: {}.", stopped.level, stopped.reason);
                self.reasons.push(Reason { code: *code, message });
                Some(stopped.clone())
            }
            Some(Halt::Error(error)) => {
                let message = format!("The survey could not be finished; at the level «{}»: {error}.", self.step);
                self.reasons.push(Reason { code: ReasonCode::Incomplete, message });
                Some(Stopped { level: self.step.clone(), reason: error.to_string() })
            }
        };
        self.levels.sort_by(|a, b| a.offered.total_cmp(&b.offered));
        let doubtful = self.levels.iter().filter(|level| !level.verdict.valid).count();
        // A few doubtful levels are marked and left at that; the survey falls with the level that measures the capacity,
        // or with many.
        let capacity_in_doubt = self.levels.iter().any(|level| level.clients.is_some() && !level.verdict.valid);
        if capacity_in_doubt || 4 * doubtful > self.levels.len() {
            let first = self.levels.iter().flat_map(|level| &level.verdict.reasons).next().cloned();
            self.reasons.extend(first.map(|reason| Reason {
                message: format!("{doubtful} of {} levels are in doubt. {}", self.levels.len(), reason.message),
                ..reason
            }));
        }
        let saturation = Comparison {
            measured_ci95_half_width: self.measured_saturation.and_then(|(_, ci)| ci),
            ..Comparison::of(self.fit.as_ref().map(Fit::saturation), self.measured_saturation.map(|(rate, _)| rate))
        };
        Ok(Survey {
            schema: SCHEMA.to_owned(),
            started_at: humantime::format_rfc3339_millis(self.started_at).to_string(),
            brimful_version: self.plan.version.clone(),
            command: self.like.command.clone(),
            seed: self.like.seed,
            url: self.like.endpoint.url.clone(),
            headline: self.headline(&saturation),
            saturation_rate: saturation,
            demands: self.demands(),
            client_max_rate: self.client_max,
            verdict: Verdict::from_reasons(std::mem::take(&mut self.reasons)),
            model: self.model(),
            frozen: self.frozen.clone(),
            stopped,
            server_cpus: self.server.cpus.clone(),
            client_cpus: self.like.cpus.clone(),
            background: self.background,
            wakeup_s: self.fit.as_ref().map(|fit| fit.wakeup.value),
            report: None,
            levels: std::mem::take(&mut self.levels),
        })
    }

    fn headline(&self, saturation: &Comparison) -> String {
        let Some(capacity) = saturation.measured.or(saturation.predicted) else {
            return "The survey ended before it could say what the server can take.".to_owned();
        };
        let basis = match (saturation.measured, saturation.error) {
            (Some(_), Some(error)) => {
                let predicted = per_second(saturation.predicted.unwrap_or_default());
                format!("predicted beforehand: {predicted}, {:+.1} %", 100.0 * error)
            }
            _ => "as the model predicts; it was not measured".to_owned(),
        };
        let at_70 = self.levels.iter().find(|level| level.role == Role::HeldOut && level.fraction > 0.65);
        let response = at_70.and_then(|level| level.response_time_s.measured).map_or_else(String::new, |seconds| {
            format!(
                ", and at {} a call takes {} on average",
                per_second(0.7 * capacity),
                Nanos::from_secs_f64(seconds).rounded()
            )
        });
        format!("This server can take {} ({basis}){response}.", per_second(capacity))
    }

    fn demands(&self) -> Vec<Demand> {
        let Some(fit) = &self.fit else { return Vec::new() };
        let classes = self.like.workload.classes.iter().zip(&fit.demands);
        classes
            .map(|(class, d)| Demand {
                station: "cpu".to_owned(),
                class: class.name.clone(),
                seconds: d.value,
                ci95_half_width: d.ci95_half_width,
                truth: self.true_demand(&class.name),
            })
            .collect()
    }

    /// What the reference server really spent on a call of the class while it was saturated, so without the overhead of a
    /// server that sleeps and wakes; the fit has not seen that level.
    fn true_demand(&self, class: &str) -> Option<f64> {
        let (before, after) = self.truth.as_ref()?;
        let after = after.classes.get(class)?;
        let (requests, cpu_s) = before.classes.get(class).map_or((0, 0.0), |c| (c.requests, c.cpu_s));
        let calls = after.requests.saturating_sub(requests);
        (calls > 0).then(|| (after.cpu_s - cpu_s) / calls as f64)
    }
}
