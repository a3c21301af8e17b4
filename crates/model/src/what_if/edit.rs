//! Applies changes to the parameters of a model.
//!
//! Background work is a constant amount of work, so its share falls with faster or more servers. Interruptions do not
//! change with the speed or the number of servers, because the model does not know their cause: garbage collection
//! would be shorter on faster servers, but a host that stops the server would not. If a demand is multiplied by a
//! factor, the half width of its confidence interval is multiplied by it too. A demand that is set to a value is
//! assumed to be exact.

use super::amount::{Amount, Operation};
use super::change::{Property, Value};
use crate::ModelError;
use crate::network::MAX_RATE_MULTIPLIERS;
use brimful_core::model::{Model, Station};

/// One change, and the parameters to which it applies.
pub(super) struct Edit {
    /// The change in the user's notation.
    pub(super) text: String,
    /// The target in the user's notation.
    pub(super) target: String,
    /// The property that the change sets or changes.
    pub(super) property: Property,
    /// The new value, or the difference or factor by which the parameters change.
    pub(super) given: ChangeValue,
    /// The parameters to which the change applies.
    pub(super) locations: Vec<ParameterLocation>,
    /// Whether the change applies to the sum of the parameters, such as the total rate of several classes.
    pub(super) total: bool,
}

/// The station, the class or both to which a parameter of a model belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ParameterLocation {
    /// A parameter of the station with this index.
    Station(usize),
    /// A parameter of the class with this index.
    ModelClass(usize),
    /// The demand at a station (the first index) of a class (the second index).
    Demand(usize, usize),
}

/// The value of a change. If it is a range, each point of the curve uses another number of it.
#[derive(Clone, Copy)]
pub(super) struct ChangeValue {
    /// A number, a range of numbers, or an order of service.
    pub(super) value: Value,
    /// Index of the range among the axes of the curve; `None` if the value is not a range.
    pub(super) axis: Option<usize>,
}

/// Clients to add, and the link that connects them. The names in the user's notation have been resolved to indices.
pub(super) struct ClientEdit {
    /// The clients in the user's notation.
    pub(super) text: String,
    /// Index of the class whose demands are copied to the clients.
    pub(super) like: usize,
    /// Index of the class that represents the clients.
    pub(super) class: usize,
    /// Index of the station that represents the link.
    pub(super) link: usize,
    /// Index of the station that represents the round trip; `None` without a round trip.
    pub(super) internet: Option<usize>,
    /// Speed of the link.
    pub(super) speed: ChangeValue,
    /// Bytes transferred per request, in both directions.
    pub(super) size: ChangeValue,
    /// Time of a round trip through the Internet, once per request.
    pub(super) rtt: Option<ChangeValue>,
    /// Number of clients.
    pub(super) clients: Option<ChangeValue>,
    /// Think time of the clients.
    pub(super) think: Option<ChangeValue>,
}

impl Edit {
    /// Applies the change to the model. `x` has the current number of each axis (a range of the scenario).
    pub(super) fn apply(&self, model: &mut Model, x: &[f64]) -> Result<(), ModelError> {
        let amount = match self.given.value {
            Value::Amount(amount) => amount,
            Value::Scheduling(order) => {
                for location in &self.locations {
                    if let ParameterLocation::Station(k) = location {
                        model.stations[*k].scheduling = order;
                    }
                }
                return Ok(());
            }
        };
        let number = self.given.number(x);
        if self.total {
            return self.share_out(model, &amount, number);
        }
        self.locations.iter().try_for_each(|location| match *location {
            ParameterLocation::Station(k) if self.property == Property::Speed => {
                self.speed_up(model, k, &amount, number)
            }
            ParameterLocation::Station(k) => self.change_station(&mut model.stations[k], &amount, number),
            ParameterLocation::ModelClass(c) => self.change_class(model, c, &amount, number),
            ParameterLocation::Demand(k, c) => {
                let demand = &mut model.demands[k][c];
                let (old, new) = (*demand, self.checked("a demand", amount.apply(*demand, number), |_| true)?);
                *demand = new;
                if let Some(half) = model.demand_ci95_half_width.get_mut(k).and_then(|row| row.get_mut(c)) {
                    *half = match amount.operation {
                        Operation::Set => 0.0,
                        Operation::Add => *half,
                        _ if old > 0.0 => *half * (new / old),
                        _ => 0.0,
                    };
                }
                Ok(())
            }
        })
    }

    fn speed_up(&self, model: &mut Model, k: usize, amount: &Amount, number: f64) -> Result<(), ModelError> {
        let factor = self.checked("a speed", amount.apply(1.0, number), |f| f > 0.0)?;
        let half_widths = model.demand_ci95_half_width.get_mut(k).into_iter().flatten();
        model.demands[k].iter_mut().chain(half_widths).for_each(|d| *d /= factor);
        model.stations[k].idle_cost.iter_mut().for_each(|cost| cost.seconds /= factor);
        self.change_background(&mut model.stations[k], |b| b / factor)
    }

