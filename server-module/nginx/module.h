/*
 * The state that all parts of the module share: the data of the worker process, of connections and of requests.
 */
#ifndef NGX_HTTP_BRIMFUL_MODULE_H
#define NGX_HTTP_BRIMFUL_MODULE_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

/* The module's hooks never run on the threads of nginx's thread pools. */
#define BRIMFUL_ONE_THREAD
#include "recorder.h"

#define ngx_http_brimful_seldom(condition) __builtin_expect(!!(condition), 0)

/* A request whose head was parsed. Instants are in ns of CLOCK_MONOTONIC. */
typedef struct {
    uint64_t changed_ns;      /* the request's time up to this instant is assigned to phases */
    uint32_t backends;        /* number of upstream peers that the request uses now */
    unsigned waits_to_send:1; /* whether the request waits for the client to read */
    unsigned reads_body:1;    /* whether part of the body was received at changed_ns, and nothing has happened since */
    unsigned lingers:1;       /* whether the response is complete and nginx discards what the client still sends */
    unsigned counted:1;       /* whether the request is counted as in progress */
    unsigned cpu_runs:1;      /* whether the CPU time of the request is being measured now, from cpu_from on */
    struct brimful_request figures;
    uint64_t cpu_from;        /* CPU time of the worker at the start of the current measurement */
    struct brimful_blocks blocks_from; /* blocks of the worker when the request last began or continued */
    ngx_uint_t turn;          /* the worker's turn at cpu_from */
} ngx_http_brimful_request_t;

/* The module's data for a client connection. It has the same index as the connection in the cycle's array. The members
 * that every request needs come first, because the data is rarely in a cache when the worker begins to work on the
 * connection. */
typedef struct {
    ngx_atomic_uint_t number; /* nginx's number of the connection to which this data belongs */
    ngx_recv_pt recv;         /* nginx's own function, which the module's function calls */
    ngx_send_chain_pt send_chain; /* nginx's own function */
    uint64_t first_ns;        /* instant at which the first bytes of the next request were received; 0 if none were */
    uint64_t last_ns;         /* instant at which bytes were last received */
    unsigned chosen:1;        /* whether `sampled` is valid for the next request */
    unsigned sampled:1;       /* whether the CPU time of the next request is measured */
    unsigned multiplexed:1;   /* whether this is an HTTP/2 connection */
    unsigned active:1;        /* whether `request` is in progress; never set if multiplexed */
    ngx_http_brimful_request_t request;
    uint64_t cpu_from;        /* CPU time of the worker just before it last received bytes, if sampled */
    ngx_uint_t turn;          /* the worker's turn at cpu_from */
    ngx_event_handler_pt first_read; /* nginx's own handler of the first read event */
#if (NGX_HTTP_SSL)
    void (*handshake)(ngx_connection_t *c);
#endif
} ngx_http_brimful_connection_t;

/* Distance between the data of two successive connections in memory, in bytes. If the module's data fits into the size
 * of nginx's connection structure, that size is used: then data and connection have the same offset in their arrays,
 * which saves a division. */
#define NGX_HTTP_BRIMFUL_STRIDE ngx_max(sizeof(ngx_connection_t), sizeof(ngx_http_brimful_connection_t))


typedef struct {
    struct brimful_settings settings;
    ngx_str_t path; /* path of the file; empty: recording is off */
    ngx_uint_t by_default; /* whether the configuration switches recording on without naming a path */
    ngx_int_t cpu_one_in;
    ngx_int_t slots;
    ngx_array_t upstreams; /* array of ngx_http_brimful_upstream_t */
} ngx_http_brimful_conf_t;

/* The state of this process: a worker process, or the master process before it forks. */
static struct {
    struct brimful_memory memory;
    const struct brimful_settings *settings; /* the settings with which `memory` was mapped */
    struct brimful_slot *slot;               /* NULL: nothing is recorded */
    ngx_connection_t *first;                 /* the first element of the cycle's array of connections */
    size_t connections_size;                 /* size of this array in bytes */
    /* The module's data for the connections: one ngx_http_brimful_connection_t every NGX_HTTP_BRIMFUL_STRIDE bytes. */
    char *beside;
    const void *at_work;                     /* the connection whose hook ran last */
    ngx_uint_t turn;                         /* number of times that at_work has changed */
    struct brimful_chance chance;
    uint64_t latest_ns;                      /* instant at which a request was last read or logged */
    const ngx_http_request_t *logged;        /* the request that is between the two handlers of the LOG phase */
    ngx_http_brimful_request_t *logging;     /* the record of `logged` */
    ngx_http_brimful_connection_t *logging_of; /* the connection of `logged`; may be NULL */
    unsigned class_index;                    /* index of the class of `logged` */
    ngx_http_brimful_request_t unparsed;     /* the record of a request that never reached POST_READ */
    ngx_send_chain_pt stream_send_chain;     /* nginx's own send_chain for HTTP/2 */
} ngx_http_brimful;

extern ngx_module_t ngx_http_brimful_module;

#endif
