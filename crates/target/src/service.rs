//! The request classes of the server and the steps of their requests. Also parses the notation for both
//! (`light=200us,heavy=1ms+lock:50us+sleep:5ms/16KiB`).

use crate::error::TargetError;
use brimful_core::units::ParseUnitError;
use brimful_core::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Maximum length of a class's response. There is a limit because responses are kept in memory.
const MAX_RESPONSE: Bytes = Bytes(64 << 20);
/// The default length of a response.
const DEFAULT_RESPONSE: Bytes = Bytes(1024);
/// Maximum number of bytes that one step reads.
pub(crate) const MAX_READ: Bytes = Bytes(16 << 20);
/// The name of the path that returns the true CPU times; no class may have this name.
pub(crate) const TRUTH: &str = "__truth";

/// A class of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceClass {
    /// Name of the class, which is also its path.
    pub name: String,
    /// The steps of each request before its response is sent, in order.
    pub steps: Vec<ServiceStep>,
    /// Length of the response body, in bytes.
    pub response: Bytes,
}

/// A step of a request's service. The time of a step is a mean; the server draws the actual time from its
/// [`Distribution`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceStep {
    /// CPU time, measured by the thread's own clock, so that it does not depend on the speed of the CPU. A step of zero
    /// does nothing.
    Cpu(Nanos),
    /// A fixed amount of work that took this CPU time when the server started: it accesses random cache lines of a
    /// buffer that is larger than the second-level cache, computes, and makes system calls. Like real work, it takes
    /// longer if the caches are cold or other programs use them.
    Work(Nanos),
    /// CPU time under a lock that all requests share.
    Lock(Nanos),
    /// Time in which the worker sleeps, as if it waited for a backend.
    Sleep(Nanos),
    /// A read of this number of bytes at a random offset of a file. The bytes are read from the disk, not from the page
    /// cache.
    Read(Bytes),
}

impl ServiceStep {
    /// The configured CPU time of the step; zero for a sleep or a read.
    fn cpu(self) -> Nanos {
        match self {
            ServiceStep::Cpu(time) | ServiceStep::Work(time) | ServiceStep::Lock(time) => time,
            ServiceStep::Sleep(_) | ServiceStep::Read(_) => Nanos::ZERO,
        }
    }
}

/// The distribution of the service demands of a class around their mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Each demand equals the mean.
    #[default]
    Deterministic,
    /// Demands have an exponential distribution: their squared coefficient of variation is one.
    Exponential,
}

impl ServiceClass {
    /// Returns a class with a single step that uses this CPU time.
    pub fn with_cpu_demand(name: &str, demand: Nanos, response: Bytes) -> ServiceClass {
        ServiceClass { name: name.to_owned(), steps: vec![ServiceStep::Cpu(demand)], response }
    }

    /// The mean service demand of a request: its configured CPU time.
    pub fn demand(&self) -> Nanos {
        self.steps.iter().fold(Nanos::ZERO, |sum, step| sum + step.cpu())
    }

    /// Parses a list of classes, which are separated by commas. Each is written as `name=steps` or `name=steps/size`.
    /// The size is the length of the response, by default 1 KiB. Steps are separated by `+`; each is a CPU time or one
    /// of `cpu:TIME`, `work:TIME`, `lock:TIME`, `sleep:TIME` and `read:SIZE`.
    ///
    /// # Errors
    /// [`TargetError`] for the first error in the list.
    pub fn parse_list(text: &str) -> Result<Vec<ServiceClass>, TargetError> {
        parse_list(text, ServiceStep::Cpu)
    }

    /// Like [`ServiceClass::parse_list`], except that a time without a prefix is a [`ServiceStep::Work`].
    ///
    /// # Errors
    /// [`TargetError`] for the first error in the list.
    pub fn parse_work_list(text: &str) -> Result<Vec<ServiceClass>, TargetError> {
        parse_list(text, ServiceStep::Work)
    }
}

/// Parses a list of classes. A time without a prefix becomes the step `bare`.
fn parse_list(text: &str, bare: fn(Nanos) -> ServiceStep) -> Result<Vec<ServiceClass>, TargetError> {
    let classes = text.split(',').map(|item| parse(item.trim(), bare)).collect::<Result<Vec<_>, _>>()?;
    validate(&classes)?;
    Ok(classes)
}

/// Checks the names and sizes of classes.
pub(crate) fn validate(classes: &[ServiceClass]) -> Result<(), TargetError> {
    if classes.is_empty() {
        return Err(TargetError::NoClass);
    }
    for (i, class) in classes.iter().enumerate() {
        let is_unreserved = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
        // `.` and `..` cannot be paths: clients remove them from a path before they send it.
        let reserved = ["", ".", "..", TRUTH].contains(&class.name.as_str());
        if reserved || !class.name.chars().all(is_unreserved) {
            return Err(TargetError::BadName(class.name.clone()));
        }
        if class.response > MAX_RESPONSE {
            return Err(TargetError::TooLarge { name: class.name.clone(), size: class.response, limit: MAX_RESPONSE });
        }
        let mut read_sizes =
            class.steps.iter().filter_map(|step| if let ServiceStep::Read(size) = step { Some(*size) } else { None });
        if let Some(size) = read_sizes.find(|size| *size == Bytes(0) || *size > MAX_READ) {
            return Err(TargetError::ReadSize { name: class.name.clone(), size, limit: MAX_READ });
        }
        if classes[..i].iter().any(|other| other.name == class.name) {
            return Err(TargetError::DuplicateName(class.name.clone()));
        }
    }
    Ok(())
}

