/* server_upcalls.c - what ranks ask of the PMIx server. Everything here runs on PMIx' thread. What a function pointer
 * is missing for, PMIx answers with PMIX_ERR_NOT_SUPPORTED:
 * allocation, monitoring, credentials, groups, fabrics, forwarding of output, queries. */
#include "config.h"

#include "launcher/server_private.h"

#include "runtime/base/base.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number of the rank that calls; -1: none of ours. */
static int find_rank(const pmix_proc_t *proc)
{
    return server_running ? server_number(&server_running->jobs, proc) : -1;
}

static pmix_status_t on_connected(const pmix_proc_t *proc, void *object, pmix_info_t info[], size_t count,
                                  pmix_op_cbfunc_t done, void *arg)
{
    (void)object, (void)info, (void)count, (void)done, (void)arg;
    int number = find_rank(proc);
    if (number < 0) return PMIX_ERR_NOT_FOUND;
    server_set_mark(&server_running->jobs, number, SERVER_LEFT, false);
    server_set_mark(&server_running->jobs, number, SERVER_JOINED, true);
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done, void *arg)
{
    (void)object, (void)done, (void)arg;
    int number = find_rank(proc);
    if (number >= 0) server_set_mark(&server_running->jobs, number, SERVER_LEFT, true);
    return PMIX_OPERATION_SUCCEEDED;
}

/* There is no smaller unit than the job that could end; the message says who was meant. */
static pmix_status_t on_abort(const pmix_proc_t *proc, void *object, int status, const char message[],
                              pmix_proc_t procs[], size_t count, pmix_op_cbfunc_t done, void *arg)
{
    char text[SERVER_MAX_TEXT];
    (void)object, (void)done, (void)arg;
    int number = find_rank(proc);
    if (number < 0) return PMIX_ERR_NOT_FOUND;
    size_t used = (size_t)snprintf(text, sizeof text, "%.3000s", message ? message : "");
    for (size_t i = 0; procs && i < count && procs[i].rank < PMIX_RANK_VALID && used < sizeof text - 64; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, i ? ", %u" : " (asked for the end of rank %u",
                                 procs[i].rank);
    if (procs && count && procs[0].rank < PMIX_RANK_VALID)
        used += (size_t)snprintf(text + used, sizeof text - used, ")");
    server_post(server_running, SERVER_ABORTED, number, status, text, used);
    return PMIX_OPERATION_SUCCEEDED;
}

/* The data is ours to free. */
static pmix_status_t on_fence(const pmix_proc_t procs[], size_t count, const pmix_info_t info[], size_t info_count,
                              char *data, size_t bytes, pmix_modex_cbfunc_t done, void *arg)
{
    const struct server_participants who = {procs, count, info, info_count};
    pmix_status_t status = server_exchange_fence(server_running, &who, data, bytes, done, arg);
    free(data);
    return status;
}

static pmix_status_t on_direct_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t count,
                                     pmix_modex_cbfunc_t done, void *arg)
{
    int number = find_rank(proc);
    if (number < 0) return PMIX_ERR_NOT_FOUND;
    return server_exchange_modex(server_running, number, info, count, done, arg);
}

static pmix_status_t on_publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t count, pmix_op_cbfunc_t done,
                                void *arg)
{
    int number = find_rank(proc);
    if (number < 0) return PMIX_ERR_NOT_FOUND;
    return server_exchange_publish(server_running, number, info, count, done, arg);
}

static pmix_status_t on_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[], size_t count,
                               pmix_lookup_cbfunc_t done, void *arg)
{
    if (find_rank(proc) < 0) return PMIX_ERR_NOT_FOUND;
    return server_exchange_lookup(server_running, keys, info, count, done, arg);
}

static pmix_status_t on_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[], size_t count,
                                  pmix_op_cbfunc_t done, void *arg)
{
    (void)info, (void)count;
    int number = find_rank(proc);
    if (number < 0) return PMIX_ERR_NOT_FOUND;
    return server_exchange_unpublish(server_running, number, keys, done, arg);
}

static pmix_status_t on_connect(const pmix_proc_t procs[], size_t count, const pmix_info_t info[], size_t info_count,
                                pmix_op_cbfunc_t done, void *arg)
{
    const struct server_participants who = {procs, count, info, info_count};
    return server_exchange_meet(server_running, SERVER_CONNECT, &who, done, arg);
}

static pmix_status_t on_disconnect(const pmix_proc_t procs[], size_t count, const pmix_info_t info[], size_t info_count,
                                   pmix_op_cbfunc_t done, void *arg)
{
    const struct server_participants who = {procs, count, info, info_count};
    return server_exchange_meet(server_running, SERVER_DISCONNECT, &who, done, arg);
}

