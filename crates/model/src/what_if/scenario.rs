//! Prepares a scenario: looks up names, checks for contradictions, and builds one model for each point of the ranges.

use super::amount::{Amount, Operation};
use super::change::{Change, Property, Value};
use super::client::Client;
use super::edit::{ChangeValue, ClientEdit, Edit, ParameterLocation};
use super::names::{class_named, resolve, station_named};
use super::new_class::{KEYS, NewClass};
use super::suggestions::listed;
use crate::ModelError;
use crate::correlation::identity;
use crate::joint;
use crate::network::Network;
use brimful_core::model::{ClassKind, Model, ModelClass, Station, StationKind};
use serde::Serialize;
use std::collections::HashMap;

/// All changes of a model: changed parameters, added classes and added clients. Their order makes no difference.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Scenario {
    /// Changes of existing stations and classes.
    pub changes: Vec<Change>,
    /// Classes to be added.
    pub classes: Vec<NewClass>,
    /// Clients to be added, each with the network link that it uses.
    pub clients: Vec<Client>,
}

/// Maximum number of ranges in a scenario.
const MAX_AXES: usize = 2;
/// Maximum number of points of a curve: with two ranges, the product of their numbers of points.
const MAX_POINTS: usize = 100_000;

/// The models that a scenario derives from one model: one for each number (or pair of numbers) of its ranges.
pub(super) struct Variants {
    /// The model with all additions, before the changes.
    base: Model,
    edits: Vec<Edit>,
    clients: Vec<ClientEdit>,
    /// The ranges of the scenario.
    pub(super) axes: Vec<AxisPoints>,
}

/// The points of a range, which is one axis of a curve.
pub(super) struct AxisPoints {
    /// The parameter that varies along the range, in the user's notation.
    pub(super) subject: String,
    /// The range, with its unit.
    pub(super) amount: Amount,
    /// The numbers of the range, in order.
    pub(super) points: Vec<f64>,
}

impl Scenario {
    /// All changes and additions, in the user's notation.
    pub(super) fn texts(&self) -> Vec<String> {
        let changes = self.changes.iter().map(Change::to_string);
        let classes = self.classes.iter().map(NewClass::to_string);
        changes.chain(classes).chain(self.clients.iter().map(Client::to_string)).collect()
    }

    /// The model after all changes.
    ///
    /// # Errors
    /// When a name is unknown, changes contradict one another, a number is invalid, or there is a range.
    pub fn apply(&self, model: &Model) -> Result<Model, ModelError> {
        let variants = Variants::new(self, model)?;
        match variants.axes.first() {
            Some(axis) => {
                let problem = "is a range: it makes a curve, not a model".into();
                Err(ModelError::WhatIf { text: format!("{}={}", axis.subject, axis.amount), problem })
            }
            None => variants.model(&[]),
        }
    }
}

impl Variants {
    pub(super) fn new(scenario: &Scenario, model: &Model) -> Result<Variants, ModelError> {
        Network::unchecked_stability(model)?;
        let mut variants = Variants { base: model.clone(), edits: Vec::new(), clients: Vec::new(), axes: Vec::new() };
        for change in &scenario.changes {
            let (locations, total) = resolve(change, model)?;
            let axis = change.amount().and_then(|amount| variants.axis(&change.subject(), amount));
            let given = ChangeValue { value: change.value, axis };
            variants.edits.push(Edit {
                text: change.to_string(),
                target: change.target.clone(),
                property: change.property,
                given,
                locations,
                total,
            });
        }
        variants.check_contradictions()?;
        variants.check_joint_demands()?;
        for class in &scenario.classes {
            variants.add_class(class, model)?;
        }
        for client in &scenario.clients {
            variants.add_client(client)?;
        }
        // Changes of speed or servers also change the share of background work. So explicit changes of this share come
        // last. The length of interruptions comes before their rate, which needs a length.
        variants
            .edits
            .sort_by_key(|edit| (edit.property == Property::Background, edit.property == Property::Interruptions));
        variants.check_axes()?;
        Ok(variants)
    }

    /// The model with all additions, before the changes.
    pub(super) fn base(&self) -> &Model {
        &self.base
    }

    /// All points of the curve: all combinations of the ranges' numbers. The last range changes fastest.
    pub(super) fn grid(&self) -> Vec<Vec<f64>> {
        let extend = |grid: Vec<Vec<f64>>, axis: &AxisPoints| {
            let with = |x: &Vec<f64>, next: &f64| x.iter().copied().chain([*next]).collect();
            grid.iter().flat_map(|x| axis.points.iter().map(move |next| with(x, next))).collect()
        };
        self.axes.iter().fold(vec![Vec::new()], extend)
    }

    /// The model at the point `x`, which has one number per axis.
    pub(super) fn model(&self, x: &[f64]) -> Result<Model, ModelError> {
        let mut model = self.base.clone();
        self.change(&mut model, x)?;
        Ok(model)
    }

