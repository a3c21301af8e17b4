/*
 * Measures the waits for upstream servers by wrappers of the functions u->peer.get and u->peer.free of each upstream
 * request.
 */
#ifndef NGX_HTTP_BRIMFUL_UPSTREAM_H
#define NGX_HTTP_BRIMFUL_UPSTREAM_H

#include "request.h"

/* An upstream whose function `peer.init` is wrapped, and nginx's function. */
typedef struct {
    ngx_http_upstream_srv_conf_t *upstream;
    ngx_http_upstream_init_peer_pt init;
} ngx_http_brimful_upstream_t;

/* The wrapped functions of one upstream request: nginx's functions and their data. */
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

/* The wrapper of the function `peer.init` of an upstream. Calls nginx's function, and then wraps the functions that it
 * has set for the request. */
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

#endif
