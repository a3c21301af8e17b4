/*
 * Records a request, from its first byte to its log line. Apache runs the hook log_transaction exactly once for each
 * line of the access log, on the client's original request. This is also true for a request that was redirected
 * internally, refused because of its head, or aborted by its client. The module counts requests in this hook.
 * Subrequests do not run this hook.
 *
 * HEAD      from the read that returned the first byte to the last read that had to wait, plus waits for the body.
 *           Unknown for HTTP/2.
 * PARSE     from the end of HEAD until all modules have seen the head, or until the log line of a refused request.
 *           HEAD and PARSE are unknown for a request that arrived in the same TLS record as the previous request.
 * PROCESS   from the end of PARSE to the log line, without UPSTREAM and SEND.
 * UPSTREAM  see upstream.h.
 * SEND      see connection.h.
 * LOG       from the first handler of the hook log_transaction to the last.
 *
 * CPU time is measured on one thread at a time. The measurement stops while the event MPM waits for the client to read,
 * and continues on the worker that resumes the connection. If the measurement ended at the first wait instead, only
 * large responses without waits would be measured, and their CPU time is below average. If the worker works on another
 * request in the middle of a measurement, the measured CPU time is discarded.
 */
#ifndef BRIMFUL_APACHE_REQUEST_H
#define BRIMFUL_APACHE_REQUEST_H

#include "connection.h"

#include "apr_optional.h"
#include "http_protocol.h"
#include "mod_log_config.h"

/* The record of a request. Members that every request needs come first, as in struct connection. */
struct request {
    uint64_t turn;           /* turn of the worker in which it read the head; see struct worker */
    uint64_t first_ns, last_ns, read_ns, log_ns; /* the beginnings of HEAD, PARSE, PROCESS and LOG */
    /* Until the log line is written: the connection's client_ns at read_ns. Then: the time for which the request waited
     * for the client to read. */
    uint64_t client_ns;
    /* Until the response is complete: the worker's upstream_ns at read_ns. Then: the time for which the request waited
     * for upstream servers. */
    uint64_t upstream_ns;
    /* Until the log line is written: the connection's `resumed` at read_ns. Then: how often the request was resumed. */
    uint16_t resumed;
    /* Until the log line is written: whether the request's CPU time is measured. Then: brimful_request.cpu_sampled. */
    uint8_t sampled;
    uint8_t refused;         /* whether the request was refused because of its head, or because no head arrived */
    uint8_t answered;        /* whether upstream_ns and body_ns are final */
    uint8_t paused;          /* whether request_pauses has stopped measuring CPU time */
    uint8_t body_waited;     /* whether body_ns is valid and not 0 */

    uint64_t body_ns;
    /* CPU time of the worker at last_ns, read_ns and log_ns. After a pause, cpu_read_ns is the CPU time at the end of
     * the pause. */
    uint64_t cpu_last_ns, cpu_read_ns, cpu_log_ns;
    uint64_t cpu_parse_ns, cpu_process_ns;         /* CPU time of PARSE, and of PROCESS before the last pause */
    struct brimful_blocks blocks;      /* blocks of the request before the last pause */
    struct brimful_blocks blocks_from; /* blocks of the worker at read_ns, or at the end of the last pause */
};

_Static_assert(offsetof(struct request, body_ns) == WORKER_LINE, "the first line has what each request needs");

/* The value that marks requests that began while recording was off. It is never written to. */
static struct request request_not_recorded;

static struct request *request_of(request_rec *r)
{
    return ap_get_module_config(r->request_config, &brimful_module);
}

static int request_is_same_turn(const struct request *request)
{
    return request->turn == this_worker.turn;
}

/* Creates the record of a request after the head, or a part of it, was read. Only some members are initialized here;
 * the others are set before they are used. Clearing the whole record would cost a further function call. */
static struct request *request_make(request_rec *r, struct connection *connection, uint64_t now)
{
    struct request *request = worker_room(r->pool, sizeof(*request));
    struct worker *worker = &this_worker;

