//! Reads a queueing model in JSON or TOML, alone or inside a document that contains one, such as a survey or a
//! calibration.

use crate::documents::{display_name, from_json, read_text};
use crate::exit::UsageError;
use crate::output::print_note;
use brimful_core::model::Model;
use brimful_core::text::strip_bom;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value};
use std::path::Path;

/// Reads the model in a file, or on stdin if the path is `-`. Prints notes about the model.
pub fn read(path: &Path) -> anyhow::Result<Model> {
    let text = read_text(path)?;
    let model = parse(&text).map_err(|message| UsageError(format!("{}: {message}", display_name(path))))?;
    for note in &model.notes {
        print_note(&format!("note: {}: {note}", display_name(path)));
    }
    Ok(model.model)
}

/// A model, and notes about the document that contained it.
#[derive(Debug, PartialEq)]
struct Parsed {
    model: Model,
    notes: Vec<String>,
}

/// A document that may contain a queueing model: a survey, a solution or a calibration.
#[derive(Deserialize)]
struct Holder {
    model: Model,
}

/// The result of `plan what-if`, which contains the changed model.
#[derive(Deserialize)]
struct WhatIf {
    after: Option<Holder>,
    before: Holder,
}

impl WhatIf {
    fn model(self) -> Model {
        self.after.unwrap_or(self.before).model
    }
}

/// Prefix of the `schema` of surveys.
const SURVEY_SCHEMA: &str = "brimful.survey/";

/// The top-level keys of a model.
const MODEL_KEYS: [&str; 6] =
    ["stations", "classes", "demands", "demand_ci95_half_width", "demand_correlation", "joint_demands"];

fn parse(text: &str) -> Result<Parsed, String> {
    let text = strip_bom(text);
    let is_json = text.trim_start().starts_with('{') || serde_json::from_str::<IgnoredAny>(text).is_ok();
    if is_json {
        let keys: Map<String, Value> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let what_if = keys.contains_key("before");
        let inside = || match what_if {
            true => from_json(text).map(WhatIf::model),
            false => from_json(text).map(|holder: Holder| holder.model),
        };
        choose(keys, || from_json(text), inside)
    } else {
        let keys: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        let keys = keys.into_iter().map(|(key, value)| (key, Value::from(value.as_str())));
        choose(keys.collect(), || from_toml(text), || from_toml::<Holder>(text).map(|holder| holder.model))
    }
}

/// Parses a document that is a model, or the model inside a document. If the document has the key `stations`, it is a
/// model. The key `demands` does not show this, because a survey has this key, too. The model is parsed from the text,
/// so that errors have line numbers.
fn choose(
    keys: Map<String, Value>,
    itself: impl FnOnce() -> Result<Model, String>,
    inside: impl FnOnce() -> Result<Model, String>,
) -> Result<Parsed, String> {
    let schema = keys.get("schema").and_then(Value::as_str).unwrap_or_default();
    let contains_model = keys.contains_key("model") || keys.contains_key("before");
    if contains_model && !keys.contains_key("stations") {
        let model = inside()?;
        if model.stations.is_empty() && schema.starts_with(SURVEY_SCHEMA) {
            return Err(
                "this survey ended before it had a model, for the reason in its verdict: survey the server again"
                    .to_owned(),
            );
        }
        return Ok(Parsed { model, notes: validity_warnings(&keys) });
    }
    if MODEL_KEYS.iter().any(|part| keys.contains_key(*part)) {
        let others = keys.into_iter().map(|(key, _)| key).filter(|key| !MODEL_KEYS.contains(&key.as_str()));
        let notes = others.map(|key| format!("`{key}` is not a part of a model and is ignored")).collect();
        return itself().map(|model| Parsed { model, notes });
    }
    Err(match schema.starts_with("brimful.record/") {
        true => {
            "this is a Record: fit a model to it with `brimful plan calibrate RECORD… --out model.json`".to_owned()
        }
        false => {
            "this contains no model: a model has `stations`, `classes` and `demands` in seconds, one row per station with \
             one demand per class"
                .to_owned()
        }
    })
}

/// Warnings that the measurements from which the model was fitted are not valid, according to the verdict in the
/// document.
fn validity_warnings(keys: &Map<String, Value>) -> Vec<String> {
    let Some(verdict) = keys.get("verdict").filter(|verdict| verdict["valid"] == false) else { return Vec::new() };
    let why = verdict["reasons"][0]["message"].as_str().unwrap_or("the document gives no reason");
    vec![format!(
        "the measurements that this model was fitted to are NOT VALID, so do not rely on its predictions: {why}"
    )]
}

