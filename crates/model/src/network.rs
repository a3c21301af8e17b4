//! A validated model in the form that the solvers need.
//!
//! Background work that uses the share b of a queue's capacity slows the queue down. This module divides the demands
//! there by 1 − b, so the solvers can ignore background work. Interruptions for the share σ of the time divide the
//! demands by 1 − σ as well; the solvers add the time for which requests wait for interruptions
//! ([`crate::interruptions`]). Utilization refers to the nominal capacity and uses the demands of the model's file.
//! Matrices are stations × classes.

use crate::ModelError;
use crate::correlation::is_correlation;
use crate::idle_law::{station_demands, wakeup_time};
use crate::interruptions::{InterruptionLoad, interruptions, load};
use crate::joint;
use crate::open_load::OpenLoad;
use crate::station::products;
use brimful_core::model::{ClassKind, Model, ModelClass, Scheduling, Station, StationKind};
use brimful_core::number::{NumberError, check_non_negative};
use std::collections::HashSet;

/// A validated model, with the quantities that the solvers derive from it.
pub(crate) struct Network<'a> {
    pub(crate) model: &'a Model,
    /// Demands D in seconds, under the load of the open classes ([`crate::idle_law`]), at the nominal capacity.
    pub(crate) nominal: Vec<Vec<f64>>,
    /// Demands D/((1 − b)(1 − σ)) in seconds, under the load of the open classes. Background work uses the share b of
    /// the capacity, and interruptions the share σ of the time.
    pub(crate) demands: Vec<Vec<f64>>,
    /// Demands D/((1 − b)(1 − σ)) in seconds, where D is the demand at saturation, and σ the share of interruptions
    /// under the load of the open classes.
    pub(crate) saturated: Vec<Vec<f64>>,
    /// For each station: its interruptions under the load of the open classes; `None` if it is never interrupted.
    pub(crate) interrupted: Vec<Option<InterruptionLoad>>,
    /// For each station: additional service time of a request that finds all servers idle, in seconds
    /// ([`crate::wakeup`]).
    pub(crate) waking: Vec<f64>,
    /// λ: arrivals per second of each class; 0 for a closed class.
    pub(crate) rates: Vec<f64>,
    /// N: number of customers of each class; 0 for an open class.
    pub(crate) population: Vec<u32>,
    /// For each station: squared coefficient of variation of the service times within a class. It is equal for all
    /// classes.
    pub(crate) scv: Vec<f64>,
    /// For each station with rate multipliers: its speed for open and for closed classes; `None` for other stations.
    pub(crate) load_dependent: Vec<Option<OpenLoad>>,
}

impl<'a> Network<'a> {
    /// Builds the network. Returns an error if its open classes saturate a station.
    pub(crate) fn new(model: &'a Model) -> Result<Self, ModelError> {
        let mut network = Self::unchecked_stability(model)?;
        network.check_stable()?;
        network.load_dependent = network.load_dependent_stations();
        Ok(network)
    }

    fn load_dependent_stations(&self) -> Vec<Option<OpenLoad>> {
        let customers = usize::try_from(self.customers()).unwrap_or(usize::MAX);
        let load_dependent = |(k, station): (usize, &Station)| {
            let alpha = &station.rate_multipliers;
            let levels = alpha.len();
            let rate = |n: usize| alpha[n.min(levels) - 1];
            (levels > 0).then(|| OpenLoad::new(rate, levels, self.open_load(k), customers))
        };
        self.model.stations.iter().enumerate().map(load_dependent).collect()
    }

    /// Replaces the nominal demands by `nominal`, the demands at other rates of requests. Both are in seconds.
    pub(crate) fn with_demands(self, nominal: Vec<Vec<f64>>) -> Result<Self, ModelError> {
        let stations = || self.model.stations.iter().zip(&nominal);
        let scv = |(s, row): (&Station, &Vec<f64>)| class_scv(s, row, &self.rates, &self.population);
        let scv = stations().map(scv).collect::<Result<_, _>>()?;
        let demands = self.slowed(&nominal);
        let saturated = self.slowed(&self.model.demands);
        Ok(Self { scv, demands, saturated, nominal, ..self })
    }

    /// Divides demands in seconds by the share of the capacity that background work and interruptions leave.
    fn slowed(&self, demands: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let stations = self.model.stations.iter().zip(&self.interrupted).zip(demands);
        stations.map(|((station, interrupted), row)| slowed(station, interrupted.as_ref(), row)).collect()
    }

