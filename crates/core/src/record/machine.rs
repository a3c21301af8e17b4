//! Identification of a machine in a Record, so that runs on different machines can be distinguished.

use crate::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Name, kernel and CPU model of a machine. If several machines generated a load, each field lists the values of all
/// machines, separated by commas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Machine {
    /// Name of the host.
    pub host: String,
    /// Release of the Linux kernel, like `6.1.0-18-amd64`.
    pub kernel: String,
    /// Model name of the CPUs. Absent if the kernel does not report it, as on many ARM machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
}

impl Machine {
    /// Combines the descriptions of two machines that generated the same load.
    #[must_use]
    pub fn merge(&self, other: &Machine) -> Machine {
        let models = [&self.cpu_model, &other.cpu_model].into_iter().flatten().cloned();
        Machine {
            host: join_values(&self.host, &other.host),
            kernel: join_values(&self.kernel, &other.kernel),
            cpu_model: models.reduce(|ours, theirs| join_values(&ours, &theirs)),
        }
    }
}

/// Merges two comma-separated lists. The result contains each value once, in alphabetical order, so it does not depend
/// on the order in which the lists are merged.
pub fn join_values(one: &str, other: &str) -> String {
    let values: BTreeSet<&str> = one.split(", ").chain(other.split(", ")).filter(|value| !value.is_empty()).collect();
    values.into_iter().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_merge_in_any_order() {
        let machine = |host: &str, cpu_model: Option<&str>| Machine {
            host: host.to_owned(),
            kernel: "6.1".to_owned(),
            cpu_model: cpu_model.map(str::to_owned),
        };
        let [a, b, c] = [machine("a", Some("x")), machine("b", None), machine("c", Some("x"))];
        let merged = c.merge(&a).merge(&b);
        assert_eq!(merged, machine("a, b, c", Some("x")));
        assert_eq!(merged, a.merge(&b.merge(&c)));
    }
}
