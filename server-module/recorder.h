/*
 * The recorder of brimful's Server Module (WebMonitor; Almeida, Almeida & Yates 1997, section 3.2): what a request
 * costs inside a server, phase by phase and class by class, written into shared memory that `brimful watch` reads.
 *
 * The memory is one file, made before the server forks; layout.h says what is in it. This is its writer, whole.
 */
#ifndef BRIMFUL_RECORDER_H
#define BRIMFUL_RECORDER_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "layout.h"

/* Of what few requests need: out of the way of the others, in the processor's caches too. */
#define BRIMFUL_APART __attribute__((noinline, cold, unused))

/*
 * Its functions never fail a request, never block and, but for brimful_map, never allocate. They want GNU C
 * (gcc or clang) and _GNU_SOURCE or -std=gnu11. A server's module calls, in this order:
 *
 *   brimful_add_rule  for each rule of its configuration, or brimful_default_rules if there is none;
 *   brimful_map       before it forks, as the user who owns the file;
 *   brimful_claim     in each worker or thread, and brimful_release at its end;
 *   brimful_is_on     when a request begins, brimful_begin and brimful_end around what it keeps a worker busy with;
 *   brimful_record    once for each request, when its log line is written; or brimful_count just before that, and
 *                     brimful_record_times after it.
 */

/* One rule of a class. */
struct brimful_rule {
    uint64_t least, most; /* bytes of body, inclusive */
    uint32_t by_url;      /* else by size */
    uint32_t class_index; /* BRIMFUL_CLASSES_MOST: of "other", whichever index that has in the end */
};

#define BRIMFUL_RULES_MOST 64u
#define BRIMFUL_PATTERN_BYTES 256u /* with the zero byte at its end */

/* What `cpu_one_in` is where nothing else is said. */
#define BRIMFUL_CPU_ONE_IN 16u

/* Four readings of a request cost some 5 us, so a busy worker is measured 250 times a second at most, in a part in a
 * thousand of its time. */
#define BRIMFUL_CPU_REST_NS UINT64_C(4000000)

/* What the server's own directives say. All zero is a valid beginning. */
struct brimful_settings {
    const char *path;      /* of the file, absolute */
    const char *server;    /* name and version, see brimful_header */
    uint32_t slots;
    uint32_t cpu_one_in;
    uint32_t workers_most; /* see brimful_header */
    unsigned classes;      /* "other", the last of them, included; 0 until there is a rule */
    char class_names[BRIMFUL_CLASSES_MOST][BRIMFUL_NAME_BYTES];
    unsigned rules;
    int by_url;            /* a rule is: only then brimful_classify looks at the path */
    struct brimful_rule rule[BRIMFUL_RULES_MOST];
    /* Of the path without its query; `*` matches anything, slashes too. Apart from the rules, so that those of sizes, which
     * each request is compared with, are close together. */
    char pattern[BRIMFUL_RULES_MOST][BRIMFUL_PATTERN_BYTES];
};

/* The file in memory. What the writer relies on is kept here too: what stands in the file, others may have changed. */
struct brimful_memory {
    struct brimful_header *header;
    size_t size;
    size_t header_size, slot_size;
    uint32_t slots;
};

/* One request, complete. */
struct brimful_request {
    uint64_t time_ns[BRIMFUL_PHASES];
    uint64_t bytes;        /* of its body */
    uint16_t status;       /* of HTTP */
    uint8_t aborted;
    uint8_t cpu_sampled;   /* 0: no CPU time, 1: it is below, 2: mixed with that of others, see brimful_class */
    uint32_t has;          /* phases, BRIMFUL_HAS each. The others are not counted, because it is not known how long they
                            * were, or there were none, such as a HEAD or SEND without any waiting */
    uint64_t cpu_ns[BRIMFUL_CPUS];
};

#define BRIMFUL_HAS(phase) (UINT32_C(1) << (phase))

#define BRIMFUL_WHY_BYTES 256u

/* ---- Classes ---- */

