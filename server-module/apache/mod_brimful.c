/*
 * brimful's Server Module for Apache 2.4, with the MPMs prefork, worker and event. ../recorder.h describes what the
 * module records, and ../layout.h how `brimful watch` reads the memory. request.h, connection.h and upstream.h describe
 * how each time is measured. This file contains the directives and registers the hooks.
 *
 *     LoadModule brimful_module mod_brimful.so
 *     Brimful /run/brimful/apache              (without a path: BRIMFUL_DEFAULT_PATH)
 *     BrimfulClass images url /images/...      (a star for the dots)
 *     BrimfulClass small size 0-4999
 *     BrimfulCpuOneIn 16
 *     BrimfulSlots 300
 *
 * At each start and restart, before the server forks child processes, the module creates the file, or reuses a
 * compatible file. It does this with the rights of the user who starts the server. If this fails, the server runs
 * without recording, and the error log says why. With prefork and worker, a connection keeps its worker busy until it
 * ends, also while it is idle. With the event MPM, it does so only until it is returned to the MPM.
 */
#include "request.h"
#include "upstream.h"

#include "ap_mpm.h"
#include "apr_strings.h"
#include "http_core.h"
#include "http_log.h"
#include "http_main.h"
#include "mpm_common.h"

/* The value of `path` if the configuration switches recording on without a path. configuration_ends replaces it by the
 * default path. */
static const char by_default[] = "by default";

/* ---- Directives; all of them apply to the whole server ---- */

static const char *set_path(cmd_parms *command, void *unused, int count, char *const words[])
{
    const char *wrong = ap_check_cmd_context(command, GLOBAL_ONLY);

    (void) unused;
    if (wrong != NULL) {
        return wrong;
    }
    if (count > 1) {
        return "Brimful takes the path of the file, on or off; without an argument it is on";
    }
    if (count == 0 || strcasecmp(words[0], "on") == 0) {
        settings.path = by_default;
    } else if (strcasecmp(words[0], "off") == 0) {
        settings.path = NULL;
    } else if (words[0][0] == '/') {
        settings.path = apr_pstrdup(command->pool, words[0]);
    } else {
        return apr_psprintf(command->pool, "Brimful: %s is no absolute path; such as: %s", words[0],
                            BRIMFUL_RUN "/apache");
    }
    return NULL;
}

static const char *add_class(cmd_parms *command, void *unused, const char *name, const char *kind, const char *which)
{
    const char *wrong = ap_check_cmd_context(command, GLOBAL_ONLY);

    (void) unused;
    if (wrong != NULL) {
        return wrong;
    }
    wrong = brimful_add_rule(&settings, name, apr_pstrcat(command->pool, kind, " ", which, NULL));
    return wrong == NULL ? NULL : apr_pstrcat(command->pool, "BrimfulClass ", name, ": ", wrong, NULL);
}

/* Parses a number from `least` to `most`, both inclusive. Returns NULL, or an error message. */
static const char *set_number(cmd_parms *command, const char *word, uint32_t *number, uint32_t least, uint32_t most)
{
    const char *wrong = ap_check_cmd_context(command, GLOBAL_ONLY);
    const char *rest;
    uint64_t read;

    if (wrong != NULL) {
        return wrong;
    }
    rest = brimful_read_number(word, &read);
    if (rest == NULL || *rest != '\0' || read < least || read > most) {
        return apr_psprintf(command->pool, "%s: %s is no number from %u to %u", command->cmd->name, word, least, most);
    }
    *number = (uint32_t) read;
    return NULL;
}

static const char *set_cpu_one_in(cmd_parms *command, void *unused, const char *word)
{
    (void) unused;
    return set_number(command, word, &settings.cpu_one_in, 0, 1000000);
}

static const char *set_slots(cmd_parms *command, void *unused, const char *word)
{
    (void) unused;
    return set_number(command, word, &settings.slots, 1, BRIMFUL_MAX_SLOTS);
}

static const command_rec directives[] = {
    AP_INIT_TAKE_ARGV("Brimful", set_path, NULL, RSRC_CONF, "the file to record into, an absolute path; on or off"),
    AP_INIT_TAKE3("BrimfulClass", add_class, NULL, RSRC_CONF,
                  "a class of requests, its name and a rule: size 0-4999, size 5000- or url /images/ and a star"),
    AP_INIT_TAKE1("BrimfulCpuOneIn", set_cpu_one_in, NULL, RSRC_CONF,
                  "CPU time is measured for one in this many requests; 0: for none"),
    AP_INIT_TAKE1("BrimfulSlots", set_slots, NULL, RSRC_CONF, "how many threads the file has slots for"),
    {NULL, {NULL}, NULL, 0, 0, NULL}
};

/* ---- Start ---- */

static uint32_t ask_mpm(int question)
{
    int answer = 0;

    return ap_mpm_query(question, &answer) == APR_SUCCESS && answer > 0 ? (uint32_t) answer : 1;
}

