//! For tests: classes, a station, and a model of one station.

use brimful_core::model::{Class, ClassKind, Model, Scheduling, Station};

pub fn closed(population: u32, think: f64) -> Class {
    let (name, population) = (format!("c of {population}"), Some(population));
    Class { name, kind: ClassKind::Closed, population, think, ..Class::default() }
}

pub fn open(rate: f64, priority: u32) -> Class {
    Class { name: format!("o{priority} of {rate}"), rate: Some(rate), priority, ..Class::default() }
}

pub fn queue(scheduling: Scheduling, servers: u32, scv: f64) -> Station {
    Station { name: "cpu".into(), scheduling, servers, scv, ..Station::default() }
}

pub fn model(station: Station, classes: &[(Class, f64)]) -> Model {
    Model {
        stations: vec![station],
        classes: classes.iter().map(|(class, _)| class.clone()).collect(),
        demands: vec![classes.iter().map(|(_, demand)| *demand).collect()],
        ..Model::default()
    }
}

pub fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * b.abs()
}
