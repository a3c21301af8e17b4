/*
 * brimful's Server Module for nginx. It records the times and CPU times of requests, by phase, in shared memory (see
 * ../recorder.h).
 *
 * The phases of a request begin and end as follows:
 *
 *   HEAD      from the first call of c->recv that receives bytes of the request to the last call before the head is
 *             complete. A pipelined request begins when the previous request ends. Waiting for the body is added.
 *   PARSE     from the end of HEAD to the POST_READ phase.
 *   PROCESS   from the end of PARSE to the first handler of the LOG phase, without UPSTREAM and SEND.
 *   UPSTREAM  from the choice of an upstream peer to the release of the peer: the module wraps u->peer.get and
 *             u->peer.free. If a variable names the upstream, and no `upstream` block has this name, UPSTREAM is
 *             nginx's own measurement, in whole milliseconds.
 *   SEND      from the moment when the kernel accepts no more data to the next attempt to send: the module wraps
 *             c->send_chain.
 *   LOG       from the first to the last handler of the LOG phase.
 *
 * Time in which nginx waits both for the client and for a peer counts as SEND. With HTTP/2, requests share a
 * connection: HEAD is 0, and PARSE begins at the latest of these events: the connection received data, or another
 * request was parsed or logged. SEND includes waits for other streams, and waits for a body are part of PROCESS.
 *
 * A main request is counted once, in the LOG phase, where nginx also writes the line of the access log. A request that
 * was not parsed never reaches POST_READ, and has only HEAD, PARSE and LOG. Requests by HTTP/3 are not recorded.
 *
 * The CPU time of a phase is the CPU time of the worker process from the beginning to the end of the phase. If the
 * worker has worked on another request in between, the CPU time of the request is discarded.
 */
#include "log.h"
#include "stream.h"
#include "upstream.h"

static void *ngx_http_brimful_create_conf(ngx_conf_t *cf);
static char *ngx_http_brimful_init_conf(ngx_conf_t *cf, void *conf);
static char *ngx_http_brimful_set_path(ngx_conf_t *cf, ngx_command_t *command, void *conf);
static char *ngx_http_brimful_set_class(ngx_conf_t *cf, ngx_command_t *command, void *conf);
static ngx_int_t ngx_http_brimful_configured(ngx_conf_t *cf);
static ngx_int_t ngx_http_brimful_init_module(ngx_cycle_t *cycle);
static ngx_int_t ngx_http_brimful_init_process(ngx_cycle_t *cycle);
static void ngx_http_brimful_exit_process(ngx_cycle_t *cycle);

static ngx_conf_num_bounds_t ngx_http_brimful_cpu_bounds = {ngx_conf_check_num_bounds, 0, 1000000};
static ngx_conf_num_bounds_t ngx_http_brimful_slot_bounds = {ngx_conf_check_num_bounds, 1, BRIMFUL_MAX_SLOTS};

