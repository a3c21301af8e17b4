/*
 * The layout of the Server Module's memory (recorder.h has the writer): a brimful_header, then `slots` slots of
 * `slot_size` bytes. A slot has one writer, a worker process or a thread of one, which claims it and writes to it with
 * relaxed loads and stores; figures only ever grow, whoever owns the slot. The reader sums all slots and takes
 * differences. All words are in the byte order of the machine.
 *
 * What a request adds lies in many lines of the cache, which are cold when it ends. So it is written into one line, a
 * `pending` place of the slot, and from there added to the sums with others when the places are full (it is *folded*).
 * The figures of a slot are its sums and what is pending. Each class has its sums twice. A fold writes those that are
 * not current, and then one word, `folded`, says at once up to which request the sums go and which are current: a
 * writer that is killed before has folded nothing, and whoever has the slot next begins with the same. Only buckets,
 * which percentiles are made of, exist once: during a fold, and after a kill within one, the requests of that fold may
 * be among them twice.
 *
 * A reader reads the slot's first line, then `what` of what is pending, then all of the slot, then the first line
 * again: it is right if `folded` has not changed. `recorded` counts a request whose place has been filled but for its
 * times; those are there if `what`, which is written after them, says so.
 *
 * `crates/monitor/src/module/layout.rs` says the same in Rust, and a test compiles both and compares each offset.
 * Whoever changes a struct raises BRIMFUL_LAYOUT.
 */
#ifndef BRIMFUL_LAYOUT_H
#define BRIMFUL_LAYOUT_H

#include <stdint.h>

#define BRIMFUL_MAGIC UINT64_C(0x316c75666d697262) /* "brimful1" in memory */
#define BRIMFUL_LAYOUT 4u
#define BRIMFUL_MAX_CLASSES 16u /* the last class of a file is "other" */
#define BRIMFUL_NAME_BYTES 48u   /* of a name, with the zero byte at its end */
#define BRIMFUL_BUCKETS 112u     /* four to an octave, from 256 ns to 68 s; shorter in the first, longer in the last */
#define BRIMFUL_SLOT_ALIGN 128u
#define BRIMFUL_PENDING 16u      /* requests of a slot that are not folded, at most; a power of two */
#define BRIMFUL_MAX_SLOTS 4096u /* of a file, which is no larger than BRIMFUL_MAX_FILE_BYTES bytes either */
#define BRIMFUL_MAX_FILE_BYTES (UINT64_C(64) << 20)

/* Where a request's time goes, in the order of its life. HEAD and SEND are the client's own: the network and how fast
 * it writes and reads; UPSTREAM is that of servers behind this one. Together they are the request's time from its
 * first byte to its log line. */
enum brimful_phase {
    BRIMFUL_HEAD,     /* from the first byte of the request to the last of its head, and waiting for its body */
    BRIMFUL_PARSE,    /* the head is read and understood */
    BRIMFUL_PROCESS,  /* the answer is made and handed to the kernel, but for the next two */
    BRIMFUL_UPSTREAM, /* waiting for a server behind this one */
    BRIMFUL_SEND,     /* waiting until the client has read enough for the rest to be handed over */
    BRIMFUL_LOG,      /* the log line is written */
    BRIMFUL_PHASES
};

/* Which phases CPU time is measured of: those that the server itself works in. */
enum brimful_cpu { BRIMFUL_CPU_PARSE, BRIMFUL_CPU_PROCESS, BRIMFUL_CPU_LOG, BRIMFUL_CPUS };

struct brimful_header {
    uint64_t magic;        /* written last, when all else is */
    uint32_t layout;       /* BRIMFUL_LAYOUT */
    uint32_t header_size;  /* bytes before the first slot, a multiple of BRIMFUL_SLOT_ALIGN */
    uint32_t slot_size;    /* a multiple of BRIMFUL_SLOT_ALIGN */
    uint32_t slots;        /* how many */
    uint32_t classes;      /* how many of `class_names` are used, 1 or more */
    uint32_t enabled;      /* 0: nothing is recorded of requests that begin from now on; set by whoever may write it */
    uint32_t cpu_one_in;   /* CPU time is measured of one request in so many, of fewer of a crowd; 0 of none */
    uint32_t workers_most; /* requests or connections that the server works on at a time at most; 0: no such limit */
    uint32_t master_pid;   /* who made the file */
    uint32_t lost;         /* workers that found no slot */
    uint64_t made_ns;      /* when, CLOCK_REALTIME */
    char server[BRIMFUL_NAME_BYTES];                             /* "nginx/1.22.1", "Apache/2.4.66 (event)" */
    char class_names[BRIMFUL_MAX_CLASSES][BRIMFUL_NAME_BYTES];
};