fn parse(item: &str, bare: fn(Nanos) -> ServiceStep) -> Result<ServiceClass, TargetError> {
    let error = |reason: String| TargetError::Item { item: item.to_owned(), reason };
    let (name, rest) = item.split_once('=').ok_or_else(|| error(String::new()))?;
    let (steps, size) = rest.split_once('/').map_or((rest, None), |(steps, size)| (steps, Some(size)));
    Ok(ServiceClass {
        name: name.trim().to_owned(),
        steps: steps.split('+').map(|text| parse_step(text.trim(), bare)).collect::<Result<_, _>>().map_err(error)?,
        response: size.map_or(Ok(DEFAULT_RESPONSE), |s| s.trim().parse()).map_err(|e| error(format!(": {e}")))?,
    })
}

/// Parses one step. An error message begins with a colon.
fn parse_step(text: &str, bare: fn(Nanos) -> ServiceStep) -> Result<ServiceStep, String> {
    let Some((kind, amount)) = text.split_once(':') else {
        return parse_time(text).map(bare).map_err(|error| format!(": {error}"));
    };
    let amount = amount.trim();
    let step = match kind.trim() {
        "cpu" => parse_time(amount).map(ServiceStep::Cpu),
        "work" => parse_time(amount).map(ServiceStep::Work),
        "lock" => parse_time(amount).map(ServiceStep::Lock),
        "sleep" => parse_time(amount).map(ServiceStep::Sleep),
        "read" => amount.parse().map(ServiceStep::Read),
        _ => return Err(format!(": the step `{text}` is none of cpu, work, lock, sleep and read")),
    };
    step.map_err(|error| format!(": in the step `{text}`, {error}"))
}

/// Parses a time. Zero may be written without a unit.
fn parse_time(text: &str) -> Result<Nanos, ParseUnitError> {
    if text == "0" { Ok(Nanos::ZERO) } else { text.parse() }
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
    fn lists_are_parsed() {
        let classes = ServiceClass::parse_list("light=200us, heavy=2ms/16KiB,null=0").unwrap();
        let expected = [
            ("light", Nanos::from_micros(200), Bytes(1024)),
            ("heavy", Nanos::from_millis(2), Bytes(16 << 10)),
            ("null", Nanos::ZERO, Bytes(1024)),
        ];
        assert_eq!(
            classes,
            expected.map(|(name, demand, response)| ServiceClass::with_cpu_demand(name, demand, response))
        );

        let micros = Nanos::from_micros;
        let classes =
            ServiceClass::parse_list("a=work:170us + lock:50us+sleep:5ms+ read:64KiB+10us/2KiB,b=cpu:1ms").unwrap();
        let steps = [
            ServiceStep::Work(micros(170)),
            ServiceStep::Lock(micros(50)),
            ServiceStep::Sleep(micros(5000)),
            ServiceStep::Read(Bytes(64 << 10)),
            ServiceStep::Cpu(micros(10)),
        ];
        assert_eq!((classes[0].steps.as_slice(), classes[0].demand()), (&steps[..], micros(230)));
        assert_eq!((classes[0].response, &classes[1].steps), (Bytes(2048), &vec![ServiceStep::Cpu(micros(1000))]));

        let classes = ServiceClass::parse_work_list("light=170us,heavy=500us+sleep:1ms+cpu:20us/2KiB").unwrap();
        assert_eq!(classes[0].steps, [ServiceStep::Work(micros(170))]);
        assert_eq!(
            classes[1].steps,
            [ServiceStep::Work(micros(500)), ServiceStep::Sleep(micros(1000)), ServiceStep::Cpu(micros(20))]
        );
    }

    #[test]
    fn errors_name_the_item() {
        let message = |text: &str| ServiceClass::parse_list(text).unwrap_err().to_string();
        assert_eq!(
            message("light"),
            "`light` does not describe a service class: write it like light=200us or heavy=2ms+sleep:5ms/16KiB"
        );
        assert!(
            message("light=200").contains("`light=200` does not describe a service class: `200` is not a duration")
        );
        assert!(message("light=2ms/big").contains("`big` is not a size"));
        assert!(message("a=1ms,a=2ms").starts_with("two service classes are named `a`"));
        assert!(message("").contains("does not describe a service class"));
        assert!(message("a=1ms+nap:1ms").contains(": the step `nap:1ms` is none of cpu, work, lock, sleep and read"));
        assert!(message("a=1ms+lock:7").contains(": in the step `lock:7`, `7` is not a duration"));
        assert!(message("a=sleep:").contains(": in the step `sleep:`, `` is not a duration"));
        assert!(message("a=read:much+1ms").contains(": in the step `read:much`, `much` is not a size"));
        for size in ["0", "17MiB"] {
            assert!(message(&format!("a=read:{size}")).contains("a step of class `a` reads "), "{size}");
        }
        assert!(message("a=1ms+").contains("`` is not a duration"));
        assert!(ServiceClass::parse_work_list("a=7").unwrap_err().to_string().contains("`7` is not a duration"));
        assert!(message("a=1ms/1GiB").contains("at most 67108864 bytes"));
        for name in ["", ".", "..", "a/b", "ä", "a b", "__truth"] {
            assert!(message(&format!("{name}=1ms")).contains("cannot name a service class"), "{name}");
        }
    }

    #[test]
    fn distributions_round_trip() {
        for distribution in [Distribution::Deterministic, Distribution::Exponential] {
            assert_eq!(distribution.to_string().parse::<Distribution>().unwrap(), distribution);
        }
        assert!("normal".parse::<Distribution>().is_err());
    }
}