    /// The interruptions of each station at given rates of requests. `rates` are the completed requests per second by
    /// class, and `residence` the residence times in seconds, stations × classes.
    pub(crate) fn interrupted_at(&self, rates: &[f64], residence: &[Vec<f64>]) -> Vec<Option<InterruptionLoad>> {
        let stations = self.model.stations.iter().zip(&self.model.demands).enumerate();
        let interrupted = |(k, (station, demands)): (usize, (&Station, &Vec<f64>))| {
            interruptions(station)?;
            let elsewhere = |c: usize| (0..residence.len()).filter(|j| *j != k).map(|j| residence[j][c]).sum::<f64>();
            let away = |c: usize| (self.population[c] > 0).then(|| self.model.classes[c].think + elsewhere(c));
            let away: Vec<Option<f64>> = (0..rates.len()).map(away).collect();
            InterruptionLoad::new(station, demands, rates, &away)
        };
        stations.map(interrupted).collect()
    }

    /// Mean remaining time r, in seconds, of an interruption of station `k` that an arrival of class `c` finds.
    pub(crate) fn interruption_found(&self, k: usize, c: usize) -> f64 {
        self.interrupted[k].as_ref().map_or(0.0, |interrupted| interrupted.found[c])
    }

    /// Share of the station's capacity that background work and interruptions leave for requests.
    pub(crate) fn available(&self, k: usize) -> f64 {
        let share = self.interrupted[k].as_ref().map_or(0.0, |interrupted| interrupted.share);
        (1.0 - self.model.stations[k].background) * (1.0 - share)
    }

    /// Demands at nominal capacity, in seconds, stations × classes, at given rates of requests. `rates` are the
    /// completed requests per second by class.
    pub(crate) fn demands_at(&self, rates: &[f64]) -> Vec<Vec<f64>> {
        let under_load = |(station, row): (&Station, &Vec<f64>)| station_demands(station, row, rates);
        self.model.stations.iter().zip(&self.model.demands).map(under_load).collect()
    }

    /// For each station: additional service time of a request that finds all servers idle, in seconds. `rates` are the
    /// completed requests per second by class.
    pub(crate) fn waking_at(&self, rates: &[f64]) -> Vec<f64> {
        let waking = |(station, row): (&Station, &Vec<f64>)| wakeup_time(station, row, rates);
        self.model.stations.iter().zip(&self.model.demands).map(waking).collect()
    }

    /// Builds a network without checking that its stations are stable. Its field `load_dependent` is empty.
    pub(crate) fn unchecked_stability(model: &'a Model) -> Result<Self, ModelError> {
        let (stations, classes) = (model.stations.len(), model.classes.len());
        if stations == 0 || classes == 0 {
            let text = format!("a model needs stations and classes; it has {stations} and {classes}");
            return Err(ModelError::Inconsistent(text));
        }
        if model.demands.len() != stations {
            let rows = model.demands.len();
            return Err(ModelError::Inconsistent(format!(
                "{stations} stations need as many rows of demands, not {rows}"
            )));
        }
        for (station, demands) in model.stations.iter().zip(&model.demands) {
            check_station(station, demands, &model.classes)?;
        }
        check_half_widths(model)?;
        check_correlation(model)?;
        check_names("stations", model.stations.iter().map(|s| &s.name))?;
        check_names("classes", model.classes.iter().map(|c| &c.name))?;
        joint::check(model)?;
        let rates = model.classes.iter().map(rate).collect::<Result<Vec<f64>, _>>()?;
        let population = model.classes.iter().map(population).collect::<Result<Vec<u32>, _>>()?;
        let under_load = |(station, row): (&Station, &Vec<f64>)| station_demands(station, row, &rates);
        let nominal = model.stations.iter().zip(&model.demands).map(under_load).collect();
        let mut network = Self {
            model,
            nominal: Vec::new(),
            demands: Vec::new(),
            saturated: Vec::new(),
            interrupted: Vec::new(),
            waking: model.stations.iter().zip(&model.demands).map(|(s, row)| wakeup_time(s, row, &rates)).collect(),
            scv: Vec::new(),
            rates,
            population,
            load_dependent: Vec::new(),
        };
        network.interrupted = network.interrupted_at(&network.rates, &model.demands);
        network.with_demands(nominal)
    }

    /// The indices of the closed classes.
    pub(crate) fn closed(&self) -> impl Iterator<Item = usize> {
        (0..self.population.len()).filter(|c| self.population[*c] > 0)
    }

    /// Number of customers of all closed classes.
    pub(crate) fn customers(&self) -> u64 {
        self.population.iter().map(|n| u64::from(*n)).sum()
    }

