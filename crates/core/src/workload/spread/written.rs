//! The notation of probability distributions, like `lognormal:20,1.5`. Parsing a text that [`Display`](fmt::Display)
//! wrote yields the original distribution.

use super::{Spread, SpreadError};
use crate::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The serialised form of a [`Spread`]: `3`, or `"lognormal:20,1.5"`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, rename = "Spread")]
pub(super) enum SerializedSpread {
    /// A constant distribution, as a number.
    Number(f64),
    /// A distribution, as `exponential:MEAN`, `geometric:MEAN`, `lognormal:MEAN,CV`, `pareto:MEAN,TAIL` or
    /// `quantiles:0=LEAST,0.5=MEDIAN,1=MOST`, or a number in quotes.
    Text(String),
}

impl TryFrom<SerializedSpread> for Spread {
    type Error = SpreadError;

    fn try_from(written: SerializedSpread) -> Result<Spread, SpreadError> {
        match written {
            SerializedSpread::Number(value) => {
                let spread = Spread::Constant(value);
                spread.validate().map(|()| spread)
            }
            SerializedSpread::Text(text) => text.parse(),
        }
    }
}

impl From<Spread> for SerializedSpread {
    fn from(spread: Spread) -> SerializedSpread {
        SerializedSpread::Text(spread.to_string())
    }
}

impl FromStr for Spread {
    type Err = SpreadError;

    fn from_str(text: &str) -> Result<Spread, SpreadError> {
        let spread = read(text).ok_or_else(|| SpreadError::Unknown(text.to_owned()))?;
        spread.validate().map(|()| spread)
    }
}

fn read(text: &str) -> Option<Spread> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let Some((name, parameters)) = text.split_once(':') else { return number(text).map(Spread::Constant) };
    let parameters: Vec<&str> = parameters.split(',').collect();
    match (name.trim(), &parameters[..]) {
        ("exponential", [mean]) => Some(Spread::Exponential { mean: number(mean)? }),
        ("geometric", [mean]) => Some(Spread::Geometric { mean: number(mean)? }),
        ("lognormal", [mean, cv]) => Some(Spread::Lognormal { mean: number(mean)?, cv: number(cv)? }),
        ("pareto", [mean, tail]) => Some(Spread::Pareto { mean: number(mean)?, tail: number(tail)? }),
        ("quantiles", points) => {
            let point = |point: &&str| point.split_once('=').and_then(|(p, value)| Some([number(p)?, number(value)?]));
            points.iter().map(point).collect::<Option<_>>().map(Spread::Quantiles)
        }
        _ => None,
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spread::Constant(value) => write!(f, "{value}"),
            Spread::Exponential { mean } => write!(f, "exponential:{mean}"),
            Spread::Geometric { mean } => write!(f, "geometric:{mean}"),
            Spread::Lognormal { mean, cv } => write!(f, "lognormal:{mean},{cv}"),
            Spread::Pareto { mean, tail } => write!(f, "pareto:{mean},{tail}"),
            Spread::Quantiles(points) => {
                for (nth, [p, value]) in points.iter().enumerate() {
                    write!(f, "{}{p}={value}", if nth == 0 { "quantiles:" } else { "," })?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::any_spread;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_distribution_says_what_would_be() {
        for (text, word) in [
            ("", "write a number"),
            ("often", "write a number"),
            ("weibull:1,2", "write a number"),
            ("exponential:1,2", "write a number"),
            ("quantiles:0=1,1", "write a number"),
            ("-1", "from 0 to 1e15"),
            ("NaN", "from 0 to 1e15"),
            ("exponential:inf", "from 0 to 1e15"),
            ("geometric:0.5", "from 1 to 1e15"),
            ("lognormal:0,1", "above zero"),
            ("lognormal:1,-1", "variation"),
            ("pareto:1,1", "no mean"),
            ("quantiles:0=1", "the last 1"),
            ("quantiles:0.1=1,1=2", "first probability is 0"),
            ("quantiles:0=1,0.5=3,0.4=4,1=5", "rise"),
            ("quantiles:0=1,0.5=3,1=2", "rise"),
            ("quantiles:0=-1,1=2", "from 0 to 1e15"),
            ("quantiles:0=1,NaN=2,1=3", "rise"),
        ] {
            let error = text.parse::<Spread>().unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn a_constant_may_be_a_number_of_the_document() {
        let read = |json: &str| serde_json::from_str::<Spread>(json);
        assert_eq!(read("3").unwrap(), Spread::Constant(3.0));
        assert_eq!(read("2.5").unwrap(), Spread::Constant(2.5));
        assert_eq!(read("\"3\"").unwrap(), Spread::Constant(3.0));
        assert!(read("-3").is_err() && read("[]").is_err() && read("\"geometric:0\"").is_err());
        #[derive(Deserialize)]
        struct Document {
            whole: Spread,
            text: Spread,
        }
        let Document { whole, text } = toml::from_str("whole = 3\ntext = 'geometric:4'").unwrap();
        assert_eq!((whole, text), (Spread::Constant(3.0), Spread::Geometric { mean: 4.0 }));
    }

    proptest! {
        #[test]
        fn what_is_displayed_reads_back(spread in any_spread()) {
            prop_assert_eq!(spread.to_string().parse::<Spread>(), Ok(spread.clone()));
            let json = serde_json::to_string(&spread).unwrap();
            prop_assert_eq!(serde_json::from_str::<Spread>(&json).unwrap(), spread);
        }

        #[test]
        fn no_text_panics(text in "(exponential|geometric|lognormal|pareto|quantiles|.*):?[-0-9.e%,=inf ]*") {
            if let Ok(spread) = text.parse::<Spread>() {
                spread.count(0.999);
            }
        }
    }
}