/* The index of the class of this name, which is made if there is none; -1 if there is no room for it. */
static inline int brimful_class_index(struct brimful_settings *settings, const char *name)
{
    unsigned index;

    if (settings->classes == 0) {
        settings->classes = 1;
        memset(settings->class_names[0], 0, BRIMFUL_NAME_BYTES);
        memcpy(settings->class_names[0], "other", sizeof("other"));
    }
    index = settings->classes - 1;
    if (strcmp(name, settings->class_names[index]) == 0) {
        return (int) BRIMFUL_CLASSES_MOST;
    }
    for (index = 0; index < settings->classes - 1; index++) {
        if (strcmp(name, settings->class_names[index]) == 0) {
            return (int) index;
        }
    }
    if (settings->classes == BRIMFUL_CLASSES_MOST) {
        return -1;
    }
    memcpy(settings->class_names[settings->classes], settings->class_names[settings->classes - 1], BRIMFUL_NAME_BYTES);
    memset(settings->class_names[settings->classes - 1], 0, BRIMFUL_NAME_BYTES);
    memcpy(settings->class_names[settings->classes - 1], name, strlen(name));
    return (int) settings->classes++ - 1;
}

/* Reads digits. Returns what follows them, NULL if there are none or too many. */
static inline const char *brimful_read_number(const char *text, uint64_t *number)
{
    const char *first = text;

    *number = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (text - first == 18) {
            return NULL;
        }
        *number = *number * 10 + (uint64_t) (*text - '0');
    }
    return text == first ? NULL : text;
}

/* Reads "size 0-4999", "size 5000-" or "url /images/" followed by a star. NULL, or what is wrong. */
static inline const char *brimful_read_rule(struct brimful_rule *rule, char *pattern, const char *text)
{
    memset(rule, 0, sizeof(*rule));
    memset(pattern, 0, BRIMFUL_PATTERN_BYTES);
    if (strncmp(text, "url ", 4) == 0) {
        text += 4;
        if ((*text != '/' && *text != '*') || strlen(text) >= BRIMFUL_PATTERN_BYTES) {
            return "a URL pattern begins with / or * and has at most 255 bytes, such as: url /images/*";
        }
        rule->by_url = 1;
        memcpy(pattern, text, strlen(text));
        return NULL;
    }
    if (strncmp(text, "size ", 5) != 0) {
        return "a rule is: size 0-4999, size 5000- or url /images/*";
    }
    text = brimful_read_number(text + 5, &rule->least);
    if (text == NULL || *text != '-') {
        return "sizes are bytes, such as: size 0-4999 or size 5000-";
    }
    rule->most = UINT64_MAX;
    if (text[1] != '\0') {
        text = brimful_read_number(text + 1, &rule->most);
        if (text == NULL || *text != '\0' || rule->most < rule->least) {
            return "sizes are bytes, the smaller one first, such as: size 0-4999 or size 5000-";
        }
    }
    return NULL;
}

/* Adds a rule, and its class if there is none of that name: the same class may have several. NULL, or what is wrong. */
static inline const char *brimful_add_rule(struct brimful_settings *settings, const char *class_name, const char *rule)
{
    struct brimful_rule read;
    char pattern[BRIMFUL_PATTERN_BYTES];
    const char *wrong = brimful_read_rule(&read, pattern, rule);
    const unsigned char *byte;
    int index;

    if (wrong != NULL) {
        return wrong;
    }
    if (class_name[0] == '\0' || strlen(class_name) >= BRIMFUL_NAME_BYTES) {
        return "the name of a class has 1 to 47 bytes";
    }
    for (byte = (const unsigned char *) class_name; *byte != '\0'; byte++) {
        if (*byte <= ' ' || *byte >= 0x7f || *byte == '"' || *byte == '\\') {
            return "the name of a class has letters, digits and signs, no spaces, quotes or backslashes";
        }
    }
    if (settings->rules == BRIMFUL_RULES_MOST) {
        return "there may be 64 rules at most";
    }
    index = brimful_class_index(settings, class_name);
    if (index < 0) {
        return "there may be 15 classes at most, besides \"other\"";
    }
    read.class_index = (unsigned) index;
    memcpy(settings->pattern[settings->rules], pattern, sizeof(pattern));
    settings->rule[settings->rules++] = read;
    settings->by_url |= (int) read.by_url;
    return NULL;
}

/* The classes of a server whose configuration names none: by size, cut so that the files of WebStone's workloads A
 * and B fall into the classes that they have in the tables 4 and 5 of Almeida, Almeida & Yates (1997): from
 * "under-5k", class 0, to "over-500k", class 4. Nothing if there are rules. */
