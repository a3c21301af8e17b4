//! The JSON Schemas of the documents (`schema/` at the root) follow the types, and the example survey keeps every field
//! through them. That it follows its schema is tested beside the page, in `web/test`.
//!
//! `BRIMFUL_BLESS=1 cargo test -p brimful-report` writes them anew.

use brimful_core::server::{Connections, Kernel, LogLine, Module, Network, Programs, Server, SocketRequests};
use brimful_core::{model::Model, profile::Profile, record::Record, survey::Survey};
use brimful_core::{testbed::Testbed, workload::Workload};
use brimful_report::plan::{
    calibration::Calibration, forecast::Forecasted, site::Site, solution::Solved, what_if::Changed,
};
use schemars::{JsonSchema, schema_for};
use serde_json::Value;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn the_schemas_are_those_of_the_types() -> Result<(), Box<dyn Error>> {
    follows::<Record>("record")?;
    follows::<Survey>("survey")?;
    follows::<Server>("server")?;
    follows::<LogLine<Kernel>>("log-kernel")?;
    follows::<LogLine<Programs>>("log-process")?;
    follows::<LogLine<Network>>("log-network")?;
    follows::<LogLine<Connections>>("log-connections")?;
    follows::<LogLine<Module>>("log-module")?;
    follows::<LogLine<SocketRequests>>("log-requests")?;
    follows::<Workload>("workload")?;
    follows::<Profile>("profile")?;
    follows::<Model>("model")?;
    follows::<Solved>("solution")?;
    follows::<Calibration>("calibration")?;
    follows::<Changed>("what-if")?;
    follows::<Forecasted>("forecast")?;
    follows::<Testbed>("testbed")?;
    follows::<Site>("site")
}

#[test]
fn the_example_survey_keeps_every_field() {
    let text = fs::read_to_string(root().join("web/example.survey.json")).unwrap();
    let example: Value = serde_json::from_str(&text).unwrap();
    let survey: Survey = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_value(survey).unwrap(), example);
}

fn follows<T: JsonSchema>(name: &str) -> Result<(), Box<dyn Error>> {
    let path = root().join(format!("schema/{name}.schema.json"));
    let schema = serde_json::to_string_pretty(&schema_for!(T))? + "\n";
    if std::env::var_os("BRIMFUL_BLESS").is_some() {
        fs::create_dir_all(root().join("schema"))?;
        fs::write(&path, &schema)?;
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == schema, "{} is out of date: run the tests once with BRIMFUL_BLESS=1", path.display());
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
