//! What the server is to serve: request classes with their demands, as people write them
//! (`light=200us,heavy=2ms/16KiB`).

use crate::error::TargetError;
use brimful_core::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The longest response of a class. Responses are held in memory, ready to send.
const MAX_RESPONSE: Bytes = Bytes(64 << 20);
/// The length of a response whose class does not say.
const DEFAULT_RESPONSE: Bytes = Bytes(1024);
/// The path under which the truth is served, which no class may have.
pub(crate) const TRUTH: &str = "__truth";

/// One class of request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceClass {
    /// Its name, which is its path.
    pub name: String,
    /// Its mean service demand: CPU time burned for each request. Zero burns nothing at all.
    pub demand: Nanos,
    /// Length of the response body.
    pub response: Bytes,
}

/// How the demands of a class's requests are distributed about their mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Each demand is the mean.
    #[default]
    Deterministic,
    /// Demands are exponential: their squared coefficient of variation is one.
    Exponential,
}

impl ServiceClass {
    /// Reads a list of classes, each `name=demand` or `name=demand/size`; the size is 1 KiB unless given.
    ///
    /// # Errors
    /// The first thing that is wrong with the list.
    pub fn parse_list(text: &str) -> Result<Vec<ServiceClass>, TargetError> {
        let classes = text.split(',').map(|item| parse(item.trim())).collect::<Result<Vec<_>, _>>()?;
        validate(&classes)?;
        Ok(classes)
    }
}

/// Checks what the types cannot.
pub(crate) fn validate(classes: &[ServiceClass]) -> Result<(), TargetError> {
    if classes.is_empty() {
        return Err(TargetError::NoClass);
    }
    for (i, class) in classes.iter().enumerate() {
        let unreserved = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
        // Clients resolve `.` and `..` away before they send a path.
        let reserved = ["", ".", "..", TRUTH].contains(&class.name.as_str());
        if reserved || !class.name.chars().all(unreserved) {
            return Err(TargetError::BadName(class.name.clone()));
        }
        if class.response > MAX_RESPONSE {
            return Err(TargetError::TooLarge { name: class.name.clone(), size: class.response, limit: MAX_RESPONSE });
        }
        if classes[..i].iter().any(|other| other.name == class.name) {
            return Err(TargetError::DuplicateName(class.name.clone()));
        }
    }
    Ok(())
}

fn parse(item: &str) -> Result<ServiceClass, TargetError> {
    let error = |reason: String| TargetError::Item { item: item.to_owned(), reason };
    let (name, rest) = item.split_once('=').ok_or_else(|| error(String::new()))?;
    let (demand, size) = rest.split_once('/').map_or((rest, None), |(demand, size)| (demand, Some(size)));
    // Zero needs no unit.
    let demand = if demand.trim() == "0" { Ok(Nanos::ZERO) } else { demand.trim().parse() };
    Ok(ServiceClass {
        name: name.trim().to_owned(),
        demand: demand.map_err(|e| error(format!(": {e}")))?,
        response: size.map_or(Ok(DEFAULT_RESPONSE), |s| s.trim().parse()).map_err(|e| error(format!(": {e}")))?,
    })
}

impl FromStr for Distribution {
    type Err = TargetError;
    fn from_str(text: &str) -> Result<Distribution, TargetError> {
        match text {
            "deterministic" => Ok(Distribution::Deterministic),
            "exponential" => Ok(Distribution::Exponential),
            _ => Err(TargetError::UnknownDistribution(text.to_owned())),
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Distribution::Deterministic => "deterministic",
            Distribution::Exponential => "exponential",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_as_people_write_it() {
        let classes = ServiceClass::parse_list("light=200us, heavy=2ms/16KiB,null=0").unwrap();
        let expected = [
            ("light", Nanos::from_micros(200), Bytes(1024)),
            ("heavy", Nanos::from_millis(2), Bytes(16 << 10)),
            ("null", Nanos::ZERO, Bytes(1024)),
        ];
        let expected =
            expected.map(|(name, demand, response)| ServiceClass { name: name.to_owned(), demand, response });
        assert_eq!(classes, expected);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let message = |text: &str| ServiceClass::parse_list(text).unwrap_err().to_string();
        assert_eq!(
            message("light"),
            "`light` does not describe a service class: write it like light=200us or heavy=2ms/16KiB"
        );
        assert!(
            message("light=200").contains("`light=200` does not describe a service class: `200` is not a duration")
        );
        assert!(message("light=2ms/big").contains("`big` is not a size"));
        assert!(message("a=1ms,a=2ms").starts_with("two service classes are named `a`"));
        assert!(message("").contains("does not describe a service class"));
        assert!(message("a=1ms/1GiB").contains("at most 67108864 bytes"));
        for name in ["", ".", "..", "a/b", "ä", "a b", "__truth"] {
            assert!(message(&format!("{name}=1ms")).contains("cannot name a service class"), "{name}");
        }
    }

    #[test]
    fn a_distribution_reads_back() {
        for distribution in [Distribution::Deterministic, Distribution::Exponential] {
            assert_eq!(distribution.to_string().parse::<Distribution>().unwrap(), distribution);
        }
        assert!("normal".parse::<Distribution>().is_err());
    }
}