    /// Number of servers of a queue that the open classes would keep busy. It may exceed the queue's number of servers.
    pub(crate) fn open_load(&self, station: usize) -> f64 {
        products(&self.demands[station], &self.rates).sum()
    }

    /// The lowest rate of all classes together at which a station saturates, and the index of that station. `mix` has
    /// the proportions of the classes. The rate is infinite if no queue has any work.
    pub(crate) fn capacity(&self, mix: &[f64]) -> (f64, Option<usize>) {
        let loads = (0..self.demands.len()).map(|k| (k, self.saturation_load(k, mix))).filter(|(_, load)| *load > 0.0);
        let busiest = loads.reduce(|a, b| if b.1 > a.1 { b } else { a });
        busiest.map_or((f64::INFINITY, None), |(k, load)| (mix.iter().sum::<f64>() / load, Some(k)))
    }

    /// Share of a station's capacity that requests with these rates need at saturation; 0 for a delay.
    pub(crate) fn saturation_load(&self, k: usize, rates: &[f64]) -> f64 {
        let station = &self.model.stations[k];
        match station.kind {
            StationKind::Queue => load(station, &slowed(station, None, &self.model.demands[k]), rates),
            StationKind::Delay => 0.0,
        }
    }

    /// Returns an error if the open classes alone exceed the capacity of a station.
    fn check_stable(&self) -> Result<(), ModelError> {
        let mix = mix(&self.rates);
        let (saturation_rate, bottleneck) = self.capacity(&mix);
        let Some(k) = bottleneck else { return Ok(()) };
        let utilization = self.saturation_load(k, &self.rates);
        if utilization < 1.0 {
            return Ok(());
        }
        Err(ModelError::Unstable { station: self.name(bottleneck), utilization, saturation_rate })
    }

    /// A station's name; empty for `None`.
    pub(crate) fn name(&self, station: Option<usize>) -> String {
        station.map(|k| self.model.stations[k].name.clone()).unwrap_or_default()
    }
}

/// The demands at a station in seconds, divided by the share of the capacity that background work and interruptions
/// leave.
fn slowed(station: &Station, interrupted: Option<&InterruptionLoad>, demands: &[f64]) -> Vec<f64> {
    let running = 1.0 - interrupted.map_or(0.0, |interrupted| interrupted.share);
    match station.kind {
        StationKind::Queue => demands.iter().map(|d| d / ((1.0 - station.background) * running)).collect(),
        StationKind::Delay => demands.to_vec(),
    }
}

/// Returns the proportions of the classes: their rates, or equal proportions if all rates are 0.
pub(crate) fn mix(rates: &[f64]) -> Vec<f64> {
    if rates.iter().any(|r| *r > 0.0) { rates.to_vec() } else { vec![1.0; rates.len()] }
}

/// Divisor of the utilization: the number of servers; 1 for a delay, whose utilization is the number of requests
/// present.
pub(crate) fn servers(station: &Station) -> f64 {
    match station.kind {
        StationKind::Queue => f64::from(station.servers),
        StationKind::Delay => 1.0,
    }
}

/// Squared coefficient of variation of the service times of each class: the station's `scv`, or the value that follows
/// from `total_scv`, the variation over the requests of all classes. The second moments of the classes add up: (1 +
/// total)·(Σ λD)²/Σ λ = (1 + scv)·Σ λD².
///
/// # Errors
/// When the differences between the demands alone exceed the total variation, or when closed classes have unequal
/// demands, because their rates are not known in advance.
fn class_scv(station: &Station, demands: &[f64], rates: &[f64], population: &[u32]) -> Result<f64, ModelError> {
    let Some(total) = station.total_scv else { return Ok(station.scv) };
    let visitors = || (0..demands.len()).filter(|c| demands[*c] > 0.0);
    if visitors().map(|c| demands[c]).is_sorted_by(|a, b| a == b) {
        return Ok(total);
    }
    let name = &station.name;
    if visitors().any(|c| population[c] > 0) {
        let text = format!(
            "station `{name}` has a `total_scv`, but how often closed classes come is not known before the network is solved: \
             give it `scv`, that of each class's own service times"
        );
        return Err(ModelError::Inconsistent(text));
    }
    let moment = |k: i32| visitors().map(|c| rates[c] * demands[c].powi(k)).sum::<f64>();
    let scv_of_means = moment(0) * moment(2) / moment(1).powi(2) - 1.0;
    if !scv_of_means.is_finite() {
        return Ok(total); // There are no arrivals.
    }
    let scv = (1.0 + total) / (1.0 + scv_of_means) - 1.0;
    if scv >= -ROUNDING {
        return Ok(scv.max(0.0));
    }
    let text = format!(
        "the `total_scv` of station `{name}` is {total}, but the unequal demands of its classes alone make it {scv_of_means:.3}: \
         give at least that, or `scv`, that of each class's own service times"
    );
    Err(ModelError::Inconsistent(text))
}

