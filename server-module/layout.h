/*
 * The layout of the file that the Server Module shares with `brimful watch` (recorder.h contains the writer): a
 * brimful_header, followed by `slots` slots of `slot_size` bytes. A slot has one writer, its owner: a worker process,
 * or a thread of a worker process. The owner claims the slot, and accesses it with relaxed atomic loads and stores.
 * Counters never decrease; they are not reset when the owner of a slot changes. The reader adds up the counters of all
 * slots, and computes differences between two readings. All words are in the byte order of the machine.
 *
 * A request changes many counters, in cache lines that are usually not in a cache when the request ends. So a request
 * is first written into a single cache line: a `pending` entry of the slot. When all entries are used, they are added
 * to the sums together (they are *folded*). The counters of a slot are its sums plus its pending entries. Each class
 * has two copies of its sums, one of which is current. A fold writes the other copies. Then it stores one word,
 * `folded`, which says how many requests the sums include and which copies are current. If a writer is killed before
 * this store, the slot remains in the state before the fold. The histogram buckets have only one copy. During a fold,
 * and after a writer was killed in a fold, they may count the requests of the fold twice.
 *
 * A reader reads the slot's first cache line, then `what` of each pending entry, then the whole slot, then the first
 * cache line again. The reading is valid if `folded` has not changed. The writer increases `recorded` when the entry of
 * a request is complete except for its times. After it has written the times, it writes `what` again, which says which
 * times are valid.
 *
 * `crates/monitor/src/module/layout.rs` defines the same layout in Rust. A test compiles both and compares all offsets.
 * Increase BRIMFUL_LAYOUT with every change of a struct.
 */
#ifndef BRIMFUL_LAYOUT_H
#define BRIMFUL_LAYOUT_H

#include <stdint.h>

#define BRIMFUL_MAGIC UINT64_C(0x316c75666d697262) /* "brimful1" in memory */
#define BRIMFUL_LAYOUT 4u
#define BRIMFUL_MAX_CLASSES 16u /* the last class of a file is "other" */
#define BRIMFUL_NAME_BYTES 48u   /* size of a name, including the zero byte at its end */
/* Number of buckets of a histogram of times: four for each doubling of the time, from 256 ns to 68 s. The first bucket
 * also counts all shorter times, the last bucket all longer times. */
#define BRIMFUL_BUCKETS 112u
#define BRIMFUL_SLOT_ALIGN 128u
#define BRIMFUL_PENDING 16u      /* number of pending entries of a slot; a power of two */
#define BRIMFUL_MAX_SLOTS 4096u /* maximum number of slots in a file */
#define BRIMFUL_MAX_FILE_BYTES (UINT64_C(64) << 20)

/* The phases of a request, in order. HEAD and SEND depend on the network and on the speed of the client. UPSTREAM is
 * the time of upstream servers. The sum of all phases is the time from the request's first byte to its log line. */
enum brimful_phase {
    /* Receiving the request: from the first byte to the last byte of the head, and waiting for the body. */
    BRIMFUL_HEAD,
    BRIMFUL_PARSE,    /* parsing the head */
    BRIMFUL_PROCESS,  /* creating the response and handing it to the kernel, without the phases UPSTREAM and SEND */
    BRIMFUL_UPSTREAM, /* waiting for an upstream server */
    BRIMFUL_SEND,     /* waiting for the client to read, while the response does not fit into the socket's buffer */
    BRIMFUL_LOG,      /* writing the log line */
    BRIMFUL_PHASES
};

/* The phases whose CPU time is measured: the phases in which the server itself works. */
enum brimful_cpu { BRIMFUL_CPU_PARSE, BRIMFUL_CPU_PROCESS, BRIMFUL_CPU_LOG, BRIMFUL_CPUS };

struct brimful_header {
    uint64_t magic;        /* written last, after everything else */
    uint32_t layout;       /* BRIMFUL_LAYOUT */
    uint32_t header_size;  /* bytes before the first slot, a multiple of BRIMFUL_SLOT_ALIGN */
    uint32_t slot_size;    /* a multiple of BRIMFUL_SLOT_ALIGN */
    uint32_t slots;        /* number of slots */
    uint32_t classes;      /* number of `class_names` that are used, at least 1 */
    /* 0 if requests that begin from now on are not recorded. Any user who may write to the file may change this. */
    uint32_t enabled;
    /* CPU time is measured for one in this number of requests, and less often under load. 0: for no request. */
    uint32_t cpu_one_in;
    uint32_t workers_most; /* maximum requests or connections that the server handles at a time; 0: no limit */
    uint32_t master_pid;   /* process id of the main process of the server that last opened the file */
    uint32_t lost;         /* number of workers that found no free slot */
    uint64_t created_ns;   /* creation time of the file, CLOCK_REALTIME in ns */
    char server[BRIMFUL_NAME_BYTES]; /* name and version of the server, such as "Apache/2.4.66 (event)" */
    char class_names[BRIMFUL_MAX_CLASSES][BRIMFUL_NAME_BYTES];
};

