/*
 * Servers behind this one: how long mod_proxy waits for them. It works on the thread of the request, so a request's
 * wait is what its worker's counter has grown by meanwhile.
 *
 * HTTP (and its like: whatever mod_proxy gives a connection with filters): establishing the connection, then each read
 * that has to wait. FastCGI, AJP and all that reads its sockets by itself, and a connection that was refused: all of
 * mod_proxy's time, but for what it waited until the client read.
 */
#ifndef BRIMFUL_APACHE_UPSTREAM_H
#define BRIMFUL_APACHE_UPSTREAM_H

#include "connection.h"

#include <dlfcn.h>

#include "apr_optional_hooks.h"
#include "mod_proxy.h"

static ap_filter_rec_t *upstream_read_filter;
static ap_filter_rec_t *upstream_write_filter;

/* mod_proxy's work ends, or it begins anew with the next server of a balancer. */
static void upstream_settle(struct worker *worker, const struct connection *connection, uint64_t now)
{
    uint64_t all, client;

    if (worker->proxied_at != 0 && !worker->upstream_seen) {
        all = worker_since(worker->proxied_at, now);
        client = connection != NULL ? worker_since(worker->proxied_client_ns, connection_waited(connection, now)) : 0;
        worker->upstream_ns += worker_since(client, all);
    }
    worker->proxied_at = 0;
    worker->upstream_seen = 0;
}

/* mod_proxy looks for a server. */
static int upstream_begins(proxy_worker **server, proxy_balancer **balancer, request_rec *r, proxy_server_conf *conf,
                           char **url)
{
    struct worker *worker = &this_worker;
    const struct connection *connection = connection_of(r->connection);
    uint64_t now;

    (void) server;
    (void) balancer;
    (void) conf;
    (void) url;
    if (brimful_is_on(&memory)) {
        now = brimful_now();
        upstream_settle(worker, connection, now);
        worker->proxied_at = now;
        worker->proxied_client_ns = connection != NULL ? connection_waited(connection, now) : 0;
    }
    return DECLINED;
}

/* mod_proxy has done all it can. */
static int upstream_ends(int *status, request_rec *r)
{
    (void) status;
    if (this_worker.proxied_at != 0) {
        upstream_settle(&this_worker, connection_of(r->connection), brimful_now());
    }
    return DECLINED;
}

static apr_status_t upstream_read(ap_filter_t *f, apr_bucket_brigade *brigade, ap_input_mode_t mode,
                                  apr_read_type_e block, apr_off_t bytes)
{
    apr_status_t status;
    uint64_t from;

    if (!brimful_is_on(&memory) || block != APR_BLOCK_READ || mode == AP_MODE_INIT) {
        return ap_get_brigade(f->next, brigade, mode, block, bytes);
    }
    if (mode == AP_MODE_GETLINE) {
        /* As in connection.h: most lines are here already. */
        status = ap_get_brigade(f->next, brigade, mode, APR_NONBLOCK_READ, bytes);
        if (!APR_STATUS_IS_EAGAIN(status) && (status != APR_SUCCESS || !APR_BRIGADE_EMPTY(brigade))) {
            return status;
        }
    }
    from = brimful_now();
    status = ap_get_brigade(f->next, brigade, mode, block, bytes);
    this_worker.upstream_ns += brimful_now() - from;
    return status;
}

/* A connection that was at hand is seen to be one with filters when it is written to. */
static apr_status_t upstream_write(ap_filter_t *f, apr_bucket_brigade *brigade)
{
    this_worker.upstream_seen = 1;
    return ap_pass_brigade(f->next, brigade);
}

/* A new connection to a server behind. */
static void upstream_connected(conn_rec *c)
{
    struct worker *worker = &this_worker;

    if (brimful_is_on(&memory) && worker->proxied_at != 0 && !worker->upstream_seen) {
        worker->upstream_ns += brimful_now() - worker->proxied_at;
        worker->upstream_seen = 1;
    }
    ap_add_input_filter_handle(upstream_read_filter, NULL, NULL, c);
    ap_add_output_filter_handle(upstream_write_filter, NULL, NULL, c);
}

/* Registers with mod_proxy, where it is loaded. It is not linked against: the server would not start without. */
static void upstream_hook_proxy(void)
{
    typedef void (*hook_pre_request)(proxy_HOOK_pre_request_t *, const char *const *, const char *const *, int);
    hook_pre_request hook;

    *(void **) &hook = dlsym(RTLD_DEFAULT, "proxy_hook_pre_request");
    if (hook != NULL) {
        hook(upstream_begins, NULL, NULL, APR_HOOK_REALLY_FIRST);
        APR_OPTIONAL_HOOK(proxy, request_status, upstream_ends, NULL, NULL, APR_HOOK_REALLY_LAST);
    }
}

#endif