static ngx_command_t ngx_http_brimful_commands[] = {
    {ngx_string("brimful"), NGX_HTTP_MAIN_CONF | NGX_CONF_NOARGS | NGX_CONF_TAKE1, ngx_http_brimful_set_path,
     NGX_HTTP_MAIN_CONF_OFFSET, 0, NULL},
    {ngx_string("brimful_class"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE3, ngx_http_brimful_set_class,
     NGX_HTTP_MAIN_CONF_OFFSET, 0, NULL},
    {ngx_string("brimful_cpu_one_in"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE1, ngx_conf_set_num_slot,
     NGX_HTTP_MAIN_CONF_OFFSET, offsetof(ngx_http_brimful_conf_t, cpu_one_in), &ngx_http_brimful_cpu_bounds},
    {ngx_string("brimful_slots"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE1, ngx_conf_set_num_slot,
     NGX_HTTP_MAIN_CONF_OFFSET, offsetof(ngx_http_brimful_conf_t, slots), &ngx_http_brimful_slot_bounds},
    ngx_null_command
};

static ngx_http_module_t ngx_http_brimful_module_ctx = {
    NULL,                         /* preconfiguration */
    ngx_http_brimful_configured,  /* postconfiguration */
    ngx_http_brimful_create_conf, /* create main configuration */
    ngx_http_brimful_init_conf,   /* init main configuration */
    NULL, NULL,                   /* create and merge server configuration */
    NULL, NULL                    /* create and merge location configuration */
};

ngx_module_t ngx_http_brimful_module = {
    NGX_MODULE_V1,
    &ngx_http_brimful_module_ctx,
    ngx_http_brimful_commands,
    NGX_HTTP_MODULE,
    NULL,                          /* init master */
    ngx_http_brimful_init_module,  /* init module */
    ngx_http_brimful_init_process, /* init process */
    NULL, NULL,                    /* init and exit thread */
    ngx_http_brimful_exit_process, /* exit process */
    NULL,                          /* exit master */
    NGX_MODULE_V1_PADDING
};

/* ---- Configuration ---- */

static void *
ngx_http_brimful_create_conf(ngx_conf_t *cf)
{
    ngx_http_brimful_conf_t *conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_brimful_conf_t));

    if (conf == NULL) {
        return NULL;
    }
    conf->cpu_one_in = NGX_CONF_UNSET;
    conf->slots = NGX_CONF_UNSET;
    return conf;
}

static char *
ngx_http_brimful_init_conf(ngx_conf_t *cf, void *data)
{
    ngx_http_brimful_conf_t *conf = data;

    ngx_conf_init_value(conf->cpu_one_in, (ngx_int_t) BRIMFUL_CPU_ONE_IN);
    brimful_default_rules(&conf->settings);
    conf->settings.path = (const char *) conf->path.data;
    conf->settings.server = NGINX_VER;
    conf->settings.cpu_one_in = (uint32_t) conf->cpu_one_in;
    return NGX_CONF_OK;
}

static char *
ngx_http_brimful_set_path(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    ngx_http_brimful_conf_t *conf = data;
    ngx_str_t *value = cf->args->elts;

    if (conf->path.data != NULL) {
        return "is duplicate";
    }
    if (cf->args->nelts == 1) {
        ngx_str_set(&conf->path, "by default"); /* not empty; ngx_http_brimful_init_module chooses the path */
        conf->by_default = 1;
        return NGX_CONF_OK;
    }
    if (ngx_strcmp(value[1].data, "off") == 0) {
        ngx_str_set(&conf->path, "");
        return NGX_CONF_OK;
    }
    if (value[1].data[0] != '/') {
        return "takes the absolute path of a file, such as /run/brimful/nginx, or off";
    }
    conf->path = value[1];
    return NGX_CONF_OK;
}

static char *
ngx_http_brimful_set_class(ngx_conf_t *cf, ngx_command_t *command, void *data)
{
    ngx_http_brimful_conf_t *conf = data;
    ngx_str_t *value = cf->args->elts;
    const char *wrong = "the rule is too long";
    u_char rule[300], *end;

    end = ngx_snprintf(rule, sizeof(rule), "%V %V%Z", &value[2], &value[3]);
    if (end < rule + sizeof(rule)) {
        wrong = brimful_add_rule(&conf->settings, (const char *) value[1].data, (const char *) rule);
    }
    if (wrong != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "brimful_class: %s", wrong);
        return NGX_CONF_ERROR;
    }
    return NGX_CONF_OK;
}

