// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Counts the connections of a few local TCP ports by state. The kernel calls this program whenever a socket changes its
// state, so no walk over all sockets is needed. User space maps the counts (the variable `gauges`) into its memory, and
// reads them without a system call.
// crates/monitor/src/ebpf/connections.rs explains which states are counted, and why the rest are not.

#include "kernel.h"

#define MAX_PORTS 16

// The states in which connections are counted. The program sees every socket that enters or leaves one of these states.
#define COUNTED_STATES                                                                                                 \
    (1 << TCP_ESTABLISHED | 1 << TCP_FIN_WAIT1 | 1 << TCP_FIN_WAIT2 | 1 << TCP_CLOSE_WAIT | 1 << TCP_LAST_ACK |        \
     1 << TCP_CLOSING)

// Constants that user space sets before loading. The verifier then knows the values, and removes the code for unused
// ports.
const volatile struct {
    __u32 network_namespace; // the namespace's inode number
    __u32 count;
    __be16 ports[MAX_PORTS];
} settings = {};

// For each port, the changes in the number of connections since the program was attached.
struct {
    __s64 states[TCP_STATES]; // for each state: number of connections that entered, minus the number that left
    __u64 accepted;           // number of connections that became established by accepting, not by connecting
    __u64 padding[2];         // keeps two ports from sharing a cache line
} gauges[MAX_PORTS] __attribute__((aligned(128))) = {};

char LICENSE[] SEC("license") = "Dual MIT/GPL";

static __always_inline void change(__s64 *gauge, __s64 by) { __sync_fetch_and_add(gauge, by); }

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(connections, const struct sock *sk, int old, int new) {
    // The masks prove to the verifier that the states are below 16.
    __u32 from = old & 15, to = new & 15, port;

    if (old == new || !((COUNTED_STATES >> from | COUNTED_STATES >> to) & 1))
        return 0;
    // The port is read from inet_sport: a socket that changes to CLOSE has already cleared skc_num, but not inet_sport.
    struct tcp_sock *tcp = bpf_skc_to_tcp_sock((void *)sk);
    if (!tcp)
        return 0;
    __be16 local = tcp->inet_conn.icsk_inet.inet_sport;
#pragma unroll
    for (port = 0; port < MAX_PORTS; port++) {
        if (port >= settings.count)
            return 0;
        if (settings.ports[port] == local)
            break;
    }
    if (port >= MAX_PORTS || sk->__sk_common.skc_net.net->ns.inum != settings.network_namespace)
        return 0;
    if (COUNTED_STATES >> from & 1 && from < TCP_STATES)
        change(&gauges[port].states[from], -1);
    if (COUNTED_STATES >> to & 1 && to < TCP_STATES)
        change(&gauges[port].states[to], 1);
    if (from == TCP_SYN_RECV && to == TCP_ESTABLISHED)
        change((__s64 *)&gauges[port].accepted, 1);
    return 0;
}