/* Sums over the times that the requests of one class spent in one phase. */
struct brimful_times {
    /* Number of requests with a time for the phase. Requests that did not wait in HEAD or SEND may be missing. */
    uint64_t count;
    uint64_t sum_ns;  /* sum of the times */
    uint64_t sum_us2; /* sum of the squares of the times, in square microseconds; may wrap with long requests */
};

/* Sums over the requests of one class. Pending requests are not included. */
struct brimful_sums {
    uint64_t requests; /* number of requests that have a line in the access log, or would have one if it were enabled */
    uint64_t bytes;    /* bytes of response bodies */
    uint64_t failed;   /* number of requests with a 5xx response */
    uint64_t aborted;  /* number of requests whose client closed the connection before it had the whole response */
    struct brimful_times times[BRIMFUL_PHASES];
    /* Number of times that a worker resumed a request after waiting for the client or an upstream server. */
    uint64_t resumed;
    uint64_t unused;
};

/* The counters of one class. CPU time is measured for few requests, so it is added here directly, without a pending
 * entry. */
struct brimful_class {
    struct brimful_sums sums[2];          /* two copies; `folded` says which copy is current */
    uint64_t cpu_count;                   /* number of requests in cpu_ns and cpu_sum_us2 */
    uint64_t cpu_ns[BRIMFUL_CPUS];        /* sum of the requests' CPU times, by phase */
    uint64_t cpu_sum_us2;                 /* sum of the squares of each request's CPU time, in square microseconds */
    /* Number of sampled requests whose thread worked on other requests meanwhile. They are not in cpu_count. */
    uint64_t cpu_mixed;
    uint64_t blocks_count;                /* number of requests in blocks_read and blocks_written: those of cpu_count */
    uint64_t blocks_read;                 /* blocks of 512 bytes that the requests' threads read from disks */
    uint64_t blocks_written;              /* blocks of 512 bytes that the requests' threads wrote into the page cache */
    uint64_t unused[7];
    uint64_t buckets[BRIMFUL_PHASES][BRIMFUL_BUCKETS]; /* histogram of each phase's times; see brimful_bucket */
};

/* A pending request: it was counted, but is not included in the sums yet. The struct has the size of a cache line. */
struct brimful_pending {
    uint64_t what;  /* the request's class and flags; BRIMFUL_WHAT_* says which bits */
    uint64_t bytes; /* size of the response body, in bytes */
    uint64_t time_ns[BRIMFUL_PHASES];
};

#define BRIMFUL_WHAT_CLASS UINT64_C(0xff)
#define BRIMFUL_WHAT_FAILED (UINT64_C(1) << 8)
#define BRIMFUL_WHAT_ABORTED (UINT64_C(1) << 9)
#define BRIMFUL_WHAT_HAS 16u /* from this bit of `what` on: one bit for each phase, set if the phase's time is valid */
#define BRIMFUL_WHAT_RESUMED 32u /* from this bit of `what` on: number of times that the request was resumed */

/* Index of the lowest bit of the number of folded requests, in the member `folded`. Each lower bit belongs to a class:
 * it is the index of the current copy of the class's sums. */
#define BRIMFUL_FOLDED_COUNT 16u

/* The counters of one owner: a worker process or thread. The first cache line contains members that every request
 * writes. Members that are rarely written follow, and then the pending requests. The slot's n-th request, counted from
 * 0, has the entry n % BRIMFUL_PENDING. */
struct brimful_slot {
    uint32_t owner;          /* process id of the owner, in the server's pid namespace; 0: the slot is free */
    uint32_t thread;         /* thread id of the owner */
    uint64_t owners;         /* number of owners that the slot has had */
    uint64_t connections;    /* number of connections accepted */
    uint64_t in_progress;    /* number of requests in progress */
    /* The instant since which the worker has been busy, by CLOCK_MONOTONIC; 0 if the worker is idle. */
    uint64_t busy_since_ns;
    uint64_t busy_ns;        /* total time for which the worker was busy, without the time from busy_since_ns on */
    uint64_t recorded;       /* number of requests that all owners have counted */
    uint64_t folded;         /* number of folded requests, and which sums are current: see BRIMFUL_FOLDED_COUNT */
    uint64_t cpu_ns;         /* CPU time of all owners' threads, at the latest reading */
    uint64_t cpu_at_ns;      /* the instant of the latest reading of CPU time, CLOCK_MONOTONIC */
    uint8_t unused[48];
    struct brimful_pending pending[BRIMFUL_PENDING];
    struct brimful_class classes[]; /* `classes` of the header is the number of elements */
};

#endif
