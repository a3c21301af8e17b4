// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Requests of a few local TCP ports as their sockets show them, whatever server reads them: how long bytes wait until
// the server reads them, and how long it takes from there to the last bytes of its answer.
//
// What is known of a connection's request is kept with its socket; what requests add up to, in a map that every CPU has
// its own copy of. The programs are attached for slices of time. A request counts if its first bytes arrive in the part
// of the slice that `control` names, and is followed until the slice ends. crates/monitor/src/ebpf/requests.rs says what
// that means for the figures.

#include "kernel.h"

#define MAX_PORTS 16
#define NO_PORT MAX_PORTS
#define CLASSES 5   // of answers by their size
#define BUCKETS 112 // of times, four to an octave from 256 ns on, as in server-module/recorder.h

// Filled in by user space before loading. The verifier then knows the values and drops the ports that are not in use.
const volatile struct {
    __u32 network_namespace; // inode number
    __u32 count;
    __u16 ports[MAX_PORTS];
} settings = {};

// Written by user space while nothing is attached.
struct {
    __u64 slice; // its number; what a socket keeps of another slice is void
    __u64 from, until; // when requests count that begin
} control = {};

// Of one socket. Bytes instead of flags: two CPUs may set them at once.
struct request {
    __u64 slice;
    __u64 ready;    // since when bytes wait that nobody has read; 0: there are none
    __u64 read;     // when the request's first bytes were read; 0: none is being served
    __u64 waited;   // for that, from when they were ready
    __u64 sent;     // when the answer's latest bytes were handed to the kernel; 0: none were
    __u64 received; // bytes of the request
    __u64 answered; // bytes of the answer
    __u32 port;     // its place in the list
    __u8 announced; // what waits has been counted as a request
    __u8 counted;   // the one that is being served has been
    __u8 recorded;  // its times have been, as if `sent` were its end
};

struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct request);
} requests SEC(".maps");

struct times {
    __u64 sum;     // nanoseconds
    __u64 squares; // of 1024 ns
    __u64 buckets[BUCKETS];
};

// Of one size of answer at one port; the first two of all sizes, in the first.
struct tally {
    __u64 begun;
    __u64 unanswered; // of them, those whose connection was closed before
    __u64 answered;
    __u64 received; // bytes
    __u64 sent;
    struct times wait, service;
};

// User space says how many when it loads the program: CLASSES for each port.
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, CLASSES);
    __type(key, __u32);
    __type(value, struct tally);
} tallies SEC(".maps");

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// --- Which sockets ---------------------------------------------------------------------------------------------------

// Of a listener's connection; a client on this host has the port at the other end.
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

static __always_inline struct request *request_of(const struct sock *sk, __u32 port) {
    struct request *request = bpf_sk_storage_get(&requests, (void *)sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

    if (request && request->slice != control.slice) {
        __builtin_memset(request, 0, sizeof(*request));
        request->slice = control.slice;
        request->port = port;
    }
    return request;
}

// --- What they add up to ---------------------------------------------------------------------------------------------

static __always_inline struct tally *tally_of(__u32 port, __u32 class) {
    __u32 key = port * CLASSES + class;
    return bpf_map_lookup_elem(&tallies, &key);
}

// An interrupt may count on this CPU as well, in between.
static __always_inline void begin(__u32 port) {
    struct tally *tally = tally_of(port, 0);
    if (tally)
        __sync_fetch_and_add(&tally->begun, 1);
}

static __always_inline void give_up(__u32 port) {
    struct tally *tally = tally_of(port, 0);
    if (tally)
        __sync_fetch_and_add(&tally->unanswered, 1);
}

// The bounds of the Server Module's own classes, but of the answer with its head.
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

// `one` is 1, or -1 to take back what was recorded. Copies of other CPUs may have it: their sum is what counts.
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

// --- A request's life ------------------------------------------------------------------------------------------------

static __always_inline bool counts(__u64 ready) { return ready >= control.from && ready < control.until; }

// A listener is not meant, nor the end of the other side's stream, which wakes its reader too.
static __always_inline bool has_bytes(const struct sock *sk) {
    __u8 state = sk->__sk_common.skc_state;

    if (state == TCP_ESTABLISHED)
        return true;
    if (state != TCP_CLOSE_WAIT)
        return false;
    struct tcp_sock *tcp = bpf_skc_to_tcp_sock((void *)sk);
    return tcp && tcp->rcv_nxt - tcp->copied_seq > 1; // the end itself counts as one
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
    // While a request has no answer, what arrives is more of it.
    if ((!request->read || request->sent) && counts(now)) {
        request->announced = 1;
        begin(port);
    }
    request->ready = now;
    return 0;
}

// The next one begins, or the connection ends.
static __always_inline void finish(struct request *request) {
    if (request->read && request->counted && !request->recorded) {
        if (request->sent)
            record(request, 1);
        else
            give_up(request->port);
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
        // Without an instant at which it was ready, it was so before this slice, or was read with the one before.
        if (ready && counts(ready)) {
            if (!request->announced)
                begin(port);
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
    // A full buffer is why a server stops in the middle of an answer: it may not be the end of it.
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
        give_up(request->port);
    request->announced = 0;
    request->ready = 0;
    request->read = 0;
    return 0;
}