    request->turn = worker_turns(worker);
    request->read_ns = now;
    request->upstream_ns = worker->upstream_ns;
    request->body_waited = 0;
    request->refused = 0;
    request->answered = 0;
    request->paused = 0;
    request->first_ns = 0;
    request->last_ns = 0;
    request->client_ns = 0;
    request->resumed = 0;
    request->sampled = 0;
    if (connection != NULL) {
        int head_known = connection->first_ns != 0;

        request->first_ns = head_known ? connection->first_ns : connection->begun_ns;
        request->last_ns = head_known ? connection->last_ns : connection->begun_ns;
        request->sampled = head_known && connection->sampled;
        if (request->sampled) {
            request->cpu_last_ns = connection->cpu_ns;
        }
        request->client_ns = connection->client_ns;
        request->resumed = connection->resumed;
        connection->body_waited = 0;
    }
    if (request->last_ns == 0) {
        request->last_ns = now;
    }
    ap_set_module_config(r->request_config, &brimful_module, request);
    return request;
}

/* Hook create_request. An HTTP/2 stream's request begins here, because Apache has already read its head on the main
 * connection. */
static int request_created(request_rec *r)
{
    struct connection *connection = connection_of(r->connection);

    if (connection != NULL && connection->is_stream && !connection->in_request && brimful_is_on(&memory)) {
        connection->recorded = 1;
        connection->begun_ns = brimful_now();
    }
    return OK;
}

/* Hook post_read_request. Apache also runs this hook for internal redirects; these calls are ignored. */
static int request_read(request_rec *r)
{
    struct connection *connection = connection_of(r->connection);
    struct request *request;
    struct brimful_slot *slot;
    uint64_t now;

    if (connection == NULL || r->prev != NULL || r->main != NULL) {
        return DECLINED;
    }
    connection->in_request = 1;
    if (!brimful_is_on(&memory) || (connection->first_ns == 0 && !connection->recorded)) {
        ap_set_module_config(r->request_config, &brimful_module, &request_not_recorded);
        connection->current = NULL;
    } else {
        now = brimful_now();
        request = request_make(r, connection, now);
        if (request->sampled) {
            request->cpu_read_ns = brimful_thread_cpu();
            request->cpu_parse_ns = brimful_cpu_between(request->cpu_last_ns, request->cpu_read_ns);
            request->cpu_process_ns = 0;
            request->blocks.read = 0;
            request->blocks.written = 0;
            request->blocks_from = brimful_thread_blocks();
            /* Read the CPU clock after the disk I/O, so that reading the disk I/O does not count as CPU time. */
            request->cpu_read_ns = brimful_thread_cpu();
        }
        connection->current = request;
        connection->unlogged++;
        slot = worker_slot(&this_worker, now);
        if (slot != NULL && !connection->is_stream) {
            brimful_set(&slot->in_progress, 1);
        }
    }
    connection->first_ns = 0;
    connection->begun_ns = 0;
    connection->head_here = 0;
    return DECLINED;
}

static void request_is_answered(struct request *request, struct connection *connection)
{
    request->answered = 1;
    connection->in_request = 0;
    request->upstream_ns =
        worker_had(&this_worker, request->turn) ? worker_since(request->upstream_ns, this_worker.upstream_ns) : 0;
    request->body_waited = connection->body_waited;
    if (connection->body_waited) {
        request->body_ns = connection->body_ns;
    }
    connection->current = NULL;
    connection->answer_sampled = request->sampled;
    if (request->sampled) {
        connection->sampled_answer = request;
    }
}

static void request_pauses(struct request *request)
{
    if (!request->paused && request_is_same_turn(request)) {
        request->cpu_process_ns += brimful_cpu_between(request->cpu_read_ns, brimful_thread_cpu());
        brimful_add_blocks(&request->blocks, &request->blocks_from);
        request->paused = 1;
    }
}

static void request_goes_on(struct request *request)
{
    if (request->paused) {
        request->paused = 0;
        request->turn = this_worker.turn;
        request->blocks_from = brimful_thread_blocks();
        request->cpu_read_ns = brimful_thread_cpu();
    }
}

