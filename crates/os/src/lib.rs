//! What several parts of brimful ask of the kernel of this host: its clocks ([`clock`]) and its CPUs ([`cpus`]).
#![forbid(unsafe_code)]

pub mod clock;
pub mod cpus;
