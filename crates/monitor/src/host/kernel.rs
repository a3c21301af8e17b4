//! Checks whether this process can use io_uring and eBPF, by trying both.

use super::{Finding, Fix, judged, numbers};
use crate::sys;
use rustix::thread::{CapabilitySet, capabilities};
use std::io;
use std::path::Path;

/// Returns the findings about io_uring and eBPF.
pub(super) fn examine(root: &Path) -> Vec<Finding> {
    let capable = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    let setting = |path| numbers(root, path).map(|[n]: [u64; 1]| n);
    vec![
        io_uring(sys::try_io_uring(), setting("proc/sys/kernel/io_uring_disabled")),
        ebpf(
            sys::try_bpf(),
            capable,
            root.join("sys/kernel/btf/vmlinux").exists(),
            setting("proc/sys/kernel/unprivileged_bpf_disabled"),
        ),
    ]
}

fn io_uring(attempt: io::Result<()>, disabled: Option<u64>) -> Finding {
    let setting = disabled.map_or_else(String::new, |n| format!(", kernel.io_uring_disabled = {n}"));
    let (good, value) = match attempt {
        Ok(()) => (true, format!("works{setting}")),
        Err(error) => (false, format!("refused: {error}{setting}")),
    };
    let fix = match disabled {
        Some(1..) => Fix::from("sudo sysctl -w kernel.io_uring_disabled=0"),
        Some(0) => Fix::by_hand("docker run --security-opt seccomp=unconfined …    # a container's filter refuses it"),
        None => Fix::by_hand("uname -r    # io_uring is in Linux 5.1 and later, where it was not configured away"),
    };
    judged(
        "io_uring",
        good,
        value,
        "without it the load engine uses epoll, at more CPU per new connection".to_owned(),
        fix,
    )
}

fn ebpf(attempt: io::Result<()>, capable: CapabilitySet, types: bool, unprivileged: Option<u64>) -> Finding {
    let privileged =
        capable.contains(CapabilitySet::SYS_ADMIN) || capable.contains(CapabilitySet::BPF | CapabilitySet::PERFMON);
    let map = attempt.as_ref().map_or_else(|error| format!("refused: {error}"), |()| "works".to_owned());
    let value = format!(
        "a map {map}; capabilities {}; kernel types {}; unprivileged_bpf_disabled {}",
        if privileged { "sufficient" } else { "missing" },
        if types { "in /sys/kernel/btf/vmlinux" } else { "missing" },
        unprivileged.map_or_else(|| "unknown".to_owned(), |n| n.to_string()),
    );
    let fix = match (privileged, types) {
        (false, _) => {
            Fix::from("sudo setcap cap_bpf,cap_perfmon,cap_net_admin,cap_sys_nice+ep \"$(command -v brimful)\"")
        }
        (true, false) => {
            Fix::by_hand("sudo apt install linux-image-amd64    # or any kernel built with CONFIG_DEBUG_INFO_BTF=y")
        }
        (true, true) => Fix::by_hand("docker run --cap-add BPF --cap-add PERFMON --security-opt seccomp=unconfined …"),
    };
    let means = "without it processes are read from /proc and connections counted by sock_diag: at a higher cost, and less often"
        .to_owned();
    let means = if attempt.is_ok() && privileged && types {
        "processes and connections are watched by eBPF, at a fraction of the cost".to_owned()
    } else {
        means
    };
    judged("ebpf", attempt.is_ok() && privileged && types, value, means, fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_what_refuses() {
        let refused = || Err(io::Error::from_raw_os_error(libc::EPERM));
        for (disabled, fix) in [(Some(2), "sysctl"), (Some(0), "seccomp"), (None, "uname")] {
            assert!(io_uring(refused(), disabled).fix.unwrap().contains(fix));
        }
        assert_eq!(io_uring(Ok(()), Some(0)).fix, None);
        let (none, all) = (CapabilitySet::empty(), CapabilitySet::all());
        for (attempt, capable, types, fix) in [
            (refused(), none, true, Some("setcap")),
            (Ok(()), none, true, Some("setcap")), // unprivileged users may be allowed to create maps, but not to trace
            (Ok(()), all, false, Some("BTF")),
            (refused(), all, true, Some("docker")),
            (Ok(()), all, true, None),
            (Ok(()), CapabilitySet::BPF | CapabilitySet::PERFMON, true, None),
        ] {
            let found = ebpf(attempt, capable, types, Some(2)).fix;
            assert_eq!(found.is_some(), fix.is_some());
            assert!(fix.is_none_or(|fix| found.unwrap().contains(fix)));
        }
    }
}
