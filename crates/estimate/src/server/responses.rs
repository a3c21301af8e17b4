//! What response times tell of a server: how long a call spends elsewhere, and how much the waits of calls vary.
//!
//! A host that is slow for a moment makes queues just as service does that varies. So the two are told apart: the very
//! arrivals of each piece are passed through the model, on a host of the course that it had, once with calls that need
//! the same and once with calls whose needs vary as an exponential distribution does. What is then left of the measured
//! times, at several loads, is the delay elsewhere; how much of the difference between the two there is, is the squared
//! coefficient of variation. How the calls of one client differ, who never waits, says beforehand about what it is. Where
//! the server itself measured what single calls need, that does, and the fit is to keep to it within its interval, unless
//! workers take turns on the CPUs.
//!
//! Means are modelled, the shape of the distribution around them is measured: calls that take turns on a CPU have
//! another one than calls that are served one after another, at the same mean. So percentiles are those of the model
//! times what it was off by at the levels of calibration.

use super::blocks::{Modelled, Piece, Place, Pooled, mean_shape};
use super::{Once, ServerFacts};
use crate::EstimateError;
use crate::least_squares::fit_non_negative;
use crate::response::{self, ResponseFit, ResponsePoint, ScvBasis, fit_delay, fit_response};
use brimful_model::{exceptional_wait, exponential_wait, station_demands};
use std::collections::BTreeMap;

/// From this level on, in hundredths of the capacity, calls wait enough for their times to have a shape.
const TELLING: u32 = 40;
/// How far the variability of waits may be from that of one client's calls, or of service where workers take turns, at
/// one standard deviation: so much, and so many times itself. Processes that take turns on a CPU make waits like those
/// of exponential service, 1.
const APART: (f64, f64) = (0.3, 0.3);
/// A variability that was measured is known no better than this.
const EXACT: f64 = 0.02;

/// A variability of waits as it is known before they are looked at.
#[derive(Clone, Copy, Debug)]
struct Beforehand {
    scv: f64,
    /// One standard deviation.
    apart: f64,
    /// Whether it is measured, and waits can only say how long calls are elsewhere.
    is_measured: bool,
}

impl Once {
    /// Fits the delay elsewhere and the variability to what was measured at all places.
    pub(super) fn fit_responses(
        &mut self,
        facts: &ServerFacts,
        places: &BTreeMap<Place, Pooled>,
    ) -> Result<(), EstimateError> {
        let service = self.service_seen(facts, places);
        let slack = |scv: f64| APART.0 + APART.1 * scv;
        let by_client = places.get(&Place::Clients(1)).and_then(|at| at.piece.response_scv);
        let beforehand = match service {
            Some(seen) if !seen.takes_turns => {
                Some(Beforehand { scv: seen.scv, apart: seen.standard_error.max(EXACT), is_measured: true })
            }
            seen => {
                let scv = seen.map(|seen| seen.scv).or(by_client);
                scv.map(|scv| Beforehand { scv, apart: slack(scv), is_measured: false })
            }
        };
        let fit = match beforehand.and_then(|beforehand| self.by_replay(facts, places, beforehand)) {
            Some(fit) => fit,
            None => self.by_formula(facts, places, beforehand)?,
        };
        self.service_scv = service.map(|seen| seen.scv).or(by_client).unwrap_or(fit.scv);
        self.network.stations[0].scv = fit.scv;
        if let Some(elsewhere) = self.network.demands.last_mut() {
            elsewhere.fill(fit.delay);
        }
        self.shape = shape(places);
        Ok(())
    }

    /// Percentiles of a piece's calls over what becomes of them in the model.
    pub(super) fn shape_of(&self, facts: &ServerFacts, piece: &Piece) -> Option<[f64; 3]> {
        let rate = piece.rate();
        let mix: Vec<f64> = piece.throughput.iter().map(|class| class / rate).collect();
        let course = self.course(facts, &piece.course, rate, &mix).filter(|_| !piece.arrivals.is_empty())?;
        let modelled = self.replay(rate, &mix, &course, &piece.arrivals).ok()??;
        let measured = piece.percentiles?;
        let shape: [f64; 3] =
            std::array::from_fn(|index| measured[index] / modelled.percentiles[index] * self.shape[index]);
        shape.iter().all(|ratio| ratio.is_finite() && *ratio > 0.0).then_some(shape)
    }

    /// By what the model makes of the calls of all levels; `None` if their courses are not known.
    fn by_replay(
        &self,
        facts: &ServerFacts,
        places: &BTreeMap<Place, Pooled>,
        beforehand: Beforehand,
    ) -> Option<ResponseFit> {
        let mut rows = vec![(0.0, 1.0, beforehand.scv, beforehand.apart.powi(-2))];
        for at in places.values() {
            match at.piece.place {
                Place::Level(_) => {
                    let (modelled, response) = (at.modelled?, at.piece.response?);
                    let weight = weight(at.beyond_variance, response);
                    rows.push((1.0, modelled.per_scv, response - modelled.constant, weight));
                }
                Place::Clients(1) => {
                    let point = self.response_point(at, facts)?;
                    rows.push((1.0, 0.0, point.response - point.demand, point.weight));
                }
                _ => {}
            }
        }
        let column = |of: fn(&(f64, f64, f64, f64)) -> f64| rows.iter().map(of).collect::<Vec<f64>>();
        let columns = [column(|row| row.0), column(|row| row.1)];
        let fit = fit_non_negative(&columns, &column(|row| row.2), &column(|row| row.3)).ok()?;
        let (delay, scv) = (fit.values[0], fit.values[1]);
        Some(ResponseFit { delay, scv, basis: ScvBasis::Fitted, scv_standard_error: None })
    }

