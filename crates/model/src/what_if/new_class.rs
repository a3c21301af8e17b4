//! A class that is added to a model: `NAME:rate=50,cpu=2ms,disk1=0.5ms`.

use super::amount::{Amount, Operation, Unit};
use crate::ModelError;
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A class to be added. The text begins with its name (without `:`). Then follow, in any order: `rate=` (open), or
/// `population=` and `think=` (closed); `priority=`; `like=CLASS` to start from the demands of another class; and a
/// demand for each station that the class visits. A demand is a time. With `like=`, it may also be a change of the
/// other class's demand, such as `1.5x` or `+20%`. Numbers may be ranges.
///
/// The demands are those at the stations' speed before the scenario. If the same scenario changes the speed of a
/// station, the class's demand there changes too.
#[derive(Clone, Debug, PartialEq)]
pub struct NewClass {
    pub(super) name: String,
    /// The class from which a demand is copied for each station that `demands` does not name.
    pub(super) like: Option<String>,
    /// Requests per second of an open class.
    pub(super) rate: Option<Amount>,
    /// Number of customers of a closed class.
    pub(super) population: Option<Amount>,
    /// Mean think time of a closed class.
    pub(super) think: Option<Amount>,
    /// Priority of the class; a smaller number is more urgent.
    pub(super) priority: Option<Amount>,
    /// The demands, each with the name of its station.
    pub(super) demands: Vec<(String, Amount)>,
}

impl FromStr for NewClass {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<NewClass, ModelError> {
        let error = |problem: String| ModelError::WhatIf { text: text.into(), problem };
        let (name, items) = text.split_once(':').ok_or_else(|| {
            error("has no `:` after the name: write it like batch:rate=50,cpu=2ms,disk1=0.5ms".into())
        })?;
        let name = name.trim().to_owned();
        let mut class =
            NewClass { name, like: None, rate: None, population: None, think: None, priority: None, demands: vec![] };
        for (key, value) in items_of(items).map_err(error)? {
            class.set(key, value).map_err(|why| error(format!("cannot be: {why}")))?;
        }
        match (&class.rate, &class.population) {
            _ if class.name.is_empty() => Err(error("needs a name before the `:`".into())),
            (None, None) => Err(error("needs a rate (open) or a population (closed)".into())),
            (Some(_), Some(_)) => Err(error("has a rate and a population: a class is open or closed".into())),
            (Some(_), _) if class.think.is_some() => {
                Err(error("has a think time, which only closed classes do".into()))
            }
            _ => Ok(class),
        }
    }
}

impl NewClass {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let place = match key {
            "like" if self.like.is_none() => {
                self.like = Some(value.to_owned());
                return Ok(());
            }
            "rate" if self.rate.is_none() => (&mut self.rate, Unit::Rate),
            "population" if self.population.is_none() => (&mut self.population, Unit::Count),
            "think" if self.think.is_none() => (&mut self.think, Unit::Time),
            "priority" if self.priority.is_none() => (&mut self.priority, Unit::Count),
            _ if KEYS.contains(&key) || self.demands.iter().any(|(station, _)| station == key) => {
                return Err(format!("`{key}` is given twice"));
            }
            _ => {
                self.demands.push((key.to_owned(), Amount::parse(value, Unit::Time)?));
                return Ok(());
            }
        };
        *place.0 = Some(absolute(key, value, place.1)?);
        Ok(())
    }

    /// All numbers of the class, each with its key, such as `rate` or the name of a station.
    pub(super) fn amounts(&self) -> impl Iterator<Item = (&str, &Amount)> {
        let own = [("rate", &self.rate), ("population", &self.population), ("think", &self.think)];
        let own = own.into_iter().chain([("priority", &self.priority)]);
        let own = own.filter_map(|(key, amount)| amount.as_ref().map(|amount| (key, amount)));
        own.chain(self.demands.iter().map(|(station, amount)| (station.as_str(), amount)))
    }
}

/// The keys of `NAME:KEY=VALUE` that have a fixed meaning. A station with such a name cannot be given a demand.
pub(super) const KEYS: [&str; 5] = ["rate", "population", "think", "priority", "like"];

/// Splits a list such as `a=1,b=2` into pairs of key and value.
pub(super) fn items_of(text: &str) -> Result<Vec<(&str, &str)>, String> {
    text.split(',').map(item).collect()
}

fn item(text: &str) -> Result<(&str, &str), String> {
    let (key, value) = text.rsplit_once('=').ok_or_else(|| format!("has `{text}`, which is no KEY=VALUE"))?;
    Ok((key.trim(), value.trim()))
}

/// Parses a number that is not relative to a previous value.
pub(super) fn absolute(key: &str, value: &str, unit: Unit) -> Result<Amount, String> {
    let amount = Amount::parse(value, unit).map_err(|why| format!("{key}: {why}"))?;
    if amount.operation == Operation::Set {
        Ok(amount)
    } else {
        Err(format!("`{key}={value}` is relative, but there is no previous value: give an absolute value"))
    }
}

impl fmt::Display for NewClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.name)?;
        let like = self.like.iter().map(|class| format!("like={class}"));
        let items: Vec<String> = like.chain(self.amounts().map(|(key, amount)| format!("{key}={amount}"))).collect();
        f.write_str(&items.join(","))
    }
}

impl Serialize for NewClass {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