/* Returns the number of slots for this number of worker threads: 1.5 slots for each thread, because new children start
 * while old ones are still running, and 16 more. If mod_http2 is loaded, the number of threads is first multiplied by
 * 2.5, because mod_http2 has threads of its own. */
static uint32_t slots_needed(uint32_t workers)
{
    uint64_t slots = workers;

    if (ap_find_linked_module("mod_http2.c") != NULL) {
        slots += slots + slots / 2;
    }
    slots += slots / 2 + 16;
    return slots < BRIMFUL_MAX_SLOTS ? (uint32_t) slots : BRIMFUL_MAX_SLOTS;
}

static int configuration_begins(apr_pool_t *configuration, apr_pool_t *log, apr_pool_t *temporary)
{
    (void) configuration;
    (void) log;
    (void) temporary;
    memset(&settings, 0, sizeof(settings));
    settings.cpu_one_in = BRIMFUL_CPU_ONE_IN;
    upstream_hook_proxy();
    return OK;
}

static apr_status_t unmap(void *unused)
{
    (void) unused;
    brimful_unmap(&memory);
    return APR_SUCCESS;
}

static int configuration_ends(apr_pool_t *configuration, apr_pool_t *log, apr_pool_t *temporary, server_rec *server)
{
    char why[BRIMFUL_WHY_BYTES];
    ap_version_t version;

    (void) log;
    (void) temporary;
    if (settings.path == NULL || ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG) {
        return OK;
    }
    ap_get_server_revision(&version);
    settings.server = apr_psprintf(configuration, "Apache/%d.%d.%d (%s)", version.major, version.minor, version.patch,
                                   ap_show_mpm());
    settings.workers_most = ask_mpm(AP_MPMQ_MAX_DAEMONS) * ask_mpm(AP_MPMQ_MAX_THREADS);
    if (settings.slots == 0) {
        settings.slots = slots_needed(settings.workers_most);
    }
    brimful_default_rules(&settings);
    if (settings.path == by_default) {
        settings.path = BRIMFUL_DEFAULT_PATH("apache");
    }
    if (brimful_map(&memory, &settings, why) != 0) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, server,
                     "brimful records nothing: %s; see the directives Brimful and BrimfulSlots", why);
    } else {
        apr_pool_cleanup_register(configuration, NULL, unmap, apr_pool_cleanup_null);
        request_hook_writer();
    }
    return OK;
}

static void child_begins(apr_pool_t *child, server_rec *server)
{
    (void) server;
    workers_begin(child);
}

/* Called for each new client connection, HTTP/2 stream and connection to an upstream server. Only connections to
 * upstream servers have neither a master connection nor an entry in the scoreboard (`sbh`). */
static int connected(conn_rec *c, void *socket)
{
    (void) socket;
    if (memory.header == NULL) {
        return DECLINED;
    }
    if (c->master == NULL && c->sbh == NULL) {
        upstream_connected(c);
    } else {
        connection_accepted(c);
    }
    return OK;
}

static void register_hooks(apr_pool_t *unused)
{
    const ap_filter_type above_network = (ap_filter_type) (AP_FTYPE_NETWORK - 1);

    (void) unused;
    connection_read_filter = ap_register_input_filter("BRIMFUL_READ", connection_read, NULL, above_network);
    connection_write_filter = ap_register_output_filter("BRIMFUL_WRITE", connection_write, NULL, above_network);
    upstream_read_filter = ap_register_input_filter("BRIMFUL_UPSTREAM_READ", upstream_read, NULL, above_network);
    upstream_write_filter = ap_register_output_filter("BRIMFUL_UPSTREAM_WRITE", upstream_write, NULL, above_network);

    ap_hook_pre_config(configuration_begins, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_post_config(configuration_ends, NULL, NULL, APR_HOOK_LAST);
    ap_hook_child_init(child_begins, NULL, NULL, APR_HOOK_MIDDLE);

    ap_hook_pre_connection(connected, NULL, NULL, APR_HOOK_MIDDLE);
    /* This hook runs after the TLS handshake, before HTTP requests are read. */
    ap_hook_process_connection(connection_is_processed, NULL, NULL, APR_HOOK_LAST);
    ap_hook_suspend_connection(connection_suspended, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_resume_connection(connection_resumed, NULL, NULL, APR_HOOK_REALLY_FIRST);

    ap_hook_create_request(request_created, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_post_read_request(request_read, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_log_transaction(request_is_logged, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_log_transaction(request_ends, NULL, NULL, APR_HOOK_REALLY_LAST);
}

AP_DECLARE_MODULE(brimful) = {
    STANDARD20_MODULE_STUFF,
    NULL, NULL, NULL, NULL,
    directives,
    register_hooks,
#ifdef AP_MODULE_FLAG_NONE
    AP_MODULE_FLAG_NONE
#endif
};
