/*
 * State that all parts of the module share: the worker, and what is kept for each connection and each request.
 */
#ifndef NGX_HTTP_BRIMFUL_MODULE_H
#define NGX_HTTP_BRIMFUL_MODULE_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

/* Our hooks never run on nginx's thread pools. */
#define BRIMFUL_ONE_THREAD
#include "recorder.h"

#define ngx_http_brimful_seldom(condition) __builtin_expect(!!(condition), 0)

/* A request whose head is parsed. Times are CLOCK_MONOTONIC, in ns. */
typedef struct {
    uint64_t changed_ns;      /* the request's time up to this instant is assigned to phases */
    uint32_t backends;        /* number of upstream peers that it uses now */
    unsigned waits_to_send:1;
    unsigned reads_body:1;    /* part of its body was received at changed_ns, and nothing else has happened since */
    unsigned lingers:1;       /* its response is complete; the connection lingers until the client sends no more */
    unsigned counted:1;       /* it is counted as in progress */
    unsigned cpu_runs:1;      /* its CPU time is being measured, since cpu_from */
    struct brimful_request figures;
    uint64_t cpu_from;
    ngx_uint_t turn;          /* the worker's turn at cpu_from */
} ngx_http_brimful_request_t;

/* Data for a client's connection, at the index of the connection in the cycle's array. Members that each request needs
 * come first, because little of a connection is in a cache when its turn comes. */
typedef struct {
    ngx_atomic_uint_t number; /* nginx's number of the connection to which this data belongs */
    ngx_recv_pt recv;         /* nginx's own function, which ours calls */
    ngx_send_chain_pt send_chain;
    uint64_t first_ns;        /* time of the first receipt of the next request; 0 before */
    uint64_t last_ns;         /* time of the latest receipt */
    unsigned chosen:1;        /* `sampled` is valid for the next request */
    unsigned sampled:1;
    unsigned multiplexed:1;   /* HTTP/2 */
    unsigned active:1;        /* `request` is in progress; never set if multiplexed */
    ngx_http_brimful_request_t request;
    uint64_t cpu_from;        /* CPU time just before the latest receipt, if sampled */
    ngx_uint_t turn;
    ngx_event_handler_pt first_read;
#if (NGX_HTTP_SSL)
    void (*handshake)(ngx_connection_t *c);
#endif
} ngx_http_brimful_connection_t;

/* The distance between the data of two connections. It is the size of nginx's own connection structure if our data fit
 * into it, because equal distances save a division. */
#define NGX_HTTP_BRIMFUL_STRIDE ngx_max(sizeof(ngx_connection_t), sizeof(ngx_http_brimful_connection_t))


typedef struct {
    struct brimful_settings settings;
    ngx_str_t path; /* path of the file; empty: off */
    ngx_uint_t by_default; /* the configuration specifies no path */
    ngx_int_t cpu_one_in;
    ngx_int_t slots;
    ngx_array_t upstreams; /* array of ngx_http_brimful_upstream_t */
} ngx_http_brimful_conf_t;

/* The state of the process: a worker, or the master before it forks. */
static struct {
    struct brimful_memory memory;
    const struct brimful_settings *settings; /* the settings of `memory` */
    struct brimful_slot *slot;               /* NULL: nothing is recorded */
    ngx_connection_t *first;                 /* the cycle's connections */
    size_t connections_size;                 /* size of all connections in bytes */
    char *beside;                            /* one ngx_http_brimful_connection_t per NGX_HTTP_BRIMFUL_STRIDE */
    const void *at_work;                     /* the connection whose hook ran last */
    ngx_uint_t turn;                         /* number of times that at_work has changed */
    struct brimful_chance chance;
    uint64_t latest_ns;                      /* when a request was last read or logged */
    const ngx_http_request_t *logged;        /* the request between the two handlers of the LOG phase */
    ngx_http_brimful_request_t *logging;     /* the record of `logged` */
    ngx_http_brimful_connection_t *logging_of; /* the connection of `logged`; may be NULL */
    unsigned class_index;                    /* index of the class of `logged` */
    ngx_http_brimful_request_t unparsed;     /* the record of a request that never reached POST_READ */
    ngx_send_chain_pt stream_send_chain;     /* nginx's own send_chain for HTTP/2 */
} ngx_http_brimful;

extern ngx_module_t ngx_http_brimful_module;

#endif
