/*
 * Measures two times for a client's connection: when the head of the next request arrived, and how long the server
 * waited for the client. Two of Apache's filters, which all data of the connection passes, measure them. They are
 * directly above the filters that read and write the socket, so they see encrypted data if the connection uses TLS.
 *
 * The phase HEAD begins with the read that returns the first byte of the head, and ends with the last read that had to
 * wait. Each line is first read without waiting. If it has already arrived, the clock is not read.
 *
 * The time for which the server waits for the client to read is measured in three ways:
 *
 * - With the event MPM: the time from when a worker returns the connection to the MPM with unsent response data until a
 *   worker resumes the connection.
 * - For blocking writes, which the other MPMs and streaming handlers use: the duration of a call of Apache's network
 *   filter, if the call may have to wait. This is a call while the filter holds data that the socket did not accept, or
 *   a call with more data than a socket accepts. The CPU time of the call is subtracted. The difference is ignored if
 *   it is less than a tenth of a millisecond. If all CPUs of the machine are busy, the difference includes the time for
 *   which the thread waited for a CPU.
 * - For an HTTP/2 stream, whose data other threads send: the duration of a call, and the time from the stream's last
 *   byte to its log line. Each is ignored if it is less than a millisecond. Both include waits that other streams of
 *   the connection cause.
 */
#ifndef BRIMFUL_APACHE_CONNECTION_H
#define BRIMFUL_APACHE_CONNECTION_H

#include "worker.h"

#include "http_connection.h"
#include "http_request.h"
#include "httpd.h"
#include "util_filter.h"

#define CONNECTION_WAIT_LEAST_NS UINT64_C(100000)
#define CONNECTION_STREAM_WAIT_LEAST_NS UINT64_C(1000000)
#define CONNECTION_BODY_WAIT_LEAST_NS UINT64_C(20000)

/* Sizes in bytes. They are used to estimate whether a write has to wait. Apache's network filter does not send less
 * than CONNECTION_KEPT, and may wait if it buffers more than CONNECTION_HELD_MOST (THRESHOLD_MIN_WRITE and
 * THRESHOLD_MAX_BUFFER of httpd 2.4, server/core_filters.c). A socket without unsent data accepts CONNECTION_FITS at
 * once. */
#define CONNECTION_KEPT 4096
#define CONNECTION_HELD_MOST 65536
#define CONNECTION_FITS 16384

struct request;

/* The module's data for a connection. Members that every request needs are in the first cache line; the others are
 * rarely needed. */
struct connection {
    uint64_t begun_ns;    /* instant at which a worker took the connection over; 0 if a request has begun since */
    uint64_t first_ns;    /* instant at which the first byte of the head was found; 0 if no byte has arrived */
    uint64_t last_ns;     /* end of the latest read of the head that had to wait; first_ns if no read had to wait */
    uint64_t client_ns;   /* total time for which all requests waited for the client to read */
    uint64_t waits_since_ns; /* start of the current wait, which is not in client_ns yet; 0 if there is no wait */
    struct request *current; /* the current request, if it is recorded */
    uint16_t unsent;      /* number of bytes passed on since the network filter was last empty; at most UINT16_MAX */
    uint16_t unlogged;    /* number of requests that have begun and are not logged yet */
    uint16_t resumed;     /* number of times that a worker resumed the connection to send a response; may wrap */
    uint8_t is_stream;    /* whether this is an HTTP/2 stream; in Apache, each stream has a connection of its own */
    uint8_t in_request;   /* whether a head has been read and its response is not complete; reads are of the body */
    uint8_t drained;      /* whether the latest read found nothing, so trying to read without waiting is useless */
    uint8_t waited;       /* whether the latest read of the head found nothing */
    uint8_t head_here;    /* whether part of a head has been read and the latest read of the head found data */
    uint8_t recorded;     /* whether recording was on when the next request began or could begin */
    uint8_t sampled;      /* whether CPU time is measured for the request whose head is being read */
    uint8_t body_waited;  /* whether body_ns is valid and not 0 */
    uint8_t answer_sampled; /* whether sampled_answer is valid: its CPU time is measured, and it is not logged yet */

