/*
 * Recording a request: into a pending entry of the slot, and when the entries are full, into the sums of its class
 * (layout.h).
 */
#ifndef BRIMFUL_RECORD_H
#define BRIMFUL_RECORD_H

#include <stdint.h>
#include <string.h>

#include "clock.h"
#include "layout.h"
#include "words.h"

/* The complete record of one request. */
struct brimful_request {
    uint64_t time_ns[BRIMFUL_PHASES];
    uint64_t bytes;        /* size of the response body */
    uint16_t status;       /* HTTP status */
    uint8_t aborted;
    uint8_t cpu_sampled;   /* 0: no CPU time, 1: measured, in cpu_ns, 2: mixed with other requests' CPU time, see
                            * brimful_class */
    uint32_t has;          /* phases with a time, as BRIMFUL_HAS. Others are not counted: their time is unknown, or
                            * there was none, as for HEAD or SEND without any waiting */
    uint64_t cpu_ns[BRIMFUL_CPUS];
    uint32_t resumed;      /* number of times that a worker resumed it, see brimful_sums */
};

#define BRIMFUL_HAS(phase) (UINT32_C(1) << (phase))


/* Squares of times below this, in square nanoseconds, do not overflow 64 bits when all pending requests are summed. */
#define BRIMFUL_SHORT_NS UINT64_C(1000000000)

/* The square of a time in square microseconds, rounded. Times are capped at 35 minutes, so that no square fills the
 * word; a sum of squares may still wrap. */
static inline uint64_t brimful_square_us2(uint64_t ns)
{
    uint64_t us;

    if (ns < BRIMFUL_SHORT_NS) {
        return (ns * ns + 500000) / 1000000;
    }
    us = ns / 1000;
    us = us < UINT64_C(0x7fffffff) ? us : UINT64_C(0x7fffffff);
    return us * us;
}

/* The bucket of a time. Bucket b starts at (4 + b % 4) << (b / 4 + 6) ns and ends where the next one starts: 256, 320,
 * 384, 448, 512, 640, ... */
static inline unsigned brimful_bucket(uint64_t ns)
{
    unsigned octave, bucket;

    if (ns < 256) {
        return 0;
    }
    octave = 63u ^ (unsigned) __builtin_clzll(ns);
    bucket = (octave - 9) * 4 + (unsigned) (ns >> (octave - 2)); /* the shifted time is 4 to 7 */
    return bucket < BRIMFUL_BUCKETS ? bucket : BRIMFUL_BUCKETS - 1;
}

/* The number of classes in this process's file. */
static uint32_t brimful_classes __attribute__((unused));

/* Number of pending requests of the slot. */
static inline uint64_t brimful_pending_count(const struct brimful_slot *slot)
{
    return brimful_get(&slot->recorded) - (brimful_get(&slot->folded) >> BRIMFUL_FOLDED_COUNT);
}

/* The pending requests of one class. */
struct brimful_members {
    unsigned count;
    const struct brimful_pending *pending[BRIMFUL_PENDING];
};

/* Adds the times of one phase. Squares of short times are divided by 10^6 together, and rounded down once. A reader
 * rounds each square down, so its sum is never larger. */
static inline void brimful_fold_phase(struct brimful_times *times, uint64_t *buckets,
                                      const struct brimful_members *members, unsigned phase)
{
    uint64_t count = 0, sum_ns = 0, sum_ns2 = 0, sum_us2 = 0;
    unsigned i;

    for (i = 0; i < members->count; i++) {
        if ((members->pending[i]->what >> (BRIMFUL_WHAT_HAS + phase) & 1) != 0) {
            uint64_t ns = members->pending[i]->time_ns[phase];

            count++;
            sum_ns += ns;
            buckets[brimful_bucket(ns)]++;
            if (__builtin_expect(ns < BRIMFUL_SHORT_NS, 1)) {
                sum_ns2 += ns * ns;
            } else {
                sum_us2 += brimful_square_us2(ns);
            }
        }
    }
    times->count += count;
    times->sum_ns += sum_ns;
    times->sum_us2 += sum_us2 + sum_ns2 / 1000000;
}

