/*
 * Reads and writes words of the shared memory, while other processes read them. Each word has only one writer, so
 * brimful_add needs no atomic addition: a load and a store are enough.
 */
#ifndef BRIMFUL_WORDS_H
#define BRIMFUL_WORDS_H

#include <stdint.h>

/* Marks functions that few requests need. The compiler places such functions apart from frequently used code. */
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