    struct request *sampled_answer;
    uint64_t body_ns;     /* time for which the worker waited for the request's body */
    uint64_t cpu_ns;      /* CPU time of the worker at last_ns, if sampled */
    uint64_t waits_cpu_ns; /* CPU time of the worker at waits_since_ns, during a blocking write; otherwise 0 */
    apr_bucket_brigade *byte;
};

_Static_assert(offsetof(struct connection, sampled_answer) == WORKER_LINE, "the first line has what each request needs");

static ap_filter_rec_t *connection_read_filter;
static ap_filter_rec_t *connection_write_filter;

/* Called when the whole response was passed to the network filter. Apache may write the log line and free the request's
 * memory directly afterwards. Defined in request.h. */
static void request_is_answered(struct request *request, struct connection *connection);

/* Stops measuring a request's CPU time, until request_goes_on is called. Defined in request.h. */
static void request_pauses(struct request *request);

/* Continues to measure a request's CPU time, on the calling worker. Defined in request.h. */
static void request_goes_on(struct request *request);

static struct connection *connection_of(conn_rec *c)
{
    return ap_get_module_config(c->conn_config, &brimful_module);
}

/* Returns how long the server has waited for the client in the current wait, up to `now`. Returns 0 if there is no
 * wait, or if the wait is too short to count. */
static uint64_t connection_waits(const struct connection *connection, uint64_t now)
{
    uint64_t waits = worker_since(connection->waits_since_ns, now);
    uint64_t worked;

    if (connection->waits_since_ns == 0) {
        return 0;
    }
    if (connection->is_stream) {
        return waits >= CONNECTION_STREAM_WAIT_LEAST_NS ? waits : 0;
    }
    if (connection->waits_cpu_ns == 0) {
        return waits;
    }
    worked = brimful_thread_cpu() - connection->waits_cpu_ns;
    return waits > worked && waits - worked >= CONNECTION_WAIT_LEAST_NS ? waits - worked : 0;
}

/* Returns the total time for which the server has waited for this connection's client to read, up to `now`. */
static uint64_t connection_waited(const struct connection *connection, uint64_t now)
{
    return connection->client_ns + connection_waits(connection, now);
}

static void connection_wait_ends(struct connection *connection)
{
    if (connection->waits_since_ns != 0) {
        connection->client_ns += connection_waits(connection, brimful_now());
        connection->waits_since_ns = 0;
    }
}

/* ---- Reading ---- */

static int connection_has_bytes(apr_status_t status, apr_bucket_brigade *brigade)
{
    return status == APR_SUCCESS && !APR_BRIGADE_EMPTY(brigade) && APR_BRIGADE_FIRST(brigade)->length != 0;
}

/* Returns whether a read returned neither data nor the end of the connection. */
static int connection_has_nothing(apr_status_t status, apr_bucket_brigade *brigade)
{
    return APR_STATUS_IS_EAGAIN(status) || (status == APR_SUCCESS && APR_BRIGADE_EMPTY(brigade));
}

/* Updates the times of the head after a read that returned data. `waited` says whether the read had to wait. */
static void connection_head(struct connection *connection, int waited)
{
    connection->drained = 0;
    connection->waited = 0;
    connection->head_here = 1;
    if (connection->first_ns == 0) {
        connection->first_ns = !waited && connection->begun_ns != 0 ? connection->begun_ns : brimful_now();
        connection->last_ns = connection->first_ns;
        connection->sampled = (uint8_t) brimful_is_sampled(&this_worker.chance, &settings, connection->first_ns);
    } else if (waited) {
        connection->last_ns = brimful_now();
    } else {
        return;
    }
    if (connection->sampled) {
        connection->cpu_ns = brimful_thread_cpu();
    }
}

