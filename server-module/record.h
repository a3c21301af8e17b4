/*
 * Records requests. A request is first written into a pending entry of its slot. When all entries are used, they are
 * added to the sums of their classes (see layout.h).
 */
#ifndef BRIMFUL_RECORD_H
#define BRIMFUL_RECORD_H

#include <stdint.h>
#include <string.h>

#include "clock.h"
#include "layout.h"
#include "words.h"

/* All recorded properties of one request. */
struct brimful_request {
    uint64_t time_ns[BRIMFUL_PHASES];
    uint64_t bytes;        /* size of the response body, in bytes */
    uint16_t status;       /* HTTP status */
    uint8_t aborted;
    /* 0: the CPU time was not measured. 1: it was measured, see cpu_ns. 2: the measured CPU time is not usable, because
     * it includes CPU time of other requests (see cpu_mixed in brimful_class). */
    uint8_t cpu_sampled;
    /* One bit, BRIMFUL_HAS(phase), for each phase with a time. A phase without a time is not counted: its time is
     * unknown, or the request did not wait in the phase HEAD or SEND. */
    uint32_t has;
    uint64_t cpu_ns[BRIMFUL_CPUS];
    struct brimful_blocks blocks; /* of a request whose CPU time is measured, from the end of its head on */
    uint32_t resumed;      /* number of times that a worker resumed the request, see brimful_sums */
};

#define BRIMFUL_HAS(phase) (UINT32_C(1) << (phase))


/* Times below this bound are called short. The sum of the squares of a slot's pending short times, in square
 * nanoseconds, fits into 64 bits. */
#define BRIMFUL_SHORT_NS UINT64_C(1000000000)

/* Returns the square of a time, in square microseconds. A time longer than 35 minutes counts as 35 minutes, so that its
 * square fits into 64 bits. A sum of squares may still overflow. */
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

/* Returns the index of a time's bucket in the histogram. Bucket b starts at (4 + b % 4) << (b / 4 + 6) ns and ends
 * where the next bucket starts. The first buckets start at 256, 320, 384, 448, 512 and 640 ns. */
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

/* Returns the number of pending requests of a slot. */
static inline uint64_t brimful_pending_count(const struct brimful_slot *slot)
{
    return brimful_get(&slot->recorded) - (brimful_get(&slot->folded) >> BRIMFUL_FOLDED_COUNT);
}

/* The pending requests of one class. */
struct brimful_members {
    unsigned count;
    const struct brimful_pending *pending[BRIMFUL_PENDING];
};

/* Adds the times of one phase to the sums and buckets of a class. The squares of short times are added up in square
 * nanoseconds; then the sum is converted to square microseconds and rounded down once. For pending requests, a reader
 * rounds each square down, so its sum never decreases by a fold. */
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

/* Adds pending requests of one class to the copy of the class's sums that is not current. Readers ignore this copy
 * until brimful_fold makes it current. */
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

/* Folds: adds all pending requests of a slot to the sums of their classes. See layout.h. */
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
        /* Check the index: other processes can write to the memory, so it may be invalid. */
        if (index < brimful_classes) {
            brimful_fold_class(&slot->classes[index], current >> index & 1, &members);
            current ^= 1u << index;
        }
    }
    __atomic_store_n(&slot->folded, recorded << BRIMFUL_FOLDED_COUNT | current, __ATOMIC_RELEASE);
    /* With this fence, a reader that sees a later store also sees the store to `folded`. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

/* The first half of brimful_record: counts the request. nginx's module calls it just before the log line is written. A
 * worker that is killed during the write leaves both a count and a line, because SIGKILL takes effect only when the
 * system call returns. For Apache, see request_count in apache/request.h. */
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

/* Adds the CPU time and disk I/O of a sampled request to its class. */
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
    brimful_add(&class_->blocks_read, request->blocks.read);
    brimful_add(&class_->blocks_written, request->blocks.written);
    brimful_add(&class_->blocks_count, 1);
}

/* The second half of brimful_record: writes the times of the request. */
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
    /* Fold now, after the log line was written. Folding in the next call of brimful_count would delay the log line of
     * the next request. */
    if (__builtin_expect(brimful_pending_count(slot) >= BRIMFUL_PENDING, 0)) {
        brimful_fold(slot);
    }
}

/* Records a complete request in the slot of the calling thread. `class_index` is the result of brimful_classify. */
static inline void brimful_record(struct brimful_slot *slot, unsigned class_index,
                                  const struct brimful_request *request)
{
    brimful_count(slot, class_index, request);
    brimful_record_times(slot, class_index, request);
}

/* ---- Busy time of a worker ---- */

/* Marks the calling thread as busy from `now_ns` on, unless it is already marked as busy. */
static inline void brimful_busy(struct brimful_slot *slot, uint64_t now_ns)
{
    if (brimful_get(&slot->busy_since_ns) == 0) {
        brimful_set(&slot->busy_since_ns, now_ns);
    }
}

/* Marks the calling thread as idle, and adds its latest busy time to `busy_ns`. Between the two stores, the busy time
 * is in neither member; so a reader may miss it, but never counts it twice. */
static inline void brimful_idle(struct brimful_slot *slot, uint64_t now_ns)
{
    uint64_t since = brimful_get(&slot->busy_since_ns);

    if (since != 0) {
        brimful_set(&slot->busy_since_ns, 0);
        brimful_add(&slot->busy_ns, now_ns > since ? now_ns - since : 0);
    }
}

/* Counts a request that begins, and marks the calling thread as busy. */
static inline void brimful_begin(struct brimful_slot *slot, uint64_t now_ns)
{
    brimful_add(&slot->in_progress, 1);
    brimful_busy(slot, now_ns);
}

/* Ends a request that brimful_begin has counted. If it was the last request in progress, marks the calling thread as
 * idle. */
static inline void brimful_end(struct brimful_slot *slot, uint64_t now_ns)
{
    uint64_t in_progress = brimful_get(&slot->in_progress);

    brimful_set(&slot->in_progress, in_progress > 0 ? in_progress - 1 : 0);
    if (in_progress <= 1) {
        brimful_idle(slot, now_ns);
    }
}

/* Adds the calling thread's CPU time since its previous reading to its slot. `reading` is the result of
 * brimful_thread_cpu, and `now_ns` is the time of this reading. */
static inline void brimful_note_cpu(struct brimful_slot *slot, uint64_t reading, uint64_t now_ns)
{
    if (reading > brimful_cpu_clock.seen_ns) {
        brimful_add(&slot->cpu_ns, reading - brimful_cpu_clock.seen_ns);
        brimful_cpu_clock.seen_ns = reading;
    }
    brimful_set(&slot->cpu_at_ns, now_ns);
}

#endif
