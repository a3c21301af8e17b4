//! Functions of the kernel that several crates need: clocks ([`clock`]), CPUs ([`cpus`]), CPU quotas ([`cgroup`]) and the
//! machine's identity ([`machine`]).
#![forbid(unsafe_code)]

pub mod cgroup;
pub mod clock;
pub mod cpus;
pub mod machine;
