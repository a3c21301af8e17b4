/*
 * Wraps the function send_chain of HTTP/2 streams. Each stream has its own connection structure with this function.
 */
#ifndef NGX_HTTP_BRIMFUL_STREAM_H
#define NGX_HTTP_BRIMFUL_STREAM_H

#include "request.h"

static ngx_http_output_body_filter_pt ngx_http_next_body_filter;

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

/* A body filter that wraps the function send_chain of a stream. This is not possible earlier: nginx sets the function
 * when it sends the header of the response. */
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

#endif