/* Adds requests to the sums of their class, starting from a copy of the current sums. Readers ignore these sums until
 * they become current. */
static inline void brimful_fold_class(struct brimful_class *class_, unsigned current,
                                      const struct brimful_members *members)
{
    struct brimful_sums *sums = &class_->sums[!current];
    uint64_t bytes = 0, any = 0, resumed = 0;
    unsigned i, phase;

    *sums = class_->sums[current];
    for (i = 0; i < members->count; i++) {
        uint64_t what = members->pending[i]->what;

        any |= what;
        bytes += members->pending[i]->bytes;
        resumed += what >> BRIMFUL_WHAT_RESUMED;
        if (__builtin_expect((what & (BRIMFUL_WHAT_FAILED | BRIMFUL_WHAT_ABORTED)) != 0, 0)) {
            sums->failed += (what & BRIMFUL_WHAT_FAILED) != 0;
            sums->aborted += (what & BRIMFUL_WHAT_ABORTED) != 0;
        }
    }
    sums->requests += members->count;
    sums->bytes += bytes;
    sums->resumed += resumed;
    for (phase = 0; phase < BRIMFUL_PHASES; phase++) {
        if ((any >> (BRIMFUL_WHAT_HAS + phase) & 1) != 0) {
            brimful_fold_phase(&sums->times[phase], class_->buckets[phase], members, phase);
        }
    }
}

