//! Builds classes, stations and models of one station for tests.

use brimful_core::model::{ClassKind, Model, ModelClass, Scheduling, Station};

/// A closed class with `population` customers and a mean think time of `think` seconds.
pub fn closed(population: u32, think: f64) -> ModelClass {
    let (name, population) = (format!("c of {population}"), Some(population));
    ModelClass { name, kind: ClassKind::Closed, population, think, ..ModelClass::default() }
}

/// An open class with `rate` arrivals per second and the given priority.
pub fn open(rate: f64, priority: u32) -> ModelClass {
    ModelClass { name: format!("o{priority} of {rate}"), rate: Some(rate), priority, ..ModelClass::default() }
}

/// A queue with the name `cpu`. `scv` is the squared coefficient of variation of its service times.
pub fn queue(scheduling: Scheduling, servers: u32, scv: f64) -> Station {
    Station { name: "cpu".into(), scheduling, servers, scv, ..Station::default() }
}

/// A model of one station. `classes` has each class with its demand at the station, in seconds.
pub fn model(station: Station, classes: &[(ModelClass, f64)]) -> Model {
    Model {
        stations: vec![station],
        classes: classes.iter().map(|(class, _)| class.clone()).collect(),
        demands: vec![classes.iter().map(|(_, demand)| *demand).collect()],
        ..Model::default()
    }
}

/// Whether two numbers are equal up to a relative rounding error of 10⁻¹².
pub fn is_close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * b.abs()
}
