/*
 * brimful's Server Module for nginx: what a request costs in a worker, phase by phase (../recorder.h), in shared
 * memory.
 *
 * Where the phases begin and end:
 *
 *   HEAD      first to last receipt before the head is complete: c->recv of each client's connection is wrapped. Of a
 *             pipelined request from the end of the one before. Waiting for a request's body is added.
 *   PARSE     from that last receipt to the POST_READ phase.
 *   PROCESS   from there to the first handler of the LOG phase, without the next two.
 *   UPSTREAM  from the choice of a peer to its release: u->peer.get and u->peer.free are wrapped. Where a variable says
 *             which upstream it is, and no `upstream` block has that name, what nginx says, in whole milliseconds.
 *   SEND      from when the kernel takes no more to the next attempt to send: c->send_chain is wrapped.
 *   LOG       between the first and the last handler of the LOG phase.
 *
 * Where nginx waits for the client and for a peer at once, it is the client's time. With HTTP/2, requests share a
 * connection: HEAD is 0, PARSE begins when the connection last had something else to do, SEND includes waiting for
 * other streams, and waiting for a body is part of PROCESS.
 *
 * A request is counted in the LOG phase, if it is a main request: once, like its line in the access log. What was not
 * parsed, and so never came to POST_READ, has only HEAD, PARSE and LOG. Requests by HTTP/3 are not recorded.
 *
 * CPU time of a request is that of its worker between the same points, unless a hook of another request ran in
 * between.
 */
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

/* Whatever runs on nginx's thread pools, no hook of ours does. */
#define BRIMFUL_ONE_THREAD
#include "recorder.h"

#define ngx_http_brimful_seldom(condition) __builtin_expect(!!(condition), 0)

/* A request whose head is parsed. Times are CLOCK_MONOTONIC, in ns. */
typedef struct {
    uint64_t changed_ns;      /* up to when it is accounted for */
    uint32_t backends;        /* peers that it has at the moment */
    unsigned waits_to_send:1;
    unsigned reads_body:1;    /* since changed_ns, unless something else than a receipt follows */
    unsigned lingers:1;       /* it is answered, and waits for the client to say no more */
    unsigned counted:1;       /* among those in progress */
    unsigned cpu_runs:1;      /* since cpu_from */
    struct brimful_request figures;
    uint64_t cpu_from;
    ngx_uint_t turn;          /* of the worker, at cpu_from */
} ngx_http_brimful_request_t;

/* What is kept of a client's connection beside it, by its place in the cycle's array of connections. What each request
 * needs comes first: little of a connection is in a cache when it is its turn. */
typedef struct {
    ngx_atomic_uint_t number; /* of the connection that this is about */
    ngx_recv_pt recv;         /* nginx's own, which ours calls */
    ngx_send_chain_pt send_chain;
    uint64_t first_ns;        /* first receipt of the next request, 0 before it */
    uint64_t last_ns;         /* latest receipt */
    unsigned chosen:1;        /* `sampled` is that of the next request */
    unsigned sampled:1;
    unsigned multiplexed:1;   /* HTTP/2 */
    unsigned active:1;        /* `request` is under way; never if multiplexed */
    ngx_http_brimful_request_t request;
    uint64_t cpu_from;        /* just before the latest receipt, if sampled */
    ngx_uint_t turn;
    ngx_event_handler_pt first_read;
#if (NGX_HTTP_SSL)
    void (*handshake)(ngx_connection_t *c);
#endif
} ngx_http_brimful_connection_t;

/* How far those of two connections are apart: as far as the connections, if there is room, which saves a division. */
#define NGX_HTTP_BRIMFUL_STRIDE ngx_max(sizeof(ngx_connection_t), sizeof(ngx_http_brimful_connection_t))


/* An upstream whose `peer.init` is wrapped. */
typedef struct {
    ngx_http_upstream_srv_conf_t *upstream;
    ngx_http_upstream_init_peer_pt init;
} ngx_http_brimful_upstream_t;

/* A balancer that is wrapped, of one request to an upstream. */
typedef struct {
    ngx_http_brimful_request_t *request;
    unsigned has_peer:1;
    void *data;
    ngx_event_get_peer_pt get;
    ngx_event_free_peer_pt free;
    ngx_event_notify_peer_pt notify;
#if (NGX_SSL || NGX_COMPAT)
    ngx_event_set_peer_session_pt set_session;
    ngx_event_save_peer_session_pt save_session;
#endif
} ngx_http_brimful_peer_t;

typedef struct {
    struct brimful_settings settings;
    ngx_str_t path; /* empty: off */
    ngx_int_t cpu_one_in;
    ngx_int_t slots;
    ngx_array_t upstreams; /* of ngx_http_brimful_upstream_t */
} ngx_http_brimful_conf_t;

/* The process: a worker, or the master before it forks. */
static struct {
    struct brimful_memory memory;
    const struct brimful_settings *settings; /* those of `memory` */
    struct brimful_slot *slot;               /* NULL: nothing is recorded */
    ngx_connection_t *first;                 /* the cycle's connections */
    size_t connections_size;                 /* of all of them, in bytes */
    char *beside;                            /* as many ngx_http_brimful_connection_t, at their stride */
    const void *at_work;                     /* whose hook ran last */
    ngx_uint_t turn;                         /* how often that was another's than before */
    struct brimful_chance chance;
    uint64_t latest_ns;                      /* when a request was last read or logged */
    const ngx_http_request_t *logged;        /* between the two handlers of the LOG phase */
    ngx_http_brimful_request_t *logging;     /* what is known of it */
    ngx_http_brimful_connection_t *logging_of; /* its connection; may be NULL */
    unsigned class_index;                    /* of it */
    ngx_http_brimful_request_t unparsed;     /* if it never came to POST_READ */
    ngx_send_chain_pt stream_send_chain;     /* nginx's own for HTTP/2 */
} ngx_http_brimful;

static ngx_http_output_body_filter_pt ngx_http_next_body_filter;