/* Waits until data has arrived. The data is read later. */
static apr_status_t connection_await(struct connection *connection, ap_filter_t *f, apr_bucket_brigade *brigade,
                                     apr_off_t bytes)
{
    apr_status_t status;
    int waited = connection->drained;

    if (!waited) {
        status = ap_get_brigade(f->next, brigade, AP_MODE_SPECULATIVE, APR_NONBLOCK_READ, bytes);
        if (status != APR_SUCCESS && !APR_STATUS_IS_EAGAIN(status)) {
            return status;
        }
        waited = !connection_has_bytes(status, brigade);
    }
    if (waited) {
        apr_brigade_cleanup(brigade);
        status = ap_get_brigade(f->next, brigade, AP_MODE_SPECULATIVE, APR_BLOCK_READ, bytes);
    } else {
        status = APR_SUCCESS;
    }
    if (connection_has_bytes(status, brigade)) {
        connection_head(connection, waited);
    }
    return status;
}

/* Waits for a line of a head, after a read without waiting did not return the whole line. */
static apr_status_t connection_await_line(struct connection *connection, ap_filter_t *f, apr_bucket_brigade *brigade,
                                          apr_off_t bytes)
{
    apr_status_t status;

    if (connection->first_ns == 0) {
        status = connection_await(connection, f, connection->byte, 1);
        apr_brigade_cleanup(connection->byte);
        if (status != APR_SUCCESS) {
            return status;
        }
        status = ap_get_brigade(f->next, brigade, AP_MODE_GETLINE, APR_NONBLOCK_READ, bytes);
        if (!connection_has_nothing(status, brigade)) {
            return status;
        }
    }
    status = ap_get_brigade(f->next, brigade, AP_MODE_GETLINE, APR_BLOCK_READ, bytes);
    if (connection->first_ns != 0 || connection_has_bytes(status, brigade)) {
        connection_head(connection, 1);
    }
    return status;
}

/* Completes the read of a line of a head. `status` is the result of a read without waiting. */
static __attribute__((noinline)) apr_status_t connection_read_line(struct connection *connection, ap_filter_t *f,
                                                                   apr_bucket_brigade *brigade, apr_read_type_e block,
                                                                   apr_off_t bytes, apr_status_t status)
{
    if (connection_has_nothing(status, brigade)) {
        connection->drained = 1;
        connection->waited = 1;
        connection->head_here = 0;
        return block == APR_BLOCK_READ ? connection_await_line(connection, f, brigade, bytes) : status;
    }
    if (connection->first_ns != 0 || connection_has_bytes(status, brigade)) {
        connection_head(connection, connection->waited);
    }
    return status;
}

/* Reads a part of a body. If the read takes long, its duration counts as waiting for the body. */
static apr_status_t connection_read_body(struct connection *connection, ap_filter_t *f, apr_bucket_brigade *brigade,
                                         ap_input_mode_t mode, apr_read_type_e block, apr_off_t bytes)
{
    apr_status_t status;
    uint64_t from, waited;

    if (block != APR_BLOCK_READ) {
        return ap_get_brigade(f->next, brigade, mode, block, bytes);
    }
    from = brimful_now();
    status = ap_get_brigade(f->next, brigade, mode, block, bytes);
    waited = brimful_now() - from;
    if (waited >= CONNECTION_BODY_WAIT_LEAST_NS) {
        connection->body_ns = waited + (connection->body_waited ? connection->body_ns : 0);
        connection->body_waited = 1;
    }
    return status;
}