    fn change_station(&self, station: &mut Station, amount: &Amount, number: f64) -> Result<(), ModelError> {
        match self.property {
            Property::Servers if !station.rate_multipliers.is_empty() => self.multiply(station, amount, number),
            Property::Servers => {
                let old = f64::from(station.servers);
                station.servers = self.whole("the number of servers", amount.apply(old, number), 1)?;
                let new = f64::from(station.servers);
                self.change_background(station, |b| b * (old / new))
            }
            Property::Background => self.change_background(station, |b| amount.apply(b, number)),
            Property::Interruptions | Property::InterruptionLength => {
                self.change_interruptions(station, amount, number)
            }
            _ => {
                let scv = station.total_scv.as_mut().unwrap_or(&mut station.scv);
                *scv = self.checked("an scv", amount.apply(*scv, number), |_| true)?;
                Ok(())
            }
        }
    }

    /// Multiplies the servers of a station with rate multipliers α by a factor f. Each of f equal parts of the station
    /// then has 1/f of the load: α'(n) = f·α(n/f).
    fn multiply(&self, station: &mut Station, amount: &Amount, number: f64) -> Result<(), ModelError> {
        if !amount.is_factor() {
            let name = &station.name;
            let problem = format!(
                "is about a station whose rate multipliers count its servers (`{name}`): give a factor like 2x"
            );
            return Err(ModelError::WhatIf { text: self.text.clone(), problem });
        }
        let factor = self.checked("a factor", amount.apply(1.0, number), |f| f > 0.0)?;
        let levels = self.whole("the number of levels", (station.rate_multipliers.len() as f64 * factor).ceil(), 1)?;
        if levels as usize > MAX_RATE_MULTIPLIERS {
            return Err(self.cannot_be("the number of levels", f64::from(levels)));
        }
        let old = std::mem::take(&mut station.rate_multipliers);
        let alpha = |n: f64| {
            let (below, part) = (n.floor() as usize, n.fract());
            let at = |i: usize| if i == 0 { 0.0 } else { old[i.min(old.len()) - 1] };
            at(below) + (at(below + 1) - at(below)) * part
        };
        station.rate_multipliers = (1..=levels).map(|n| factor * alpha(f64::from(n) / factor)).collect();
        self.change_background(station, |b| b / factor)
    }

    fn change_background(&self, station: &mut Station, to: impl Fn(f64) -> f64) -> Result<(), ModelError> {
        let fits = |b: f64| b < 1.0;
        station.background = self.checked("the share of other work", to(station.background), fits)?;
        Ok(())
    }

    fn change_interruptions(&self, station: &mut Station, amount: &Amount, number: f64) -> Result<(), ModelError> {
        let is_new = station.interruptions.is_none();
        let interruptions = station.interruptions.get_or_insert_default();
        if self.property == Property::InterruptionLength {
            let length = amount.apply(interruptions.mean_length, number);
            interruptions.mean_length = self.checked("the length of interruptions", length, |_| true)?;
        } else {
            let per_second = amount.apply(interruptions.per_second, number);
            interruptions.per_second = self.checked("the rate of interruptions", per_second, |_| true)?;
            if amount.operation != Operation::Add {
                let per_call = if amount.is_factor() { amount.apply(interruptions.per_call, number) } else { 0.0 };
                interruptions.per_call = self.checked("the rate of interruptions", per_call, |_| true)?;
            }
        }
        let is_without_length = interruptions.mean_length == 0.0 && self.property == Property::Interruptions;
        if is_new && (amount.is_factor() || is_without_length) {
            let name = &station.name;
            let problem = format!(
                "is about a station without interruptions (`{name}`): give their rate and their length, like {name}.\
                 interruptions=2/s and {name}.interruption_length=20ms"
            );
            return Err(ModelError::WhatIf { text: self.text.clone(), problem });
        }
        let share = interruptions.per_second * interruptions.mean_length;
        if share >= 1.0 {
            return Err(self.cannot_be("the share of time in interruptions", share));
        }
        Ok(())
    }

    fn change_class(&self, model: &mut Model, c: usize, amount: &Amount, number: f64) -> Result<(), ModelError> {
        let class = &mut model.classes[c];
        match self.property {
            Property::Rate => {
                let rate = amount.apply(class.rate.unwrap_or(0.0), number);
                class.rate = Some(self.checked("a rate", rate, |_| true)?);
            }
            Property::Population => {
                let population = amount.apply(class.population.map_or(0.0, f64::from), number);
                class.population = Some(self.whole("a population", population, 1)?);
            }
            Property::Think => {
                class.think = self.checked("a think time", amount.apply(class.think, number), |_| true)?
            }
            _ => class.priority = self.whole("a priority", amount.apply(f64::from(class.priority), number), 0)?,
        }
        Ok(())
    }

