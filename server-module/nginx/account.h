/*
 * Assigns the time of a request to the phases, and measures its CPU time.
 */
#ifndef NGX_HTTP_BRIMFUL_ACCOUNT_H
#define NGX_HTTP_BRIMFUL_ACCOUNT_H

#include "module.h"

/* Called when a hook runs for the connection `who`. If the last hook ran for another connection, begins a new turn: a
 * period in which the worker works on one connection. CPU time is measured only within a turn, because it would
 * otherwise include the work for other connections. */
static void
ngx_http_brimful_at_work(const void *who)
{
    if (ngx_http_brimful.at_work != who) {
        ngx_http_brimful.at_work = who;
        ngx_http_brimful.turn++;
    }
}

/* Adds the time since `changed_ns` to `phase`. */
static void
ngx_http_brimful_charge(ngx_http_brimful_request_t *request, enum brimful_phase phase, uint64_t now)
{
    request->figures.time_ns[phase] += now - request->changed_ns;
    request->figures.resumed += phase != BRIMFUL_PROCESS;
    request->figures.has |= BRIMFUL_HAS(phase);
    request->changed_ns = now;
    request->reads_body = 0;
}

/* Adds the time since `changed_ns` to the phase that the request was in since then: SEND, UPSTREAM or PROCESS. */
static void
ngx_http_brimful_account(ngx_http_brimful_request_t *request, uint64_t now)
{
    enum brimful_phase phase = BRIMFUL_PROCESS;

    if (ngx_http_brimful_seldom(request->waits_to_send || request->lingers)) {
        phase = BRIMFUL_SEND;
    } else if (ngx_http_brimful_seldom(request->backends > 0)) {
        phase = BRIMFUL_UPSTREAM;
    }
    ngx_http_brimful_charge(request, phase, now);
}

static void
ngx_http_brimful_start_cpu(ngx_http_brimful_request_t *request)
{
    if (request->figures.cpu_sampled == 1) {
        /* Read the disk I/O before the CPU clock, so that reading the disk I/O does not count as CPU time. */
        request->blocks_from = brimful_thread_blocks();
        request->cpu_from = brimful_thread_cpu();
        request->turn = ngx_http_brimful.turn;
        request->cpu_runs = 1;
    }
}

/* Adds the CPU time since ngx_http_brimful_start_cpu to the phase PROCESS. Returns whether the CPU clock was read. If
 * so, `cpu_from` contains the reading, which the next measurement can use as its start. */
static ngx_int_t
ngx_http_brimful_stop_cpu(ngx_http_brimful_request_t *request)
{
    uint64_t cpu;

    if (request->figures.cpu_sampled != 1 || !request->cpu_runs) {
        return 0;
    }
    request->cpu_runs = 0;
    if (request->turn != ngx_http_brimful.turn) {
        request->figures.cpu_sampled = 2;
        return 0;
    }
    cpu = brimful_thread_cpu();
    request->figures.cpu_ns[BRIMFUL_CPU_PROCESS] += brimful_cpu_between(request->cpu_from, cpu);
    request->cpu_from = cpu;
    return 1;
}

/* Stops measuring the CPU time of a request while the worker does not work on it. */
static void
ngx_http_brimful_pause_cpu(ngx_http_brimful_request_t *request)
{
    if (ngx_http_brimful_stop_cpu(request)) {
        brimful_add_blocks(&request->figures.blocks, &request->blocks_from);
    }
}

/* Called when the request begins to wait for the client to read. The worker may serve other requests until
 * ngx_http_brimful_resume ends the wait. */
static void
ngx_http_brimful_wait_to_send(ngx_http_brimful_request_t *request)
{
    ngx_http_brimful_account(request, brimful_now());
    request->waits_to_send = 1;
    ngx_http_brimful_pause_cpu(request);
}

static void
ngx_http_brimful_resume(ngx_http_brimful_request_t *request)
{
    request->reads_body = 0;
    if (ngx_http_brimful_seldom(request->waits_to_send)) {
        ngx_http_brimful_account(request, brimful_now());
        request->waits_to_send = 0;
        ngx_http_brimful_start_cpu(request);
    }
}

#endif
