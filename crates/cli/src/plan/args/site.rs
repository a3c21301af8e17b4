//! The flags of `brimful plan calibrate --log` that apply to access logs only, and the parsers of their values.

use crate::testbed::args::bits_per_s;
use brimful_accesslog::profile::SizeRanges;
use brimful_core::Nanos;
use clap::Args;
use std::path::PathBuf;
use std::str::FromStr;

/// Flags that apply to access logs only.
#[derive(Debug, Args)]
pub struct SiteArgs {
    /// Upper bounds of classes by size of the response, like 0,1k,10k,100k [default: classes are derived from the sizes]
    #[arg(long, value_name = "BYTES,…", requires = "log", conflicts_with = "records")]
    pub size_classes: Option<SizeRanges>,
    /// Demand of a class from a Record of a run of this class alone; without CLASS=, of answers without a body. Three or
    /// more Records of other sizes yield the cost without a body from a line (repeatable)
    #[arg(long, value_name = "[CLASS=]RECORD", requires = "log", conflicts_with = "records")]
    pub alone: Vec<SingleClassRecord>,
    /// Demand of a class that is known from elsewhere, like disk3.empty=1.74ms (repeatable)
    #[arg(long, value_name = "RESOURCE.CLASS=TIME", requires = "log", conflicts_with = "records")]
    pub demand: Vec<KnownDemand>,
    /// Use the classes and rules of Menascé et al. (CMG 1999): cpu and disk3 by size, disk1 and disk2 by requests, and
    /// requests cause all the busy time. Other flags override parts of it
    #[arg(long, requires = "log", conflicts_with = "records")]
    pub as_the_paper: bool,
    /// Add the network link of the server to the model, with this rate in each direction, like 10mbit
    #[arg(long, value_name = "RATE", requires = "log", conflicts_with = "records", value_parser = bits_per_s)]
    pub link: Option<f64>,
    /// Add the round trips between clients and the server to the model, each of this length
    #[arg(long, value_name = "TIME", requires = "log", conflicts_with = "records", value_parser = round_trip)]
    pub rtt: Option<Nanos>,
    /// Rate of each client's own access link, of a class or of all classes, like class4=128kbit (repeatable)
    #[arg(long, value_name = "[CLASS=]RATE", requires = "log", conflicts_with = "records")]
    pub access: Vec<AccessRate>,
    /// Largest number of bytes in a TCP segment, for the network's overhead [default: 1460]
    #[arg(long, value_name = "BYTES", requires = "log", conflicts_with = "records", value_parser = clap::value_parser!(u32).range(64..=65_495))]
    pub mss: Option<u32>,
    /// Mean number of requests on a connection, for the network's overhead [default: 1]
    #[arg(long, value_name = "N", requires = "log", conflicts_with = "records", value_parser = requests)]
    pub requests_per_connection: Option<f64>,
    /// Programs that ran, to name the one behind work that requests do not explain: pacct of process accounting, or
    /// process.jsonl of `brimful watch --log` [default: process.jsonl beside kernel.jsonl]
    #[arg(long, value_name = "FILE", requires = "log", conflicts_with = "records")]
    pub programs: Option<PathBuf>,
}

/// A value of `--attribution`: a rule for all resources, like `bytes`, or for one resource, like `cpu=bytes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributionChoice {
    /// The resource; `None` for all resources without a rule of their own.
    pub resource: Option<String>,
    /// The rule by which classes share the resource's busy time.
    pub rule: RuleName,
}

/// A rule that divides the busy time of a resource among the classes of requests, such as by bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleName {
    Automatic,
    Regression,
    Line,
    Size,
    Bytes,
    Requests,
    /// The only class that uses the resource, by its name.
    Class(String),
}

impl RuleName {
    /// The names of the rules in messages.
    pub const NAMES: &str = "auto, regression, line, size, bytes, requests, or the name of a class";
}

impl FromStr for AttributionChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<AttributionChoice, String> {
        let (resource, rule) = match text.rsplit_once('=') {
            Some((resource, rule)) => (Some(resource.trim()), rule.trim()),
            None => (None, text.trim()),
        };
        if rule.is_empty() || resource.is_some_and(str::is_empty) {
            return Err(format!("`{text}` is not a rule: write it like cpu=size; the rules are {}", RuleName::NAMES));
        }
        let rule = match rule {
            "auto" => RuleName::Automatic,
            "regression" => RuleName::Regression,
            "line" => RuleName::Line,
            "size" => RuleName::Size,
            "bytes" => RuleName::Bytes,
            "requests" => RuleName::Requests,
            class => RuleName::Class(class.to_owned()),
        };
        Ok(AttributionChoice { resource: resource.map(str::to_owned), rule })
    }
}

/// A value of `--alone`: the Record of a run in which only one class made requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleClassRecord {
    /// Name of the request class; `None` for the class of responses without a body.
    pub class: Option<String>,
    /// Path of the Record.
    pub path: PathBuf,
}

impl FromStr for SingleClassRecord {
    type Err = String;

