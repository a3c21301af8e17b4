//! Functions of the operating system that several crates of brimful need.
#![forbid(unsafe_code)]

/// CPU quotas of control groups.
pub mod cgroup;
/// The kernel's clocks.
pub mod clock;
/// Numbers of CPUs, and pinning of threads to CPUs.
pub mod cpus;
/// Name, kernel and CPU model of this machine.
pub mod machine;
