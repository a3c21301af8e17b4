/*
 * A worker: a thread of the server, or a process of the prefork MPM. It has its own slot in the recorder's memory,
 * which it claims when it first has something to record and releases when it ends.
 *
 * All times are in nanoseconds of CLOCK_MONOTONIC; CPU times are by the thread's CPU clock.
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

/* The recorder's memory, mapped before the server forks; all zero if there is no file. */
static struct brimful_memory memory;

/* The configuration. */
static struct brimful_settings settings;

/* With dozens of threads, hardly any data of a thread is in a cache when it starts to work. So the members that every
 * request needs are in the first cache line, also in struct connection and struct request. */
#define WORKER_LINE 64

struct worker {
    struct brimful_slot *slot;
    uint64_t turn;        /* incremented whenever the worker changes to other work: CPU time across turns is mixed. No
                           * two workers have the same turn, see worker_turns */
    const void *busy_with; /* the connection that occupies the worker */
    struct brimful_chance chance; /* state of brimful_is_sampled */
    uint64_t upstream_ns; /* total time spent waiting for servers behind this one; see upstream.h */

    /* The request whose log line is being written, see request.h. */
    uint64_t bytes;
    uint16_t status;
    uint8_t class_index;
    uint8_t aborted;
    uint8_t uncounted;    /* the request has not been counted yet */

    uint8_t upstream_seen; /* mod_proxy uses a connection with our filters */
    uint64_t proxied_at;  /* the time since which mod_proxy works; 0 if it does not */
    uint64_t proxied_client_ns; /* the client connection's waiting time at proxied_at */

    uint64_t claim_at;    /* when to try again to claim a slot, if none was free */
};

_Static_assert(offsetof(struct worker, proxied_at) == WORKER_LINE, "the first line has what each request needs");

/* glibc reserves some space for such variables in each thread's static block. Elsewhere, each access is a function
 * call. */
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

/* Begins a new turn: the worker changes to other work. */
static uint64_t worker_turns(struct worker *worker)
{
    if (__builtin_expect(worker->turn >> WORKER_TURNS == 0, 0)) {
        worker->turn = (uint64_t) syscall(SYS_gettid) << WORKER_TURNS;
    }
    return ++worker->turn;
}

/* Whether this turn belongs to the worker. */
static int worker_had(const struct worker *worker, uint64_t turn)
{
    return worker->turn >> WORKER_TURNS == turn >> WORKER_TURNS;
}

/* The time from one instant to another; 0 if negative, because two threads may disagree about the time by some
 * nanoseconds. */
static uint64_t worker_since(uint64_t from, uint64_t to)
{
    return to > from ? to - from : 0;
}

static uint32_t worker_process;
static pthread_key_t worker_key;
static int worker_has_key;

/* Claims a slot, unless no slot was free a moment ago. */
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

/* The slot of the calling thread; NULL if no slot was free. */
static struct brimful_slot *worker_slot(struct worker *worker, uint64_t now)
{
    return __builtin_expect(worker->slot != NULL, 1) ? worker->slot : worker_claim(worker, now);
}

/* Prefetches the lines that the next request will write, while the connection is still being looked up. */
static void worker_makes_ready(const struct worker *worker)
{
    if (worker->slot != NULL) {
        __builtin_prefetch(worker->slot, 1);
        __builtin_prefetch(&worker->slot->pending[brimful_get(&worker->slot->recorded) % BRIMFUL_PENDING], 1);
    }
}

/* Marks the worker as occupied by this connection. */
static void worker_is_busy(struct worker *worker, const void *connection, uint64_t now)
{
    struct brimful_slot *slot = worker_slot(worker, now);

    (void) worker_turns(worker);
    worker->busy_with = connection;
    if (slot != NULL) {
        brimful_busy(slot, now);
    }
}

/* Marks the worker as idle, unless another connection occupies it. */
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

/* Called at the end of a thread. */
static void worker_ends(void *ended)
{
    struct worker *worker = ended;

    if (worker->slot != NULL) {
        brimful_release(worker->slot);
        worker->slot = NULL;
    }
}

/* Called at the end of a process, for its first thread, whose end is not reported otherwise. Threads that run until the
 * process exits keep their slots; a later owner finds them dead and takes the slots. */
static apr_status_t workers_end(void *unused)
{
    (void) unused;
    worker_ends(&this_worker);
    return APR_SUCCESS;
}

/* Called in each new child. */
static void workers_begin(apr_pool_t *child)
{
    worker_process = (uint32_t) getpid();
    if (memory.header != NULL && pthread_key_create(&worker_key, worker_ends) == 0) {
        worker_has_key = 1;
        apr_pool_cleanup_register(child, NULL, workers_end, apr_pool_cleanup_null);
    }
}

#endif
