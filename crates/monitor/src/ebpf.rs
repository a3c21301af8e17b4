//! Figures that the kernel computes for us by programs of ours: connections by state, kept up to date instead of being
//! counted ([`Gauges`]), all threads in one pass ([`TaskIterator`]), and requests as sockets show them
//! ([`RequestProbe`]).
//!
//! The programs are in `bpf/` at the root of the repository; `build.rs` compiles them and `object.rs` embeds them. They
//! use what Linux has had since 5.9: tracepoints with typed arguments, iterators, mapped arrays. Loading takes the
//! capabilities BPF and PERFMON. Nothing else depends on them: a figure that cannot be had this way comes from
//! elsewhere or is absent, and [`EbpfError`] is what its source then says. In a build without the feature `ebpf`,
//! `absent.rs` stands in for `object.rs`.

mod connections;
#[cfg(feature = "ebpf")]
mod object;
#[cfg(not(feature = "ebpf"))]
#[path = "ebpf/absent.rs"]
mod object;
mod requests;
mod tasks;

pub(crate) use connections::{Gauges, MAX_PORTS, PortGauges, own_network_namespace};
pub(crate) use requests::{CLASSES, PortTally, RequestProbe, SizeTally, TimesTally};
pub(crate) use tasks::{TaskIterator, TaskRecord};

/// A counter that a program also subtracts from, or that the kernel keeps as a signed number. It can be below zero for
/// a moment, between a subtraction on one CPU and the addition on another. It counts as zero then, not as nearly 2⁶⁴.
fn at_least_zero(word: u64) -> u64 {
    word.cast_signed().max(0).cast_unsigned()
}

/// Why a program is not at work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EbpfError {
    /// A build without eBPF.
    #[cfg(not(feature = "ebpf"))]
    #[error("this build has no eBPF: build it with --features ebpf")]
    NotBuilt,
    /// Missing capabilities, or a container's filter.
    #[error(
        "the kernel does not let this user load eBPF programs: run as root, or once: sudo setcap \
         cap_bpf,cap_perfmon,cap_net_admin,cap_sys_nice+ep \"$(command -v brimful)\"; in a container: --cap-add BPF \
         --cap-add PERFMON --security-opt seccomp=unconfined"
    )]
    Permission,
    /// A kernel without BTF.
    #[error(
        "this kernel does not describe its types (/sys/kernel/btf/vmlinux): sudo apt install linux-image-amd64, or \
         boot any kernel built with CONFIG_DEBUG_INFO_BTF=y"
    )]
    NoKernelTypes,
    /// A kernel without the place at which a program is to be attached.
    #[error("this kernel has nothing to attach eBPF program `{program}` to ({why}): boot Linux {needs} or newer")]
    TooOld {
        /// Which.
        program: &'static str,
        /// The first Linux that has it.
        needs: &'static str,
        /// As libbpf says it.
        why: String,
    },
    /// A refusal for another reason, of the verifier's above all.
    #[error("the kernel refused eBPF program `{program}`: {why}; please report this with the output of `uname -a`")]
    Refused {
        /// Which.
        program: &'static str,
        /// The last thing that the verifier or libbpf said.
        why: String,
    },
    /// More ports than there are gauges for.
    #[error("the connections of at most {MAX_PORTS} ports can be followed, not of {0}: name fewer ports")]
    TooManyPorts(usize),
}
