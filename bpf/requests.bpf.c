// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Measures requests at the sockets of a few local TCP ports, for any server program. Two times are measured: from the
// arrival of a request's first bytes until the server reads them, and from this read until the server sends the last
// bytes of the response.
//
// The kernel stores the state of a request with the socket of the connection. The sums over requests are in a map with
// one copy for each CPU. The programs are attached only for slices of time. A request counts if its first bytes arrive
// between two instants of the slice, which are in `control`. Every request is followed until the slice ends.
// crates/monitor/src/ebpf/requests.rs explains how the slices affect the measured values.

#include "kernel.h"

#define MAX_PORTS 16
#define NO_PORT MAX_PORTS
#define CLASSES 5   // number of size classes of responses
#define BUCKETS 112 // number of buckets of a histogram: four per octave from 256 ns on, as in the Server Module

// Constants that user space sets before loading. The verifier then knows the values, and removes the code for unused
// ports.
const volatile struct {
    __u32 network_namespace; // the namespace's inode number
    __u32 count;
    __u16 ports[MAX_PORTS];
} settings = {};

// The current slice, a period in which the programs are attached. User space writes this variable before it attaches
// them.
struct {
    __u64 slice; // number of the slice; a socket's state from an earlier slice is ignored
    __u64 from, until; // a request counts if it begins between these instants (CLOCK_MONOTONIC, in nanoseconds)
} control = {};

// The state of one socket. Points in time and durations are in nanoseconds. Each flag is a byte, because two CPUs may
// set different flags at once.
struct request {
    __u64 slice;
    __u64 ready;    // the instant since which unread bytes wait; 0 if no bytes wait
    __u64 read;     // the instant at which the request's first bytes were read; 0 if no request is being served
    __u64 waited;   // how long the request's first bytes waited until they were read
    __u64 sent;     // the instant at which bytes of the response were last sent; 0 if none have been sent
    __u64 received; // number of bytes of the request so far
    __u64 answered; // number of bytes of the response so far
    __u32 port;     // index of the socket's local port
    __u8 announced; // whether the waiting bytes have been counted as a request
    __u8 counted;   // whether the request that is being served counts
    __u8 recorded;  // whether the request's times have been recorded, with `sent` as the end of the response
};

struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct request);
} requests SEC(".maps");

struct times {
    __u64 sum;     // sum of the times, in nanoseconds
    __u64 squares; // sum of the squares of the times, in units of (1024 ns)²
    __u64 buckets[BUCKETS];
};

// Sums over the requests of one port with responses of one size class. `begun` and `unanswered` count the requests of
// all classes. They are used only in the entry of the port's first class.
struct tally {
    __u64 begun;      // number of requests that count
    __u64 unanswered; // number of requests whose connection was closed before a response
    __u64 answered;   // number of requests with a response
    __u64 received;   // bytes of the requests
    __u64 sent;       // bytes of the responses
    struct times wait, service;
};

// The sums of each port and size class. User space sets the number of entries before loading: CLASSES for each port.
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, CLASSES);
    __type(key, __u32);
    __type(value, struct tally);
} tallies SEC(".maps");

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// --- Selection of sockets --------------------------------------------------------------------------------------------

// Returns the index of a socket's local port in `settings`, or NO_PORT. A client on this host has the server's port as
// the remote port of its socket, so the client's socket gets NO_PORT.
static __always_inline __u32 port_of(const struct sock *sk) {
    __u16 local = sk->__sk_common.skc_num;
    __u32 port;

#pragma unroll
    for (port = 0; port < MAX_PORTS; port++) {
        if (port >= settings.count)
            return NO_PORT;
        if (settings.ports[port] == local)
            break;
    }
    if (port >= MAX_PORTS || sk->sk_protocol != IPPROTO_TCP ||
        sk->__sk_common.skc_net.net->ns.inum != settings.network_namespace)
        return NO_PORT;
    return port;
}