    fn from_str(text: &str) -> Result<SingleClassRecord, String> {
        // A value that is an existing path is not split at `=`.
        let is_path = std::path::Path::new(text).exists();
        match text.split_once('=').filter(|_| !is_path) {
            Some((class, path)) if class.is_empty() || path.is_empty() => {
                Err(format!("`{text}` needs a class and a file: write it like images=images.json"))
            }
            Some((class, path)) => Ok(SingleClassRecord { class: Some(class.to_owned()), path: path.into() }),
            None if text.is_empty() => Err("the name of a file is missing".to_owned()),
            None => Ok(SingleClassRecord { class: None, path: text.into() }),
        }
    }
}

/// A value of `--demand`: a demand that is known from other measurements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownDemand {
    /// Name of the resource.
    pub resource: String,
    /// Name of the request class.
    pub class: String,
    /// Service demand of one request.
    pub time: Nanos,
}

impl FromStr for KnownDemand {
    type Err = String;

    fn from_str(text: &str) -> Result<KnownDemand, String> {
        let example = "write it like disk3.empty=1.74ms";
        let named = text.rsplit_once('=').and_then(|(name, time)| Some((name.split_once('.')?, time)));
        let Some(((resource, class), time)) = named.filter(|((a, b), _)| !a.is_empty() && !b.is_empty()) else {
            return Err(format!("`{text}` does not name a resource and a class: {example}"));
        };
        let time: Nanos = time.trim().parse().map_err(|error| format!("{error}; {example}"))?;
        Ok(KnownDemand { resource: resource.trim().to_owned(), class: class.trim().to_owned(), time })
    }
}

/// A value of `--access`: the rate of clients' access links.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessRate {
    /// Name of the request class; `None` for all classes without a rate of their own.
    pub class: Option<String>,
    /// Rate of each client's link, in bits per second.
    pub bits_per_s: f64,
}

impl FromStr for AccessRate {
    type Err = String;

    fn from_str(text: &str) -> Result<AccessRate, String> {
        let (class, rate) = match text.rsplit_once('=') {
            Some((class, rate)) => (Some(class.trim().to_owned()), rate),
            None => (None, text),
        };
        if class.as_ref().is_some_and(String::is_empty) {
            return Err(format!("`{text}` has no class before `=`: write it like class4=128kbit"));
        }
        Ok(AccessRate { class, bits_per_s: bits_per_s(rate.trim())? })
    }
}

fn round_trip(text: &str) -> Result<Nanos, String> {
    let time: Nanos = text.parse().map_err(|error: brimful_core::units::ParseUnitError| error.to_string())?;
    match time > Nanos::ZERO && time <= Nanos::from_secs(60) {
        true => Ok(time),
        false => Err(format!("`{text}` is not a round trip of up to a minute: write it like 60ms")),
    }
}

fn requests(text: &str) -> Result<f64, String> {
    let number = text.trim().parse::<f64>().ok().filter(|number| (1.0..=1e9).contains(number));
    number.ok_or_else(|| format!("`{text}` is not a number of requests: a connection has 1 or more, like 20"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_for_one_resource_or_for_all() {
        let choice = |text: &str| text.parse::<AttributionChoice>();
        let expected = AttributionChoice { resource: Some("cpu".to_owned()), rule: RuleName::Size };
        assert_eq!(choice("cpu=size"), Ok(expected));
        let expected = AttributionChoice { resource: None, rule: RuleName::Bytes };
        assert_eq!(choice("bytes"), Ok(expected));
        assert_eq!(choice("disk3=class1").unwrap().rule, RuleName::Class("class1".to_owned()));
        for text in ["", "=", "cpu=", "=size"] {
            assert!(choice(text).unwrap_err().contains("cpu=size"), "{text}");
        }
    }

    #[test]
    fn records_belong_to_a_class_or_to_answers_without_a_body() {
        let alone: SingleClassRecord = "images=a=b.json".parse().unwrap();
        assert_eq!(alone, SingleClassRecord { class: Some("images".to_owned()), path: "a=b.json".into() });
        assert_eq!("empty.json".parse::<SingleClassRecord>().unwrap().class, None);
        for text in ["", "=a", "a="] {
            assert!(text.parse::<SingleClassRecord>().is_err(), "{text}");
        }
    }

    #[test]
    fn known_demands_and_rates_are_parsed() {
        let known: KnownDemand = "disk3.1-4372=1.74ms".parse().unwrap();
        assert_eq!((known.class.as_str(), known.time), ("1-4372", Nanos::from_micros(1740)));
        for text in ["", "cpu=1ms", "cpu.a", "cpu.a=1", ".a=1ms", "cpu.=1ms", "cpu.a=-1ms"] {
            assert!(text.parse::<KnownDemand>().unwrap_err().contains("disk3.empty=1.74ms"), "{text}");
        }
        let access: AccessRate = "class4=128kbit".parse().unwrap();
        assert_eq!((access.class.as_deref(), access.bits_per_s), (Some("class4"), 128e3));
        assert!("=1mbit".parse::<AccessRate>().is_err() && "fast".parse::<AccessRate>().is_err());
        assert!(requests("0").is_err() && requests("nan").is_err() && requests("20") == Ok(20.0));
        assert!(round_trip("2h").is_err() && round_trip("0s").is_err() && round_trip("60").is_err());
    }
}