    /// Changes the total rate of several classes. The new total is divided among them in the proportions of their old
    /// rates.
    fn share_out(&self, model: &mut Model, amount: &Amount, number: f64) -> Result<(), ModelError> {
        let classes = || {
            self.locations
                .iter()
                .filter_map(|location| if let ParameterLocation::ModelClass(c) = location { Some(*c) } else { None })
        };
        let present: f64 = classes().filter_map(|c| model.classes[c].rate).sum();
        let wanted = self.checked("the rate", amount.apply(present, number), |_| true)?;
        if present <= 0.0 {
            let problem = "cannot be shared out: all rates are 0, so give each class its own".into();
            return Err(ModelError::WhatIf { text: self.text.clone(), problem });
        }
        for c in classes() {
            let rate = model.classes[c].rate.map(|rate| rate * (wanted / present));
            model.classes[c].rate = rate.map(|rate| self.checked("a rate", rate, |_| true)).transpose()?;
        }
        Ok(())
    }

    fn whole(&self, what: &str, value: f64, least: u32) -> Result<u32, ModelError> {
        let fits = |v: f64| v.fract() == 0.0 && v >= f64::from(least) && v <= f64::from(u32::MAX);
        // A value that differs from a whole number only by a rounding error is rounded to it.
        let nearest = if (value - value.round()).abs() < 1e-9 * value.abs() { value.round() } else { value };
        self.checked(what, nearest, fits).map(|v| v as u32)
    }

    fn checked(&self, what: &str, value: f64, fits: impl Fn(f64) -> bool) -> Result<f64, ModelError> {
        if value.is_finite() && value >= 0.0 && fits(value) { Ok(value) } else { Err(self.cannot_be(what, value)) }
    }

    fn cannot_be(&self, what: &str, value: f64) -> ModelError {
        let problem = format!("makes {what} {value}, which is not possible: choose another number");
        ModelError::WhatIf { text: self.text.clone(), problem }
    }

    /// The parameters to which the change applies.
    pub(super) fn parameters(&self, model: &Model) -> Vec<(Property, ParameterLocation)> {
        let parameters_at = |location: &ParameterLocation| match *location {
            ParameterLocation::Station(k) if self.property == Property::Speed => {
                (0..model.classes.len()).map(|c| (Property::Demand, ParameterLocation::Demand(k, c))).collect()
            }
            location => vec![(self.property, location)],
        };
        self.locations.iter().flat_map(parameters_at).collect()
    }

    /// Whether the change sets the parameters to a value that does not depend on their previous values.
    pub(super) fn is_set(&self) -> bool {
        matches!(self.given.value, Value::Amount(amount) if amount.operation == Operation::Set)
    }

    /// Whether the change multiplies the parameters.
    pub(super) fn is_factor(&self) -> bool {
        matches!(self.given.value, Value::Amount(amount) if amount.is_factor())
    }
}

impl ParameterLocation {
    /// Describes a property of this station, class or demand in words.
    pub(super) fn name(self, property: Property, model: &Model) -> String {
        let property = property.name();
        match self {
            ParameterLocation::Station(k) => format!("the {property} of station `{}`", model.stations[k].name),
            ParameterLocation::ModelClass(c) => format!("the {property} of class `{}`", model.classes[c].name),
            ParameterLocation::Demand(k, c) => {
                format!("the {property} of class `{}` at station `{}`", model.classes[c].name, model.stations[k].name)
            }
        }
    }
}

impl ChangeValue {
    /// The number of this value. For a range, it is the current number in `x`, which has one number per axis (range).
    fn number(&self, x: &[f64]) -> f64 {
        match (self.axis, self.value) {
            (Some(axis), _) => x.get(axis).copied().unwrap_or(f64::NAN),
            (None, Value::Amount(amount)) => amount.first(),
            (None, Value::Scheduling(_)) => f64::NAN,
        }
    }
}

impl ClientEdit {
    /// Adds the clients to the model, after all other changes. `x` has the current number of each axis (a range of the
    /// scenario).
    pub(super) fn apply(&self, model: &mut Model, x: &[f64]) -> Result<(), ModelError> {
        let fits = |what: &str, value: f64, fits: bool| {
            let problem = || format!("makes {what} {value}, which is not possible: choose another number");
            if fits { Ok(value) } else { Err(ModelError::WhatIf { text: self.text.clone(), problem: problem() }) }
        };
        let number = |given: &Option<ChangeValue>, default| given.as_ref().map_or(default, |given| given.number(x));
        for row in model.demands.iter_mut().chain(&mut model.demand_ci95_half_width) {
            row[self.class] = row[self.like];
        }
        let seconds = self.size.number(x) * 8.0 / self.speed.number(x);
        model.demands[self.link][self.class] = fits("the time on the line", seconds, seconds.is_finite())?;
        if let Some(internet) = self.internet {
            model.demands[internet][self.class] = number(&self.rtt, 0.0);
        }
        let clients = number(&self.clients, 1.0);
        let class = &mut model.classes[self.class];
        class.population =
            Some(fits("the number of clients", clients, (1.0..=f64::from(u32::MAX)).contains(&clients))? as u32);
        class.think = number(&self.think, 0.0);
        Ok(())
    }
}