static inline void brimful_default_rules(struct brimful_settings *settings)
{
    if (settings->rules == 0) {
        (void) brimful_add_rule(settings, "empty", "size 0-0");
        (void) brimful_add_rule(settings, "under-5k", "size 1-4999");
        (void) brimful_add_rule(settings, "5k-50k", "size 5000-49999");
        (void) brimful_add_rule(settings, "50k-100k", "size 50000-99999");
        (void) brimful_add_rule(settings, "100k-500k", "size 100000-499999");
        (void) brimful_add_rule(settings, "over-500k", "size 500000-");
    }
}

/* Whether all of the path matches the pattern. Time: their lengths' product at worst. */
static inline int brimful_matches(const char *pattern, const char *path, size_t length)
{
    const char *end = path + length;
    const char *after_star = NULL, *resume = NULL;

    while (path < end) {
        if (*pattern == '*') {
            after_star = ++pattern;
            resume = path;
        } else if (*pattern != '\0' && *pattern == *path) {
            pattern++;
            path++;
        } else if (after_star != NULL) {
            pattern = after_star;
            path = ++resume;
        } else {
            return 0;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return *pattern == '\0';
}

/* The class of a request by the size of its body alone, which is all where no rule is by URL. */
static inline unsigned brimful_classify_size(const struct brimful_settings *settings, uint64_t bytes)
{
    unsigned other = settings->classes == 0 ? 0 : settings->classes - 1;
    const struct brimful_rule *rule = settings->rule, *end = rule + settings->rules;

    for (; rule < end; rule++) {
        if (bytes >= rule->least && bytes <= rule->most) {
            return rule->class_index < other ? rule->class_index : other;
        }
    }
    return other;
}

/* The class of a request: that of the first rule that matches, else the last class, "other". */
static __attribute__((noinline, unused)) unsigned brimful_classify(const struct brimful_settings *settings,
                                                                   const char *path, size_t length, uint64_t bytes)
{
    unsigned other = settings->classes == 0 ? 0 : settings->classes - 1;
    unsigned i;

    for (i = 0; i < settings->rules; i++) {
        const struct brimful_rule *rule = &settings->rule[i];
        int matches = rule->by_url ? brimful_matches(settings->pattern[i], path, length)
                                   : bytes >= rule->least && bytes <= rule->most;

        if (matches) {
            return rule->class_index < other ? rule->class_index : other;
        }
    }
    return other;
}

/* ---- Words that others read meanwhile ---- */

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

/* ---- Clocks ---- */

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

/* ---- Recording ---- */

/* In square microseconds, to the nearest. A time counts as 35 minutes at most here, so that no square fills the word; a
 * sum of them may still wrap. */
static inline uint64_t brimful_square_us2(uint64_t ns)
{
    uint64_t us;

    if (ns < UINT64_C(1000000000)) {
        return (ns * ns + 500000) / 1000000;
    }
    us = ns / 1000;
    us = us < UINT64_C(0x7fffffff) ? us : UINT64_C(0x7fffffff);
    return us * us;
}

/* Bucket b holds times from (4 + b % 4) << (b / 4 + 6) ns to below the same of b + 1: 256, 320, 384, 448, 512, 640,
 * ... */
static inline unsigned brimful_bucket(uint64_t ns)
{
    unsigned octave, bucket;

    if (ns < 256) {
        return 0;
    }
    octave = 63u - (unsigned) __builtin_clzll(ns);
    bucket = (octave - 9) * 4 + (unsigned) (ns >> (octave - 2)); /* which is 4 to 7 */
    return bucket < BRIMFUL_BUCKETS ? bucket : BRIMFUL_BUCKETS - 1;
}

/* How many classes the file has that this process writes to. */
static uint32_t brimful_classes __attribute__((unused));

/* How many requests of the slot are pending. */
static inline uint64_t brimful_pending_count(const struct brimful_slot *slot)
{
    return brimful_get(&slot->recorded) - (brimful_get(&slot->folded) >> BRIMFUL_FOLDED_COUNT);
}

/* Those of the pending requests that are of one class. */
struct brimful_members {
    unsigned count;
    const struct brimful_pending *pending[BRIMFUL_PENDING];
};

/* Adds what they took in one phase. */
static inline void brimful_fold_phase(struct brimful_times *times, uint64_t *buckets,
                                      const struct brimful_members *members, unsigned phase)
{
    uint64_t count = 0, sum_ns = 0, sum_us2 = 0;
    unsigned i;

    for (i = 0; i < members->count; i++) {
        if ((members->pending[i]->what >> (BRIMFUL_WHAT_HAS + phase) & 1) != 0) {
            uint64_t ns = members->pending[i]->time_ns[phase];

            count++;
            sum_ns += ns;
            sum_us2 += brimful_square_us2(ns);
            buckets[brimful_bucket(ns)]++;
        }
    }
    times->count += count;
    times->sum_ns += sum_ns;
    times->sum_us2 += sum_us2;
}

/* Adds them to the sums of their class, which begin as those that are current. Nobody reads them meanwhile, or believes
 * what he has read. */
static inline void brimful_fold_class(struct brimful_class *class_, unsigned current,
                                      const struct brimful_members *members)
{
    struct brimful_sums *sums = &class_->sums[!current];
    uint64_t bytes = 0, any = 0;
    unsigned i, phase;

    *sums = class_->sums[current];
    for (i = 0; i < members->count; i++) {
        uint64_t what = members->pending[i]->what;

        any |= what;
        bytes += members->pending[i]->bytes;
        if (__builtin_expect((what & (BRIMFUL_WHAT_FAILED | BRIMFUL_WHAT_ABORTED)) != 0, 0)) {
            sums->failed += (what & BRIMFUL_WHAT_FAILED) != 0;
            sums->aborted += (what & BRIMFUL_WHAT_ABORTED) != 0;
        }
    }
    sums->requests += members->count;
    sums->bytes += bytes;
    for (phase = 0; phase < BRIMFUL_PHASES; phase++) {
        if ((any >> (BRIMFUL_WHAT_HAS + phase) & 1) != 0) {
            brimful_fold_phase(&sums->times[phase], class_->buckets[phase], members, phase);
        }
    }
}

/* Adds what is pending to the sums; layout.h says how. */
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
        /* What stands in memory, others may have changed. */
        if (index < brimful_classes) {
            brimful_fold_class(&slot->classes[index], current >> index & 1, &members);
            current ^= 1u << index;
        }
    }
    __atomic_store_n(&slot->folded, recorded << BRIMFUL_FOLDED_COUNT | current, __ATOMIC_RELEASE);
    /* Whoever sees what is written from now on sees that this was. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

/* The first half of brimful_record, for just before the log line is written: of a worker that is killed while it
 * writes, and SIGKILL comes when a system call returns, the log then has what was counted. */
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

/* The second half: what the request took. */
static inline void brimful_record_times(struct brimful_slot *slot, unsigned class_index,
                                        const struct brimful_request *request)
{
    struct brimful_pending *pending = &slot->pending[(brimful_get(&slot->recorded) - 1) % BRIMFUL_PENDING];
    uint64_t what = brimful_get(&pending->what);

    memcpy(pending->time_ns, request->time_ns, sizeof(pending->time_ns));
    __atomic_store_n(&pending->what, what | (uint64_t) request->has << BRIMFUL_WHAT_HAS, __ATOMIC_RELEASE);
    if (__builtin_expect(request->cpu_sampled != 0, 0)) {
        brimful_record_cpu(&slot->classes[class_index], request);
    }
    /* Now, rather than before the next: that one's log line would have to wait. */
    if (__builtin_expect(brimful_pending_count(slot) >= BRIMFUL_PENDING, 0)) {
        brimful_fold(slot);
    }
}

/* Puts a request into the slot of the calling thread, all of it at once. `class_index` is that of brimful_classify. */
static inline void brimful_record(struct brimful_slot *slot, unsigned class_index,
                                  const struct brimful_request *request)
{
    brimful_count(slot, class_index, request);
    brimful_record_times(slot, class_index, request);
}

/* The calling thread is busy from now on; nothing if it was already. */
static inline void brimful_busy(struct brimful_slot *slot, uint64_t now_ns)
{
    if (brimful_get(&slot->busy_since_ns) == 0) {
        brimful_set(&slot->busy_since_ns, now_ns);
    }
}

/* And no longer. A reader may find the time in neither of the two words, never in both. */
static inline void brimful_idle(struct brimful_slot *slot, uint64_t now_ns)
{
    uint64_t since = brimful_get(&slot->busy_since_ns);

    if (since != 0) {
        brimful_set(&slot->busy_since_ns, 0);
        brimful_add(&slot->busy_ns, now_ns > since ? now_ns - since : 0);
    }
}

/* A request begins, and makes its worker busy unless others have already. */
static inline void brimful_begin(struct brimful_slot *slot, uint64_t now_ns)
{
    brimful_add(&slot->in_progress, 1);
    brimful_busy(slot, now_ns);
}

/* A request that brimful_begin was called for ends. */
static inline void brimful_end(struct brimful_slot *slot, uint64_t now_ns)
{
    uint64_t in_progress = brimful_get(&slot->in_progress);

    brimful_set(&slot->in_progress, in_progress > 0 ? in_progress - 1 : 0);
    if (in_progress <= 1) {
        brimful_idle(slot, now_ns);
    }
}

/* Adds what the calling thread has used since its latest reading; `reading` is one of brimful_thread_cpu. Its own
 * slot only. */
static inline void brimful_note_cpu(struct brimful_slot *slot, uint64_t reading, uint64_t now_ns)
{
    if (reading > brimful_cpu_clock.seen_ns) {
        brimful_add(&slot->cpu_ns, reading - brimful_cpu_clock.seen_ns);
        brimful_cpu_clock.seen_ns = reading;
    }
    brimful_set(&slot->cpu_at_ns, now_ns);
}

/* ---- The file ---- */

/* Bytes up to the first slot. */
static inline size_t brimful_header_size(void)
{
    return (sizeof(struct brimful_header) + BRIMFUL_SLOT_ALIGN - 1) / BRIMFUL_SLOT_ALIGN * BRIMFUL_SLOT_ALIGN;
}

/* Bytes from one slot to the next. */
static inline size_t brimful_slot_size(unsigned classes)
{
    size_t size = sizeof(struct brimful_slot) + classes * sizeof(struct brimful_class);

    return (size + BRIMFUL_SLOT_ALIGN - 1) / BRIMFUL_SLOT_ALIGN * BRIMFUL_SLOT_ALIGN;
}

/* How many slots a file has: those asked for, one at least, as many as may be at most. */
static inline uint32_t brimful_slot_count(const struct brimful_settings *settings, unsigned classes)
{
    uint64_t most = (BRIMFUL_FILE_MOST - brimful_header_size()) / brimful_slot_size(classes);

    most = most < BRIMFUL_SLOTS_MOST ? most : BRIMFUL_SLOTS_MOST;
    if (settings->slots == 0) {
        return 1;
    }
    return settings->slots < most ? settings->slots : (uint32_t) most;
}

/* Copies a name, cut if need be; what is left of the room is zero. */
static inline void brimful_copy_name(char *to, const char *from)
{
    size_t length = from == NULL ? 0 : strlen(from);

    length = length < BRIMFUL_NAME_BYTES ? length : BRIMFUL_NAME_BYTES - 1;
    memset(to, 0, BRIMFUL_NAME_BYTES);
    if (length > 0) {
        memcpy(to, from, length);
    }
}

/* Whether a server of these settings can go on with a file of this header and size: the same server, but for its
 * version, the same classes, and slots for all. */
static inline int brimful_is_alike(const struct brimful_header *header, uint64_t size,
                                   const struct brimful_settings *settings)
{
    unsigned classes = settings->classes == 0 ? 1 : settings->classes;
    char server[BRIMFUL_NAME_BYTES];
    unsigned i;
    size_t kind;

    if (header->magic != BRIMFUL_MAGIC || header->layout != BRIMFUL_LAYOUT || header->classes != classes
        || header->header_size != brimful_header_size() || header->slot_size != brimful_slot_size(classes)
        || header->slots < brimful_slot_count(settings, classes) || header->slots > BRIMFUL_SLOTS_MOST
        || size > BRIMFUL_FILE_MOST || size < header->header_size + (uint64_t) header->slots * header->slot_size) {
        return 0;
    }
    brimful_copy_name(server, settings->server);
    kind = strcspn(server, "/");
    if (strncmp(header->server, server, kind) != 0 || (header->server[kind] != '/' && header->server[kind] != '\0')) {
        return 0;
    }
    for (i = 0; i + 1 < classes; i++) {
        if (memcmp(header->class_names[i], settings->class_names[i], BRIMFUL_NAME_BYTES) != 0) {
            return 0;
        }
    }
    return 1;
}

/* Says what failed, and returns -1. */
static inline int brimful_failed(char *why, const char *what, const char *path, const char *reason)
{
    (void) snprintf(why, BRIMFUL_WHY_BYTES, "%s %.150s: %.60s", what, path, reason);
    return -1;
}

/* Maps the file of this descriptor for writing. */
static inline int brimful_map_file(struct brimful_memory *memory, int file, size_t size, char *why, const char *path)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    if (at == MAP_FAILED) {
        return brimful_failed(why, "cannot map", path, strerror(errno));
    }
    memory->header = (struct brimful_header *) at;
    memory->size = size;
    return 0;
}