fn from_toml<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::model::JointDemand;
    use brimful_core::record::{Reason, ReasonCode, Verdict};
    use brimful_core::survey::Survey;

    const JSON: &str = r#"{ "stations": [{ "name": "cpu", "type": "queue" }],
        "classes": [{ "name": "page", "type": "open", "rate": 5 }],
        "demands": [[0.1]] }"#;
    const TOML: &str = "demands = [[0.1]]\n[[stations]]\nname = \"cpu\"\ntype = \"queue\"\n[[classes]]\nname = \"page\"\n\
                        type = \"open\"\nrate = 5\n";

    #[test]
    fn a_model_is_read_from_both_languages_and_from_within_a_document() {
        let model = parse(JSON).unwrap();
        assert_eq!((model.model.stations[0].name.as_str(), model.notes.len()), ("cpu", 0));
        assert_eq!(parse(TOML).unwrap(), model);
        assert_eq!(parse(&format!("\u{feff}{JSON}")).unwrap(), model);
        assert_eq!(parse(&format!("{{ \"schema\": \"brimful.survey/1\", \"model\": {JSON} }}")).unwrap(), model);
        let inside = TOML
            .replace("demands", "title = \"x\"\n[model]\ndemands")
            .replace("[[", "[[model.")
            .replace("[[model.0", "[[0");
        assert_eq!(parse(&inside).unwrap(), model);
    }

    #[test]
    fn what_is_not_read_is_named() {
        let parsed = parse(&JSON.replacen('{', "{ \"source\": \"a book\",", 1)).unwrap();
        assert_eq!(parsed.notes, ["`source` is not a part of a model and is ignored"]);
    }

    #[test]
    fn a_survey_has_demands_of_its_own_and_its_model_is_read() {
        let text = include_str!("../../../../web/example.survey.json");
        let survey: Survey = serde_json::from_str(text).unwrap();
        assert!(!survey.demands.is_empty(), "this test needs a survey with demands");
        assert_eq!(parse(text).unwrap(), Parsed { model: survey.model.clone(), notes: Vec::new() });

        let why = Reason { code: ReasonCode::OtherWork, message: "Something else ran.".to_owned() };
        let doubtful = Survey { verdict: Verdict::from_reasons(vec![why]), ..survey.clone() };
        let notes = parse(&serde_json::to_string(&doubtful).unwrap()).unwrap().notes;
        assert!(notes.len() == 1 && notes[0].ends_with("Something else ran."), "{notes:?}");

        let cut_short = Survey { model: Model::default(), ..survey };
        let error = parse(&serde_json::to_string(&cut_short).unwrap()).unwrap_err();
        assert!(error.contains("survey the server again"), "{error}");
    }

    #[test]
    fn every_part_of_a_model_is_read() {
        let plain = parse(JSON).unwrap().model;
        let whole = Model {
            demand_ci95_half_width: vec![vec![0.01]],
            demand_correlation: vec![vec![vec![1.0]]],
            joint_demands: vec![JointDemand::default()],
            ..plain
        };
        let text = serde_json::to_string(&whole).unwrap();
        assert_eq!(serde_json::from_str::<Map<String, Value>>(&text).unwrap().len(), MODEL_KEYS.len());
        assert_eq!(parse(&text).unwrap(), Parsed { model: whole, notes: Vec::new() });
    }

    #[test]
    fn errors_say_where() {
        for (text, words) in [
            (JSON.replace("[[0.1]]", "[[null]]"), "demands[0][0]: invalid type: null"),
            (JSON.replace("\"rate\": 5", "\"rate\": \"5\""), "line 2"),
            (JSON.replace("\"type\": \"queue\"", "\"typ\": \"queue\""), "stations[0].typ: unknown field `typ`"),
            (JSON.replace("\"queue\"", "\"pub\""), "expected `queue` or `delay`"),
            (JSON.replace(", \"type\": \"open\"", ""), "missing field `type`"),
            (TOML.replace("queue", "pub"), "line 4"),
            (TOML.replace("rate = 5", "rate = five"), "line 8"),
            (TOML.replace("demands", "demand"), "missing field `demands`"),
            ("[]".to_owned(), "expected a map"),
            (String::new(), "contains no model"),
            ("{}".to_owned(), "`stations`, `classes` and `demands`"),
            ("{ \"schema\": \"brimful.record/1\" }".to_owned(), "plan calibrate"),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.contains(words), "{words:?} was expected: {error}");
        }
    }
}