static void *ngx_http_brimful_create_conf(ngx_conf_t *cf);
static char *ngx_http_brimful_init_conf(ngx_conf_t *cf, void *conf);
static char *ngx_http_brimful_set_path(ngx_conf_t *cf, ngx_command_t *command, void *conf);
static char *ngx_http_brimful_set_class(ngx_conf_t *cf, ngx_command_t *command, void *conf);
static ngx_int_t ngx_http_brimful_configured(ngx_conf_t *cf);
static ngx_int_t ngx_http_brimful_init_module(ngx_cycle_t *cycle);
static ngx_int_t ngx_http_brimful_init_process(ngx_cycle_t *cycle);
static void ngx_http_brimful_exit_process(ngx_cycle_t *cycle);

static ngx_conf_num_bounds_t ngx_http_brimful_cpu_bounds = {ngx_conf_check_num_bounds, 0, 1000000};
static ngx_conf_num_bounds_t ngx_http_brimful_slot_bounds = {ngx_conf_check_num_bounds, 1, BRIMFUL_SLOTS_MOST};

static ngx_command_t ngx_http_brimful_commands[] = {
    {ngx_string("brimful"), NGX_HTTP_MAIN_CONF | NGX_CONF_NOARGS | NGX_CONF_TAKE1, ngx_http_brimful_set_path,
     NGX_HTTP_MAIN_CONF_OFFSET, 0, NULL},
    {ngx_string("brimful_class"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE3, ngx_http_brimful_set_class,
     NGX_HTTP_MAIN_CONF_OFFSET, 0, NULL},
    {ngx_string("brimful_cpu_one_in"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE1, ngx_conf_set_num_slot,
     NGX_HTTP_MAIN_CONF_OFFSET, offsetof(ngx_http_brimful_conf_t, cpu_one_in), &ngx_http_brimful_cpu_bounds},
    {ngx_string("brimful_slots"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE1, ngx_conf_set_num_slot,
     NGX_HTTP_MAIN_CONF_OFFSET, offsetof(ngx_http_brimful_conf_t, slots), &ngx_http_brimful_slot_bounds},
    ngx_null_command
};

static ngx_http_module_t ngx_http_brimful_module_ctx = {
    NULL,                         /* preconfiguration */
    ngx_http_brimful_configured,  /* postconfiguration */
    ngx_http_brimful_create_conf, /* create main configuration */
    ngx_http_brimful_init_conf,   /* init main configuration */
    NULL, NULL,                   /* create and merge server configuration */
    NULL, NULL                    /* create and merge location configuration */
};

ngx_module_t ngx_http_brimful_module = {
    NGX_MODULE_V1,
    &ngx_http_brimful_module_ctx,
    ngx_http_brimful_commands,
    NGX_HTTP_MODULE,
    NULL,                          /* init master */
    ngx_http_brimful_init_module,  /* init module */
    ngx_http_brimful_init_process, /* init process */
    NULL, NULL,                    /* init and exit thread */
    ngx_http_brimful_exit_process, /* exit process */
    NULL,                          /* exit master */
    NGX_MODULE_V1_PADDING
};

/* ---- Accounts of one request ---- */

/* Says whose hook this is: what was measured across the hook of another is no one's. */
static void
ngx_http_brimful_at_work(const void *who)
{
    if (ngx_http_brimful.at_work != who) {
        ngx_http_brimful.at_work = who;
        ngx_http_brimful.turn++;
    }
}

/* Adds the time since the last change to a phase. */
static void
ngx_http_brimful_charge(ngx_http_brimful_request_t *request, enum brimful_phase phase, uint64_t now)
{
    request->figures.time_ns[phase] += now - request->changed_ns;
    request->figures.has |= BRIMFUL_HAS(phase);
    request->changed_ns = now;
    request->reads_body = 0;
}

/* The same, to the phase of what the request has been waiting for. */
static void
ngx_http_brimful_account(ngx_http_brimful_request_t *request, uint64_t now)
{
    enum brimful_phase phase = BRIMFUL_PROCESS;

    if (ngx_http_brimful_seldom(request->waits_to_send || request->lingers)) {
        phase = BRIMFUL_SEND;
    } else if (ngx_http_brimful_seldom(request->backends > 0)) {
        phase = BRIMFUL_UPSTREAM;
    }
    ngx_http_brimful_charge(request, phase, now);
}

static void
ngx_http_brimful_start_cpu(ngx_http_brimful_request_t *request)
{
    if (request->figures.cpu_sampled == 1) {
        request->cpu_from = brimful_thread_cpu();
        request->turn = ngx_http_brimful.turn;
        request->cpu_runs = 1;
    }
}

/* Adds the CPU time since it was started to that of PROCESS. Returns whether it was read for that: `cpu_from` is that
 * reading then, from which what follows may be measured. */
static ngx_int_t
ngx_http_brimful_stop_cpu(ngx_http_brimful_request_t *request)
{
    uint64_t cpu;

    if (request->figures.cpu_sampled != 1 || !request->cpu_runs) {
        return 0;
    }
    request->cpu_runs = 0;
    if (request->turn != ngx_http_brimful.turn) {
        request->figures.cpu_sampled = 2;
        return 0;
    }
    cpu = brimful_thread_cpu();
    request->figures.cpu_ns[BRIMFUL_CPU_PROCESS] += brimful_cpu_between(request->cpu_from, cpu);
    request->cpu_from = cpu;
    return 1;
}

/* The client is waited for, until ngx_http_brimful_resume. Others may be served meanwhile, at their own account. */
static void
ngx_http_brimful_wait_to_send(ngx_http_brimful_request_t *request)
{
    ngx_http_brimful_account(request, brimful_now());
    request->waits_to_send = 1;
    (void) ngx_http_brimful_stop_cpu(request);
}

static void
ngx_http_brimful_resume(ngx_http_brimful_request_t *request)
{
    request->reads_body = 0;
    if (ngx_http_brimful_seldom(request->waits_to_send)) {
        ngx_http_brimful_account(request, brimful_now());
        request->waits_to_send = 0;
        ngx_http_brimful_start_cpu(request);
    }
}

/* ---- The client's connection ---- */

/* What is kept of this connection; NULL if it is not one of the cycle's, as that of an HTTP/2 stream. */
static ngx_http_brimful_connection_t *
ngx_http_brimful_beside(ngx_connection_t *c)
{
    size_t offset = (uintptr_t) c - (uintptr_t) ngx_http_brimful.first; /* huge, if it lies before them */

    if (ngx_http_brimful_seldom(offset >= ngx_http_brimful.connections_size)) {
        return NULL;
    }
    if (NGX_HTTP_BRIMFUL_STRIDE != sizeof(ngx_connection_t)) {
        offset = offset / sizeof(ngx_connection_t) * NGX_HTTP_BRIMFUL_STRIDE;
    }
    return (ngx_http_brimful_connection_t *) (void *) (ngx_http_brimful.beside + offset);
}

static ngx_connection_t *
ngx_http_brimful_client(ngx_http_request_t *r)
{
#if (NGX_HTTP_V2)
    if (ngx_http_brimful_seldom(r->stream != NULL)) {
        return r->stream->connection->connection;
    }
#endif
    return r->connection;
}

/* Receipt of a body, or of what is thrown away. That the next thing to happen is another receipt shows that the
 * client was waited for in between: whether a body is complete, only nginx knows. */
static ssize_t
ngx_http_brimful_recv_body(ngx_http_brimful_connection_t *connection, ngx_connection_t *c, u_char *buf, size_t size)
{
    ngx_http_brimful_request_t *request = &connection->request;
    ngx_http_request_t *r = ((ngx_http_request_t *) c->data)->main;
    ssize_t n;

    ngx_http_brimful_at_work(c);
    if (r->lingering_time != 0) {
        request->lingers = 1;
        return connection->recv(c, buf, size);
    }
    if (request->reads_body) {
        ngx_http_brimful_charge(request, BRIMFUL_HEAD, brimful_now());
    }
    ngx_http_brimful_resume(request);
    n = connection->recv(c, buf, size);
    if (r->request_body != NULL && !r->discard_body && !(r->upstream && r->upstream->upgrade)) {
        ngx_http_brimful_account(request, brimful_now());
        request->reads_body = 1;
    }
    return n;
}

/* Decides once whether CPU time of the next request is measured, and where it is, begins with it, over again with
 * each receipt. */
static void
ngx_http_brimful_choose(ngx_http_brimful_connection_t *connection)
{
    if (!connection->chosen) {
        connection->chosen = 1;
        connection->sampled = (unsigned) brimful_is_sampled(&ngx_http_brimful.chance, ngx_http_brimful.settings,
                                                            ngx_http_brimful.latest_ns);
    }
    if (ngx_http_brimful_seldom(connection->sampled)) {
        connection->cpu_from = brimful_thread_cpu();
        connection->turn = ngx_http_brimful.turn;
    }
}

static ssize_t
ngx_http_brimful_recv(ngx_connection_t *c, u_char *buf, size_t size)
{
    ngx_http_brimful_connection_t *connection = ngx_http_brimful_beside(c);
    uint64_t mark, now;
    ssize_t n;

    if (connection == NULL) {
        return NGX_ERROR; /* a copy of a connection, which nothing is read from */
    }
    if (ngx_http_brimful_seldom(connection->active)) {
        return ngx_http_brimful_recv_body(connection, c, buf, size);
    }
    if (!connection->multiplexed) {
        ngx_http_brimful_at_work(c);
    }
    if (ngx_http_brimful.slot == NULL || !brimful_is_on(&ngx_http_brimful.memory)) {
        connection->first_ns = 0;
        return connection->recv(c, buf, size);
    }
    if (!connection->multiplexed) {
        ngx_http_brimful_choose(connection);
    }

    /* From before the call, which is the server's own work: there is something to read, or it would not have been
     * called. But after an answer nginx looks whether there is more, and mostly there is not. */
    mark = brimful_mark();
    n = connection->recv(c, buf, size);
    if (n <= 0) {
        return n;
    }
    now = brimful_time_of(mark);
    if (connection->multiplexed) {
        ngx_http_brimful_at_work(c);
    }
    if (connection->first_ns == 0) {
        connection->first_ns = now;
    }
    connection->last_ns = now;
    return n;
}

static ngx_chain_t *
ngx_http_brimful_send_chain(ngx_connection_t *c, ngx_chain_t *in, off_t limit)
{
    ngx_http_brimful_connection_t *connection = ngx_http_brimful_beside(c);
    ngx_http_request_t *r;
    ngx_chain_t *out;

    if (connection == NULL) {
        return NGX_CHAIN_ERROR;
    }
    if (!connection->active) {
        return connection->send_chain(c, in, limit);
    }
    ngx_http_brimful_at_work(c);
    ngx_http_brimful_resume(&connection->request);
    out = connection->send_chain(c, in, limit);
    if (ngx_http_brimful_seldom(!c->write->ready) && out != NGX_CHAIN_ERROR && (out != NULL || c->buffered)) {
        ngx_http_brimful_wait_to_send(&connection->request);
        return out;
    }
    r = ((ngx_http_request_t *) c->data)->main;
    if (ngx_http_brimful_seldom(r->discard_body || r->reading_body || r->lingering_close)) {
        /* This may have been the last of it, and the connection may linger. */
        ngx_http_brimful_account(&connection->request, brimful_now());
    }
    return out;
}

/* Puts our functions before nginx's. */
static void
ngx_http_brimful_wrap(ngx_http_brimful_connection_t *connection, ngx_connection_t *c)
{
    if (c->recv != ngx_http_brimful_recv) {
        connection->recv = c->recv;
        c->recv = ngx_http_brimful_recv;
    }
    if (c->send_chain != ngx_http_brimful_send_chain) {
        connection->send_chain = c->send_chain;
        c->send_chain = ngx_http_brimful_send_chain;
    }
}

/* Begins anew with a connection. */
static void
ngx_http_brimful_forget(ngx_http_brimful_connection_t *connection, ngx_connection_t *c)
{
    if (connection->active && ngx_http_brimful.slot != NULL) {
        brimful_end(ngx_http_brimful.slot, brimful_now());
    }
    *connection = (ngx_http_brimful_connection_t) {0};
    connection->number = c->number;
}

#if (NGX_HTTP_SSL)

/* After the handshake, which has put the functions of TLS in the place of ours. */
static void
ngx_http_brimful_handshake_done(ngx_connection_t *c)
{
    ngx_http_brimful_connection_t *connection = ngx_http_brimful_beside(c);

    c->ssl->handler = connection->handshake;
    if (c->ssl->handshaked) {
        ngx_http_brimful_wrap(connection, c);
    }
    connection->handshake(c);
}

static void ngx_http_brimful_first_read(ngx_event_t *rev);

/* The handshake has begun, or will with the next thing that is read. */
static void
ngx_http_brimful_expect_handshake(ngx_http_brimful_connection_t *connection, ngx_connection_t *c)
{
    if (c->ssl != NULL && c->ssl->handshaked) {
        /* All in one go, which happens if the worker was suspended meanwhile, and something may have been read. */
        ngx_http_brimful_wrap(connection, c);
        if (!connection->active && c->buffer != NULL && c->buffer->last != c->buffer->start) {
            connection->first_ns = brimful_now();
            connection->last_ns = connection->first_ns;
        }
    } else if (c->ssl != NULL) {
        if (c->ssl->handler != NULL && c->ssl->handler != ngx_http_brimful_handshake_done) {
            connection->handshake = c->ssl->handler;
            c->ssl->handler = ngx_http_brimful_handshake_done;
        }
    } else if (c->read->handler != ngx_http_brimful_first_read) {
        connection->first_read = c->read->handler;
        c->read->handler = ngx_http_brimful_first_read;
    }
}

static void
ngx_http_brimful_first_read(ngx_event_t *rev)
{
    ngx_connection_t *c = rev->data;
    ngx_http_brimful_connection_t *connection = ngx_http_brimful_beside(c);
    ngx_event_handler_pt handler = connection->first_read;

    rev->handler = handler;
    handler(rev);
    if (c->fd != (ngx_socket_t) -1 && c->number == connection->number && (c->ssl != NULL || rev->handler == handler)) {
        ngx_http_brimful_expect_handshake(connection, c);
    }
}

#endif

/* Stands before ngx_http_init_connection at each listening socket. */
static void
ngx_http_brimful_accepted(ngx_connection_t *c)
{
    ngx_http_brimful_connection_t *connection = ngx_http_brimful_beside(c);
#if (NGX_HTTP_SSL)
    unsigned was_ready = c->read->ready;
#endif

    if (ngx_http_brimful.slot == NULL || connection == NULL || c->type != SOCK_STREAM) {
        ngx_http_init_connection(c);
        return;
    }
    ngx_http_brimful_at_work(c);
    ngx_http_brimful_forget(connection, c);
    ngx_http_brimful_wrap(connection, c);
    if (brimful_is_on(&ngx_http_brimful.memory)) {
        brimful_add(&ngx_http_brimful.slot->connections, 1);
    }
    ngx_http_init_connection(c);

#if (NGX_HTTP_SSL)
    if (c->fd != (ngx_socket_t) -1 && c->number == connection->number
        && (c->ssl != NULL || (!was_ready && ((ngx_http_connection_t *) c->data)->ssl)))
    {
        ngx_http_brimful_expect_handshake(connection, c);
    }
#endif
}

/* ---- From POST_READ to LOG ---- */

/* A stream's request is gone: normally it has been logged before. */
static void
ngx_http_brimful_stream_gone(void *data)
{
    ngx_http_brimful_request_t *request = data;

    if (request->counted && ngx_http_brimful.slot != NULL) {
        brimful_end(ngx_http_brimful.slot, brimful_now());
    }
    request->counted = 0;
}

#if (NGX_HTTP_V2)

static BRIMFUL_APART ngx_http_brimful_request_t *
ngx_http_brimful_find_stream(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t *cleanup;

    for (cleanup = r->pool->cleanup; cleanup; cleanup = cleanup->next) {
        if (cleanup->handler == ngx_http_brimful_stream_gone) {
            return cleanup->data;
        }
    }
    return NULL;
}

static BRIMFUL_APART ngx_http_brimful_request_t *
ngx_http_brimful_stream_room(ngx_http_brimful_connection_t *connection, ngx_http_request_t *r)
{
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_brimful_request_t));

    if (cleanup == NULL) {
        return NULL;
    }
    cleanup->handler = ngx_http_brimful_stream_gone;
    connection->multiplexed = 1;
    return cleanup->data;
}

#endif

/* What is known of a main request, which came by this connection; NULL if it is not to be recorded. Contexts of modules
 * would not do: an internal redirect clears them. */
static ngx_http_brimful_request_t *
ngx_http_brimful_find(ngx_http_request_t *r, ngx_http_brimful_connection_t *connection)
{
#if (NGX_HTTP_V2)
    if (ngx_http_brimful_seldom(r->stream != NULL)) {
        return ngx_http_brimful_find_stream(r);
    }
#endif
    return connection != NULL && connection->active ? &connection->request : NULL;
}

/* Room for a request that begins, whatever is in it; NULL if there is none. */
static ngx_http_brimful_request_t *
ngx_http_brimful_room(ngx_http_brimful_connection_t *connection, ngx_http_request_t *r)
{
#if (NGX_HTTP_V2)
    if (ngx_http_brimful_seldom(r->stream != NULL)) {
        return ngx_http_brimful_stream_room(connection, r);
    }
#endif
    connection->active = 1;
    return &connection->request;
}

/* A request of which nothing is known but what it has whatever becomes of it. Word by word: clearing it at once would
 * be a call, and takes longer. */
static void
ngx_http_brimful_clear(ngx_http_brimful_request_t *request, uint64_t now, uint32_t has)
{
    ngx_uint_t i;

    request->changed_ns = now;
    request->backends = 0;
    request->waits_to_send = 0;
    request->reads_body = 0;
    request->lingers = 0;
    request->counted = 0;
    request->cpu_runs = 0;
    for (i = 0; i < BRIMFUL_PHASES; i++) {
        request->figures.time_ns[i] = 0;
    }
    request->figures.cpu_sampled = 0;
    request->figures.has = has;
}

/* Begins to measure CPU time, if this request is one of those, or none has been chosen so far. */
static BRIMFUL_APART void
ngx_http_brimful_sample(ngx_http_brimful_request_t *request, ngx_http_brimful_connection_t *connection,
                        uint64_t now)
{
    if (!connection->chosen || connection->multiplexed) {
        request->figures.cpu_sampled =
            (uint8_t) brimful_is_sampled(&ngx_http_brimful.chance, ngx_http_brimful.settings, now);
        request->figures.cpu_ns[BRIMFUL_CPU_PARSE] = 0;
        request->figures.cpu_ns[BRIMFUL_CPU_PROCESS] = 0;
        ngx_http_brimful_start_cpu(request);
        return;
    }
    request->figures.cpu_sampled = 1;
    ngx_http_brimful_start_cpu(request);
    if (connection->turn != ngx_http_brimful.turn) {
        request->figures.cpu_sampled = 2;
        return;
    }
    request->figures.cpu_ns[BRIMFUL_CPU_PARSE] = brimful_cpu_between(connection->cpu_from, request->cpu_from);
    request->figures.cpu_ns[BRIMFUL_CPU_PROCESS] = 0;
}

/* HEAD and PARSE of a request whose first byte was seen. */
static void
ngx_http_brimful_head(ngx_http_brimful_request_t *request, const ngx_http_brimful_connection_t *connection,
                      uint64_t now)
{
    request->figures.time_ns[BRIMFUL_PARSE] = now - connection->last_ns;
    request->figures.has |= BRIMFUL_HAS(BRIMFUL_PARSE);
    if (!connection->multiplexed && connection->last_ns != connection->first_ns) {
        request->figures.time_ns[BRIMFUL_HEAD] = connection->last_ns - connection->first_ns;
        request->figures.has |= BRIMFUL_HAS(BRIMFUL_HEAD);
    }
}

static ngx_int_t
ngx_http_brimful_post_read(ngx_http_request_t *r)
{
    ngx_connection_t *c = ngx_http_brimful_client(r);
    ngx_http_brimful_connection_t *connection = ngx_http_brimful_beside(c);
    ngx_http_brimful_request_t *request;
    uint64_t now;

    if (ngx_http_brimful.slot == NULL || connection == NULL) {
        return NGX_DECLINED;
    }
    if (connection->number != c->number) {
        ngx_http_brimful_forget(connection, c); /* accepted before there was anything to record with */
    }
    if (!brimful_is_on(&ngx_http_brimful.memory)) {
        connection->first_ns = 0;
        connection->chosen = 0;
        return NGX_DECLINED;
    }
    now = brimful_now();
    ngx_http_brimful_at_work(r->connection);
    request = ngx_http_brimful_room(connection, r);
    if (request == NULL) {
        return NGX_DECLINED;
    }
    ngx_http_brimful_clear(request, now, BRIMFUL_HAS(BRIMFUL_PROCESS) | BRIMFUL_HAS(BRIMFUL_LOG));
    request->counted = 1;
    if (connection->first_ns != 0) {
        ngx_http_brimful_head(request, connection, now);
    }
    if (connection->multiplexed) {
        connection->last_ns = now;
    }
    ngx_http_brimful.latest_ns = now;
    brimful_begin(ngx_http_brimful.slot, now);
    if (ngx_http_brimful_seldom(connection->multiplexed || connection->sampled || !connection->chosen)) {
        ngx_http_brimful_sample(request, connection, now);
    }
    connection->chosen = 0;
    return NGX_DECLINED;
}

/* A request that was never parsed. If its head never was complete, because the client was too slow or went away, all
 * of the time was the client's. */
static BRIMFUL_APART ngx_http_brimful_request_t *
ngx_http_brimful_unparsed(ngx_http_brimful_connection_t *connection, ngx_http_request_t *r)
{
    ngx_http_brimful_request_t *request = &ngx_http_brimful.unparsed;
    uint64_t now;

    if (connection == NULL || connection->first_ns == 0 || !brimful_is_on(&ngx_http_brimful.memory)) {
        return NULL;
    }
    now = brimful_now();
    ngx_http_brimful_clear(request, now, BRIMFUL_HAS(BRIMFUL_LOG));
    if (!connection->multiplexed && (r->connection->error || r->connection->timedout)) {
        request->figures.time_ns[BRIMFUL_HEAD] = now - connection->first_ns;
        request->figures.has |= BRIMFUL_HAS(BRIMFUL_HEAD) | BRIMFUL_HAS(BRIMFUL_PARSE);
    } else {
        ngx_http_brimful_head(request, connection, now);
    }
    return request;
}

/* As the access log says it: $body_bytes_sent. */
static uint64_t
ngx_http_brimful_body_bytes(ngx_http_request_t *r)
{
    off_t bytes = r->connection->sent - (off_t) r->header_size;

    return bytes > 0 ? (uint64_t) bytes : 0;
}

/* By what the client asked for, whatever it was redirected to since. */
static BRIMFUL_APART unsigned
ngx_http_brimful_class(ngx_http_request_t *r, uint64_t bytes)
{
    size_t length = r->unparsed_uri.len;
    const u_char *query = length > 0 ? memchr(r->unparsed_uri.data, '?', length) : NULL;

    if (query != NULL) {
        length = (size_t) (query - r->unparsed_uri.data);
    }
    return brimful_classify(ngx_http_brimful.settings, (const char *) r->unparsed_uri.data, length, bytes);
}

/* Counts a request that is about to be logged. */
static void
ngx_http_brimful_count(ngx_http_brimful_request_t *request, ngx_http_request_t *r)
{
    struct brimful_request *figures = &request->figures;

    figures->bytes = ngx_http_brimful_body_bytes(r);
    figures->status = (uint16_t) (r->err_status ? r->err_status : r->headers_out.status);
    figures->aborted = (r->connection->error || r->connection->timedout
                        || figures->status == NGX_HTTP_CLIENT_CLOSED_REQUEST)
                       && !request->lingers;
    ngx_http_brimful.class_index = ngx_http_brimful.settings->by_url
                                   ? ngx_http_brimful_class(r, figures->bytes)
                                   : brimful_classify_size(ngx_http_brimful.settings, figures->bytes);
    brimful_count(ngx_http_brimful.slot, ngx_http_brimful.class_index, figures);
    ngx_http_brimful.logged = r;
    ngx_http_brimful.logging = request;
}

/* The first handler of the LOG phase. */
static ngx_int_t
ngx_http_brimful_log_begins(ngx_http_request_t *r)
{
    ngx_http_brimful_connection_t *connection;
    ngx_http_brimful_request_t *request;
    uint64_t now;

    ngx_http_brimful.logged = NULL;
    if (ngx_http_brimful_seldom(r != r->main || ngx_http_brimful.slot == NULL)) {
        return NGX_OK;
    }
    ngx_http_brimful_at_work(r->connection);
    connection = ngx_http_brimful_beside(ngx_http_brimful_client(r));
    request = ngx_http_brimful_find(r, connection);
    if (request != NULL) {
        now = brimful_now();
        if (r->lingering_time != 0) {
            request->lingers = 1;
        }
        ngx_http_brimful_account(request, now);
        if (ngx_http_brimful_seldom(request->figures.cpu_sampled == 1) && !ngx_http_brimful_stop_cpu(request)) {
            ngx_http_brimful_start_cpu(request);
        }
    } else {
        request = ngx_http_brimful_unparsed(connection, r);
        if (request == NULL) {
            return NGX_OK;
        }
    }
    ngx_http_brimful.logging_of = connection;
    ngx_http_brimful_count(request, r);
    return NGX_OK;
}

/* An upstream that was not wrapped, since it is of no configured block: what nginx has measured itself. */
static BRIMFUL_APART void
ngx_http_brimful_estimate_upstream(ngx_http_brimful_request_t *request, ngx_http_request_t *r)
{
    ngx_http_upstream_state_t *state = r->upstream_states->elts;
    uint64_t sum = 0;
    ngx_uint_t i;

    for (i = 0; i < r->upstream_states->nelts; i++) {
        if (state[i].peer != NULL && state[i].response_time != (ngx_msec_t) -1) {
            sum += (uint64_t) state[i].response_time * 1000000;
        }
    }
    sum = ngx_min(sum, request->figures.time_ns[BRIMFUL_PROCESS]);
    request->figures.time_ns[BRIMFUL_PROCESS] -= sum;
    request->figures.time_ns[BRIMFUL_UPSTREAM] += sum;
    request->figures.has |= BRIMFUL_HAS(BRIMFUL_UPSTREAM);
}

/* A connection is free for its next request. */
static void
ngx_http_brimful_next(ngx_http_brimful_connection_t *connection, ngx_http_request_t *r, uint64_t now)
{
    connection->active = 0;
    connection->chosen = 0;
    if (connection->multiplexed) {
        connection->last_ns = now;
    } else if (r->header_in != NULL && r->header_in->pos < r->header_in->last) {
        /* The next request is here already, and was kept waiting until now. */
        connection->first_ns = now;
        connection->last_ns = now;
        ngx_http_brimful_choose(connection);
    } else {
        connection->first_ns = 0;
    }
}

static BRIMFUL_APART void
ngx_http_brimful_log_cpu(ngx_http_brimful_request_t *request, uint64_t now)
{
    uint64_t cpu = brimful_thread_cpu();

    request->figures.cpu_ns[BRIMFUL_CPU_LOG] = brimful_cpu_between(request->cpu_from, cpu);
    brimful_note_cpu(ngx_http_brimful.slot, cpu, now);
}

/* The last handler of the LOG phase. */
static ngx_int_t
ngx_http_brimful_log_ends(ngx_http_request_t *r)
{
    ngx_http_brimful_connection_t *connection = ngx_http_brimful.logging_of;
    ngx_http_brimful_request_t *request = ngx_http_brimful.logging;
    uint64_t now;

    if (ngx_http_brimful_seldom(ngx_http_brimful.logged != r)) {
        return NGX_OK;
    }
    ngx_http_brimful.logged = NULL;
    now = brimful_now();
    ngx_http_brimful.latest_ns = now;
    request->figures.time_ns[BRIMFUL_LOG] = now - request->changed_ns;
    if (ngx_http_brimful_seldom(request->figures.cpu_sampled != 0)) {
        ngx_http_brimful_log_cpu(request, now);
    }
    if (ngx_http_brimful_seldom(r->upstream_states != NULL) && request->counted && !(request->figures.has & BRIMFUL_HAS(BRIMFUL_UPSTREAM))) {
        ngx_http_brimful_estimate_upstream(request, r);
    }
    brimful_record_times(ngx_http_brimful.slot, ngx_http_brimful.class_index, &request->figures);
    if (request->counted) {
        brimful_end(ngx_http_brimful.slot, now);
        request->counted = 0;
    }
    if (connection != NULL) {
        ngx_http_brimful_next(connection, r, now);
    }
    return NGX_OK;
}

/* ---- HTTP/2 ---- */

#if (NGX_HTTP_V2)

static ngx_chain_t *
ngx_http_brimful_stream_send_chain(ngx_connection_t *fc, ngx_chain_t *in, off_t limit)
{
    ngx_http_brimful_request_t *request = ngx_http_brimful_find(((ngx_http_request_t *) fc->data)->main, NULL);
    ngx_chain_t *out;

    if (request == NULL) {
        return ngx_http_brimful.stream_send_chain(fc, in, limit);
    }
    ngx_http_brimful_at_work(fc);
    ngx_http_brimful_resume(request);
    out = ngx_http_brimful.stream_send_chain(fc, in, limit);
    if (!fc->write->ready && out != NGX_CHAIN_ERROR) {
        ngx_http_brimful_wait_to_send(request);
    }
    return out;
}

#endif

/* The first moment at which a stream's own send_chain is there. */
static ngx_int_t
ngx_http_brimful_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
#if (NGX_HTTP_V2)
    ngx_connection_t *fc = r->connection;

    if (r->stream && r->header_sent && fc->send_chain != ngx_http_brimful_stream_send_chain
        && fc->send_chain != ngx_http_brimful_send_chain && ngx_http_brimful_find(r->main, NULL) != NULL)
    {
        ngx_http_brimful.stream_send_chain = fc->send_chain;
        fc->send_chain = ngx_http_brimful_stream_send_chain;
    }
#endif
    return ngx_http_next_body_filter(r, in);
}