// Returns the request that is stored with a socket. A request from an earlier slice is cleared first. Returns NULL if
// memory is short.
static __always_inline struct request *request_of(const struct sock *sk, __u32 port) {
    struct request *request = bpf_sk_storage_get(&requests, (void *)sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

    if (request && request->slice != control.slice) {
        __builtin_memset(request, 0, sizeof(*request));
        request->slice = control.slice;
        request->port = port;
    }
    return request;
}

// --- Sums over requests ----------------------------------------------------------------------------------------------

static __always_inline struct tally *tally_of(__u32 port, __u32 class) {
    __u32 key = port * CLASSES + class;
    return bpf_map_lookup_elem(&tallies, &key);
}

// Counts a request that begins. The addition is atomic, because an interrupt on this CPU may also count a request at
// the same moment.
static __always_inline void count_begun(__u32 port) {
    struct tally *tally = tally_of(port, 0);
    if (tally)
        __sync_fetch_and_add(&tally->begun, 1);
}

static __always_inline void count_unanswered(__u32 port) {
    struct tally *tally = tally_of(port, 0);
    if (tally)
        __sync_fetch_and_add(&tally->unanswered, 1);
}

// Returns the size class of a response. The bounds are those of the default classes in server-module/, but here the
// size includes the head of the response.
static __always_inline __u32 class_of(__u64 bytes) {
    if (bytes < 5000)
        return 0;
    if (bytes < 50000)
        return 1;
    if (bytes < 100000)
        return 2;
    return bytes < 500000 ? 3 : 4;
}

static __always_inline __u32 bucket_of(__u64 ns) {
    __u64 rest = ns;
    __u32 octave = 0, bucket;

    if (ns < 256)
        return 0;
    if (rest >> 32) {
        octave += 32;
        rest >>= 32;
    }
    if (rest >> 16) {
        octave += 16;
        rest >>= 16;
    }
    if (rest >> 8) {
        octave += 8;
        rest >>= 8;
    }
    if (rest >> 4) {
        octave += 4;
        rest >>= 4;
    }
    if (rest >> 2) {
        octave += 2;
        rest >>= 2;
    }
    octave += rest >> 1;
    bucket = (octave - 8) * 4 + (ns >> (octave - 2) & 3);
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

static __always_inline void add_time(struct times *times, __u64 ns, __u64 one) {
    __u32 bucket = bucket_of(ns);
    __u64 square = ns >> 32 ? (ns >> 10) * (ns >> 10) : ns * ns >> 20;

    times->sum += one * ns;
    times->squares += one * square;
    if (bucket < BUCKETS)
        times->buckets[bucket] += one;
}

// Adds a request to the sums if `one` is 1, or subtracts it again if `one` is -1. Each CPU has its own copy of the
// sums. One CPU may subtract what another CPU added, because only the total of all copies matters.
static __always_inline void record(struct request *request, __u64 one) {
    struct tally *tally = tally_of(request->port, class_of(request->answered));
    if (!tally)
        return;
    tally->answered += one;
    tally->received += one * request->received;
    tally->sent += one * request->answered;
    add_time(&tally->wait, request->waited, one);
    add_time(&tally->service, request->sent > request->read ? request->sent - request->read : 0, one);
}

// --- Life cycle of a request -----------------------------------------------------------------------------------------

static __always_inline bool counts(__u64 ready) { return ready >= control.from && ready < control.until; }

// Returns whether a socket has received data that the server has not read. The kernel also reports a socket as ready
// for a new connection (at a listening socket) and for the end of the client's stream; neither counts as data.
static __always_inline bool has_bytes(const struct sock *sk) {
    __u8 state = sk->__sk_common.skc_state;

    if (state == TCP_ESTABLISHED)
        return true;
    if (state != TCP_CLOSE_WAIT)
        return false;
    struct tcp_sock *tcp = bpf_skc_to_tcp_sock((void *)sk);
    return tcp && tcp->rcv_nxt - tcp->copied_seq > 1; // the end of the stream counts as one byte
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(ready, const struct sock *sk) {
    __u32 port = port_of(sk);
    if (port == NO_PORT || !has_bytes(sk))
        return 0;
    struct request *request = request_of(sk, port);
    if (!request || request->ready)
        return 0;
    __u64 now = bpf_ktime_get_ns();
    // Bytes that arrive after the server has read a request, and before it sends a response, belong to that request.
    // They do not begin a new request.
    if ((!request->read || request->sent) && counts(now)) {
        request->announced = 1;
        count_begun(port);
    }
    request->ready = now;
    return 0;
}

// Ends a request, because the next one begins or the connection ends.
static __always_inline void finish(struct request *request) {
    if (request->read && request->counted && !request->recorded) {
        if (request->sent)
            record(request, 1);
        else
            count_unanswered(request->port);
    }
    request->counted = 0;
    request->recorded = 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(received, const struct sock *sk, int length, int flags) {
    if (length <= 0 || flags & (MSG_PEEK | MSG_ERRQUEUE))
        return 0;
    __u32 port = port_of(sk);
    if (port == NO_PORT)
        return 0;
    struct request *request = request_of(sk, port);
    if (!request)
        return 0;
    if (request->read && !request->sent) {
        request->received += (__u32)length;
    } else {
        __u64 now = bpf_ktime_get_ns(), ready = request->ready;
        finish(request);
        // If `ready` is 0, the request does not count: it was ready before this slice, or the server read it
        // together with the previous request.
        if (ready && counts(ready)) {
            if (!request->announced)
                count_begun(port);
            request->counted = 1;
            request->waited = now > ready ? now - ready : 0;
        }
        request->read = now;
        request->sent = 0;
        request->received = (__u32)length;
        request->answered = 0;
    }
    request->announced = 0;
    request->ready = 0;
    return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(sent, const struct sock *sk, int length, int flags) {
    if (length <= 0)
        return 0;
    __u32 port = port_of(sk);
    if (port == NO_PORT)
        return 0;
    struct request *request = bpf_sk_storage_get(&requests, (void *)sk, 0, 0);
    if (!request || request->slice != control.slice || !request->read)
        return 0;
    if (request->recorded)
        record(request, -1);
    request->recorded = 0;
    request->sent = bpf_ktime_get_ns();
    request->answered += (__u32)length;
    // A full buffer makes a server stop in the middle of a response. So a send that fills the buffer is not recorded as
    // the end of the response.
    if (request->counted && sk->sk_wmem_queued < sk->sk_sndbuf) {
        record(request, 1);
        request->recorded = 1;
    }
    return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(closed, const struct sock *sk, int old, int new) {
    if (new != TCP_CLOSE && new != TCP_FIN_WAIT1 && new != TCP_LAST_ACK)
        return 0;
    struct request *request = bpf_sk_storage_get(&requests, (void *)sk, 0, 0);
    if (!request || request->slice != control.slice)
        return 0;
    finish(request);
    if (request->announced)
        count_unanswered(request->port);
    request->announced = 0;
    request->ready = 0;
    request->read = 0;
    return 0;
}