/// Tolerated rounding error of a squared coefficient of variation.
const ROUNDING: f64 = 1e-9;

/// Checks that names are unique, because results, errors and changes identify stations and classes by name.
fn check_names<'a>(what: &str, names: impl Iterator<Item = &'a String>) -> Result<(), ModelError> {
    let mut seen = HashSet::new();
    match names.filter(|name| !name.is_empty()).find(|name| !seen.insert(*name)) {
        Some(name) => {
            Err(ModelError::Inconsistent(format!("two {what} are called `{name}`; give each a name of its own")))
        }
        None => Ok(()),
    }
}

/// Returns an error if a class is closed, for solvers of open networks.
pub(crate) fn check_open(model: &Model) -> Result<(), ModelError> {
    let closed = model.classes.iter().find(|class| class.kind == ClassKind::Closed);
    closed.map_or(Ok(()), |class| Err(ModelError::ClosedClass { class: class.name.clone() }))
}

fn rate(class: &ModelClass) -> Result<f64, ModelError> {
    match (class.kind, class.rate) {
        (ClassKind::Closed, None) => Ok(0.0),
        (ClassKind::Closed, Some(_)) => {
            let name = &class.name;
            let problem =
                "is closed, and its customers come at no rate of their own: leave out its `rate`, or make it open";
            Err(ModelError::Inconsistent(format!("class `{name}` {problem}")))
        }
        (ClassKind::Open, None) => Err(ModelError::Inconsistent(format!("open class `{}` needs a rate", class.name))),
        (ClassKind::Open, Some(rate)) => {
            Ok(check_non_negative(rate, || format!("the rate of class `{}`", class.name))?)
        }
    }
}

fn population(class: &ModelClass) -> Result<u32, ModelError> {
    if class.kind == ClassKind::Open {
        let closed_only = [("think", class.think != 0.0), ("population", class.population.is_some())];
        return match closed_only.into_iter().find(|(_, given)| *given) {
            None => Ok(0),
            Some((what, _)) => Err(ModelError::Inconsistent(format!(
                "class `{}` is open, and its requests arrive independently of earlier requests: leave out its `{what}`, or make \
                 it closed",
                class.name
            ))),
        };
    }
    check_non_negative(class.think, || format!("the think time of class `{}`", class.name))?;
    match class.population {
        None => Err(ModelError::Inconsistent(format!("closed class `{}` needs a population", class.name))),
        Some(0) => Err(ModelError::Number(NumberError {
            what: format!("the population of class `{}`", class.name),
            value: 0.0,
            requirement: "at least 1 (or leave the class out)",
        })),
        Some(n) => Ok(n),
    }
}

/// Checks that half widths of confidence intervals exist for all demands or for none.
fn check_half_widths(model: &Model) -> Result<(), ModelError> {
    let half_widths = &model.demand_ci95_half_width;
    let fits = half_widths.len() == model.demands.len()
        && half_widths.iter().zip(&model.demands).all(|(row, demands)| row.len() == demands.len());
    if !half_widths.is_empty() && !fits {
        let text = "demand_ci95_half_width needs as many rows and columns as demands, or none at all";
        return Err(ModelError::Inconsistent(text.into()));
    }
    let what = || "a half width of a demand's confidence interval".into();
    Ok(half_widths.iter().flatten().try_for_each(|half| check_non_negative(*half, what).map(|_| ()))?)
}

/// Checks that correlations of the demands exist for all stations or for none.
fn check_correlation(model: &Model) -> Result<(), ModelError> {
    let given = &model.demand_correlation;
    let fits = given.len() == model.stations.len() && given.iter().all(|m| is_correlation(m, model.classes.len()));
    if given.is_empty() || fits {
        return Ok(());
    }
    let text = "demand_correlation needs one correlation matrix of the classes for each station (symmetric, positive \
                semidefinite, ones on its diagonal), or none at all";
    Err(ModelError::Inconsistent(text.into()))
}