/* Creates the record of a request that was refused before any module saw its head. */
static BRIMFUL_APART struct request *request_refused(request_rec *r, struct connection *connection, uint64_t now)
{
    struct request *request;

    if (connection != NULL && connection->first_ns == 0) {
        /* No byte of a request has arrived. The time until now was idle time of the connection, so it is not recorded.
         * */
        connection->begun_ns = 0;
    } else if (connection != NULL && r->status == HTTP_REQUEST_TIME_OUT) {
        connection->last_ns = now;
    }
    request = request_make(r, connection, now);
    request->sampled = 0;
    request->refused = 1;
    request->answered = 1;
    request->upstream_ns = 0;
    if (connection != NULL) {
        connection->first_ns = 0;
        connection->begun_ns = 0;
        connection->head_here = 0;
    }
    return request;
}

/* Computes the times of the phases. HEAD, UPSTREAM and SEND are recorded only if they are not zero. */
static void request_phases(const struct request *request, struct brimful_request *record, uint64_t now)
{
    uint64_t process = worker_since(request->read_ns, request->log_ns);
    uint64_t body_ns = request->body_waited ? request->body_ns : 0;
    uint64_t others = body_ns + request->client_ns + request->upstream_ns;

    record->resumed = request->resumed;
    record->time_ns[BRIMFUL_HEAD] = worker_since(request->first_ns, request->last_ns) + body_ns;
    record->time_ns[BRIMFUL_PARSE] = worker_since(request->last_ns, request->read_ns);
    record->time_ns[BRIMFUL_PROCESS] = worker_since(others, process);
    record->time_ns[BRIMFUL_UPSTREAM] = request->upstream_ns;
    record->time_ns[BRIMFUL_SEND] = request->client_ns;
    record->time_ns[BRIMFUL_LOG] = worker_since(request->log_ns, now);
    record->has = (uint32_t) (record->time_ns[BRIMFUL_HEAD] != 0) << BRIMFUL_HEAD
                  | (uint32_t) (request->first_ns != 0 || request->refused) << BRIMFUL_PARSE
                  | (uint32_t) !request->refused << BRIMFUL_PROCESS
                  | (uint32_t) (request->upstream_ns != 0) << BRIMFUL_UPSTREAM
                  | (uint32_t) (request->client_ns != 0) << BRIMFUL_SEND | BRIMFUL_HAS(BRIMFUL_LOG);
}

/* Counts the request directly after its log line was written. If the worker is killed before the write, neither a line
 * nor a count remains; if it is killed later, both remain. It is worse to count before the write: a worker often waits
 * in the write for access to the file, and if it is killed there, the kernel does not write the line. */
static void request_count(struct worker *worker)
{
    if (worker->uncounted) {
        struct brimful_request record;

        record.bytes = worker->bytes;
        record.status = worker->status;
        record.aborted = worker->aborted;
        worker->uncounted = 0;
        brimful_count(worker->slot, worker->class_index, &record);
    }
}

static ap_log_writer *request_write_line;

/* Calls mod_log_config's function that writes a line, and counts the request. mod_log_config calls this function
 * instead of its own. */
static apr_status_t request_count_and_write(request_rec *r, void *file, const char **parts, int *lengths, int count,
                                            apr_size_t length)
{
    apr_status_t status = request_write_line(r, file, parts, lengths, count, length);

    request_count(&this_worker);
    return status;
}

/* Replaces mod_log_config's function that writes lines. Called after the configuration was read, because the
 * configuration determines that function. */
static void request_hook_writer(void)
{
    APR_OPTIONAL_FN_TYPE(ap_log_set_writer) *set_writer = APR_RETRIEVE_OPTIONAL_FN(ap_log_set_writer);
    ap_log_writer *writer = set_writer != NULL ? set_writer(request_count_and_write) : NULL;

    if (writer != request_count_and_write) {
        request_write_line = writer;
    }
}

