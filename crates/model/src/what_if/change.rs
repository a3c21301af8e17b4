//! One change of a what-if: `TARGET.PROPERTY=VALUE`.
//!
//! The value follows the last `=`, and the property follows the last `.` before the `=`. The rest is the target, which
//! may contain any characters. Its names are looked up in the model when the change is applied. A change without a
//! target, or with the target `all`, applies to all stations or classes.

use super::amount::{Amount, Unit};
use super::suggestions::listed;
use crate::ModelError;
use brimful_core::model::Scheduling;
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// One change, like `cpu.speed=1.5x`, `class4.rate=+30%` or `disk3.class4.demand=12ms`.
///
/// | property | target | values |
/// |---|---|---|
/// | `speed` | a station | `1.5x`, `+50%`: divides the station's demands, and the share of background work; interruptions stay |
/// | `servers` | a queue | `4`, `2x`, `+1`: more servers lower the share of background work; interruptions stay, and stop all servers |
/// | `demand` | a station, a class, or `STATION.CLASS` | `0.5x`, `-20%`, `12ms`, `+1ms` |
/// | `background` | a queue | `20%`, `0.2`, `0.5x` |
/// | `interruptions` | a queue | `2/s`, `0`: the interruptions per second, and none per request; `0.5x`: both rates |
/// | `interruption_length` | a queue | `20ms`, `0.5x`: the mean length of the interruptions |
/// | `scheduling` | a queue | `ps`, `fcfs`, `priority`, `preemptive` |
/// | `scv` | a station | `1.5`, `0.5x` |
/// | `rate` | an open class; all of them together | `50`, `50/s`, `10k`, `2x`, `+30%` |
/// | `population` | a closed class | `200`, `2x`, `+10` |
/// | `think` | a closed class | `3s`, `0.5x` |
/// | `priority` | a class | `0` |
///
/// A number may be a range (`1x..2x`). The range may have a number of points (`1x..2x:11`), and a constant factor
/// between successive points (`1x..16x:9:log`).
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Names of the station, the class or both; empty for all of them.
    pub(super) target: String,
    /// The property that changes, such as the number of servers.
    pub(super) property: Property,
    /// The new value, or the difference or factor by which the property changes.
    pub(super) value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq)]
/// The value of a change: numbers, or an order of service.
pub(super) enum Value {
    Amount(Amount),
    Scheduling(Scheduling),
}

/// A property that can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Property {
    Speed,
    Servers,
    Demand,
    Background,
    Interruptions,
    InterruptionLength,
    Scheduling,
    Scv,
    Rate,
    Population,
    Think,
    Priority,
}

const PROPERTIES: [(Property, &str); 12] = [
    (Property::Speed, "speed"),
    (Property::Servers, "servers"),
    (Property::Demand, "demand"),
    (Property::Background, "background"),
    (Property::Interruptions, "interruptions"),
    (Property::InterruptionLength, "interruption_length"),
    (Property::Scheduling, "scheduling"),
    (Property::Scv, "scv"),
    (Property::Rate, "rate"),
    (Property::Population, "population"),
    (Property::Think, "think"),
    (Property::Priority, "priority"),
];

const SCHEDULINGS: [(Scheduling, &str); 4] = [
    (Scheduling::Ps, "ps"),
    (Scheduling::Fcfs, "fcfs"),
    (Scheduling::Priority, "priority"),
    (Scheduling::Preemptive, "preemptive"),
];

impl FromStr for Change {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Change, ModelError> {
        let error = |problem: String| ModelError::WhatIf { text: text.into(), problem };
        let missing = || error("has no `=`: write it like cpu.speed=1.5x or class4.rate=+30%".into());
        let (left, value) = text.rsplit_once('=').ok_or_else(missing)?;
        let (target, property) = left.rsplit_once('.').unwrap_or(("", left));
        let (target, property, value) = (target.trim(), property.trim(), value.trim());
        let property = Property::parse(property).map_err(error)?;
        let value = match property.unit() {
            Some(unit) => Value::Amount(Amount::parse(value, unit).map_err(|why| error(format!("cannot be: {why}")))?),
            None => Value::Scheduling(scheduling(value).map_err(error)?),
        };
        Ok(Change { target: if target == "all" { String::new() } else { target.into() }, property, value })
    }
}

impl Property {
    fn parse(text: &str) -> Result<Property, String> {
        let known = PROPERTIES.iter().find(|(_, name)| *name == text).map(|(property, _)| *property);
        known.ok_or_else(|| format!("has no property `{text}`: there is {}", listed(text, PROPERTIES.map(|p| p.1))))
    }

    /// The property's name in the user's notation.
    pub(super) fn name(self) -> &'static str {
        PROPERTIES.iter().find(|(property, _)| *property == self).map_or("", |(_, name)| name)
    }

    /// The unit of the property; `None` if its value is not a number.
    fn unit(self) -> Option<Unit> {
        Some(match self {
            Property::Speed => Unit::Factor,
            Property::Servers | Property::Population | Property::Priority => Unit::Count,
            Property::Demand | Property::Think | Property::InterruptionLength => Unit::Time,
            Property::Background => Unit::Share,
            Property::Scv => Unit::Number,
            Property::Rate | Property::Interruptions => Unit::Rate,
            Property::Scheduling => return None,
        })
    }
}

fn scheduling(text: &str) -> Result<Scheduling, String> {
    let known = SCHEDULINGS.iter().find(|(_, name)| *name == text).map(|(scheduling, _)| *scheduling);
    known.ok_or_else(|| {
        format!("asks for an unknown order of service: there is {}", listed(text, SCHEDULINGS.map(|s| s.1)))
    })
}

impl Change {
    /// The number or the range of numbers; `None` for a change of the order of service.
    pub(super) fn amount(&self) -> Option<&Amount> {
        match &self.value {
            Value::Amount(amount) => Some(amount),
            Value::Scheduling(_) => None,
        }
    }

    /// The changed parameter in the user's notation: the part before the `=`.
    pub(super) fn subject(&self) -> String {
        let dot = if self.target.is_empty() { "" } else { "." };
        format!("{}{dot}{}", self.target, self.property.name())
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=", self.subject())?;
        match &self.value {
            Value::Amount(amount) => amount.fmt(f),
            Value::Scheduling(order) => f.write_str(SCHEDULINGS.iter().find(|s| s.0 == *order).map_or("", |s| s.1)),
        }
    }
}

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
