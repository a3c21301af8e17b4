/*
 * The layout of the Server Module's memory (recorder.h has the writer): a brimful_header, followed by `slots` slots of
 * `slot_size` bytes. A slot has one writer, a worker process or one of its threads. The writer claims the slot, and
 * accesses it with relaxed loads and stores. Counters only grow, whichever process owns the slot. The reader sums all
 * slots and takes differences. All words are in the byte order of the machine.
 *
 * The counters of a request are spread over many cache lines, which are cold when it ends. So a request is first
 * written into one line, a `pending` entry of the slot. When the entries are full, they are added to the sums together
 * (they are *folded*). The counters of a slot are its sums plus the pending entries. Each class has two copies of its
 * sums. A fold writes the copies that are not current. Then it stores one word, `folded`, which says up to which
 * request the sums go and which copies are current. A writer that is killed before that store has folded nothing, and
 * the slot's next owner continues from the same state. Only the buckets, for percentiles, exist once. During a fold,
 * and after a writer was killed in a fold, the buckets may count the requests of that fold twice.
 *
 * A reader reads the slot's first line, then `what` of each pending entry, then the whole slot, then the first line
 * again. The reading is valid if `folded` has not changed. `recorded` counts a request as soon as its entry is filled
 * except for the times. The times are valid if `what`, which is written after them, says so.
 *
 * `crates/monitor/src/module/layout.rs` is the same layout in Rust. A test compiles both and compares each offset.
 * Every change of a struct must increase BRIMFUL_LAYOUT.
 */
#ifndef BRIMFUL_LAYOUT_H
#define BRIMFUL_LAYOUT_H

#include <stdint.h>

#define BRIMFUL_MAGIC UINT64_C(0x316c75666d697262) /* "brimful1" in memory */
#define BRIMFUL_LAYOUT 4u
#define BRIMFUL_MAX_CLASSES 16u /* the last class of a file is "other" */
#define BRIMFUL_NAME_BYTES 48u   /* size of a name, including the zero byte at its end */
#define BRIMFUL_BUCKETS 112u     /* four per octave, 256 ns to 68 s; shorter times in the first, longer in the last */
#define BRIMFUL_SLOT_ALIGN 128u
#define BRIMFUL_PENDING 16u      /* maximum number of requests of a slot that are not folded; a power of two */
#define BRIMFUL_MAX_SLOTS 4096u /* maximum number of slots in a file */
#define BRIMFUL_MAX_FILE_BYTES (UINT64_C(64) << 20)

/* The phases of a request, in order. HEAD and SEND are the client's time: the network, and how fast it writes and
 * reads. UPSTREAM is the time of servers behind this one. The sum of all phases is the time from the request's first
 * byte to its log line. */
enum brimful_phase {
    BRIMFUL_HEAD,     /* from the first byte of the request to the last of its head, and waiting for its body */
    BRIMFUL_PARSE,    /* the head is parsed */
    BRIMFUL_PROCESS,  /* the response is created and handed to the kernel, without the next two phases */
    BRIMFUL_UPSTREAM, /* waiting for a server behind this one */
    BRIMFUL_SEND,     /* waiting until the client has read enough for the rest to be sent */
    BRIMFUL_LOG,      /* the log line is written */
    BRIMFUL_PHASES
};

/* The phases for which CPU time is measured: the phases in which the server itself works. */
enum brimful_cpu { BRIMFUL_CPU_PARSE, BRIMFUL_CPU_PROCESS, BRIMFUL_CPU_LOG, BRIMFUL_CPUS };

struct brimful_header {
    uint64_t magic;        /* written last, after everything else */
    uint32_t layout;       /* BRIMFUL_LAYOUT */
    uint32_t header_size;  /* bytes before the first slot, a multiple of BRIMFUL_SLOT_ALIGN */
    uint32_t slot_size;    /* a multiple of BRIMFUL_SLOT_ALIGN */
    uint32_t slots;        /* number of slots */
    uint32_t classes;      /* number of `class_names` that are used, at least 1 */
    uint32_t enabled;      /* 0: requests that begin from now on are not recorded; anyone who may write the file may
                            * set it */
    uint32_t cpu_one_in;   /* CPU time is measured for one in this many requests, fewer under load; 0: for none */
    uint32_t workers_most; /* maximum requests or connections that the server handles at a time; 0: no limit */
    uint32_t master_pid;   /* the process that created the file */
    uint32_t lost;         /* number of workers that found no free slot */
    uint64_t made_ns;      /* when the file was created, CLOCK_REALTIME */
    char server[BRIMFUL_NAME_BYTES];                             /* "nginx/1.22.1", "Apache/2.4.66 (event)" */
    char class_names[BRIMFUL_MAX_CLASSES][BRIMFUL_NAME_BYTES];
};