/* Performs the reads for which connection_read has no fast path. */
static __attribute__((noinline)) apr_status_t connection_read_other(ap_filter_t *f, apr_bucket_brigade *brigade,
                                                                    ap_input_mode_t mode, apr_read_type_e block,
                                                                    apr_off_t bytes)
{
    struct connection *connection = f->ctx;
    apr_status_t status;

    if (!brimful_is_on(&memory)) {
        return ap_get_brigade(f->next, brigade, mode, block, bytes);
    }
    if (connection->in_request) {
        return connection_read_body(connection, f, brigade, mode, block, bytes);
    }
    if (block == APR_BLOCK_READ && connection->first_ns == 0) {
        if (mode == AP_MODE_SPECULATIVE) {
            return connection_await(connection, f, brigade, bytes);
        }
        if (mode == AP_MODE_GETLINE && connection->drained) {
            return connection_await_line(connection, f, brigade, bytes);
        }
    }
    if (mode == AP_MODE_GETLINE) {
        status = ap_get_brigade(f->next, brigade, mode, APR_NONBLOCK_READ, bytes);
        return connection_read_line(connection, f, brigade, block, bytes, status);
    }
    status = ap_get_brigade(f->next, brigade, mode, block, bytes);
    if (connection_has_nothing(status, brigade)) {
        connection->drained = 1;
        connection->waited = 1;
        connection->head_here = 0;
    } else if (mode == AP_MODE_SPECULATIVE) {
        /* The server checks whether further requests have arrived before it ends a response. This does not begin a
         * request. */
        connection->drained = 0;
    } else if (connection->first_ns != 0 || connection_has_bytes(status, brigade)) {
        connection_head(connection, connection->waited || block == APR_BLOCK_READ);
    }
    return status;
}

static apr_status_t connection_read(ap_filter_t *f, apr_bucket_brigade *brigade, ap_input_mode_t mode,
                                    apr_read_type_e block, apr_off_t bytes)
{
    struct connection *connection = f->ctx;
    apr_status_t status;

    if (mode != AP_MODE_GETLINE || !connection->head_here) {
        return connection_read_other(f, brigade, mode, block, bytes);
    }
    status = ap_get_brigade(f->next, brigade, AP_MODE_GETLINE, APR_NONBLOCK_READ, bytes);
    if (status == APR_SUCCESS && !APR_BRIGADE_EMPTY(brigade)) {
        return status;
    }
    return connection_read_line(connection, f, brigade, block, bytes, status);
}

/* ---- Writing ---- */

/* The properties of a brigade (a list of data buffers) that determine whether passing it to the next filter may have to
 * wait. */
struct passing {
    int ends_request, flushes;
    apr_size_t bytes;
};

static struct passing connection_look(const apr_bucket_brigade *brigade)
{
    struct passing passing = {0, 0, 0};
    const apr_bucket *bucket = APR_BRIGADE_FIRST(brigade);

    for (; bucket != APR_BRIGADE_SENTINEL(brigade); bucket = APR_BUCKET_NEXT(bucket)) {
        if (APR_BUCKET_IS_METADATA(bucket)) {
            passing.ends_request |= AP_BUCKET_IS_EOR(bucket);
            passing.flushes |= APR_BUCKET_IS_FLUSH(bucket);
        } else if (bucket->length != (apr_size_t) -1) {
            passing.bytes += bucket->length;
        }
    }
    return passing;
}

static void connection_adds_unsent(struct connection *connection, apr_size_t bytes)
{
    apr_size_t room = UINT16_MAX - connection->unsent;

    connection->unsent += (uint16_t) (bytes < room ? bytes : room);
}

/* Returns whether passing on a brigade with these properties may have to wait for the client to read. */
static int connection_may_wait(const struct connection *connection, const conn_rec *c, const struct passing *passing)
{
    return connection->is_stream || (c->data_in_output_filters && connection->unsent >= CONNECTION_KEPT)
        || passing->bytes >= CONNECTION_HELD_MOST || (passing->flushes && passing->bytes >= CONNECTION_FITS);
}

