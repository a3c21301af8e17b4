/*
 * Reads the time, and the CPU time of a thread. If the processor's tick counter may be used, reading the time costs a
 * fraction of a reading of the kernel's clock. CPU time costs a system call, so it is read only for a small sample of
 * requests.
 */
#ifndef BRIMFUL_CLOCK_H
#define BRIMFUL_CLOCK_H

#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

#include "classes.h"
#include "words.h"

static inline uint64_t brimful_read_clock(clockid_t clock)
{
    struct timespec time = {0, 0};

    (void) clock_gettime(clock, &time);
    return (uint64_t) time.tv_sec * UINT64_C(1000000000) + (uint64_t) time.tv_nsec;
}

/* A server whose workers are single-threaded processes defines BRIMFUL_ONE_THREAD. Then the clock needs no
 * synchronization, and is faster. */
#ifdef BRIMFUL_ONE_THREAD
#define BRIMFUL_PER_THREAD
#else
#define BRIMFUL_PER_THREAD __thread
#endif

/* Time for which an anchor is valid, see brimful_ticks. */
#define BRIMFUL_ANCHOR_NS UINT64_C(1000000)

/* Whether the kernel uses the processor's tick counter as its clock. brimful_map sets this variable. */
static int brimful_has_ticks __attribute__((unused));

/* The data for computing the time from the tick counter. An anchor is a reading of the kernel's clock together with the
 * tick counter; it is valid for BRIMFUL_ANCHOR_NS. The length of a tick follows from the first and the latest anchor.
 * All threads share the anchors. With an anchor of its own, a thread that rarely works would need a new anchor each
 * time, and the anchor would not be in a cache. */
static struct {
    uint32_t version;         /* odd during a write (a sequence lock) */
    uint64_t anchor_ns, anchor_ticks;
    uint64_t valid_ticks;     /* ticks for which an anchor is valid; 0 until the length of a tick is known */
    uint64_t tick_ns_q32;     /* length of a tick in ns, times 2^32 */
    uint64_t first_ns, first_ticks; /* the first anchor; only the writer uses it */
} brimful_ticks __attribute__((unused, aligned(64)));

#if defined(__x86_64__)

/* Maximum number of ticks for reading an anchor. If a reading takes longer, the thread was interrupted in between,
 * and the anchor is not used. */
#define BRIMFUL_ANCHOR_TICKS UINT64_C(10000)

/* A barrier for the compiler only. The processor needs no barrier, because x86 reorders neither loads with loads nor
 * stores with stores. */
#define BRIMFUL_IN_ORDER() __asm__ volatile("" : : : "memory")

/* Computes the length of a tick from the first anchor and the anchor (`now`, `ticks`). Does nothing until these two
 * anchors are 100 times BRIMFUL_ANCHOR_NS apart. */
static inline void brimful_reckon_tick(uint64_t now, uint64_t ticks)
{
    double tick_ns;

    if (brimful_ticks.first_ns != 0 && now - brimful_ticks.first_ns < 100 * BRIMFUL_ANCHOR_NS) {
        return;
    }
    if (brimful_ticks.first_ns != 0 && ticks > brimful_ticks.first_ticks) {
        tick_ns = (double) (now - brimful_ticks.first_ns) / (double) (ticks - brimful_ticks.first_ticks);
        brimful_set(&brimful_ticks.tick_ns_q32, (uint64_t) (tick_ns * 4294967296.0));
        brimful_set(&brimful_ticks.valid_ticks, (uint64_t) ((double) BRIMFUL_ANCHOR_NS / tick_ns));
        if (now - brimful_ticks.first_ns < 10000 * BRIMFUL_ANCHOR_NS) {
            return;
        }
    }
    /* Replaces the first anchor from time to time: a virtual machine may migrate to a host with longer ticks. */
    brimful_ticks.first_ns = now;
    brimful_ticks.first_ticks = ticks;
}

/* Returns the time by the kernel's clock, and makes this reading the new anchor, unless another thread is setting an
 * anchor. */
