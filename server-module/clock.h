/*
 * Clocks. The time is read at a fraction of the cost of the kernel's clock, if the processor's ticks may be used. The
 * CPU time of a thread is read for so few requests that it costs little.
 */
#ifndef BRIMFUL_CLOCK_H
#define BRIMFUL_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "classes.h"
#include "words.h"

static inline uint64_t brimful_read_clock(clockid_t clock)
{
    struct timespec time = {0, 0};

    (void) clock_gettime(clock, &time);
    return (uint64_t) time.tv_sec * UINT64_C(1000000000) + (uint64_t) time.tv_nsec;
}

/* A server whose workers are single-threaded processes defines BRIMFUL_ONE_THREAD, which is faster. */
#ifdef BRIMFUL_ONE_THREAD
#define BRIMFUL_PER_THREAD
#else
#define BRIMFUL_PER_THREAD __thread
#endif

#define BRIMFUL_ANCHOR_NS UINT64_C(1000000)

/* Whether the kernel itself uses the processor's tick counter as its clock; set by brimful_map. */
static int brimful_has_ticks __attribute__((unused));

/* How the process computes the time between two readings of the kernel's clock. These readings are called anchors, and
 * are at most BRIMFUL_ANCHOR_NS apart. Threads share the anchors: a thread that works only now and then would need a
 * new anchor each time, and an anchor of its own would not be in a cache. The length of a tick follows from the first
 * and the latest anchor. */
static struct {
    uint32_t version;         /* odd during a write (a sequence lock) */
    uint64_t anchor_ns, anchor_ticks;
    uint64_t valid_ticks;     /* ticks after the anchor for which it is valid; 0 until the length of a tick is known */
    uint64_t tick_ns_q32;     /* length of a tick in ns, times 2^32 */
    uint64_t first_ns, first_ticks; /* used by the writer only */
} brimful_ticks __attribute__((unused, aligned(64)));

#if defined(__x86_64__)

#define BRIMFUL_ANCHOR_TICKS UINT64_C(10000) /* a longer reading of the kernel's clock was interrupted */

/* A barrier for the compiler. An x86 processor does not reorder two loads, or two stores. */
#define BRIMFUL_IN_ORDER() __asm__ volatile("" : : : "memory")

/* Computes the length of a tick from the first anchor to this one. */
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
    /* The first anchor is renewed from time to time: a virtual machine may migrate to a host with longer ticks. */
    brimful_ticks.first_ns = now;
    brimful_ticks.first_ticks = ticks;
}

/* Reads the kernel's clock and makes the reading the new anchor, unless another thread is doing so. */
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
    /* Time must not go backwards if the former anchor was slightly ahead. */
    if (since >= valid && since < 2 * valid) {
        uint64_t before = brimful_ticks.anchor_ns + ((valid * brimful_ticks.tick_ns_q32) >> 32);

        now = now > before ? now : before;
    }
    /* Another thread may have set an anchor a moment ago. */
    if (since >= valid && __builtin_ia32_rdtsc() - ticks < BRIMFUL_ANCHOR_TICKS) {
        brimful_reckon_tick(now, ticks);
        brimful_set(&brimful_ticks.anchor_ns, now);
        brimful_set(&brimful_ticks.anchor_ticks, ticks);
    }
    __atomic_store_n(&brimful_ticks.version, version + 2, __ATOMIC_RELEASE);
    return now;
}

#endif

/* Marks this moment. brimful_time_of can soon convert the mark to a time. Where the processor's ticks may be used,
 * this costs a fraction of a clock reading. */
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

/* CLOCK_MONOTONIC at a mark, in ns; the current time if the mark is too old. */
static inline uint64_t brimful_time_of(uint64_t mark)
{
#if defined(__x86_64__)
    return __builtin_expect(brimful_has_ticks, 1) ? brimful_time_of_ticks(mark) : mark;
#else
    return mark;
#endif
}

/* CLOCK_MONOTONIC, in ns. */
static inline uint64_t brimful_now(void)
{
#if defined(__x86_64__)
    if (__builtin_expect(brimful_has_ticks, 1)) {
        return brimful_time_of_ticks(__builtin_ia32_rdtsc());
    }
#endif
    return brimful_read_clock(CLOCK_MONOTONIC);
}

/* CPU time of the calling thread, in ns. This is a system call, which takes a microsecond or more. */
static inline uint64_t brimful_thread_cpu(void)
{
    return brimful_read_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* The calling thread's latest CPU reading that went into its slot, and the CPU time between two direct readings. */
static BRIMFUL_PER_THREAD struct {
    uint64_t seen_ns;
    uint64_t cost_ns;
} brimful_cpu_clock __attribute__((unused));

/* CPU time between two readings of the same thread, without the cost of the reading itself, which can be a fifth of
 * the total cost of a small file. */
static inline uint64_t brimful_cpu_between(uint64_t from, uint64_t to)
{
    uint64_t spent = to > from ? to - from : 0;

    return spent > brimful_cpu_clock.cost_ns ? spent - brimful_cpu_clock.cost_ns : 0;
}

/* ---- Which requests are sampled for CPU time ---- */

/* The default of `cpu_one_in`. */
#define BRIMFUL_CPU_ONE_IN 16u

/* The four readings for one request cost about 5 us. With this pause a busy worker is sampled at most 250 times a
 * second, which costs a thousandth of its time. */
#define BRIMFUL_CPU_REST_NS UINT64_C(4000000)

/* The state of the random choice of sampled requests in the calling thread. Zero is a valid initial value; `gap`
 * may begin with any value. */
struct brimful_chance {
    uint64_t gap;           /* low half: requests left in the gap; high half: a random number */
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

/* Whether the CPU time of the request that begins now is measured. The gaps between sampled requests are random, from 1
 * to twice the mean minus 1; otherwise a periodic workload would have the same requests sampled again and again. A gap
 * begins after a pause, so that requests after an idle time are not sampled more often than requests in the middle of a
 * burst. The pause grows with the number of workers that share the server's time. */
static inline int brimful_is_sampled(struct brimful_chance *chance, const struct brimful_settings *settings,
                                     uint64_t now_ns)
{
    return now_ns >= chance->not_before_ns && brimful_is_sampled_after_rest(chance, settings, now_ns);
}

#endif
