/*
 * Measures how long mod_proxy waits for upstream servers. mod_proxy works on the request's thread, and the waits are
 * added to a counter of the worker. The wait of a request is the difference of this counter between the end and the
 * start of the request.
 *
 * There are two ways to measure a wait. For HTTP and some other protocols, mod_proxy reads through Apache's filters.
 * Here, the wait is the time to establish the connection, plus the durations of the reads that have to wait. For
 * FastCGI, AJP and the remaining protocols, mod_proxy reads the socket directly. For these, and for refused
 * connections, the wait is the duration of mod_proxy's work without the time for which it waits for the client to read.
 */
#ifndef BRIMFUL_APACHE_UPSTREAM_H
#define BRIMFUL_APACHE_UPSTREAM_H

#include "connection.h"

#include <dlfcn.h>

#include "apr_optional_hooks.h"
#include "mod_proxy.h"

static ap_filter_rec_t *upstream_read_filter;
static ap_filter_rec_t *upstream_write_filter;

/* Called when mod_proxy's work ends, or begins again with the next server of a balancer. If filters have not measured
 * the wait, adds the duration of mod_proxy's work to the wait. */
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

/* Called when mod_proxy starts to choose an upstream server. */
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

/* Called when mod_proxy's work ends. */
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
        /* First try to read without waiting. Most lines have already arrived, and the clock need not be read for them.
         * */
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

/* A call of this filter shows that mod_proxy uses a connection with this module's filters. */
static apr_status_t upstream_write(ap_filter_t *f, apr_bucket_brigade *brigade)
{
    this_worker.upstream_seen = 1;
    return ap_pass_brigade(f->next, brigade);
}

/* Called after a connection to an upstream server was established. */
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

/* Registers functions with mod_proxy, if it is loaded. The registering functions are looked up at run time: if this
 * module were linked against mod_proxy, a server without mod_proxy would not start. */
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