/* ---- Servers behind this one ---- */

static ngx_int_t
ngx_http_brimful_get_peer(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_brimful_peer_t *peer = data;
    ngx_int_t rc;

    if (!peer->has_peer) {
        ngx_http_brimful_account(peer->request, brimful_now());
        peer->request->backends++;
        peer->has_peer = 1;
    }
    rc = peer->get(pc, peer->data);
    if (rc == NGX_ERROR || rc == NGX_BUSY) {
        ngx_http_brimful_account(peer->request, brimful_now());
        peer->request->backends--;
        peer->has_peer = 0;
    }
    return rc;
}

static void
ngx_http_brimful_free_peer(ngx_peer_connection_t *pc, void *data, ngx_uint_t state)
{
    ngx_http_brimful_peer_t *peer = data;

    if (peer->has_peer) {
        ngx_http_brimful_account(peer->request, brimful_now());
        peer->request->backends--;
        peer->has_peer = 0;
    }
    peer->free(pc, peer->data, state);
}

static void
ngx_http_brimful_notify_peer(ngx_peer_connection_t *pc, void *data, ngx_uint_t type)
{
    ngx_http_brimful_peer_t *peer = data;

    peer->notify(pc, peer->data, type);
}

#if (NGX_SSL || NGX_COMPAT)