static BRIMFUL_APART uint64_t brimful_anchor(void)
{
    uint32_t version = __atomic_load_n(&brimful_ticks.version, __ATOMIC_RELAXED);
    uint64_t ticks = __builtin_ia32_rdtsc();
    uint64_t now = brimful_read_clock(CLOCK_MONOTONIC);
    uint64_t since, valid;

    if ((version & 1) != 0 || !__atomic_compare_exchange_n(&brimful_ticks.version, &version, version + 1, 0,
                                                           __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        return now;
    }
    BRIMFUL_IN_ORDER();
    valid = brimful_ticks.valid_ticks;
    since = ticks - brimful_ticks.anchor_ticks;
    /* The times computed from the previous anchor may be slightly ahead of the kernel's clock. The new anchor must not
     * be earlier than these times, because time must not go backwards. */
    if (since >= valid && since < 2 * valid) {
        uint64_t before = brimful_ticks.anchor_ns + ((valid * brimful_ticks.tick_ns_q32) >> 32);

        now = now > before ? now : before;
    }
    /* Keeps the current anchor if it is still valid, because another thread has just set it. */
    if (since >= valid && __builtin_ia32_rdtsc() - ticks < BRIMFUL_ANCHOR_TICKS) {
        brimful_reckon_tick(now, ticks);
        brimful_set(&brimful_ticks.anchor_ns, now);
        brimful_set(&brimful_ticks.anchor_ticks, ticks);
    }
    __atomic_store_n(&brimful_ticks.version, version + 2, __ATOMIC_RELEASE);
    return now;
}

#endif

/* Returns a mark of this moment. brimful_time_of converts the mark to a time, if it is called soon. If the processor's
 * ticks may be used, a mark costs a fraction of a clock reading. */
static inline uint64_t brimful_mark(void)
{
#if defined(__x86_64__)
    if (brimful_has_ticks) {
        return __builtin_ia32_rdtsc();
    }
#endif
    return brimful_read_clock(CLOCK_MONOTONIC);
}

#if defined(__x86_64__)

static inline uint64_t brimful_time_of_ticks(uint64_t ticks)
{
#ifdef BRIMFUL_ONE_THREAD
    uint64_t since = ticks - brimful_ticks.anchor_ticks;

    if (__builtin_expect(since < brimful_ticks.valid_ticks, 1)) {
        return brimful_ticks.anchor_ns + ((since * brimful_ticks.tick_ns_q32) >> 32);
    }
#else
    uint32_t version = __atomic_load_n(&brimful_ticks.version, __ATOMIC_ACQUIRE);
    uint64_t anchor_ns = brimful_get(&brimful_ticks.anchor_ns);
    uint64_t since = ticks - brimful_get(&brimful_ticks.anchor_ticks);
    uint64_t valid_ticks = brimful_get(&brimful_ticks.valid_ticks);
    uint64_t tick_ns_q32 = brimful_get(&brimful_ticks.tick_ns_q32);

    BRIMFUL_IN_ORDER();
    if (__builtin_expect(since < valid_ticks && (version & 1) == 0
                         && __atomic_load_n(&brimful_ticks.version, __ATOMIC_RELAXED) == version, 1)) {
        return anchor_ns + ((since * tick_ns_q32) >> 32);
    }
#endif
    return brimful_anchor();
}

#endif

/* Returns CLOCK_MONOTONIC at the moment of a mark, in ns. Returns the current time if the mark is too old. */
static inline uint64_t brimful_time_of(uint64_t mark)
{
#if defined(__x86_64__)
    return __builtin_expect(brimful_has_ticks, 1) ? brimful_time_of_ticks(mark) : mark;
#else
    return mark;
#endif
}

/* Returns the current time of CLOCK_MONOTONIC, in ns. */
static inline uint64_t brimful_now(void)
{
#if defined(__x86_64__)
    if (__builtin_expect(brimful_has_ticks, 1)) {
        return brimful_time_of_ticks(__builtin_ia32_rdtsc());
    }
#endif
    return brimful_read_clock(CLOCK_MONOTONIC);
}

/* Returns the CPU time of the calling thread, in ns. This takes a system call of a microsecond or more. */
static inline uint64_t brimful_thread_cpu(void)
{
    return brimful_read_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* Blocks of 512 bytes: pages that a thread has read from disks, and pages of files that it has changed. */
struct brimful_blocks {
    uint64_t read;
    uint64_t written;
};

#ifndef RUSAGE_THREAD
#define RUSAGE_THREAD 1 /* a program without _GNU_SOURCE does not have the name; the value is Linux's */
#endif

/* Returns the blocks of the calling thread. This takes a system call of about a third of a microsecond. */
static inline struct brimful_blocks brimful_thread_blocks(void)
{
    struct brimful_blocks blocks = {0, 0};
    struct rusage usage;

    if (getrusage(RUSAGE_THREAD, &usage) == 0) {
        blocks.read = (uint64_t) usage.ru_inblock;
        blocks.written = (uint64_t) usage.ru_oublock;
    }
    return blocks;
}

/* Adds the calling thread's blocks since `from` to `sum`. */
static inline void brimful_add_blocks(struct brimful_blocks *sum, const struct brimful_blocks *from)
{
    struct brimful_blocks now = brimful_thread_blocks();

    sum->read += now.read - from->read;
    sum->written += now.written - from->written;
}

/* The state of the calling thread's CPU clock. */
static BRIMFUL_PER_THREAD struct {
    uint64_t seen_ns; /* the latest reading that was added to the thread's slot */
    uint64_t cost_ns; /* CPU time that a reading takes */
} brimful_cpu_clock __attribute__((unused));

/* Returns the CPU time between two readings of the same thread, without the cost of a reading. This cost can be a fifth
 * of the total cost of a small file. */
static inline uint64_t brimful_cpu_between(uint64_t from, uint64_t to)
{
    uint64_t spent = to > from ? to - from : 0;

    return spent > brimful_cpu_clock.cost_ns ? spent - brimful_cpu_clock.cost_ns : 0;
}

/* ---- Choice of the requests whose CPU time is measured ---- */

/* Default of `cpu_one_in`, the mean number of requests per sampled request. */
#define BRIMFUL_CPU_ONE_IN 16u

/* Minimum time between two sampled requests of a worker. The readings for a sampled request, four of CPU time and two of
 * blocks, cost about 6 us. With this pause, a worker samples at most 250 requests per second, which costs about a
 * thousandth of its time. */
#define BRIMFUL_CPU_REST_NS UINT64_C(4000000)

/* The state of one thread's random choice of sampled requests. Zero is a valid initial value. `gap` may have any
 * initial value. */
struct brimful_chance {
    uint64_t gap;           /* low half: number of requests until the next sampled request; high half: random bits */
    uint64_t not_before_ns; /* the earliest time at which a request may be sampled */
};

static BRIMFUL_APART int brimful_is_sampled_after_rest(struct brimful_chance *chance,
                                                      const struct brimful_settings *settings, uint64_t now_ns)
{
    uint64_t word = chance->gap;
    uint64_t left = word & UINT32_MAX;
    uint64_t one_in = settings->cpu_one_in;

    if (left > 1 && left < 2 * one_in) {
        chance->gap = word - 1;
        return 0;
    }
    if (one_in == 0) {
        return 0;
    }
    word = (word >> 32) * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    word ^= word >> 29;
    chance->gap = (word & ~(uint64_t) UINT32_MAX) | (((word >> 32) * (2 * one_in - 1) >> 32) + 1);
    if (one_in > 1) {
        uint64_t workers = settings->workers_most > 1 ? settings->workers_most : 1;

        chance->not_before_ns = now_ns + BRIMFUL_CPU_REST_NS * workers;
    }
    return 1;
}

/* Decides whether the CPU time of the request that begins now is measured. The gaps between sampled requests are
 * random: from 1 to twice the mean minus 1. With constant gaps, a periodic workload would have the same requests
 * sampled again and again. After each sampled request comes a pause, and then the gap. Without the gap, the first
 * request after an idle time would be sampled more often than requests in the middle of a burst. The pause grows with
 * the number of workers that share the server's time. */
static inline int brimful_is_sampled(struct brimful_chance *chance, const struct brimful_settings *settings,
                                     uint64_t now_ns)
{
    return now_ns >= chance->not_before_ns && brimful_is_sampled_after_rest(chance, settings, now_ns);
}

#endif
