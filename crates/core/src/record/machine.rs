//! The part of a Record that identifies a machine, so that runs on different machines are not mistaken for alike.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A machine: its name, its kernel and its CPUs. If several machines generated a load, each text lists the values of
/// all machines, separated by commas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Machine {
    /// Name of the host.
    pub host: String,
    /// Release of the Linux kernel, like `6.1.0-18-amd64`.
    pub kernel: String,
    /// Model of the CPUs. Absent if the kernel does not name it, as on many ARM machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
}

impl Machine {
    /// Combines the machines of two parts of a load.
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

/// Joins two lists of values, which are separated by commas. Each value is listed once, in alphabetical order, so the
/// result does not depend on the order in which parts are merged.
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