static ngx_int_t
ngx_http_brimful_set_session(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_brimful_peer_t *peer = data;

    return peer->set_session(pc, peer->data);
}

static void
ngx_http_brimful_save_session(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_brimful_peer_t *peer = data;

    peer->save_session(pc, peer->data);
}

#endif

/* Stands before the `peer.init` of each upstream. */
static ngx_int_t
ngx_http_brimful_init_peer(ngx_http_request_t *r, ngx_http_upstream_srv_conf_t *upstream)
{
    ngx_http_brimful_conf_t *conf = ngx_http_get_module_main_conf(r, ngx_http_brimful_module);
    ngx_http_brimful_upstream_t *wrapped = conf->upstreams.elts;
    ngx_peer_connection_t *pc = &r->upstream->peer;
    ngx_http_brimful_request_t *request;
    ngx_http_brimful_peer_t *peer;
    ngx_uint_t i;

    for (i = 0; i < conf->upstreams.nelts && wrapped[i].upstream != upstream; i++) { /* void */ }
    if (i == conf->upstreams.nelts || wrapped[i].init(r, upstream) != NGX_OK) {
        return NGX_ERROR;
    }
    request = ngx_http_brimful.slot == NULL ? NULL
              : ngx_http_brimful_find(r->main, ngx_http_brimful_beside(r->main->connection));
    if (request == NULL || pc->get == ngx_http_brimful_get_peer) {
        return NGX_OK;
    }
    request->figures.has |= BRIMFUL_HAS(BRIMFUL_UPSTREAM);
    peer = ngx_pcalloc(r->pool, sizeof(ngx_http_brimful_peer_t));
    if (peer == NULL) {
        return NGX_ERROR;
    }
    peer->request = request;
    peer->data = pc->data;
    peer->get = pc->get;
    peer->free = pc->free;
    pc->data = peer;
    pc->get = ngx_http_brimful_get_peer;
    pc->free = ngx_http_brimful_free_peer;
    if (pc->notify != NULL) {
        peer->notify = pc->notify;
        pc->notify = ngx_http_brimful_notify_peer;
    }
#if (NGX_SSL || NGX_COMPAT)
    if (pc->set_session != NULL) {
        peer->set_session = pc->set_session;
        pc->set_session = ngx_http_brimful_set_session;
    }
    if (pc->save_session != NULL) {
        peer->save_session = pc->save_session;
        pc->save_session = ngx_http_brimful_save_session;
    }
#endif
    return NGX_OK;
}

