//! Calls for which the generator's host lacked a resource. A single such call makes a run invalid.

use brimful_core::account::HostLimitedCalls;
use brimful_core::quantity::count;
use brimful_core::record::{Generator, Reason, ReasonCode};

/// Reasons why the run is invalid: one for each resource that the generator's host lacked. `scheduled` is the number of
/// all scheduled calls.
pub(crate) fn reasons(limited: HostLimitedCalls, scheduled: u64, generator: &Generator) -> Vec<Reason> {
    let HostLimitedCalls { descriptors, ports, memory, bodies } = limited;
    let lacking = |calls: u64, code, what: &str| {
        let message = format!("{} of {} calls could not {what}.", count(calls), count(scheduled));
        (calls > 0).then_some(Reason { code, message })
    };
    let unreadable = generator.body_error.as_deref().unwrap_or("a file of `body_file` could not be read");
    let reasons = [
        lacking(
            descriptors,
            ReasonCode::Descriptors,
            "begin: the generator had no file descriptor left. Raise the limit with `ulimit -n`, or keep fewer connections \
             open: lower --rate or --clients, shorten --timeout and --connect-timeout",
        ),
        lacking(
            ports,
            ReasonCode::Ports,
            "begin: this host had no local port left. Widen the range with `sysctl -w \
             net.ipv4.ip_local_port_range='1024 65535'`, reuse connections (no --new-connection), lower --rate, or \
             shorten --connect-timeout",
        ),
        lacking(
            memory,
            ReasonCode::Memory,
            "begin: the kernel had no memory left for another socket. Free memory or raise `sysctl net.ipv4.tcp_mem`, or \
             keep fewer connections open: lower --rate or --clients, shorten --timeout and --connect-timeout",
        ),
        lacking(bodies, ReasonCode::BodyFile, &format!("be sent whole: {unreadable}")),
    ];
    reasons.into_iter().flatten().collect()
}