    /// Writes the model at the point `x` into an existing model. `x` has one number per axis.
    pub(super) fn model_into(&self, model: &mut Model, x: &[f64]) -> Result<(), ModelError> {
        model.clone_from(&self.base);
        self.change(model, x)
    }

    fn change(&self, model: &mut Model, x: &[f64]) -> Result<(), ModelError> {
        self.edits.iter().try_for_each(|edit| edit.apply(model, x))?;
        self.clients.iter().try_for_each(|client| client.apply(model, x))
    }

    /// Adds an axis if the amount is a range. Returns the index of the axis; `None` if the amount is a single number.
    fn axis(&mut self, subject: &str, amount: &Amount) -> Option<usize> {
        amount.is_range().then(|| {
            self.axes.push(AxisPoints { subject: subject.into(), amount: *amount, points: amount.points() });
            self.axes.len() - 1
        })
    }

    fn given(&mut self, subject: &str, amount: &Amount) -> ChangeValue {
        ChangeValue { value: Value::Amount(*amount), axis: self.axis(subject, amount) }
    }

    fn check_axes(&self) -> Result<(), ModelError> {
        let points = self.axes.iter().fold(1usize, |n, axis| n.saturating_mul(axis.points.len()));
        let texts = || self.axes.iter().map(|a| format!("{}={}", a.subject, a.amount)).collect::<Vec<_>>().join(" ");
        if self.axes.len() > MAX_AXES {
            let problem = format!("are {} ranges: give at most {MAX_AXES}", self.axes.len());
            return Err(ModelError::WhatIf { text: texts(), problem });
        }
        if points > MAX_POINTS {
            let problem = format!("make {points} points: give at most {MAX_POINTS}, like 1x..2x:11");
            return Err(ModelError::WhatIf { text: texts(), problem });
        }
        Ok(())
    }

    /// Checks that changes do not contradict one another. Several changes of one parameter are permitted only if all of
    /// them multiply it. Two changes must not have the same property and target.
    fn check_contradictions(&self) -> Result<(), ModelError> {
        let mut said: HashMap<(Property, ParameterLocation), Vec<&Edit>> = HashMap::new();
        for edit in &self.edits {
            for (property, location) in edit.parameters(&self.base) {
                let others = said.entry((property, location)).or_default();
                let against = |other: &&&Edit| {
                    let alike = edit.property == other.property && edit.target == other.target;
                    alike || !(edit.is_factor() && other.is_factor())
                };
                if let Some(other) = others.iter().find(against) {
                    let what = location.name(property, &self.base);
                    let (first, second) = (other.text.clone(), edit.text.clone());
                    return Err(ModelError::Contradiction { first, second, what });
                }
                others.push(edit);
            }
        }
        Ok(())
    }

    /// Checks changes of classes whose demands are known only jointly. A scenario must change all of these demands in
    /// the same way, or set each of them.
    fn check_joint_demands(&mut self) -> Result<(), ModelError> {
        let mut kept = Vec::new();
        for joint in &self.base.joint_demands {
            let (k, classes) = joint::indices(joint, &self.base)?;
            let among = |edit: &Edit| {
                classes.iter().filter(|c| edit.locations.contains(&ParameterLocation::Demand(k, **c))).count()
            };
            let edits = || self.edits.iter().filter(|edit| edit.property == Property::Demand && among(edit) > 0);
            let set: usize = edits().filter(|edit| edit.is_set()).map(among).sum();
            let all_alike = edits().all(|edit| edit.is_set() || among(edit) == classes.len());
            if !all_alike || (set > 0 && set < classes.len()) {
                return Err(joint::changed_shares_error(joint));
            }
            if set == 0 {
                kept.push(joint.clone());
            }
        }
        self.base.joint_demands = kept;
        Ok(())
    }

    /// Returns an error if a new class would copy a demand that is known only jointly with other classes. `station`
    /// selects the stations whose demands are copied.
    fn check_copy(&self, like: usize, station: impl Fn(usize) -> bool) -> Result<(), ModelError> {
        self.base.joint_demands.iter().try_for_each(|joint| {
            let (k, classes) = joint::indices(joint, &self.base)?;
            if station(k) && classes.contains(&like) { Err(joint::changed_shares_error(joint)) } else { Ok(()) }
        })
    }