static apr_status_t connection_write(ap_filter_t *f, apr_bucket_brigade *brigade)
{
    struct connection *connection = f->ctx;
    struct passing passing = connection_look(brigade);
    apr_status_t status;

    if (passing.ends_request) {
        connection->in_request = 0;
        connection->recorded = (uint8_t) brimful_is_on(&memory);
        if (connection->current != NULL) {
            request_is_answered(connection->current, connection);
        }
    }
    if (!brimful_is_on(&memory)) {
        return ap_pass_brigade(f->next, brigade);
    }
    if (connection->is_stream && !connection->in_request) {
        if (passing.ends_request) {
            connection->waits_since_ns = brimful_now();
        }
        return ap_pass_brigade(f->next, brigade);
    }
    if (!f->c->data_in_output_filters) {
        connection->unsent = 0;
    }
    if (!connection_may_wait(connection, f->c, &passing)) {
        connection_adds_unsent(connection, passing.bytes);
        return ap_pass_brigade(f->next, brigade);
    }
    connection_adds_unsent(connection, passing.bytes);
    connection->waits_cpu_ns = connection->is_stream ? 0 : brimful_thread_cpu();
    connection->waits_since_ns = brimful_now();
    status = ap_pass_brigade(f->next, brigade);
    connection_wait_ends(connection);
    return status;
}

/* ---- Life cycle ---- */

/* Called when a worker begins to process the connection. */
static void connection_begins(struct connection *connection)
{
    uint64_t now;

    connection->drained = 0;
    connection->waited = 0;
    connection->recorded = (uint8_t) brimful_is_on(&memory);
    if (connection->recorded) {
        now = brimful_now();
        connection->begun_ns = now;
        worker_is_busy(&this_worker, connection, now);
    }
}

static apr_status_t connection_ends(void *ended)
{
    worker_is_idle(&this_worker, ended);
    return APR_SUCCESS;
}

static void connection_accepted(conn_rec *c)
{
    struct connection *connection = worker_room(c->pool, sizeof(*connection));

    memset(connection, 0, sizeof(*connection));
    ap_set_module_config(c->conn_config, &brimful_module, connection);
    connection->is_stream = c->master != NULL;
    ap_add_output_filter_handle(connection_write_filter, connection, NULL, c);
    if (connection->is_stream) {
        return;
    }
    connection->byte = apr_brigade_create(c->pool, c->bucket_alloc);
    ap_add_input_filter_handle(connection_read_filter, connection, NULL, c);
    apr_pool_cleanup_register(c->pool, connection, connection_ends, apr_pool_cleanup_null);
    connection_begins(connection);
    if (this_worker.slot != NULL && this_worker.busy_with == connection) {
        brimful_add(&this_worker.slot->connections, 1);
    }
}

/* Called before the connection's protocol reads requests. Data that was read before this belongs to the TLS handshake.
 * */
static int connection_is_processed(conn_rec *c)
{
    struct connection *connection = connection_of(c);

    if (connection != NULL && connection->first_ns != 0 && !connection->in_request) {
        connection->first_ns = 0;
        connection->head_here = 0;
        connection->begun_ns = brimful_now();
    }
    return DECLINED;
}

/* For the event MPM: called when a worker returns the connection to the MPM. A worker resumes the connection when the
 * client has sent or read data. */
static void connection_suspended(conn_rec *c, request_rec *r)
{
    struct connection *connection = connection_of(c);

    (void) r;
    if (connection == NULL) {
        return;
    }
    /* If a handler has suspended the request (CONN_STATE_SUSPENDED), the server is not waiting for the client to read.
     * */
    if (connection->unlogged != 0 && connection->waits_since_ns == 0 && c->cs != NULL
        && c->cs->state != CONN_STATE_SUSPENDED) {
        connection->waits_cpu_ns = 0;
        connection->waits_since_ns = brimful_now();
        if (connection->answer_sampled) {
            request_pauses(connection->sampled_answer);
        }
    }
    worker_is_idle(&this_worker, connection);
}

static void connection_resumed(conn_rec *c, request_rec *r)
{
    struct connection *connection;

    (void) r;
    worker_makes_ready(&this_worker);
    connection = connection_of(c);
    if (connection != NULL) {
        connection->resumed = (uint16_t) (connection->resumed + (connection->waits_since_ns != 0));
        connection_wait_ends(connection);
        connection_begins(connection);
        if (connection->answer_sampled) {
            request_goes_on(connection->sampled_answer);
        }
    }
}

#endif
