/*
 * Claims and releases the slots of the file. Each worker process or thread claims a free slot. If no slot is free, it
 * claims a slot whose owner is dead.
 */
#ifndef BRIMFUL_SLOTS_H
#define BRIMFUL_SLOTS_H

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "file.h"
#include "record.h"

/* The members `owner` and `thread` of a slot as one word, so that a single atomic instruction can claim the slot. */
typedef uint64_t __attribute__((may_alias)) brimful_owner;

static inline brimful_owner brimful_owner_of(uint32_t process, uint32_t thread)
{
    uint32_t both[2] = {process, thread};
    brimful_owner owner;

    memcpy(&owner, both, sizeof(owner));
    return owner;
}

/* Returns whether the owner of a slot has ended. If this process cannot find out, the owner counts as alive. */
static inline int brimful_is_dead(brimful_owner owner)
{
    uint32_t both[2];

    memcpy(both, &owner, sizeof(both));
    return syscall(SYS_tgkill, (pid_t) both[0], (pid_t) both[1], 0) != 0 && (errno == ESRCH || errno == EINVAL);
}

static inline struct brimful_slot *brimful_slot_at(const struct brimful_memory *memory, uint32_t index)
{
    char *at = (char *) memory->header + memory->header_size + index * memory->slot_size;

    return (struct brimful_slot *) (void *) at;
}

/* Claims a slot, if it still belongs to `owner`: 0 for a free slot, or a dead owner. The requests in progress of a dead
 * owner never end, so their number is set to 0. The pending requests of the dead owner stay in the slot, and are folded
 * later together with those of the new owner. */
static inline int brimful_take(struct brimful_slot *slot, brimful_owner owner, brimful_owner mine)
{
    brimful_owner *word = (brimful_owner *) (void *) slot;

    if (!__atomic_compare_exchange_n(word, &owner, mine, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        return 0;
    }
    brimful_set(&slot->in_progress, 0);
    brimful_set(&slot->busy_since_ns, 0);
    return 1;
}

/* Measures the CPU time of a reading of the CPU clock. From this call on, the calling thread's CPU time is added to its
 * slot. */
static inline void brimful_start_cpu_clock(void)
{
    uint64_t before = brimful_thread_cpu();
    int i;

    brimful_cpu_clock.cost_ns = UINT64_MAX;
    for (i = 0; i < 32; i++) {
        uint64_t after = brimful_thread_cpu();

        if (after - before < brimful_cpu_clock.cost_ns) {
            brimful_cpu_clock.cost_ns = after - before;
        }
        before = after;
    }
    brimful_cpu_clock.seen_ns = before;
}

/* Frees the slots of dead owners, which would otherwise be counted as busy forever. A process does this once, before
 * its first claim. If a thread dies later without releasing its slot, the slot stays claimed until brimful_claim finds
 * no free slot. */
static inline void brimful_sweep(struct brimful_memory *memory, brimful_owner mine)
{
    uint32_t i;

    for (i = 0; i < memory->slots; i++) {
        struct brimful_slot *slot = brimful_slot_at(memory, i);
        brimful_owner *word = (brimful_owner *) (void *) slot;
        brimful_owner owner = __atomic_load_n(word, __ATOMIC_ACQUIRE);

        if (owner != 0 && brimful_is_dead(owner) && brimful_take(slot, owner, mine)) {
            __atomic_store_n(word, 0, __ATOMIC_RELEASE);
        }
    }
}

static uint32_t brimful_swept_by __attribute__((unused)); /* the last process that swept */
static BRIMFUL_PER_THREAD int brimful_is_lost __attribute__((unused)); /* the thread is counted in the header's `lost` */

/* Claims a slot for the calling thread: a free slot or, if there is none, the slot of a dead owner. `process` and
 * `thread` are the ids of the calling process and thread (getpid, gettid). If all owners are alive, counts the
 * thread in the header's `lost`, unless it was counted before, and returns NULL. */
static inline struct brimful_slot *brimful_claim(struct brimful_memory *memory, uint32_t process, uint32_t thread)
{
    brimful_owner mine = brimful_owner_of(process, thread);
    uint32_t i;
    int pass;

    if (memory->header == NULL) {
        return NULL;
    }
    if (__atomic_exchange_n(&brimful_swept_by, process, __ATOMIC_RELAXED) != process) {
        brimful_sweep(memory, mine);
    }
    for (pass = 0; pass < 2; pass++) {
        for (i = 0; i < memory->slots; i++) {
            struct brimful_slot *slot = brimful_slot_at(memory, i);
            brimful_owner owner = __atomic_load_n((brimful_owner *) (void *) slot, __ATOMIC_ACQUIRE);

            if ((owner == 0 || (pass == 1 && brimful_is_dead(owner))) && brimful_take(slot, owner, mine)) {
                brimful_add(&slot->owners, 1);
                brimful_start_cpu_clock();
                return slot;
            }
        }
    }
    if (!brimful_is_lost) {
        brimful_is_lost = 1;
        (void) __atomic_fetch_add(&memory->header->lost, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* Releases the slot of the calling thread. */
static inline void brimful_release(struct brimful_slot *slot)
{
    uint64_t now = brimful_now();

    brimful_note_cpu(slot, brimful_thread_cpu(), now);
    brimful_idle(slot, now);
    brimful_set(&slot->in_progress, 0);
    __atomic_store_n((brimful_owner *) (void *) slot, 0, __ATOMIC_RELEASE);
}

#endif