/* One phase of the requests of one class. */
struct brimful_times {
    uint64_t count;   /* those that had it. Such as did not wait at all in HEAD or SEND need not be among them */
    uint64_t sum_ns;
    uint64_t sum_us2; /* of the squares, in square microseconds; long requests may make it wrap */
};

/* What is folded of the requests of one class. */
struct brimful_sums {
    uint64_t requests; /* those of which a line stands in the access log, or would */
    uint64_t bytes;    /* of bodies */
    uint64_t failed;   /* answered with 5xx */
    uint64_t aborted;  /* the client went away before it had the answer */
    struct brimful_times times[BRIMFUL_PHASES];
    uint64_t resumed;  /* how often a worker took one of them up again that it had left to wait for client or backend */
    uint64_t unused;
};

/* The requests of one class. CPU time is of few, and added at once. */
struct brimful_class {
    struct brimful_sums sums[2];          /* which one is current, `folded` says */
    uint64_t cpu_count;                   /* requests that the next two are of */
    uint64_t cpu_ns[BRIMFUL_CPUS];
    uint64_t cpu_sum_us2;                 /* of the squares of a request's CPU time, in square microseconds */
    uint64_t cpu_mixed;                   /* chosen, but the thread worked on others meanwhile: not among cpu_count */
    uint64_t unused[10];
    uint64_t buckets[BRIMFUL_PHASES][BRIMFUL_BUCKETS]; /* how many had the phase for how long: brimful_bucket */
};

/* A request that is counted and not folded: a line of the cache. */
struct brimful_pending {
    uint64_t what;  /* its class, and the next */
    uint64_t bytes; /* of its body */
    uint64_t time_ns[BRIMFUL_PHASES];
};

#define BRIMFUL_WHAT_CLASS UINT64_C(0xff)
#define BRIMFUL_WHAT_FAILED (UINT64_C(1) << 8)
#define BRIMFUL_WHAT_ABORTED (UINT64_C(1) << 9)
#define BRIMFUL_WHAT_HAS 16u /* from this bit on, one for each phase: it had it, and its time is here */
#define BRIMFUL_WHAT_RESUMED 32u /* from this bit on: how often it was taken up again */

#define BRIMFUL_FOLDED_COUNT 16u /* of `folded`, from this bit on: how many requests; below, a bit for each class: which
                                  * of its sums are current */

/* What one worker or thread has seen. Of the first line each request writes something; then come those that are seldom
 * written, then what is pending: the n-th request of all is in place n % BRIMFUL_PENDING. */
struct brimful_slot {
    uint32_t owner;          /* process id, in the server's namespace; 0: free */
    uint32_t thread;         /* thread id */
    uint64_t owners;         /* how many there have been */
    uint64_t connections;    /* accepted */
    uint64_t in_progress;    /* requests, at this moment */
    uint64_t busy_since_ns;  /* CLOCK_MONOTONIC since when the worker is busy; 0: it is idle */
    uint64_t busy_ns;        /* how long it was busy before that */
    uint64_t recorded;       /* requests, of all owners */
    uint64_t folded;         /* how many of them the sums have, and which sums: BRIMFUL_FOLDED_COUNT */
    uint64_t cpu_ns;         /* CPU time of the thread in all, its latest reading, of all owners */
    uint64_t cpu_at_ns;      /* CLOCK_MONOTONIC of that reading */
    uint8_t unused[48];
    struct brimful_pending pending[BRIMFUL_PENDING];
    struct brimful_class classes[]; /* as many as the header says */
};

#endif
