/*
 * Reads and writes words of the shared memory while other processes read them. Each word has only one writer. So
 * brimful_add does not need an atomic addition: it loads the word and stores the sum.
 */
#ifndef BRIMFUL_WORDS_H
#define BRIMFUL_WORDS_H

#include <stdint.h>

/* Marks functions that are rarely called. The compiler places them apart from code that is called often. */
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