/* What a header says anew whenever a server takes the file, so that it keeps on. */
static inline void brimful_sign(struct brimful_memory *memory, const struct brimful_settings *settings)
{
    struct brimful_header *header = memory->header;

    memory->header_size = header->header_size;
    memory->slot_size = header->slot_size;
    memory->slots = header->slots;
    brimful_classes = settings->classes == 0 ? 1 : settings->classes;
    __atomic_store_n(&header->cpu_one_in, settings->cpu_one_in, __ATOMIC_RELAXED);
    __atomic_store_n(&header->workers_most, settings->workers_most, __ATOMIC_RELAXED);
    __atomic_store_n(&header->master_pid, (uint32_t) getpid(), __ATOMIC_RELAXED);
    if (strncmp(header->server, settings->server == NULL ? "" : settings->server, BRIMFUL_NAME_BYTES - 1) != 0) {
        brimful_copy_name(header->server, settings->server);
    }
}

/* Takes the file that is there. 0: done; 1: there is none, or none that is alike; -1: nobody may take or replace it. */
static inline int brimful_map_old(struct brimful_memory *memory, const struct brimful_settings *settings, char *why)
{
    struct brimful_header header;
    struct stat about;
    int result = 1;
    /* O_NONBLOCK: a pipe of this name must not hold up the server. */
    int file = open(settings->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

    if (file < 0) {
        if (errno == ENOENT) {
            return 1;
        }
        return brimful_failed(why, "cannot open", settings->path,
                              errno == ELOOP ? "it is a symbolic link" : strerror(errno));
    }
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
        result = brimful_failed(why, "cannot use", settings->path, "it is not a file");
    } else if (about.st_uid != geteuid() || about.st_nlink > 1) {
        result = brimful_failed(why, "cannot use", settings->path, "it belongs to another user; remove it");
    } else if (pread(file, &header, sizeof(header), 0) == (ssize_t) sizeof(header)
               && brimful_is_alike(&header, (uint64_t) about.st_size, settings)) {
        size_t size = header.header_size + (size_t) header.slots * header.slot_size;

        result = brimful_map_file(memory, file, size, why, settings->path);
        if (result == 0) {
            /* Not from memory, where it may have changed since. */
            memory->header->header_size = header.header_size;
            memory->header->slot_size = header.slot_size;
            memory->header->slots = header.slots;
        }
    }
    (void) close(file);
    return result;
}

