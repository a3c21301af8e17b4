/*
 * Clocks: what the time is, at a fraction of what the kernel's clock costs where the processor's ticks may be used, and
 * the CPU time of a thread, of so few requests that it costs little.
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

/* A server whose workers are processes of one thread defines BRIMFUL_ONE_THREAD, which is faster. */
#ifdef BRIMFUL_ONE_THREAD
#define BRIMFUL_PER_THREAD
#else
#define BRIMFUL_PER_THREAD __thread
#endif

#define BRIMFUL_ANCHOR_NS UINT64_C(1000000)

/* Whether the processor's counter of ticks is what the kernel itself tells the time by: brimful_map finds out. */
static int brimful_has_ticks __attribute__((unused));

/* How the process tells the time between two readings of the kernel's clock, its anchors, at most BRIMFUL_ANCHOR_NS
 * apart. Its threads share them: one that works now and then would need an anchor each time, and find its own in no
 * cache. How long a tick is, the first and the latest anchor say. */
static struct {
    uint32_t version;         /* odd while it is written (a sequence lock) */
    uint64_t anchor_ns, anchor_ticks;
    uint64_t valid_ticks;     /* after the anchor; 0 until it is known how long a tick is */
    uint64_t tick_ns_q32;     /* times 2^32 */
    uint64_t first_ns, first_ticks; /* of whoever writes */
} brimful_ticks __attribute__((unused, aligned(64)));

#if defined(__x86_64__)

#define BRIMFUL_ANCHOR_TICKS UINT64_C(10000) /* a reading of the kernel's clock that takes longer was interrupted */

/* No store or load moves from one side to the other: this processor keeps the order that the compiler leaves. */
#define BRIMFUL_IN_ORDER() __asm__ volatile("" : : : "memory")

/* Reckons how long a tick is, from the first anchor to this one. */
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
    /* Anew from time to time: a virtual machine may be moved to where ticks are longer. */
    brimful_ticks.first_ns = now;
    brimful_ticks.first_ticks = ticks;
}

/* Reads the kernel's clock, and has the process count from there, unless another thread does so now. */
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
    /* Time does not go back where the former anchor was a little ahead. */
    if (since >= valid && since < 2 * valid) {
        uint64_t before = brimful_ticks.anchor_ns + ((valid * brimful_ticks.tick_ns_q32) >> 32);

        now = now > before ? now : before;
    }
    /* Another thread may have made one a moment ago. */
    if (since >= valid && __builtin_ia32_rdtsc() - ticks < BRIMFUL_ANCHOR_TICKS) {
        brimful_reckon_tick(now, ticks);
        brimful_set(&brimful_ticks.anchor_ns, now);
        brimful_set(&brimful_ticks.anchor_ticks, ticks);
    }
    __atomic_store_n(&brimful_ticks.version, version + 2, __ATOMIC_RELEASE);
    return now;
}

#endif

/* This moment, to be told as a time soon (brimful_time_of), or not at all. At a fraction of the cost of a clock, where
 * the processor's ticks may be used. */
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

/* CLOCK_MONOTONIC at this moment, in ns; the time now if that is not known any more. */
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

/* CPU time of the calling thread, in ns. A system call: a microsecond or more. */
static inline uint64_t brimful_thread_cpu(void)
{
    return brimful_read_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* Of the calling thread: the latest reading that went into its slot, and how much CPU time passes from one reading to
 * the next if nothing lies between. */
static BRIMFUL_PER_THREAD struct {
    uint64_t seen_ns;
    uint64_t cost_ns;
} brimful_cpu_clock __attribute__((unused));

/* CPU time from one reading to a later one of the same thread, without what the reading itself costs, which can be a
 * fifth of what a small file costs in all. */
static inline uint64_t brimful_cpu_between(uint64_t from, uint64_t to)
{
    uint64_t spent = to > from ? to - from : 0;

    return spent > brimful_cpu_clock.cost_ns ? spent - brimful_cpu_clock.cost_ns : 0;
}

/* ---- Of which requests CPU time is measured ---- */

/* What `cpu_one_in` is where nothing else is said. */
#define BRIMFUL_CPU_ONE_IN 16u

/* Four readings of a request cost some 5 us, so a busy worker is measured 250 times a second at most, in a part in a
 * thousand of its time. */
#define BRIMFUL_CPU_REST_NS UINT64_C(4000000)

/* By what chance the calling thread chooses requests to measure. All zero is a valid beginning, `gap` anything. */
struct brimful_chance {
    uint64_t gap;           /* what is left of a gap, below a random number */
    uint64_t not_before_ns; /* the next one */
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

/* Whether the request that begins now is one whose CPU time is measured. The gaps between those are by chance, from 1
 * to twice the mean less 1, since of a workload with a period the same requests would be chosen again and again
 * otherwise. A gap begins after a rest, so that what comes after a pause is not chosen more often than what is in the
 * middle of a crowd; the more workers share the server's time, the longer it is. */
static inline int brimful_is_sampled(struct brimful_chance *chance, const struct brimful_settings *settings,
                                     uint64_t now_ns)
{
    return now_ns >= chance->not_before_ns && brimful_is_sampled_after_rest(chance, settings, now_ns);
}

#endif
