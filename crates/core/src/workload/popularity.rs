//! Popularity laws: how often each item of a list is requested, as a function of its rank.

use crate::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A popularity law, written like `zipf:0.8`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Popularity {
    /// Zipf's law with the exponent s: the request frequency of the i-th item is proportional to i^−s (Zipf 1949).
    /// Breslau et al. (1999) measured exponents of 0.64 to 0.83 for web documents. With s = 0, all items are equally
    /// popular.
    Zipf(f64),
}

impl Popularity {
    /// Request frequency, relative to other items, of the item with this rank. The most popular item has rank 0.
    pub fn weight(self, rank: usize) -> f64 {
        let Popularity::Zipf(exponent) = self;
        (rank as f64 + 1.0).powf(-exponent)
    }
}

impl FromStr for Popularity {
    type Err = String;

    fn from_str(text: &str) -> Result<Popularity, String> {
        let exponent = text.strip_prefix("zipf:").and_then(|exponent| exponent.trim().parse::<f64>().ok());
        let valid = exponent.filter(|exponent| exponent.is_finite() && *exponent >= 0.0);
        valid.map(Popularity::Zipf).ok_or_else(|| format!("`{text}` is no popularity: write it like zipf:0.8"))
    }
}

impl TryFrom<String> for Popularity {
    type Error = String;

    fn try_from(text: String) -> Result<Popularity, String> {
        text.parse()
    }
}

impl fmt::Display for Popularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Popularity::Zipf(exponent) = self;
        write!(f, "zipf:{exponent}")
    }
}

impl From<Popularity> for String {
    fn from(popularity: Popularity) -> String {
        popularity.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_is_written_with_its_exponent() {
        assert_eq!("zipf:0.8".parse(), Ok(Popularity::Zipf(0.8)));
        assert_eq!(Popularity::Zipf(0.8).to_string(), "zipf:0.8");
        for text in ["", "zipf", "zipf:", "zipf:-1", "zipf:inf", "zipf:x", "0.8", "pareto:1"] {
            assert!(text.parse::<Popularity>().unwrap_err().contains("zipf:0.8"), "{text}");
        }
    }

    #[test]
    fn the_second_is_asked_for_less_by_its_exponent() {
        let zipf = Popularity::Zipf(2.0);
        assert_eq!((zipf.weight(0), zipf.weight(1), zipf.weight(3)), (1.0, 0.25, 0.0625));
        assert_eq!(Popularity::Zipf(0.0).weight(1_000_000), 1.0);
    }
}
