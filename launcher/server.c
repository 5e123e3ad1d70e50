/* server.c - start of the PMIx server, which ends with its process, and the hand-over from its thread to the daemon's.
 */
#include "config.h"

#include "launcher/server_private.h"

#include "bootstrap/bootstrap.h"
#include "runtime/base/base.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct server *server_running;

int server_error(pmix_status_t status, const char *what)
{
    return base_error(NCCLX_ERR_BOOTSTRAP, "the PMIx server cannot %s: %s", what, PMIx_Error_string(status));
}

void server_post(struct server *server, enum server_note_kind kind, int rank, int code, const char *text, size_t bytes)
{
    if (bytes > SERVER_MAX_TEXT) bytes = SERVER_MAX_TEXT;
    struct server_note *note = base_calloc(AREA_LAUNCHER, 1, sizeof *note + bytes + 1);
    if (!note) return;
    note->kind = kind;
    note->rank = rank;
    note->code = code;
    if (bytes) memcpy(note->text, text, bytes);
    pthread_mutex_lock(&server->lock);
    *server->last = note;
    server->last = &note->next;
    pthread_mutex_unlock(&server->lock);
    uint64_t one = 1;
    if (write(server->event_fd, &one, sizeof one) < 0) return; /* the counter is full: it is readable anyway */
}

void server_dispatch(struct server *server)
{
    uint64_t count;
    if (read(server->event_fd, &count, sizeof count) < 0) count = 0; /* nothing was written since */
    pthread_mutex_lock(&server->lock);
    struct server_note *note = server->first;
    server->first = NULL;
    server->last = &server->first;
    pthread_mutex_unlock(&server->lock);
    while (note) {
        struct server_note *next = note->next;
        if (note->kind == SERVER_ABORTED)
            server->events.aborted(server->arg, note->rank, note->code, note->text);
        else
            server->events.logged(server->arg, note->rank, note->text);
        base_free(AREA_LAUNCHER, note);
        note = next;
    }
}

static int start_library(const struct server_options *options)
{
    pmix_topology_t topology = {.source = (char *)(uintptr_t) "hwloc", .topology = options->topology};
    pmix_info_t info[6];
    bool tools = false;
    pmix_rank_t rank = (pmix_rank_t)options->launch->node;
    char name[PMIX_MAX_NSLEN + 1];
    snprintf(name, sizeof name, "ncclxd.%.200s", options->launch->job);
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_TMPDIR, options->scratch, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_SYSTEM_TMPDIR, options->scratch, PMIX_STRING);
    PMIX_INFO_LOAD(&info[2], PMIX_HOSTNAME, options->launch->nodes[options->launch->node], PMIX_STRING);
    PMIX_INFO_LOAD(&info[3], PMIX_SERVER_NSPACE, name, PMIX_STRING);
    PMIX_INFO_LOAD(&info[4], PMIX_SERVER_RANK, &rank, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&info[5], PMIX_SERVER_TOOL_SUPPORT, &tools, PMIX_BOOL);
    pmix_info_t all[7];
    memcpy(all, info, sizeof info);
    PMIX_INFO_CONSTRUCT(&all[6]);
    PMIX_LOAD_KEY(all[6].key, PMIX_TOPOLOGY2); /* by reference: hwloc's object itself, which copying would duplicate */
    all[6].value.type = PMIX_TOPO;
    all[6].value.data.topo = &topology;
    pmix_status_t status = PMIx_server_init(server_upcalls(), all, 7);
    for (size_t i = 0; i < 6; i++) PMIX_INFO_DESTRUCT(&all[i]);
    return status == PMIX_SUCCESS ? NCCLX_SUCCESS : server_error(status, "start");
}

int server_start(const struct server_options *options, const struct server_events *events, void *arg,
                 struct server **out)
{
    struct server *server = base_calloc(AREA_LAUNCHER, 1, sizeof *server);
    int code;
    *out = NULL;
    if (!server) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the PMIx server");
    server->events = *events;
    server->arg = arg;
    server->last = &server->first;
    server->rank_count = options->launch->rank_count;
    server->ranks = base_calloc(AREA_LAUNCHER, (size_t)server->rank_count, sizeof *server->ranks);
    snprintf(server->job, sizeof server->job, "%s", options->launch->job);
    pthread_mutex_init(&server->lock, NULL);
    server->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    server_running = server;
    if (!server->ranks || server->event_fd < 0)
        code = base_error(NCCLX_ERR_NO_MEM, "memory or descriptors are short for the PMIx server");
    else if ((code = server_exchange_create(options->launch, &server->exchange)) == NCCLX_SUCCESS &&
             (code = start_library(options)) == NCCLX_SUCCESS && (code = server_register_job(options)))
        PMIx_server_finalize();
    if (code == NCCLX_SUCCESS) {
        *out = server;
        return code;
    }
    server_running = NULL;
    if (server->event_fd >= 0) close(server->event_fd);
    server_exchange_free(server->exchange);
    base_free(AREA_LAUNCHER, server->ranks);
    base_free(AREA_LAUNCHER, server);
    return code;
}

int server_fd(const struct server *server)
{
    return server->event_fd;
}

int server_environment(struct server *server, int rank, char ***environment)
{
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, server->job, (pmix_rank_t)rank);
    *environment = NULL;
    pmix_status_t status = PMIx_server_setup_fork(&proc, environment);
    return status == PMIX_SUCCESS ? NCCLX_SUCCESS : server_error(status, "prepare a rank's environment");
}

void server_free_environment(char **environment)
{
    for (char **entry = environment; entry && *entry; entry++) free(*entry);
    free(environment);
}

bool server_joined(struct server *server, int rank)
{
    return atomic_load(&server->ranks[rank].joined);
}

bool server_left(struct server *server, int rank)
{
    return atomic_load(&server->ranks[rank].left);
}

void server_rank_died(struct server *server, int rank)
{
    atomic_store(&server->ranks[rank].dead, true);
    server_exchange_rank_died(server, rank);
}

void server_dump(struct server *server)
{
    pmix_proc_t source;
    pmix_info_t info;
    bool only_asked = true;
    PMIX_LOAD_PROCID(&source, server->job, PMIX_RANK_UNDEF);
    PMIX_INFO_LOAD(&info, PMIX_EVENT_NON_DEFAULT, &only_asked, PMIX_BOOL);
    PMIx_Notify_event(BOOTSTRAP_EVENT_DUMP, &source, PMIX_RANGE_LOCAL, &info, 1, NULL, NULL);
    PMIX_INFO_DESTRUCT(&info);
}