/* ---- Configuration ---- */

static void *
ngx_http_brimful_create_conf(ngx_conf_t *cf)
{
    ngx_http_brimful_conf_t *conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_brimful_conf_t));

    if (conf == NULL) {
        return NULL;
    }
    conf->cpu_one_in = NGX_CONF_UNSET;
    conf->slots = NGX_CONF_UNSET;
    return conf;
}

static char *
ngx_http_brimful_init_conf(ngx_conf_t *cf, void *data)
{
    ngx_http_brimful_conf_t *conf = data;

    ngx_conf_init_value(conf->cpu_one_in, (ngx_int_t) BRIMFUL_CPU_ONE_IN);
    brimful_default_rules(&conf->settings);
    conf->settings.path = (const char *) conf->path.data;
    conf->settings.server = NGINX_VER;
    conf->settings.cpu_one_in = (uint32_t) conf->cpu_one_in;
    return NGX_CONF_OK;
}

static char *
ngx_http_brimful_set_path(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    ngx_http_brimful_conf_t *conf = data;
    ngx_str_t *value = cf->args->elts;

    if (conf->path.data != NULL) {
        return "is duplicate";
    }
    if (cf->args->nelts == 1) {
        ngx_str_set(&conf->path, "/dev/shm/brimful-nginx");
        return NGX_CONF_OK;
    }
    if (ngx_strcmp(value[1].data, "off") == 0) {
        ngx_str_set(&conf->path, "");
        return NGX_CONF_OK;
    }
    if (value[1].data[0] != '/') {
        return "takes the absolute path of a file, such as /dev/shm/brimful-nginx, or off";
    }
    conf->path = value[1];
    return NGX_CONF_OK;
}

