/* server_upcalls.c - what ranks ask of the PMIx server. Everything here runs on PMIx' thread. What a function pointer
 * is missing for, PMIx answers with PMIX_ERR_NOT_SUPPORTED: spawning, allocation, job control, monitoring, credentials,
 * groups, fabrics, forwarding of output, queries. */
#include "config.h"

#include "launcher/server_private.h"

#include "runtime/base/base.h"

#include <stdlib.h>
#include <string.h>

static struct server_rank *find_rank(const pmix_proc_t *proc)
{
    struct server *server = server_running;
    if (!server || strncmp(proc->nspace, server->job, PMIX_MAX_NSLEN)) return NULL;
    return proc->rank < (pmix_rank_t)server->rank_count ? &server->ranks[proc->rank] : NULL;
}

static pmix_status_t on_connected(const pmix_proc_t *proc, void *object, pmix_info_t info[], size_t count,
                                  pmix_op_cbfunc_t done, void *arg)
{
    (void)object, (void)info, (void)count, (void)done, (void)arg;
    struct server_rank *rank = find_rank(proc);
    if (!rank) return PMIX_ERR_NOT_FOUND;
    atomic_store(&rank->left, false);
    atomic_store(&rank->joined, true);
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done, void *arg)
{
    (void)object, (void)done, (void)arg;
    struct server_rank *rank = find_rank(proc);
    if (rank) atomic_store(&rank->left, true);
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_abort(const pmix_proc_t *proc, void *object, int status, const char message[],
                              pmix_proc_t procs[], size_t count, pmix_op_cbfunc_t done, void *arg)
{
    (void)object, (void)procs, (void)count, (void)done,
        (void)arg; /* abort of some ranks ends the job: there is no smaller unit */
    if (!find_rank(proc)) return PMIX_ERR_NOT_FOUND;
    server_post(server_running, SERVER_ABORTED, (int)proc->rank, status, message, message ? strlen(message) : 0);
    return PMIX_OPERATION_SUCCEEDED;
}

static bool includes_dead(const pmix_proc_t procs[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct server_rank *rank = find_rank(&procs[i]);
        if (rank && atomic_load(&rank->dead)) return true;
        for (int j = 0; procs[i].rank == PMIX_RANK_WILDCARD && j < server_running->rank_count; j++)
            if (atomic_load(&server_running->ranks[j].dead)) return true;
    }
    return false;
}

/* The data is ours to free. */
static pmix_status_t on_fence(const pmix_proc_t procs[], size_t count, const pmix_info_t info[], size_t info_count,
                              char *data, size_t bytes, pmix_modex_cbfunc_t done, void *arg)
{
    (void)info, (void)info_count;
    pmix_status_t status = server_exchange_fence(server_running, procs, count, data, bytes, done, arg);
    free(data);
    return status;
}

static pmix_status_t on_direct_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t count,
                                     pmix_modex_cbfunc_t done, void *arg)
{
    (void)proc, (void)info, (void)count, (void)done, (void)arg;
    return PMIX_ERR_NOT_FOUND; /* asked only for ranks of other nodes */
}

static pmix_status_t on_publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t count, pmix_op_cbfunc_t done,
                                void *arg)
{
    if (!find_rank(proc)) return PMIX_ERR_NOT_FOUND;
    return server_exchange_publish(server_running, (int)proc->rank, info, count, done, arg);
}

static pmix_status_t on_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[], size_t count,
                               pmix_lookup_cbfunc_t done, void *arg)
{
    (void)info, (void)count;
    if (!find_rank(proc)) return PMIX_ERR_NOT_FOUND;
    return server_exchange_lookup(server_running, keys, done, arg);
}

static pmix_status_t on_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[], size_t count,
                                  pmix_op_cbfunc_t done, void *arg)
{
    (void)info, (void)count;
    if (!find_rank(proc)) return PMIX_ERR_NOT_FOUND;
    return server_exchange_unpublish(server_running, (int)proc->rank, keys, done, arg);
}

static pmix_status_t on_connect(const pmix_proc_t procs[], size_t count, const pmix_info_t info[], size_t info_count,
                                pmix_op_cbfunc_t done, void *arg)
{
    (void)info, (void)info_count, (void)done, (void)arg;
    return includes_dead(procs, count) ? PMIX_ERR_PROC_ABORTED : PMIX_OPERATION_SUCCEEDED;
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
    (void)code, (void)source, (void)range, (void)info, (void)count, (void)done, (void)arg;
    return PMIX_OPERATION_SUCCEEDED;
}

static void on_log(const pmix_proc_t *client, const pmix_info_t data[], size_t count, const pmix_info_t directives[],
                   size_t directive_count, pmix_op_cbfunc_t done, void *arg)
{
    (void)directives, (void)directive_count;
    bool logged = false;
    for (size_t i = 0; i < count && find_rank(client); i++) {
        bool terminal = PMIX_CHECK_KEY(&data[i], PMIX_LOG_STDERR) || PMIX_CHECK_KEY(&data[i], PMIX_LOG_STDOUT);
        if (!terminal || data[i].value.type != PMIX_STRING || !data[i].value.data.string) continue;
        server_post(server_running, SERVER_LOGGED, (int)client->rank, 0, data[i].value.data.string,
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
        .disconnect = on_connect,
        .register_events = on_events,
        .deregister_events = on_events_ended,
        .notify_event = on_notify,
        .log = on_log,
    };
    return &module;
}