    fn add_class(&mut self, new: &NewClass, model: &Model) -> Result<(), ModelError> {
        let text = new.to_string();
        let error = |problem: String| ModelError::WhatIf { text: text.clone(), problem };
        if self.base.classes.iter().any(|class| class.name == new.name) {
            return Err(error(format!("adds a class `{}`, and there is one: choose another name", new.name)));
        }
        let like = new.like.as_deref().map(|name| class_named(name, model)).transpose().map_err(error)?;
        if let Some(like) = like {
            let set = |name: &String| {
                new.demands.iter().any(|(given, amount)| given == name && amount.operation == Operation::Set)
            };
            self.check_copy(like, |k| !set(&model.stations[k].name))?;
        }
        let kind = if new.rate.is_some() { ClassKind::Open } else { ClassKind::Closed };
        let priority = like.map_or(0, |c| model.classes[c].priority);
        let rate = new.rate.map(|_| 0.0);
        let class = ModelClass { name: new.name.clone(), kind, rate, priority, ..ModelClass::default() };
        let c = self.push_class(class, like);
        for (key, amount) in new.amounts() {
            let (property, location) = match key {
                "rate" => (Property::Rate, ParameterLocation::ModelClass(c)),
                "population" => (Property::Population, ParameterLocation::ModelClass(c)),
                "think" => (Property::Think, ParameterLocation::ModelClass(c)),
                "priority" => (Property::Priority, ParameterLocation::ModelClass(c)),
                station => {
                    let k = station_named(station, model)
                        .map_err(|why| error(format!("{why}; and beside stations {}", listed(station, KEYS))))?;
                    (Property::Demand, ParameterLocation::Demand(k, c))
                }
            };
            if new.like.is_none() && amount.operation != Operation::Set {
                return Err(error(format!(
                    "has `{key}={amount}`, but a new class has no previous value: give a time, or `like=CLASS`"
                )));
            }
            let given = self.given(&format!("{}.{key}", new.name), amount);
            // The edits that add classes and clients are inserted before the changes of existing parameters.
            self.edits.insert(
                0,
                Edit {
                    text: text.clone(),
                    target: new.name.clone(),
                    property,
                    given,
                    locations: vec![location],
                    total: false,
                },
            );
        }
        Ok(())
    }

    fn add_client(&mut self, client: &Client) -> Result<(), ModelError> {
        let text = client.to_string();
        let error = |problem: String| ModelError::WhatIf { text: text.clone(), problem };
        let like = class_named(&client.class, &self.base).map_err(error)?;
        self.check_copy(like, |_| true)?;
        let name = unused("client", self.base.classes.iter().map(|class| &class.name));
        let priority = self.base.classes[like].priority;
        let class =
            ModelClass { name, kind: ClassKind::Closed, population: Some(1), priority, ..ModelClass::default() };
        let class = self.push_class(class, Some(like));
        let link = if client.shared { StationKind::Queue } else { StationKind::Delay };
        let link = self.push_station("access-link", link);
        let internet = client.rtt.map(|_| self.push_station("internet", StationKind::Delay));
        let subject = |key: &str| format!("{}.{key}", client.class);
        let mut give = |key: &str, amount: &Option<Amount>| amount.as_ref().map(|a| self.given(&subject(key), a));
        let (rtt, clients, think) =
            (give("rtt", &client.rtt), give("clients", &client.clients), give("think", &client.think));
        let (speed, size) = (self.given(&subject("speed"), &client.speed), self.given(&subject("size"), &client.size));
        self.clients.push(ClientEdit { text, like, class, link, internet, speed, size, rtt, clients, think });
        Ok(())
    }

    /// Adds a class with the demands of another class, or without demands.
    fn push_class(&mut self, class: ModelClass, like: Option<usize>) -> usize {
        self.base.classes.push(class);
        for row in self.base.demands.iter_mut().chain(&mut self.base.demand_ci95_half_width) {
            row.push(like.map_or(0.0, |c| row[c]));
        }
        for matrix in &mut self.base.demand_correlation {
            let own: Vec<f64> = matrix.iter().map(|row| like.map_or(0.0, |c| row[c])).chain([1.0]).collect();
            matrix.iter_mut().zip(&own).for_each(|(row, coefficient)| row.push(*coefficient));
            matrix.push(own);
        }
        self.base.classes.len() - 1
    }

    /// Adds a station without demands, with constant service times.
    fn push_station(&mut self, name: &str, kind: StationKind) -> usize {
        let name = unused(name, self.base.stations.iter().map(|station| &station.name));
        self.base.stations.push(Station { name, kind, scv: 0.0, ..Station::default() });
        let nothing = vec![0.0; self.base.classes.len()];
        if !self.base.demand_ci95_half_width.is_empty() {
            self.base.demand_ci95_half_width.push(nothing.clone());
        }
        if !self.base.demand_correlation.is_empty() {
            self.base.demand_correlation.push(identity(nothing.len()));
        }
        self.base.demands.push(nothing);
        self.base.stations.len() - 1
    }
}

/// Returns a name that no other station or class has: `name`, followed by a number if necessary.
fn unused<'a>(name: &str, taken: impl Iterator<Item = &'a String> + Clone) -> String {
    let numbered = |n: usize| if n == 1 { name.to_owned() } else { format!("{name} {n}") };
    (1..).map(numbered).find(|name| taken.clone().all(|other| other != name)).unwrap_or_default()
}
