//! Functions of the kernel that several crates need: clocks ([`clock`]), CPUs ([`cpus`]) and CPU quotas ([`cgroup`]).
#![forbid(unsafe_code)]

pub mod cgroup;
pub mod clock;
pub mod cpus;