    /// By the steady waits of the levels: an upper bound for the variability, with what is known beforehand as the lower.
    fn by_formula(
        &self,
        facts: &ServerFacts,
        places: &BTreeMap<Place, Pooled>,
        beforehand: Option<Beforehand>,
    ) -> Result<ResponseFit, EstimateError> {
        let points: Vec<ResponsePoint> = places.values().filter_map(|at| self.response_point(at, facts)).collect();
        if points.is_empty() {
            // Every response time is below the service time at the bottleneck, as when answers to many clients come in
            // bursts. So no time is left that a call could spend elsewhere.
            let scv = beforehand.map_or(1.0, |known| known.scv);
            return Ok(ResponseFit { delay: 0.0, scv, basis: ScvBasis::TooFewPoints, scv_standard_error: None });
        }
        if let Some(Beforehand { scv, apart, is_measured: true }) = beforehand {
            return fit_delay(&points, scv, apart);
        }
        let fit = fit_response(&points)?;
        let Some(Beforehand { scv: seen, .. }) = beforehand else { return Ok(fit) };
        let scv = if fit.basis == ScvBasis::Fitted { fit.scv.clamp(seen.min(1.0), seen.max(1.0)) } else { seen };
        Ok(ResponseFit { delay: response::delay(&points, scv), scv, ..fit })
    }

    /// What a place says of response times: calls that come at random, and one client by itself, who never waits.
    fn response_point(&self, at: &Pooled, facts: &ServerFacts) -> Option<ResponsePoint> {
        let (cpu, demands, piece) = (&self.network.stations[0], &self.network.demands[0], &at.piece);
        let rates = &piece.throughput;
        let mean = |times: &[f64]| rates.iter().zip(times).map(|(rate, time)| rate * time).sum::<f64>() / piece.rate();
        let elsewhere: f64 = match self.network.stations.get(1).filter(|_| self.network.stations.len() > 2) {
            Some(_) if piece.place == Place::Clients(1) => mean(&self.network.demands[1]),
            Some(pool) => {
                let held = &self.network.demands[1];
                mean(held) + exponential_wait(rates, held, pool.servers, 0.0)
            }
            None => 0.0,
        };
        let (response, wait_unit, work, variance) = match piece.place {
            Place::Level(_) => {
                let demand = mean(&station_demands(cpu, demands, rates));
                (piece.response?, exceptional_wait(cpu, demands, rates), demand, at.response_variance)
            }
            // As long as a call takes when the next one comes as soon as it is answered.
            Place::Clients(1) => {
                let variance = at.rate_variance.map(|variance| variance / piece.rate().powi(4));
                let cost = piece.cost(facts.idle_busy).filter(|_| cpu.name == self.cpu.0.name);
                let demand = cost.unwrap_or_else(|| mean(demands));
                (1.0 / piece.rate(), 0.0, demand, variance)
            }
            _ => return None,
        };
        // As the solver sees it: other work slows the service down.
        let demand = work / (1.0 - cpu.background);
        let response = response - elsewhere;
        let fits = wait_unit.is_finite() && demand.is_finite() && response >= 0.0;
        fits.then(|| ResponsePoint { wait_unit, demand, response, weight: weight(variance, response) })
    }

    /// What becomes of a piece's calls in the model, but for what they spend elsewhere.
    pub(super) fn modelled(&self, facts: &ServerFacts, piece: &Piece) -> Option<Modelled> {
        if piece.arrivals.is_empty() {
            return None;
        }
        let rate = piece.rate();
        let mix: Vec<f64> = piece.throughput.iter().map(|class| class / rate).collect();
        let course = self.course(facts, &piece.course, rate, &mix)?;
        let mut once = self.clone();
        if let Some(elsewhere) = once.network.demands.last_mut() {
            elsewhere.fill(0.0);
        }
        let mut with = |scv: f64| {
            once.network.stations[0].scv = scv;
            Some(once.replay(rate, &mix, &course, &piece.arrivals).ok()??.mean)
        };
        let constant = with(0.0)?;
        Some(Modelled { constant, per_scv: (with(1.0)? - constant).max(0.0) })
    }
}

/// Of what was measured over what is modelled, at the levels that tell.
pub(super) fn shape(places: &BTreeMap<Place, Pooled>) -> [f64; 3] {
    let tells = |place: &Place| matches!(place, Place::Level(percent) if *percent >= TELLING);
    let telling = places.iter().filter(|(place, _)| tells(place)).filter_map(|(_, at)| at.shape);
    mean_shape(telling).unwrap_or([1.0; 3])
}

/// Of a mean response time: one over its variance.
fn weight(variance: Option<f64>, response: f64) -> f64 {
    1.0 / variance.unwrap_or(response.powi(2)).max((response::FLOOR * response).powi(2))
}
