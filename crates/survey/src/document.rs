//! The survey's document, from what was predicted and what was measured, however far the survey came.

use crate::SurveyError;
use crate::survey::{Halt, Surveyor};
use brimful_core::Nanos;
use brimful_core::quantity;
use brimful_core::record::{Reason, ReasonCode, Verdict};
use brimful_core::survey::{Comparison, Demand, Level, Role, SCHEMA, Stopped, Survey};
use brimful_estimate::ServerFit;
use brimful_estimate::server::OPERATING;

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
        // A few doubtful levels are marked and left at that; the survey falls with the level that measures the
        // capacity, or with many.
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
            ..Comparison::of(
                self.fit.as_ref().map(ServerFit::saturation),
                self.measured_saturation.map(|(rate, _)| rate),
            )
        };
        let verdict = Verdict::from_reasons(std::mem::take(&mut self.reasons));
        Ok(Survey {
            schema: SCHEMA.to_owned(),
            started_at: humantime::format_rfc3339_millis(self.started_at).to_string(),
            brimful_version: self.plan.version.clone(),
            command: self.like.command.clone(),
            seed: self.like.seed,
            url: self.like.endpoint.url.clone(),
            headline: headline(&saturation, &self.levels, &verdict),
            saturation_rate: saturation,
            demands: self.demands(),
            client_max_rate: self.client_max,
            verdict,
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

    /// What the reference server really spent on a call of the class while it was saturated, so without the overhead of
    /// a server that sleeps and wakes; the fit has not seen that level.
    fn true_demand(&self, class: &str) -> Option<f64> {
        let (before, after) = self.truth.as_ref()?;
        let after = after.classes.get(class)?;
        let (requests, cpu_s) = before.classes.get(class).map_or((0, 0.0), |c| (c.requests, c.cpu_s));
        let calls = after.requests.saturating_sub(requests);
        (calls > 0).then(|| (after.cpu_s - cpu_s) / calls as f64)
    }
}

/// What the server can take, and how long a call takes at the load at which that was measured.
fn headline(saturation: &Comparison, levels: &[Level], verdict: &Verdict) -> String {
    let predicted = saturation.predicted.map(|rate| format!("predicted {}", quantity::rate(rate)));
    let measured = saturation.measured.map(|rate| format!("measured {}", quantity::rate(rate)));
    let Some(capacity) = saturation.measured.or(saturation.predicted) else {
        return "Not determined: the survey ended before it could say what the server can take.".to_owned();
    };
    if !verdict.valid {
        let figures: Vec<String> = predicted.into_iter().chain(measured).collect();
        return format!(
            "Not determined: the survey is not valid, so do not rely on the most that the server can take: {}.",
            figures.join(" and ")
        );
    }
    let basis = match (predicted.filter(|_| measured.is_some()), saturation.error) {
        (Some(predicted), Some(error)) => format!("{predicted} beforehand, {}", quantity::signed_percent(error)),
        _ => "as the model predicts; it was not measured".to_owned(),
    };
    let at_operating = levels.iter().filter(|level| level.role == Role::HeldOut && level.verdict.valid);
    let at_operating = at_operating.min_by(|a, b| off_operating(a).total_cmp(&off_operating(b)));
    let response = at_operating.and_then(|level| {
        let mean = Nanos::from_secs_f64(level.response_time_s.measured?).rounded();
        Some(format!(" At {} a call took {mean} on average.", quantity::rate(level.offered)))
    });
    format!("This server can take {} ({basis}).{}", quantity::rate(capacity), response.unwrap_or_default())
}

/// How far a level is from the load that a server is run at.
fn off_operating(level: &Level) -> f64 {
    (level.fraction - OPERATING).abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Survey {
        serde_json::from_str(include_str!("../../../web/example.survey.json")).unwrap()
    }

    #[test]
    fn a_response_time_stands_beside_the_load_at_which_it_was_measured() {
        let mut survey = example();
        let say = |survey: &Survey| headline(&survey.saturation_rate, &survey.levels, &survey.verdict);
        assert_eq!(
            say(&survey),
            "This server can take 372/s (predicted 370/s beforehand, −0.6 %). At 259/s a call took 8.92 ms on average."
        );
        // However far the measured capacity is from the predicted one, the level was offered what it was.
        survey.saturation_rate = Comparison::of(Some(370.0), Some(300.0));
        assert!(say(&survey).ends_with(" At 259/s a call took 8.92 ms on average."), "{}", say(&survey));
        // A level in doubt is not quoted.
        let doubt = Reason { code: ReasonCode::GeneratorLate, message: "Late.".to_owned() };
        let quoted = survey.levels.iter_mut().find(|level| level.fraction == 0.7);
        quoted.unwrap().verdict = Verdict::from_reasons(vec![doubt]);
        assert!(say(&survey).ends_with(" At 278/s a call took 10.8 ms on average."), "{}", say(&survey));
    }

    #[test]
    fn a_survey_that_is_not_valid_determines_nothing() {
        let survey = example();
        let doubt = Reason { code: ReasonCode::OtherWork, message: "Something else ran.".to_owned() };
        let doubtful = Verdict::from_reasons(vec![doubt]);
        let say = |saturation: Comparison| headline(&saturation, &survey.levels, &doubtful);
        assert_eq!(
            say(survey.saturation_rate),
            "Not determined: the survey is not valid, so do not rely on the most that the server can take: \
             predicted 370/s and measured 372/s."
        );
        for saturation in [Comparison::of(Some(370.0), None), Comparison::default()] {
            assert!(say(saturation).starts_with("Not determined: the survey "), "{}", say(saturation));
        }
    }
}
