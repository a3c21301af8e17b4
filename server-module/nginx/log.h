/*
 * nginx's LOG phase. The module's first handler in this phase counts a request; its last handler records the request's
 * times.
 */
#ifndef NGX_HTTP_BRIMFUL_LOG_H
#define NGX_HTTP_BRIMFUL_LOG_H

#include "request.h"

/* Returns the size of the response body in bytes, like the log variable $body_bytes_sent. */
static uint64_t
ngx_http_brimful_body_bytes(ngx_http_request_t *r)
{
    off_t bytes = r->connection->sent - (off_t) r->header_size;

    return bytes > 0 ? (uint64_t) bytes : 0;
}

/* Returns the class of a request, by the URL that the client requested before any internal redirects. */
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

/* Counts a request whose log line will be written next. */
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

/* The first handler in the LOG phase: ends the phase that the request is in, usually PROCESS, and counts the request.
 * */
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

/* Estimates the wait for upstream servers from nginx's own measurement, in whole milliseconds, and moves this time from
 * PROCESS to UPSTREAM. Used if the configuration has no `upstream` block for the server: the module does not wrap nginx's
 * functions for such a server. */
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

/* Resets a connection's data for the next request, after the request `r` has ended. */
static void
ngx_http_brimful_next(ngx_http_brimful_connection_t *connection, ngx_http_request_t *r, uint64_t now)
{
    connection->active = 0;
    connection->chosen = 0;
    if (connection->multiplexed) {
        connection->last_ns = now;
    } else if (r->header_in != NULL && r->header_in->pos < r->header_in->last) {
        /* Data of the next request has already arrived, so the next request begins now. */
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
    brimful_add_blocks(&request->figures.blocks, &request->blocks_from);
    brimful_note_cpu(ngx_http_brimful.slot, cpu, now);
}

/* The last handler in the LOG phase: records the times of the request, and resets the connection's data for the next
 * request. */
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
    if (ngx_http_brimful_seldom(r->upstream_states != NULL) && request->counted
        && !(request->figures.has & BRIMFUL_HAS(BRIMFUL_UPSTREAM)))
    {
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

#endif
