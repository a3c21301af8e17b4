/*
 * Records a request from the POST_READ phase until the response is complete.
 */
#ifndef NGX_HTTP_BRIMFUL_REQUEST_H
#define NGX_HTTP_BRIMFUL_REQUEST_H

#include "connection.h"

/* Called when nginx destroys the request of an HTTP/2 stream. In rare cases, the request was not logged; then it is
 * removed from the number of requests in progress. */
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

/* Returns the record of a main request on a connection, or NULL if the request is not recorded. The record is not
 * stored in nginx's module context of the request, because an internal redirect clears that. */
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

/* Allocates a record, without initializing it, for a request that begins. Returns NULL if there is no memory. */
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

/* Initializes a record. `has` contains the bits of the phases that all such requests have. The members are set one by
 * one, because clearing the whole record by a function call would be slower. */
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
    request->figures.resumed = 0;
}

/* Starts to measure the CPU time of a request, if it is sampled. Decides whether it is sampled, if this was not decided
 * before. */
static BRIMFUL_APART void
ngx_http_brimful_sample(ngx_http_brimful_request_t *request, ngx_http_brimful_connection_t *connection,
                        uint64_t now)
{
    request->figures.blocks.read = 0;
    request->figures.blocks.written = 0;
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

/* Sets the times of HEAD and PARSE for a request whose first byte was received through this module's wrapper. */
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
        ngx_http_brimful_forget(connection, c); /* nginx accepted the connection before this worker had a slot */
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

/* Returns the record of a request whose head was never parsed, or NULL if the request is not recorded. If the client
 * was too slow, or disconnected before the head was complete, all time of the request counts as HEAD. */
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

#endif
