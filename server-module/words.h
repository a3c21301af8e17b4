/*
 * Words of the shared memory, which others read meanwhile: one writer each, so that a load and a store will do.
 */
#ifndef BRIMFUL_WORDS_H
#define BRIMFUL_WORDS_H

#include <stdint.h>

/* Of what few requests need: out of the way of the others, in the processor's caches too. */
#define BRIMFUL_APART __attribute__((noinline, cold, unused))

static inline void brimful_add(uint64_t *to, uint64_t more)
{
    __atomic_store_n(to, __atomic_load_n(to, __ATOMIC_RELAXED) + more, __ATOMIC_RELAXED);
}

static inline void brimful_set(uint64_t *to, uint64_t value)
{
    __atomic_store_n(to, value, __ATOMIC_RELAXED);
}

static inline uint64_t brimful_get(const uint64_t *from)
{
    return __atomic_load_n(from, __ATOMIC_RELAXED);
}

#endif
