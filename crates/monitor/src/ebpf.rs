//! Metrics that brimful's eBPF programs compute inside the kernel. [`Gauges`] counts connections by state, and the
//! kernel updates the counts at every change. [`TaskIterator`] reads all threads in one pass. [`RequestProbe`] measures
//! requests from events of the sockets.
//!
//! The programs are in `bpf/` at the root of the repository; `build.rs` compiles them and `object.rs` embeds them. They
//! use features of Linux 5.9: tracepoints with typed arguments, iterators, mapped arrays. Loading requires the
//! capabilities BPF and PERFMON. Measuring works without these programs: if a program cannot be loaded, its metrics
//! come from another source or are absent, and `sources` shows the [`EbpfError`]. In a build without the feature
//! `ebpf`, `absent.rs` replaces `object.rs`.

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

/// Converts the bits of a signed counter to an unsigned number: zero if the counter is negative. A counter is negative
/// for a moment if one CPU subtracts before another CPU adds.
fn at_least_zero(word: u64) -> u64 {
    word.cast_signed().max(0).cast_unsigned()
}

/// The reason why an eBPF program cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EbpfError {
    /// brimful was built without its eBPF programs (the feature `ebpf` of the build).
    #[cfg(not(feature = "ebpf"))]
    #[error("this build has no eBPF: build it with --features ebpf")]
    NotBuilt,
    /// A capability is missing, or the container's seccomp filter forbids eBPF.
    #[error(
        "the kernel does not let this user load eBPF programs: run as root, or once: sudo setcap \
         cap_bpf,cap_perfmon,cap_net_admin,cap_sys_nice+ep \"$(command -v brimful)\"; in a container: --cap-add BPF \
         --cap-add PERFMON --security-opt seccomp=unconfined"
    )]
    Permission,
    /// The kernel provides no BTF (a description of its own types), which libbpf needs.
    #[error(
        "this kernel does not describe its types (/sys/kernel/btf/vmlinux): sudo apt install linux-image-amd64, or \
         boot any kernel built with CONFIG_DEBUG_INFO_BTF=y"
    )]
    NoKernelTypes,
    /// The kernel lacks a tracepoint or function to which a program attaches.
    #[error(
        "this kernel lacks a tracepoint or function that eBPF program `{program}` needs ({why}): boot Linux {needs} or \
         newer"
    )]
    TooOld {
        /// The program's name.
        program: &'static str,
        /// The first version of Linux that has the tracepoint or function.
        needs: &'static str,
        /// The message of libbpf.
        why: String,
    },
    /// The kernel, usually its verifier, refused the program for another reason.
    #[error("the kernel refused eBPF program `{program}`: {why}; please report this with the output of `uname -a`")]
    Refused {
        /// The program's name.
        program: &'static str,
        /// The last message of the verifier or libbpf.
        why: String,
    },
    /// The number of ports exceeds the maximum of an eBPF program.
    #[error("the connections of at most {MAX_PORTS} ports can be followed, not of {0}: name fewer ports")]
    TooManyPorts(usize),
}