static pmix_status_t on_spawn(const pmix_proc_t *proc, const pmix_info_t info[], size_t info_count,
                              const pmix_app_t apps[], size_t app_count, pmix_spawn_cbfunc_t done, void *arg)
{
    const struct server_spawn_call call = {info, info_count, apps, app_count, done, arg};
    return server_spawn(server_running, find_rank(proc), &call);
}

static pmix_status_t on_events(pmix_status_t *codes, size_t count, const pmix_info_t info[], size_t info_count,
                               pmix_op_cbfunc_t done, void *arg)
{
    (void)codes, (void)count, (void)info, (void)info_count, (void)done, (void)arg;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_events_ended(pmix_status_t *codes, size_t count, pmix_op_cbfunc_t done, void *arg)
{
    (void)codes, (void)count, (void)done, (void)arg;
    return PMIX_OPERATION_SUCCEEDED;
}

/* PMIx has told the clients of this node already. */
static pmix_status_t on_notify(pmix_status_t code, const pmix_proc_t *source, pmix_data_range_t range,
                               pmix_info_t info[], size_t count, pmix_op_cbfunc_t done, void *arg)
{
    (void)done, (void)arg;
    if (range == PMIX_RANGE_LOCAL || range == PMIX_RANGE_PROC_LOCAL) return PMIX_OPERATION_SUCCEEDED;
    pmix_status_t status = server_notice_event(server_running, code, source, range, info, count);
    return status == PMIX_SUCCESS ? PMIX_OPERATION_SUCCEEDED : status;
}

/* The signal that a directive stands for; 0: none. */
static int signal_of(const pmix_info_t *directive)
{
    static const struct {
        const char *key;
        int number;
    } known[] = {{PMIX_JOB_CTRL_KILL, SIGKILL},
                 {PMIX_JOB_CTRL_TERMINATE, SIGTERM},
                 {PMIX_JOB_CTRL_PAUSE, SIGSTOP},
                 {PMIX_JOB_CTRL_RESUME, SIGCONT}};
    if (PMIX_CHECK_KEY(directive, PMIX_JOB_CTRL_SIGNAL) && directive->value.type == PMIX_INT) {
        int number = directive->value.data.integer;
        return number > 0 && number < NSIG ? number : 0;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (PMIX_CHECK_KEY(directive, known[i].key) && PMIX_INFO_TRUE(directive)) return known[i].number;
    return 0;
}

/* No targets: the whole job of who asks. What a signal does to the job is the same as when it comes from outside. */
static pmix_status_t on_job_control(const pmix_proc_t *client, const pmix_proc_t targets[], size_t target_count,
                                    const pmix_info_t directives[], size_t count, pmix_info_cbfunc_t done, void *arg)
{
    pmix_proc_t all;
    pmix_status_t status = PMIX_ERR_NOT_SUPPORTED;
    (void)done, (void)arg;
    if (find_rank(client) < 0) return PMIX_ERR_NOT_FOUND;
    PMIX_LOAD_PROCID(&all, client->nspace, PMIX_RANK_WILDCARD);
    if (!targets || !target_count) targets = &all, target_count = 1;
    for (size_t i = 0; i < count; i++) {
        int number = signal_of(&directives[i]);
        if (!number) continue;
        status = server_notice_signal(server_running, targets, target_count, number);
        if (status != PMIX_SUCCESS) return status;
    }
    return status == PMIX_SUCCESS ? PMIX_OPERATION_SUCCEEDED : status;
}

static void on_log(const pmix_proc_t *client, const pmix_info_t data[], size_t count, const pmix_info_t directives[],
                   size_t directive_count, pmix_op_cbfunc_t done, void *arg)
{
    (void)directives, (void)directive_count;
    bool logged = false;
    int number = find_rank(client);
    for (size_t i = 0; i < count && number >= 0; i++) {
        bool terminal = PMIX_CHECK_KEY(&data[i], PMIX_LOG_STDERR) || PMIX_CHECK_KEY(&data[i], PMIX_LOG_STDOUT);
        if (!terminal || data[i].value.type != PMIX_STRING || !data[i].value.data.string) continue;
        server_post(server_running, SERVER_LOGGED, number, 0, data[i].value.data.string,
                    strlen(data[i].value.data.string));
        logged = true;
    }
    if (done) done(logged ? PMIX_SUCCESS : PMIX_ERR_NOT_SUPPORTED, arg);
}

pmix_server_module_t *server_upcalls(void)
{
    static pmix_server_module_t module = {
        .client_connected2 = on_connected,
        .client_finalized = on_finalized,
        .abort = on_abort,
        .fence_nb = on_fence,
        .direct_modex = on_direct_modex,
        .publish = on_publish,
        .lookup = on_lookup,
        .unpublish = on_unpublish,
        .connect = on_connect,
        .disconnect = on_disconnect,
        .spawn = on_spawn,
        .register_events = on_events,
        .deregister_events = on_events_ended,
        .notify_event = on_notify,
        .log = on_log,
        .job_control = on_job_control,
    };
    return &module;
}