/* Returns the class of a request, by the URL that the client requested before any internal redirects. */
static BRIMFUL_APART unsigned request_class(const request_rec *r, uint64_t bytes)
{
    const char *path = r->parsed_uri.path != NULL ? r->parsed_uri.path : "";

    return brimful_classify(&settings, path, strlen(path), bytes);
}

/* Copies the response's status, size and class to `worker`. After internal redirects, this is the response that the
 * client received. */
static void request_note_answer(const request_rec *r, struct worker *worker)
{
    const request_rec *answer = r;

    while (answer->next != NULL) {
        answer = answer->next;
    }
    worker->status = (uint16_t) answer->status;
    worker->bytes = answer->sent_bodyct ? (uint64_t) answer->bytes_sent : 0;
    worker->aborted = r->connection->aborted;
    worker->class_index = (uint8_t) (settings.by_url ? request_class(r, worker->bytes)
                                                     : brimful_classify_size(&settings, worker->bytes));
}

/* The first handler of the hook log_transaction: ends PROCESS, and copies the response's status, size and class. */
static int request_is_logged(request_rec *r)
{
    struct connection *connection = connection_of(r->connection);
    struct request *request = request_of(r);
    struct worker *worker = &this_worker;
    uint64_t now;

    if (request == &request_not_recorded || (request == NULL && !brimful_is_on(&memory))) {
        return DECLINED;
    }
    now = brimful_now();
    if (request == NULL) {
        request = request_refused(r, connection, now);
    } else if (connection != NULL) {
        connection->unlogged = (uint16_t) (connection->unlogged - (connection->unlogged != 0));
        if (!request->answered) {
            request_is_answered(request, connection);
        }
        if (connection->answer_sampled && connection->sampled_answer == request) {
            connection->answer_sampled = 0;
        }
    }
    request->log_ns = now;
    request->client_ns = connection != NULL ? worker_since(request->client_ns, connection_waited(connection, now)) : 0;
    request->resumed = connection != NULL ? (uint16_t) (connection->resumed - request->resumed) : 0;
    request_note_answer(r, worker);
    worker->uncounted = worker_slot(worker, now) != NULL;
    if (request->sampled) {
        request->sampled = request_is_same_turn(request) && !request->paused ? 1 : 2;
        request->cpu_log_ns = brimful_thread_cpu();
    }
    return DECLINED;
}

/* Writes the CPU times of the request to `record`, and adds the worker's CPU time to its slot. */
static BRIMFUL_APART void request_cpu(const struct request *request, struct brimful_request *record,
                                      struct brimful_slot *slot, uint64_t now)
{
    uint64_t cpu = brimful_thread_cpu();

    record->cpu_sampled = request->sampled;
    record->cpu_ns[BRIMFUL_CPU_PARSE] = request->cpu_parse_ns;
    record->cpu_ns[BRIMFUL_CPU_PROCESS] =
        request->cpu_process_ns + brimful_cpu_between(request->cpu_read_ns, request->cpu_log_ns);
    record->cpu_ns[BRIMFUL_CPU_LOG] = brimful_cpu_between(request->cpu_log_ns, cpu);
    record->blocks = request->blocks;
    brimful_add_blocks(&record->blocks, &request->blocks_from);
    brimful_note_cpu(slot, cpu, now);
}

/* The last handler of the hook log_transaction: records the times of the request. */
static int request_ends(request_rec *r)
{
    const struct request *request = request_of(r);
    struct worker *worker = &this_worker;
    struct brimful_request record;
    uint64_t now;

    if (request == NULL || request == &request_not_recorded || worker->slot == NULL) {
        return DECLINED;
    }
    now = brimful_now();
    request_phases(request, &record, now);
    record.cpu_sampled = 0;
    if (request->sampled) {
        request_cpu(request, &record, worker->slot, now);
    }
    request_count(worker);
    brimful_record_times(worker->slot, worker->class_index, &record);
    brimful_set(&worker->slot->in_progress, 0);
    return DECLINED;
}

#endif
