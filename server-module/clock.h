/*
 * Reads the time, and a thread's CPU time. On x86, reading the time is much faster than the kernel's clock if the
 * processor's tick counter can be used. Reading the CPU time needs a system call, so it is done only for a small sample
 * of the requests.
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

/* The module of a server whose worker processes have only one thread defines BRIMFUL_ONE_THREAD. The clock then needs
 * no synchronization between threads, and is faster. */
#ifdef BRIMFUL_ONE_THREAD
#define BRIMFUL_PER_THREAD
#else
#define BRIMFUL_PER_THREAD __thread
#endif

/* Maximum age of an anchor, in ns. An anchor is a reading of the kernel's clock and of the tick counter at once. */
#define BRIMFUL_ANCHOR_NS UINT64_C(1000000)

/* Whether the kernel's own clock uses the processor's tick counter, so that this module may use it too. brimful_map
 * sets this variable. */
static int brimful_has_ticks __attribute__((unused));

/* The data with which the time is computed from the processor's tick counter. An anchor is a reading of the kernel's
 * clock and of the tick counter at the same moment. It is valid for BRIMFUL_ANCHOR_NS. The length of a tick is computed
 * from the first and the latest anchor. All threads share the anchors: if a thread that is often idle had an anchor of
 * its own, it would be outdated and not in a cache whenever the thread needs it. */
static struct {
    uint32_t version;         /* odd during a write (a sequence lock) */
    uint64_t anchor_ns, anchor_ticks;
    uint64_t valid_ticks;     /* ticks for which an anchor is valid; 0 until the length of a tick is known */
    uint64_t tick_ns_q32;     /* length of a tick in ns, times 2^32 */
    uint64_t first_ns, first_ticks; /* the first anchor; only the writer uses it */
} brimful_ticks __attribute__((unused, aligned(64)));

#if defined(__x86_64__)

/* Maximum number of ticks for reading an anchor: the kernel's clock and the tick counter. If this takes longer, the
 * thread was interrupted between the two readings, and the anchor is not used. */
#define BRIMFUL_ANCHOR_TICKS UINT64_C(10000)

/* A barrier for the compiler. The processor needs no barrier here: x86 does not reorder loads with loads, or stores
 * with stores. */
#define BRIMFUL_IN_ORDER() __asm__ volatile("" : : : "memory")

/* Computes the length of a tick from the first anchor and a new anchor (`now`, `ticks`). Does nothing if they are less
 * than 100 times BRIMFUL_ANCHOR_NS apart. */
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
    /* Make the new anchor the first one, from time to time: a virtual machine may have migrated to a host with another
     * tick length. */
    brimful_ticks.first_ns = now;
    brimful_ticks.first_ticks = ticks;
}

/* Reads the kernel's clock and returns the time. Makes this reading the new anchor, unless another thread is setting an
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
    /* The times that were computed from the previous anchor may be slightly ahead of the kernel's clock. The new anchor
     * must not be earlier than these times: time must not go backwards. */
    if (since >= valid && since < 2 * valid) {
        uint64_t before = brimful_ticks.anchor_ns + ((valid * brimful_ticks.tick_ns_q32) >> 32);

        now = now > before ? now : before;
    }
    /* Do not replace the anchor if it is still valid: another thread has just set it. */
    if (since >= valid && __builtin_ia32_rdtsc() - ticks < BRIMFUL_ANCHOR_TICKS) {
        brimful_reckon_tick(now, ticks);
        brimful_set(&brimful_ticks.anchor_ns, now);
        brimful_set(&brimful_ticks.anchor_ticks, ticks);
    }
    __atomic_store_n(&brimful_ticks.version, version + 2, __ATOMIC_RELEASE);
    return now;
}

#endif

/* Returns a mark: a cheap reading of this moment's time. brimful_time_of converts it to a time, if called soon. If the
 * tick counter can be used, a mark is much faster than a reading of the kernel's clock. */
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

/* Returns the time of CLOCK_MONOTONIC at the moment of a mark, in ns. If the mark is too old, returns the current time.
 * */
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

/* Returns the CPU time of the calling thread, in ns. This is a system call that takes a microsecond or more. */
static inline uint64_t brimful_thread_cpu(void)
{
    return brimful_read_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* Disk I/O of a thread, in blocks of 512 bytes: blocks that were read from disks because of the thread, and blocks that
 * the thread has written to the page cache. */
struct brimful_blocks {
    uint64_t read;
    uint64_t written;
};

#ifndef RUSAGE_THREAD
#define RUSAGE_THREAD 1 /* a program without _GNU_SOURCE does not have the name; the value is Linux's */
#endif

/* Returns the disk I/O of the calling thread so far. This is a system call that takes about a third of a microsecond.
 * */
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

/* Adds the disk I/O of the calling thread since `from` to `sum`. */
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

/* Returns the CPU time between two readings of the same thread's clock, without the CPU time of a reading itself. For a
 * request of a small file, a reading can take a fifth of the request's CPU time. */
static inline uint64_t brimful_cpu_between(uint64_t from, uint64_t to)
{
    uint64_t spent = to > from ? to - from : 0;

    return spent > brimful_cpu_clock.cost_ns ? spent - brimful_cpu_clock.cost_ns : 0;
}

/* ---- Choice of the requests whose CPU time is measured ---- */

/* Default of `cpu_one_in`, the mean number of requests per sampled request. */
#define BRIMFUL_CPU_ONE_IN 16u

/* Minimum time between two sampled requests of a worker. A sampled request needs four readings of CPU time and two of
 * disk I/O, which take about 6 us. With this minimum, a worker samples at most 250 requests per second, which takes
 * about a thousandth of its time. */
#define BRIMFUL_CPU_REST_NS UINT64_C(4000000)

/* One thread's state of the random choice of sampled requests. A struct that is all zero is valid; `gap` may have any
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

/* Decides whether to measure the CPU time of the request that begins now. The number of requests from one sampled
 * request to the next is random: 1 to twice the mean minus 1. If it were constant, the same requests of a periodic
 * workload would be sampled again and again. After a sampled request, no request is sampled for a minimum time; only
 * then are requests counted. Otherwise, the first request after an idle time would be sampled more often than requests
 * within a burst. The minimum time is proportional to the number of workers that share the server's time. */
static inline int brimful_is_sampled(struct brimful_chance *chance, const struct brimful_settings *settings,
                                     uint64_t now_ns)
{
    return now_ns >= chance->not_before_ns && brimful_is_sampled_after_rest(chance, settings, now_ns);
}

#endif