/* Makes a file beside the path and renames it over that, so that nobody ever sees half of it, and whoever still
 * writes to a file that was there goes on with that one. */
static inline int brimful_map_new(struct brimful_memory *memory, const struct brimful_settings *settings, char *why)
{
    unsigned classes = settings->classes == 0 ? 1 : settings->classes;
    struct brimful_header *header;
    char beside[PATH_MAX];
    uint32_t slots = brimful_slot_count(settings, classes);
    size_t size = brimful_header_size() + (size_t) slots * brimful_slot_size(classes);
    unsigned i;
    int file, failure;

    if (snprintf(beside, sizeof(beside), "%s.new", settings->path) >= (int) sizeof(beside)) {
        return brimful_failed(why, "cannot create", settings->path, "the path is too long");
    }
    (void) unlink(beside); /* what a server left that died just here */
    file = open(beside, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0) {
        return brimful_failed(why, "cannot create", beside, strerror(errno));
    }
    /* All room now: where a full file system gives none later, the server would be ended by SIGBUS. */
    failure = posix_fallocate(file, 0, (off_t) size);
    if (failure == 0 && fchmod(file, 0644) != 0) {
        failure = errno;
    }
    if (failure != 0) {
        (void) brimful_failed(why, "cannot create", beside, strerror(failure));
    } else {
        failure = brimful_map_file(memory, file, size, why, beside);
    }
    (void) close(file);
    if (failure != 0) {
        (void) unlink(beside);
        return -1;
    }

    header = memory->header;
    header->layout = BRIMFUL_LAYOUT;
    header->header_size = (uint32_t) brimful_header_size();
    header->slot_size = (uint32_t) brimful_slot_size(classes);
    header->slots = slots;
    header->classes = classes;
    header->enabled = 1;
    header->made_ns = brimful_read_clock(CLOCK_REALTIME);
    for (i = 0; i < classes; i++) {
        brimful_copy_name(header->class_names[i], settings->classes == 0 ? "other" : settings->class_names[i]);
    }
    __atomic_store_n(&header->magic, BRIMFUL_MAGIC, __ATOMIC_RELEASE);
    if (rename(beside, settings->path) != 0) {
        (void) brimful_failed(why, "cannot create", settings->path, strerror(errno));
        (void) unlink(beside);
        (void) munmap(memory->header, memory->size);
        return -1;
    }
    return 0;
}