fn check_station(station: &Station, demands: &[f64], classes: &[ModelClass]) -> Result<(), ModelError> {
    let name = &station.name;
    let figure = |what| format!("the {what} of station `{name}`");
    if demands.len() != classes.len() {
        let (given, classes) = (demands.len(), classes.len());
        return Err(ModelError::Inconsistent(format!("station `{name}` has {given} demands for {classes} classes")));
    }
    for (class, demand) in classes.iter().zip(demands) {
        check_non_negative(*demand, || format!("the demand of class `{}` at station `{name}`", class.name))?;
    }
    if station.servers == 0 {
        return Err(ModelError::Number(NumberError {
            what: figure("number of servers"),
            value: 0.0,
            requirement: "at least 1",
        }));
    }
    if !(0.0..1.0).contains(&station.background) {
        let (what, value) = (figure("background"), station.background);
        return Err(ModelError::Number(NumberError { what, value, requirement: "at least 0 and below 1" }));
    }
    check_non_negative(station.scv, || figure("squared coefficient of variation"))?;
    check_non_negative(station.total_scv.unwrap_or(0.0), || figure("total squared coefficient of variation"))?;
    if station.total_scv.is_some() && station.scv != Station::default().scv {
        return Err(ModelError::Inconsistent(format!(
            "station `{name}` has both `scv` and `total_scv`: give one of them"
        )));
    }
    check_idle_cost(station)?;
    check_interruptions(station)?;
    check_multipliers(station)
}

fn check_interruptions(station: &Station) -> Result<(), ModelError> {
    let Some(it) = station.interruptions else { return Ok(()) };
    let name = &station.name;
    let figures = [
        ("interruptions per second", it.per_second),
        ("interruptions per call", it.per_call),
        ("mean length of the interruptions", it.mean_length),
        ("squared coefficient of variation of the interruptions' lengths", it.length_scv),
        ("length of the interruptions per call", it.per_call * it.mean_length),
    ];
    for (what, value) in figures {
        check_non_negative(value, || format!("the {what} of station `{name}`"))?;
    }
    let share = it.per_second * it.mean_length;
    if share.is_nan() || share >= 1.0 {
        let what = format!("the share of time in interruptions of station `{name}` (per_second × mean_length)");
        let requirement = "below 1: give fewer or shorter interruptions";
        return Err(ModelError::Number(NumberError { what, value: share, requirement }));
    }
    if station.kind == StationKind::Queue && station.rate_multipliers.is_empty() {
        return Ok(());
    }
    let text =
        format!("station `{name}` cannot have interruptions: it is a delay, or has rate multipliers; leave out one");
    Err(ModelError::Inconsistent(text))
}

fn check_idle_cost(station: &Station) -> Result<(), ModelError> {
    let Some(cost) = station.idle_cost else { return Ok(()) };
    let name = &station.name;
    let wrong = |what: &str, value, requirement| {
        let what = format!("the {what} of the idle_cost of station `{name}`");
        Err(ModelError::Number(NumberError { what, value, requirement }))
    };
    if !cost.seconds.is_finite() {
        return wrong("seconds", cost.seconds, "finite");
    }
    if !(1..=4).contains(&cost.power) {
        return wrong("power", f64::from(cost.power), "1, 2, 3 or 4");
    }
    if station.kind == StationKind::Queue && station.rate_multipliers.is_empty() {
        return Ok(());
    }
    let text =
        format!("station `{name}` cannot have an idle_cost: it is a delay, or has rate multipliers; leave out one");
    Err(ModelError::Inconsistent(text))
}

/// Maximum number of rate multipliers of a station. The cost of [`OpenLoad`] grows with the square of their number.
pub(crate) const MAX_RATE_MULTIPLIERS: usize = 10_000;

fn check_multipliers(station: &Station) -> Result<(), ModelError> {
    let name = &station.name;
    if let Some(value) = station.rate_multipliers.iter().find(|a| !(a.is_finite() && **a > 0.0)) {
        let what = format!("a rate multiplier of station `{name}`");
        return Err(ModelError::Number(NumberError { what, value: *value, requirement: "finite and positive" }));
    }
    if station.rate_multipliers.is_empty() {
        return Ok(());
    }
    let levels = station.rate_multipliers.len();
    if levels > MAX_RATE_MULTIPLIERS {
        let (what, value) = (format!("the number of rate multipliers of station `{name}`"), levels as f64);
        return Err(ModelError::Number(NumberError {
            what,
            value,
            requirement: "at most 10,000: the last one holds for any more requests",
        }));
    }
    let why = match (station.kind, station.scheduling) {
        (StationKind::Delay, _) => "it is a delay, where requests do not affect one another",
        (_, Scheduling::Priority | Scheduling::Preemptive) => "it serves by priority, for which no solution is known",
        _ if station.servers > 1 => "they would count its servers twice",
        _ => return Ok(()),
    };
    Err(ModelError::Inconsistent(format!(
        "station `{name}` cannot have rate multipliers: {why}; leave out one of the two"
    )))
}