static char *
ngx_http_brimful_set_class(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    ngx_http_brimful_conf_t *conf = data;
    ngx_str_t *value = cf->args->elts;
    const char *wrong = "the rule is too long";
    u_char rule[300], *end;

    end = ngx_snprintf(rule, sizeof(rule), "%V %V%Z", &value[2], &value[3]);
    if (end < rule + sizeof(rule)) {
        wrong = brimful_add_rule(&conf->settings, (const char *) value[1].data, (const char *) rule);
    }
    if (wrong != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "brimful_class: %s", wrong);
        return NGX_CONF_ERROR;
    }
    return NGX_CONF_OK;
}

/* Puts our handlers into the phases, and before those of all upstreams. */
static ngx_int_t
ngx_http_brimful_configured(ngx_conf_t *cf)
{
    ngx_http_brimful_conf_t *conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_brimful_module);
    ngx_http_core_main_conf_t *core = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    ngx_http_upstream_main_conf_t *upstreams = ngx_http_conf_get_module_main_conf(cf, ngx_http_upstream_module);
    ngx_http_upstream_srv_conf_t **upstream = upstreams->upstreams.elts;
    ngx_http_brimful_upstream_t *wrapped;
    ngx_http_handler_pt *handler, *first;
    ngx_array_t *log = &core->phases[NGX_HTTP_LOG_PHASE].handlers;
    ngx_uint_t i;

    if (conf->path.len == 0) {
        return NGX_OK;
    }
    handler = ngx_array_push(&core->phases[NGX_HTTP_POST_READ_PHASE].handlers);
    if (handler == NULL) {
        return NGX_ERROR;
    }
    *handler = ngx_http_brimful_post_read;

    /* Those of the LOG phase run from first to last; those of any other from last to first. */
    if (ngx_array_push_n(log, 2) == NULL) {
        return NGX_ERROR;
    }
    first = log->elts;
    ngx_memmove(first + 1, first, (log->nelts - 2) * sizeof(ngx_http_handler_pt));
    first[0] = ngx_http_brimful_log_begins;
    first[log->nelts - 1] = ngx_http_brimful_log_ends;

    ngx_http_next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_http_brimful_body_filter;

    if (ngx_array_init(&conf->upstreams, cf->pool, upstreams->upstreams.nelts + 1, sizeof(ngx_http_brimful_upstream_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }
    for (i = 0; i < upstreams->upstreams.nelts; i++) {
        if (upstream[i]->peer.init == NULL) {
            continue;
        }
        wrapped = ngx_array_push(&conf->upstreams);
        if (wrapped == NULL) {
            return NGX_ERROR;
        }
        wrapped->upstream = upstream[i];
        wrapped->init = upstream[i]->peer.init;
        upstream[i]->peer.init = ngx_http_brimful_init_peer;
    }
    return NGX_OK;
}

/* ---- Processes ---- */

static void
ngx_http_brimful_claim_slot(ngx_log_t *log)
{
    ngx_http_brimful.slot =
        brimful_claim(&ngx_http_brimful.memory, (uint32_t) ngx_pid, (uint32_t) syscall(SYS_gettid));
    if (ngx_http_brimful.slot == NULL && ngx_http_brimful.memory.header != NULL) {
        ngx_log_error(NGX_LOG_WARN, log, 0, "brimful: no slot is free for this worker, which is not recorded; "
                      "raise brimful_slots");
    }
}

/* Before the workers are forked: maps the file, and stands before nginx's own handler at all listening sockets. */
static ngx_int_t
ngx_http_brimful_init_module(ngx_cycle_t *cycle)
{
    ngx_http_brimful_conf_t *conf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_brimful_module);
    ngx_core_conf_t *core = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);
    ngx_listening_t *listening = cycle->listening.elts;
    struct brimful_slot *slot = ngx_http_brimful.slot;
    char why[BRIMFUL_WHY_BYTES];
    ngx_uint_t i;

    if (ngx_test_config) {
        return NGX_OK;
    }
    if (slot != NULL) {
        /* One process that does everything, and has connections that know of the old memory. */
        brimful_release(slot);
        ngx_http_brimful.slot = NULL;
        ngx_memzero(&ngx_http_brimful.memory, sizeof(ngx_http_brimful.memory));
    }
    brimful_unmap(&ngx_http_brimful.memory);
    if (conf == NULL || conf->path.len == 0) {
        return NGX_OK;
    }
    conf->settings.slots =
        conf->slots != NGX_CONF_UNSET ? (uint32_t) conf->slots : 4 * (uint32_t) core->worker_processes + 16;
    if (brimful_map(&ngx_http_brimful.memory, &conf->settings, why) != 0) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0, "brimful: %s; nginx goes on without it", why);
        return NGX_OK;
    }
    ngx_http_brimful.settings = &conf->settings;
    for (i = 0; i < cycle->listening.nelts; i++) {
        if (listening[i].handler == ngx_http_init_connection) {
            listening[i].handler = ngx_http_brimful_accepted;
        }
    }
    if (slot != NULL) {
        ngx_http_brimful_claim_slot(cycle->log);
    }
    return NGX_OK;
}