/* Whether the processor's ticks are the kernel's own source of time: then it has seen that they are steady, and the
 * same on all processors. */
static inline int brimful_kernel_uses_ticks(void)
{
    char source[8] = "";
    int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);

    if (file < 0) {
        return 0;
    }
    if (read(file, source, sizeof(source) - 1) < 0) {
        source[0] = '\0';
    }
    (void) close(file);
    return strncmp(source, "tsc\n", 4) == 0;
}

/* Maps the file of these settings: the one that is there if it is alike, so that a server goes on with the same
 * figures after a reload, else a new one. 0, or -1 and the reason in `why` (BRIMFUL_WHY_BYTES): the server goes on
 * without it, and `memory` is zero. */
static inline int brimful_map(struct brimful_memory *memory, const struct brimful_settings *settings, char *why)
{
    int result;

    memset(memory, 0, sizeof(*memory));
    why[0] = '\0';
    result = brimful_map_old(memory, settings, why);
    if (result == 1) {
        result = brimful_map_new(memory, settings, why);
    }
    if (result != 0) {
        memset(memory, 0, sizeof(*memory));
        return -1;
    }
    brimful_sign(memory, settings);
    brimful_has_ticks = brimful_kernel_uses_ticks();
    return 0;
}

/* Undoes brimful_map, in the process that calls it. Nothing if `memory` is zero. */
static inline void brimful_unmap(struct brimful_memory *memory)
{
    if (memory->header != NULL) {
        (void) munmap(memory->header, memory->size);
    }
    memset(memory, 0, sizeof(*memory));
}