/* One phase of the requests of one class. */
struct brimful_times {
    uint64_t count;   /* requests that had the phase; requests without any waiting in HEAD or SEND may be missing */
    uint64_t sum_ns;
    uint64_t sum_us2; /* sum of the squares, in square microseconds; may wrap with long requests */
};

/* The folded requests of one class. */
struct brimful_sums {
    uint64_t requests; /* requests that have a line in the access log, or would have one */
    uint64_t bytes;    /* bytes of response bodies */
    uint64_t failed;   /* requests with a 5xx response */
    uint64_t aborted;  /* requests whose client closed the connection before it had the response */
    struct brimful_times times[BRIMFUL_PHASES];
    uint64_t resumed;  /* number of times that a worker resumed a request that had waited for client or upstream */
    uint64_t unused;
};

/* The requests of one class. CPU time is measured for few of them, and added at once. */
struct brimful_class {
    struct brimful_sums sums[2];          /* `folded` says which one is current */
    uint64_t cpu_count;                   /* number of requests in the next two members */
    uint64_t cpu_ns[BRIMFUL_CPUS];
    uint64_t cpu_sum_us2;                 /* sum of the squares of each request's CPU time, in square microseconds */
    uint64_t cpu_mixed;                   /* sampled requests whose thread worked on other requests meanwhile; not in
                                           * cpu_count */
    uint64_t unused[10];
    uint64_t buckets[BRIMFUL_PHASES][BRIMFUL_BUCKETS]; /* histogram of each phase's time: brimful_bucket */
};

/* A request that is counted and not folded; one cache line. */
struct brimful_pending {
    uint64_t what;  /* the request's class, and the flags below */
    uint64_t bytes; /* bytes of its response body */
    uint64_t time_ns[BRIMFUL_PHASES];
};

#define BRIMFUL_WHAT_CLASS UINT64_C(0xff)
#define BRIMFUL_WHAT_FAILED (UINT64_C(1) << 8)
#define BRIMFUL_WHAT_ABORTED (UINT64_C(1) << 9)
#define BRIMFUL_WHAT_HAS 16u /* from this bit on, one bit for each phase: its time is valid */
#define BRIMFUL_WHAT_RESUMED 32u /* from this bit on: number of times it was resumed */

#define BRIMFUL_FOLDED_COUNT 16u /* bits of `folded` from this one on: number of requests; lower bits: for each class,
                                  * the index of its current sums */

/* The counters of one worker or thread. Each request writes to the first cache line. Then follow members that are
 * rarely written, then the pending requests: the n-th request of the slot is at index n % BRIMFUL_PENDING. */
struct brimful_slot {
    uint32_t owner;          /* process id, in the server's namespace; 0: free */
    uint32_t thread;         /* thread id */
    uint64_t owners;         /* number of owners that the slot has had */
    uint64_t connections;    /* number of connections accepted */
    uint64_t in_progress;    /* number of requests in progress */
    uint64_t busy_since_ns;  /* the time since which the worker is busy, CLOCK_MONOTONIC; 0: idle */
    uint64_t busy_ns;        /* time for which the worker was busy before busy_since_ns */
    uint64_t recorded;       /* number of requests of all owners */
    uint64_t folded;         /* number of requests in the sums, and which sums are current: BRIMFUL_FOLDED_COUNT */
    uint64_t cpu_ns;         /* CPU time of the threads of all owners, at the latest reading */
    uint64_t cpu_at_ns;      /* CLOCK_MONOTONIC of the latest reading */
    uint8_t unused[48];
    struct brimful_pending pending[BRIMFUL_PENDING];
    struct brimful_class classes[]; /* the header has their number */
};

#endif
