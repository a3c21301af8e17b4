/*
 * What all parts of the module know: the worker, what is kept of each connection, and of each request.
 */
#ifndef NGX_HTTP_BRIMFUL_MODULE_H
#define NGX_HTTP_BRIMFUL_MODULE_H

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


typedef struct {
    struct brimful_settings settings;
    ngx_str_t path; /* empty: off */
    ngx_uint_t by_default; /* the configuration names no path */
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

extern ngx_module_t ngx_http_brimful_module;

#endif