static inline int brimful_is_on(const struct brimful_memory *memory)
{
    return memory->header != NULL && __atomic_load_n(&memory->header->enabled, __ATOMIC_RELAXED) != 0;
}

/* ---- Slots ---- */

/* `owner` and `thread` of a slot as one word, so that one instruction takes it. */
typedef uint64_t __attribute__((may_alias)) brimful_owner;

static inline brimful_owner brimful_owner_of(uint32_t process, uint32_t thread)
{
    uint32_t both[2] = {process, thread};
    brimful_owner owner;

    memcpy(&owner, both, sizeof(owner));
    return owner;
}

/* Whether this thread of this process is no more, as far as the caller can know. */
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

/* Makes the slot the caller's if it still is that of `owner`, free or dead. What that left unfinished never ends; what
 * it left pending, the caller folds with its own. */
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

/* Sets the clock of the calling thread: from now on its CPU time goes into its slot. */
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

/* Frees the slots of the dead, which would look busy for ever. One of several threads of a process that have died one
 * by one, a rare thing, is found when no slot is free. */
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

static uint32_t brimful_swept_by __attribute__((unused)); /* the process that has done so last */

/* A slot for the calling thread: a free one, else one whose owner is dead. `thread` is its id (gettid). NULL if there
 * is none, which is counted as lost. */
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
    (void) __atomic_fetch_add(&memory->header->lost, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* Gives back the slot of the calling thread. */
static inline void brimful_release(struct brimful_slot *slot)
{
    uint64_t now = brimful_now();

    brimful_note_cpu(slot, brimful_thread_cpu(), now);
    brimful_idle(slot, now);
    brimful_set(&slot->in_progress, 0);
    __atomic_store_n((brimful_owner *) (void *) slot, 0, __ATOMIC_RELEASE);
}

#endif
