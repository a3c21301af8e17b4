/*
 * Replaces the functions c->recv and c->send_chain of each client connection by wrappers. With TLS, this is done after
 * the handshake.
 */
#ifndef NGX_HTTP_BRIMFUL_CONNECTION_H
#define NGX_HTTP_BRIMFUL_CONNECTION_H

#include "account.h"

/* Returns the module's data for a connection. Returns NULL if the connection is not an element of the cycle's array,
 * for example the connection structure of an HTTP/2 stream. */
static ngx_http_brimful_connection_t *
ngx_http_brimful_beside(ngx_connection_t *c)
{
    size_t offset = (uintptr_t) c - (uintptr_t) ngx_http_brimful.first; /* huge if `c` is before the array */

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

/* Receives a part of a body, or data that nginx discards. If the next event of the connection is another call of this
 * function, the time in between is a wait for the client. The module cannot know whether the body is complete. */
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

/* Decides whether to measure the CPU time of the next request. The decision is made only once for each request. If the
 * CPU time is measured, each further call before the request begins starts the measurement again. */
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
        return NGX_ERROR; /* `c` is a copy of a connection, and nginx never reads from a copy */
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

    /* Take the mark (a cheap reading of the time) before the call: normally, the data has already arrived, so the call
     * is already work on the request. The reading must be cheap, because the call often receives nothing: nginx checks
     * for further data after each response. */
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
        /* This call may have sent the last part of the response. After that, nginx may only discard what the client
         * sends. */
        ngx_http_brimful_account(&connection->request, brimful_now());
    }
    return out;
}

/* Replaces nginx's functions of a connection by this module's wrappers. */
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

/* Clears the module's data for a connection. */
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

/* Called after the TLS handshake, which has set nginx's functions again. So they are replaced by the wrappers again. */
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

/* Called when the TLS handshake has begun, or will begin with the next read. */
static void
ngx_http_brimful_expect_handshake(ngx_http_brimful_connection_t *connection, ngx_connection_t *c)
{
    if (c->ssl != NULL && c->ssl->handshaked) {
        /* The handshake is already complete. This happens if the worker process was suspended during the handshake.
         * nginx may already have read data of a request. */
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

/* Handles a new connection. Called instead of ngx_http_init_connection, at each listening socket, and calls it. */
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

#endif
