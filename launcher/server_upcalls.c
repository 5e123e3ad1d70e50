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

/* All ranks are on this node: what PMIx collected here is everything. The data is ours to free. */
static pmix_status_t on_fence(const pmix_proc_t procs[], size_t count, const pmix_info_t info[], size_t info_count,
                              char *data, size_t bytes, pmix_modex_cbfunc_t done, void *arg)
{
    (void)info, (void)info_count;
    bool failed = includes_dead(procs, count);
    done(failed ? PMIX_ERR_PROC_ABORTED : PMIX_SUCCESS, failed ? NULL : data, failed ? 0 : bytes, arg, free, data);
    return PMIX_SUCCESS;
}

static pmix_status_t on_direct_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t count,
                                     pmix_modex_cbfunc_t done, void *arg)
{
    (void)proc, (void)info, (void)count, (void)done, (void)arg;
    return PMIX_ERR_NOT_FOUND; /* asked only for ranks of other nodes */
}

static struct server_name **find_name(const char *key)
{
    struct server_name **name = &server_running->names;
    while (*name && strncmp((*name)->key, key, PMIX_MAX_KEYLEN)) name = &(*name)->next;
    return name;
}

static bool is_directive(const char *key)
{
    return !strncmp(key, "pmix", 4);
}

static pmix_status_t publish_one(const pmix_proc_t *proc, const pmix_info_t *info)
{
    if (*find_name(info->key)) return PMIX_ERR_DUPLICATE_KEY;
    struct server_name *name = base_calloc(AREA_LAUNCHER, 1, sizeof *name);
    if (!name) return PMIX_ERR_NOMEM;
    name->owner = *proc;
    PMIX_LOAD_KEY(name->key, info->key);
    pmix_status_t status;
    pmix_value_t *copy = &name->value;
    PMIX_VALUE_XFER(status, copy, (pmix_value_t *)(uintptr_t)&info->value);
    if (status != PMIX_SUCCESS) {
        base_free(AREA_LAUNCHER, name);
        return status;
    }
    name->next = server_running->names;
    server_running->names = name;
    return PMIX_SUCCESS;
}

static pmix_status_t on_publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t count, pmix_op_cbfunc_t done,
                                void *arg)
{
    (void)done, (void)arg;
    for (size_t i = 0; i < count; i++) {
        if (is_directive(info[i].key)) continue;
        pmix_status_t status = publish_one(proc, &info[i]);
        if (status != PMIX_SUCCESS) return status;
    }
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[], size_t count,
                               pmix_lookup_cbfunc_t done, void *arg)
{
    (void)proc, (void)info, (void)count;
    size_t wanted = 0, found = 0;
    while (keys && keys[wanted]) wanted++;
    pmix_pdata_t *data;
    PMIX_PDATA_CREATE(data, wanted);
    if (wanted && !data) return PMIX_ERR_NOMEM;
    for (size_t i = 0; i < wanted; i++) {
        struct server_name *name = *find_name(keys[i]);
        pmix_status_t status = PMIX_ERR_NOT_FOUND;
        pmix_value_t *copy = &data[found].value;
        if (name) PMIX_VALUE_XFER(status, copy, &name->value);
        if (status != PMIX_SUCCESS) continue;
        data[found].proc = name->owner;
        PMIX_LOAD_KEY(data[found].key, name->key);
        found++;
    }
    if (found) done(found == wanted ? PMIX_SUCCESS : PMIX_ERR_PARTIAL_SUCCESS, data, found, arg);
    PMIX_PDATA_FREE(data, wanted);
    return found ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND;
}

static void remove_name(struct server_name **place)
{
    struct server_name *name = *place;
    *place = name->next;
    PMIX_VALUE_DESTRUCT(&name->value);
    base_free(AREA_LAUNCHER, name);
}

static pmix_status_t on_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[], size_t count,
                                  pmix_op_cbfunc_t done, void *arg)
{
    (void)info, (void)count, (void)done, (void)arg;
    struct server_name **place = &server_running->names;
    while (*place) {
        bool listed = keys == NULL;
        for (size_t i = 0; keys && keys[i]; i++) listed |= !strncmp((*place)->key, keys[i], PMIX_MAX_KEYLEN);
        if (listed && PMIX_CHECK_PROCID(&(*place)->owner, proc))
            remove_name(place);
        else
            place = &(*place)->next;
    }
    return PMIX_OPERATION_SUCCEEDED;
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