/* Adds the pending requests to the sums; see layout.h. */
static __attribute__((noinline, unused)) void brimful_fold(struct brimful_slot *slot)
{
    uint64_t recorded = brimful_get(&slot->recorded), count = brimful_pending_count(slot);
    unsigned current = (uint16_t) brimful_get(&slot->folded);
    struct brimful_members members, left;
    uint64_t i;

    for (left.count = 0, i = recorded - (count < BRIMFUL_PENDING ? count : BRIMFUL_PENDING); i != recorded; i++) {
        left.pending[left.count++] = &slot->pending[i % BRIMFUL_PENDING];
    }
    while (left.count > 0) {
        uint64_t index = left.pending[0]->what & BRIMFUL_WHAT_CLASS;
        unsigned j, others = 0;

        for (members.count = 0, j = 0; j < left.count; j++) {
            if ((left.pending[j]->what & BRIMFUL_WHAT_CLASS) == index) {
                members.pending[members.count++] = left.pending[j];
            } else {
                left.pending[others++] = left.pending[j];
            }
        }
        left.count = others;
        /* Other processes may have changed the memory. */
        if (index < brimful_classes) {
            brimful_fold_class(&slot->classes[index], current >> index & 1, &members);
            current ^= 1u << index;
        }
    }
    __atomic_store_n(&slot->folded, recorded << BRIMFUL_FOLDED_COUNT | current, __ATOMIC_RELEASE);
    /* A reader that sees a later store sees this one too. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

/* The first half of brimful_record, to be called just before the log line is written. If a worker is killed while it
 * writes the line (SIGKILL takes effect when a system call returns), the log then contains the counted request. */
static inline void brimful_count(struct brimful_slot *slot, unsigned class_index, const struct brimful_request *request)
{
    uint64_t recorded = brimful_get(&slot->recorded);
    struct brimful_pending *pending = &slot->pending[recorded % BRIMFUL_PENDING];
    uint64_t what = class_index | (request->aborted != 0) * BRIMFUL_WHAT_ABORTED
                    | ((unsigned) request->status - 500 < 100) * BRIMFUL_WHAT_FAILED;

    if (__builtin_expect(brimful_pending_count(slot) >= BRIMFUL_PENDING, 0)) {
        brimful_fold(slot);
    }
    brimful_set(&pending->what, what);
    brimful_set(&pending->bytes, request->bytes);
    __atomic_store_n(&slot->recorded, recorded + 1, __ATOMIC_RELEASE);
}

/* Adds the CPU time of a request. */
static BRIMFUL_APART void brimful_record_cpu(struct brimful_class *class_, const struct brimful_request *request)
{
    uint64_t sum = 0;
    unsigned i;

    if (request->cpu_sampled != 1) {
        brimful_add(&class_->cpu_mixed, 1);
        return;
    }
    for (i = 0; i < BRIMFUL_CPUS; i++) {
        brimful_add(&class_->cpu_ns[i], request->cpu_ns[i]);
        sum += request->cpu_ns[i];
    }
    brimful_add(&class_->cpu_sum_us2, brimful_square_us2(sum));
    brimful_add(&class_->cpu_count, 1);
}

/* The second half of brimful_record: the times of the request. */
static inline void brimful_record_times(struct brimful_slot *slot, unsigned class_index,
                                        const struct brimful_request *request)
{
    struct brimful_pending *pending = &slot->pending[(brimful_get(&slot->recorded) - 1) % BRIMFUL_PENDING];
    uint64_t what = brimful_get(&pending->what);

    memcpy(pending->time_ns, request->time_ns, sizeof(pending->time_ns));
    what |= (uint64_t) request->has << BRIMFUL_WHAT_HAS | (uint64_t) request->resumed << BRIMFUL_WHAT_RESUMED;
    __atomic_store_n(&pending->what, what, __ATOMIC_RELEASE);
    if (__builtin_expect(request->cpu_sampled != 0, 0)) {
        brimful_record_cpu(&slot->classes[class_index], request);
    }
    /* Fold now, rather than before the next request, whose log line would be delayed. */
    if (__builtin_expect(brimful_pending_count(slot) >= BRIMFUL_PENDING, 0)) {
        brimful_fold(slot);
    }
}

/* Records a complete request in the slot of the calling thread. `class_index` is from brimful_classify. */
static inline void brimful_record(struct brimful_slot *slot, unsigned class_index,
                                  const struct brimful_request *request)
{
    brimful_count(slot, class_index, request);
    brimful_record_times(slot, class_index, request);
}

/* ---- What keeps a worker busy ---- */

/* Marks the calling thread as busy, if it is not already. */
static inline void brimful_busy(struct brimful_slot *slot, uint64_t now_ns)
{
    if (brimful_get(&slot->busy_since_ns) == 0) {
        brimful_set(&slot->busy_since_ns, now_ns);
    }
}

/* Marks the calling thread as idle. For a moment a reader may find the busy time in neither `busy_since_ns` nor
 * `busy_ns`, but never in both. */
static inline void brimful_idle(struct brimful_slot *slot, uint64_t now_ns)
{
    uint64_t since = brimful_get(&slot->busy_since_ns);

    if (since != 0) {
        brimful_set(&slot->busy_since_ns, 0);
        brimful_add(&slot->busy_ns, now_ns > since ? now_ns - since : 0);
    }
}

/* Begins a request, which makes its worker busy. */
static inline void brimful_begin(struct brimful_slot *slot, uint64_t now_ns)
{
    brimful_add(&slot->in_progress, 1);
    brimful_busy(slot, now_ns);
}

/* Ends a request that brimful_begin began. */
static inline void brimful_end(struct brimful_slot *slot, uint64_t now_ns)
{
    uint64_t in_progress = brimful_get(&slot->in_progress);

    brimful_set(&slot->in_progress, in_progress > 0 ? in_progress - 1 : 0);
    if (in_progress <= 1) {
        brimful_idle(slot, now_ns);
    }
}

/* Adds the CPU time that the calling thread has used since its latest reading. `reading` is from brimful_thread_cpu;
 * `slot` is the thread's own. */
static inline void brimful_note_cpu(struct brimful_slot *slot, uint64_t reading, uint64_t now_ns)
{
    if (reading > brimful_cpu_clock.seen_ns) {
        brimful_add(&slot->cpu_ns, reading - brimful_cpu_clock.seen_ns);
        brimful_cpu_clock.seen_ns = reading;
    }
    brimful_set(&slot->cpu_at_ns, now_ns);
}

#endif