static ngx_int_t
ngx_http_brimful_init_process(ngx_cycle_t *cycle)
{
    if (ngx_http_brimful.memory.header == NULL
        || (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE))
    {
        return NGX_OK;
    }
    /* Untouched pages, of connections that never come, cost nothing this way. */
    ngx_http_brimful.beside = mmap(NULL, cycle->connection_n * NGX_HTTP_BRIMFUL_STRIDE, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ngx_http_brimful.beside == MAP_FAILED) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0, "brimful: no memory; this worker is not recorded");
        return NGX_OK;
    }
    ngx_http_brimful.first = cycle->connections;
    ngx_http_brimful.connections_size = cycle->connection_n * sizeof(ngx_connection_t);
    ngx_http_brimful.chance.gap = brimful_now() ^ ((uint64_t) ngx_pid << 32);
    ngx_http_brimful_claim_slot(cycle->log);

    /* Whoever mapped the file may have been the parent of the master, before it became a daemon. */
    __atomic_store_n(&ngx_http_brimful.memory.header->master_pid,
                     (uint32_t) (ngx_process == NGX_PROCESS_WORKER ? getppid() : ngx_pid), __ATOMIC_RELAXED);
    return NGX_OK;
}

static void
ngx_http_brimful_exit_process(ngx_cycle_t *cycle)
{
    if (ngx_http_brimful.slot != NULL) {
        brimful_release(ngx_http_brimful.slot);
        ngx_http_brimful.slot = NULL;
    }
}
