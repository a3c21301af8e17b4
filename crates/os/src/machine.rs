//! Identifies this machine, for documents that contain its measurements. Sources: proc(5), uname(2).

use brimful_core::record::Machine;
use std::fs;
use std::sync::LazyLock;

/// Returns the name, kernel and CPU model of this machine. They are read once per process, because reading
/// `/proc/cpuinfo` takes milliseconds on a machine with many CPUs.
pub fn this_machine() -> Machine {
    static THIS: LazyLock<Machine> = LazyLock::new(|| Machine {
        host: host_name(),
        kernel: line_of("/proc/sys/kernel/osrelease"),
        cpu_model: fs::read_to_string("/proc/cpuinfo").ok().as_deref().and_then(cpu_model),
    });
    THIS.clone()
}

/// Returns the name of this host; empty if it cannot be read.
pub fn host_name() -> String {
    line_of("/proc/sys/kernel/hostname")
}

fn line_of(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// Returns the model of the first CPU in `/proc/cpuinfo`. On most machines, all CPUs are of the same model.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    let value = |line: &str| {
        let (name, value) = line.split_once(':')?;
        (name.trim_end() == "model name").then(|| value.trim().to_owned())
    };
    cpuinfo.lines().find_map(value).filter(|model| !model.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_of_the_first_cpu_is_read_and_may_be_missing() {
        let x86 = "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Xeon: 2.00GHz\n\nprocessor\t: 1\nmodel name\t: other\n";
        assert_eq!(cpu_model(x86).as_deref(), Some("Xeon: 2.00GHz"));
        assert_eq!(cpu_model("processor\t: 0\nBogoMIPS\t: 48.00\n"), None);
    }

    #[test]
    fn this_machine_has_a_name_and_a_kernel() {
        let machine = this_machine();
        assert!(!machine.host.is_empty() && !machine.kernel.is_empty(), "{machine:?}");
    }
}
