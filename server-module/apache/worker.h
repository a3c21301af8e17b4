/*
 * The state of a worker: a thread of the server, or a process of the prefork MPM. Each worker has its own slot in the
 * recorder's memory. It claims the slot when it first has something to record, and releases it when it ends.
 *
 * Instants and times are in nanoseconds of CLOCK_MONOTONIC. CPU times are in nanoseconds of the thread's CPU clock.
 */
#ifndef BRIMFUL_APACHE_WORKER_H
#define BRIMFUL_APACHE_WORKER_H

#include "../recorder.h"

#include <pthread.h>
#include <stddef.h>

#include "httpd.h"
#include "http_config.h"

extern module AP_MODULE_DECLARE_DATA brimful_module;

#define WORKER_CLAIM_AGAIN_NS UINT64_C(1000000000)

/* The recorder's memory, which is mapped before the server forks. All members are zero if there is no file. */
static struct brimful_memory memory;

/* The module's settings, from the server's configuration. */
static struct brimful_settings settings;

/* Size of a cache line in bytes. In a server with dozens of threads, the data of a thread is rarely in a cache when the
 * thread begins to work. So the members that every request needs are in the first cache line of struct worker, struct
 * connection and struct request. */
#define WORKER_LINE 64

struct worker {
    struct brimful_slot *slot;
    /* Number of the current turn, a period in which the worker works on one connection. CPU time is measured only
     * within a turn. No two workers have a turn with the same number (see worker_turns). */
    uint64_t turn;
    const void *busy_with; /* the connection that occupies the worker */
    struct brimful_chance chance; /* state of brimful_is_sampled */
    uint64_t upstream_ns; /* total time for which the worker has waited for upstream servers; see upstream.h */

    /* Properties of the request whose log line is written next; see request.h. */
    uint64_t bytes;
    uint16_t status;
    uint8_t class_index;
    uint8_t aborted;
    uint8_t uncounted;    /* whether the request still has to be counted */

    uint8_t upstream_seen; /* whether mod_proxy uses a connection with this module's filters */
    uint64_t proxied_at;  /* instant since which mod_proxy works; 0 if mod_proxy does not work */
    uint64_t proxied_client_ns; /* time for which the connection had waited for the client, at proxied_at */

    uint64_t claim_at;    /* earliest instant of the next attempt to claim a slot, if no slot was free */
};

_Static_assert(offsetof(struct worker, proxied_at) == WORKER_LINE, "the first line has what each request needs");

/* Reserve space for this variable in each thread's static block, which glibc permits for small modules. Otherwise, and
 * with other C libraries, each access to the variable would be a function call. */
#ifdef __GLIBC__
#define WORKER_NEAR __attribute__((tls_model("initial-exec")))
#else
#define WORKER_NEAR
#endif

static __thread struct worker this_worker WORKER_NEAR __attribute__((aligned(WORKER_LINE)));

/* Allocates memory aligned to a cache line. */
static void *worker_room(apr_pool_t *pool, apr_size_t size)
{
    uintptr_t at = (uintptr_t) apr_palloc(pool, size + WORKER_LINE - 1);

    return (void *) ((at + WORKER_LINE - 1) / WORKER_LINE * WORKER_LINE);
}

#define WORKER_TURNS 40 /* the counting bits of a turn; the bits above contain the thread's id */

/* Begins a new turn: a period of the worker's time in which it works on one connection. Returns its number. */
static uint64_t worker_turns(struct worker *worker)
{
    if (__builtin_expect(worker->turn >> WORKER_TURNS == 0, 0)) {
        worker->turn = (uint64_t) syscall(SYS_gettid) << WORKER_TURNS;
    }
    return ++worker->turn;
}

/* Returns whether the turn with this number was a turn of this worker. */
static int worker_had(const struct worker *worker, uint64_t turn)
{
    return worker->turn >> WORKER_TURNS == turn >> WORKER_TURNS;
}

/* Returns the time between two instants, or 0 if `to` is earlier than `from`. The clocks of two threads may differ by
 * some nanoseconds. */
static uint64_t worker_since(uint64_t from, uint64_t to)
{
    return to > from ? to - from : 0;
}

static uint32_t worker_process;
static pthread_key_t worker_key;
static int worker_has_key;

/* Claims a slot for the calling thread. If the last attempt failed less than WORKER_CLAIM_AGAIN_NS ago, does not try
 * again. Returns NULL if the thread has no slot. */
static BRIMFUL_APART struct brimful_slot *worker_claim(struct worker *worker, uint64_t now)
{
    if (worker_has_key && now >= worker->claim_at) {
        worker->slot = brimful_claim(&memory, worker_process, (uint32_t) syscall(SYS_gettid));
        worker->claim_at = now + WORKER_CLAIM_AGAIN_NS;
        worker->chance.gap = now;
        if (worker->slot != NULL) {
            (void) pthread_setspecific(worker_key, worker);
        }
    }
    return worker->slot;
}

/* Returns the slot of the calling thread, or NULL if no slot is free. */
static struct brimful_slot *worker_slot(struct worker *worker, uint64_t now)
{
    return __builtin_expect(worker->slot != NULL, 1) ? worker->slot : worker_claim(worker, now);
}

/* Prefetches the cache lines of the slot to which the next request will be recorded. They are loaded while the caller
 * looks up the connection. */
static void worker_makes_ready(const struct worker *worker)
{
    if (worker->slot != NULL) {
        __builtin_prefetch(worker->slot, 1);
        __builtin_prefetch(&worker->slot->pending[brimful_get(&worker->slot->recorded) % BRIMFUL_PENDING], 1);
    }
}

/* Marks the worker as busy with a connection. */
static void worker_is_busy(struct worker *worker, const void *connection, uint64_t now)
{
    struct brimful_slot *slot = worker_slot(worker, now);

    (void) worker_turns(worker);
    worker->busy_with = connection;
    if (slot != NULL) {
        brimful_busy(slot, now);
    }
}

/* Marks the worker as idle, unless it is busy with a connection other than `connection`. */
static void worker_is_idle(struct worker *worker, const void *connection)
{
    if (worker->busy_with == NULL || worker->busy_with != connection) {
        return;
    }
    worker->busy_with = NULL;
    (void) worker_turns(worker);
    if (worker->slot != NULL) {
        brimful_set(&worker->slot->in_progress, 0);
        brimful_idle(worker->slot, brimful_now());
    }
}

/* Called at the end of a thread, to release its slot. */
static void worker_ends(void *ended)
{
    struct worker *worker = ended;

    if (worker->slot != NULL) {
        brimful_release(worker->slot);
        worker->slot = NULL;
    }
}

/* Called at the end of a process. Releases the slot of the main thread, for which worker_ends is not called. Threads
 * that still run when the process exits do not release their slots; later workers find out that these owners are dead
 * and claim the slots. */
static apr_status_t workers_end(void *unused)
{
    (void) unused;
    worker_ends(&this_worker);
    return APR_SUCCESS;
}

/* Called at the start of each child process. */
static void workers_begin(apr_pool_t *child)
{
    worker_process = (uint32_t) getpid();
    if (memory.header != NULL && pthread_key_create(&worker_key, worker_ends) == 0) {
        worker_has_key = 1;
        apr_pool_cleanup_register(child, NULL, workers_end, apr_pool_cleanup_null);
    }
}

#endif
