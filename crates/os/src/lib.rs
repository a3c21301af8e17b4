//! What several parts of brimful ask of the kernel of this host: its clocks ([`clock`]), its CPUs ([`cpus`])
//! and the quotas on their time ([`cgroup`]).
#![forbid(unsafe_code)]

pub mod cgroup;
pub mod clock;
pub mod cpus;