/* Adds the module's handlers to nginx's phases, and wraps the function `peer.init` of all upstreams. */
static ngx_int_t
ngx_http_brimful_configured(ngx_conf_t *cf)
{
    ngx_http_brimful_conf_t *conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_brimful_module);
    ngx_http_core_main_conf_t *core = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    ngx_http_upstream_main_conf_t *upstreams = ngx_http_conf_get_module_main_conf(cf, ngx_http_upstream_module);
    ngx_http_upstream_srv_conf_t **upstream = upstreams->upstreams.elts;
    ngx_http_brimful_upstream_t *wrapped;
    ngx_http_handler_pt *handler, *first;
    ngx_array_t *log = &core->phases[NGX_HTTP_LOG_PHASE].handlers;
    ngx_uint_t i;

    if (conf->path.len == 0) {
        return NGX_OK;
    }
    handler = ngx_array_push(&core->phases[NGX_HTTP_POST_READ_PHASE].handlers);
    if (handler == NULL) {
        return NGX_ERROR;
    }
    *handler = ngx_http_brimful_post_read;

    /* nginx runs the handlers of the LOG phase from the first to the last of the array, but those of other phases from
     * the last to the first. */
    if (ngx_array_push_n(log, 2) == NULL) {
        return NGX_ERROR;
    }
    first = log->elts;
    ngx_memmove(first + 1, first, (log->nelts - 2) * sizeof(ngx_http_handler_pt));
    first[0] = ngx_http_brimful_log_begins;
    first[log->nelts - 1] = ngx_http_brimful_log_ends;

    ngx_http_next_body_filter = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_http_brimful_body_filter;

    if (ngx_array_init(&conf->upstreams, cf->pool, upstreams->upstreams.nelts + 1, sizeof(ngx_http_brimful_upstream_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }
    for (i = 0; i < upstreams->upstreams.nelts; i++) {
        if (upstream[i]->peer.init == NULL) {
            continue;
        }
        wrapped = ngx_array_push(&conf->upstreams);
        if (wrapped == NULL) {
            return NGX_ERROR;
        }
        wrapped->upstream = upstream[i];
        wrapped->init = upstream[i]->peer.init;
        upstream[i]->peer.init = ngx_http_brimful_init_peer;
    }
    return NGX_OK;
}

/* ---- Processes ---- */

static void
ngx_http_brimful_claim_slot(ngx_log_t *log)
{
    ngx_http_brimful.slot =
        brimful_claim(&ngx_http_brimful.memory, (uint32_t) ngx_pid, (uint32_t) syscall(SYS_gettid));
    if (ngx_http_brimful.slot == NULL && ngx_http_brimful.memory.header != NULL) {
        ngx_log_error(NGX_LOG_WARN, log, 0, "brimful: no slot is free for this worker, which is not recorded; "
                      "raise brimful_slots");
    }
}

/* Runs before nginx forks the worker processes: maps the file, and replaces nginx's function for new connections at all
 * listening sockets. */
static ngx_int_t
ngx_http_brimful_init_module(ngx_cycle_t *cycle)
{
    ngx_http_brimful_conf_t *conf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_brimful_module);
    ngx_core_conf_t *core = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);
    ngx_listening_t *listening = cycle->listening.elts;
    struct brimful_slot *slot = ngx_http_brimful.slot;
    char why[BRIMFUL_WHY_BYTES];
    ngx_uint_t i;

    if (ngx_test_config) {
        return NGX_OK;
    }
    if (slot != NULL) {
        /* nginx runs as a single process and reloads its configuration. Requests in progress still use the old memory,
         * so it is not unmapped. */
        brimful_release(slot);
        ngx_http_brimful.slot = NULL;
        ngx_memzero(&ngx_http_brimful.memory, sizeof(ngx_http_brimful.memory));
    }
    brimful_unmap(&ngx_http_brimful.memory);
    if (conf == NULL || conf->path.len == 0) {
        return NGX_OK;
    }
    conf->settings.slots =
        conf->slots != NGX_CONF_UNSET ? (uint32_t) conf->slots : 4 * (uint32_t) core->worker_processes + 16;
    if (conf->by_default) {
        conf->settings.path = BRIMFUL_DEFAULT_PATH("nginx");
    }
    if (brimful_map(&ngx_http_brimful.memory, &conf->settings, why) != 0) {
        /* Log this as an error, because the error log does not contain warnings by default. */
        ngx_log_error(NGX_LOG_ERR, cycle->log, 0, "brimful: %s; nginx goes on without it", why);
        return NGX_OK;
    }
    ngx_http_brimful.settings = &conf->settings;
    for (i = 0; i < cycle->listening.nelts; i++) {
        if (listening[i].handler == ngx_http_init_connection) {
            listening[i].handler = ngx_http_brimful_accepted;
        }
    }
    if (slot != NULL) {
        ngx_http_brimful_claim_slot(cycle->log);
    }
    return NGX_OK;
}

static ngx_int_t
ngx_http_brimful_init_process(ngx_cycle_t *cycle)
{
    if (ngx_http_brimful.memory.header == NULL
        || (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE))
    {
        return NGX_OK;
    }
    /* With mmap, pages for connections that are never used take no memory. */
    ngx_http_brimful.beside = mmap(NULL, cycle->connection_n * NGX_HTTP_BRIMFUL_STRIDE, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ngx_http_brimful.beside == MAP_FAILED) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0, "brimful: no memory; this worker is not recorded");
        return NGX_OK;
    }
    ngx_http_brimful.first = cycle->connections;
    ngx_http_brimful.connections_size = cycle->connection_n * sizeof(ngx_connection_t);
    ngx_http_brimful.chance.gap = brimful_now() ^ ((uint64_t) ngx_pid << 32);
    ngx_http_brimful_claim_slot(cycle->log);

    /* The process that mapped the file may have ended: when nginx becomes a daemon, it forks after mapping the file,
     * and the child becomes the master process. */
    __atomic_store_n(&ngx_http_brimful.memory.header->master_pid,
                     (uint32_t) (ngx_process == NGX_PROCESS_WORKER ? getppid() : ngx_pid), __ATOMIC_RELAXED);
    return NGX_OK;
}

static void
ngx_http_brimful_exit_process(ngx_cycle_t *cycle)
{
    if (ngx_http_brimful.slot != NULL) {
        brimful_release(ngx_http_brimful.slot);
        ngx_http_brimful.slot = NULL;
    }
}
