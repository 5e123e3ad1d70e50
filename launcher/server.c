/* server.c - start of the PMIx server, which ends with its process, and the hand-over from its thread to the daemon's.
 */
#include "config.h"

#include "launcher/server_private.h"

#include "bootstrap/bootstrap.h"
#include "runtime/base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

struct server *server_running;

int server_error(pmix_status_t status, const char *what)
{
    return base_error(NCCLX_ERR_BOOTSTRAP, "the PMIx server cannot %s: %s", what, PMIx_Error_string(status));
}

/* ---- From any thread to the daemon's ---- */

bool server_post(struct server *server, enum server_note_kind kind, int rank, int code, const void *text, size_t bytes)
{
    if (kind != SERVER_SEND && kind != SERVER_SPAWN && bytes > SERVER_MAX_TEXT) bytes = SERVER_MAX_TEXT;
    struct server_note *note = base_alloc(AREA_LAUNCHER, sizeof *note + bytes + 1);
    if (!note) return false;
    *note = (struct server_note){.kind = kind, .rank = rank, .code = code, .bytes = bytes};
    if (bytes) memcpy(note->text, text, bytes);
    note->text[bytes] = 0;
    pthread_mutex_lock(&server->lock);
    bool wake = !server->first;
    *server->last = note;
    server->last = &note->next;
    pthread_mutex_unlock(&server->lock);
    uint64_t one = 1;
    if (wake && write(server->event_fd, &one, sizeof one) < 0) return true; /* the counter is full: it is readable */
    return true;
}

void server_wake_at(struct server *server, uint64_t when)
{
    struct itimerspec timer = {.it_value = {.tv_sec = 0}};
    if (when != UINT64_MAX) {
        timer.it_value.tv_sec = (time_t)(when / BASE_NS_PER_S);
        timer.it_value.tv_nsec = (long)(when % BASE_NS_PER_S) + !when; /* 0 would mean never */
    }
    timerfd_settime(server->timer_fd, TFD_TIMER_ABSTIME, &timer, NULL);
}

static struct server_note *take_notes(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    struct server_note *note = server->first;
    server->first = NULL;
    server->last = &server->first;
    pthread_mutex_unlock(&server->lock);
    return note;
}

static void hand_over(struct server *server, const struct server_note *note)
{
    const struct server_events *events = &server->events;
    switch (note->kind) {
    case SERVER_ABORTED:
        events->aborted(server->arg, note->rank, note->code, note->text);
        break;
    case SERVER_LOGGED:
        events->logged(server->arg, note->rank, note->text);
        break;
    case SERVER_SEND:
        events->send(server->arg, note->rank, note->text, note->bytes);
        break;
    case SERVER_SIGNAL:
        events->signal(server->arg, note->rank, note->code);
        break;
    case SERVER_SPAWN:
        events->spawn(server->arg, note->text, note->bytes);
        break;
    case SERVER_TROUBLE:
        events->trouble(server->arg, note->text);
        break;
    case SERVER_FAILED:
        events->failed(server->arg, note->text);
        break;
    }
}

/* In order, also when an event leads back here. */
static void hand_over_all(struct server *server)
{
    struct server_note *note;
    if (server->dispatching) return;
    server->dispatching = true;
    while ((note = take_notes(server))) {
        while (note) {
            struct server_note *next = note->next;
            hand_over(server, note);
            base_free(AREA_LAUNCHER, note);
            note = next;
        }
    }
    server->dispatching = false;
}

void server_dispatch(struct server *server)
{
    uint64_t count;
    if (read(server->event_fd, &count, sizeof count) < 0) count = 0; /* nothing was written since */
    if (read(server->timer_fd, &count, sizeof count) == sizeof count) server_exchange_tick(server);
    hand_over_all(server);
}

int server_receive(struct server *server, int link, const void *data, size_t bytes)
{
    bool notice = server_notice_is(data, bytes);
    int code =
        notice ? server_notice_receive(server, link, data, bytes) : server_exchange_receive(server, link, data, bytes);
    hand_over_all(server);
    return code;
}

void server_link_lost(struct server *server, int link)
{
    server_notice_link_lost(server, link);
    server_exchange_link_lost(server, link);
    hand_over_all(server);
}

/* ---- Life ---- */

static int start_library(const struct server *server)
{
    const struct message_launch *launch = server->launch;
    pmix_topology_t topology = {.source = (char *)(uintptr_t) "hwloc", .topology = server->topology};
    pmix_info_t info[6];
    bool tools = false;
    pmix_rank_t rank = (pmix_rank_t)launch->node;
    char name[PMIX_MAX_NSLEN + 1];
    snprintf(name, sizeof name, "ncclxd.%.200s", launch->job);
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_TMPDIR, server->scratch, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_SYSTEM_TMPDIR, server->scratch, PMIX_STRING);
    PMIX_INFO_LOAD(&info[2], PMIX_HOSTNAME, launch->nodes[launch->node], PMIX_STRING);
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

static bool watch(int epoll_fd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return fd >= 0 && !epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static int open_descriptors(struct server *server)
{
    server->fd = epoll_create1(EPOLL_CLOEXEC);
    server->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    server->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (server->fd >= 0 && watch(server->fd, server->event_fd) && watch(server->fd, server->timer_fd))
        return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_LIMIT, "descriptors are short for the PMIx server: %s; raise ulimit -n",
                      strerror(errno));
}

static void release(struct server *server)
{
    server_running = NULL;
    if (server->fd >= 0) close(server->fd);
    if (server->event_fd >= 0) close(server->event_fd);
    if (server->timer_fd >= 0) close(server->timer_fd);
    server_exchange_free(server->exchange);
    server_spawns_free(server->spawns);
    server_jobs_free(&server->jobs);
    base_free(AREA_LAUNCHER, server->closed);
    base_free(AREA_LAUNCHER, server);
}

static int count_links(struct server *server)
{
    const struct message_launch *launch = server->launch;
    int position = launch->positions[launch->node];
    int64_t left = launch->node_count - ((int64_t)position * launch->radix + 1);
    server->link_count = left < 0 ? 0 : left < launch->radix ? (int)left : launch->radix;
    server->closed = base_calloc(AREA_LAUNCHER, (size_t)server->link_count + 1, sizeof *server->closed);
    if (!server->closed) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the PMIx server");
    server->closed[0] = position == 0;
    return NCCLX_SUCCESS;
}

static bool is_here(const struct message_launch *launch)
{
    for (int i = 0; i < launch->rank_count; i++)
        if (launch->ranks[i].node == launch->node) return true;
    return false;
}

/* What libpmix is told of a job. With the first that has ranks here it is started, and told of all. */
static int tell_library(struct server *server, const struct message_launch *launch, const char *segment)
{
    bool here = is_here(launch);
    if (server->serves) return server_register_job(server, launch, here ? segment : NULL);
    if (!here) return NCCLX_SUCCESS;
    int code = start_library(server);
    server->serves = !code;
    const struct message_launch *known = NULL;
    while (!code && (known = server_jobs_next(&server->jobs, known)))
        code = server_register_job(server, known, known == launch ? segment : NULL);
    return code;
}

int server_add(struct server *server, const struct message_launch *launch, const char *segment)
{
    int code = server_jobs_add(&server->jobs, launch);
    if (code) return code;
    if (launch != server->launch) code = server_exchange_add(server, launch);
    return code ? code : tell_library(server, launch, segment);
}

void server_retire(struct server *server, const struct message_launch *launch)
{
    hand_over_all(server); /* what was said of it before */
    server_exchange_retire(server, launch);
    server_jobs_remove(&server->jobs, launch->first);
    if (server->serves) server_deregister_job(server, launch);
    hand_over_all(server);
}

static int set_up(struct server *server, const struct server_options *options)
{
    server->launch = options->launch;
    server->scratch = options->scratch;
    server->topology = options->topology;
    server->spawns = server_spawns_create();
    int code =
        server->spawns ? open_descriptors(server) : base_error(NCCLX_ERR_NO_MEM, "memory is short for the PMIx server");
    if (!code) code = server_exchange_create(server);
    if (!code) code = count_links(server);
    if (!code) code = server_add(server, options->launch, options->segment);
    if (code && server->serves) PMIx_server_finalize();
    return code;
}

int server_start(const struct server_options *options, const struct server_events *events, void *arg,
                 struct server **out)
{
    struct server *server = base_calloc(AREA_LAUNCHER, 1, sizeof *server);
    *out = NULL;
    if (!server) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the PMIx server");
    server->events = *events;
    server->arg = arg;
    server->last = &server->first;
    server->fd = server->event_fd = server->timer_fd = -1;
    pthread_mutex_init(&server->lock, NULL);
    pthread_mutex_init(&server->jobs.lock, NULL);
    server_running = server;
    int code = set_up(server, options);
    if (code)
        release(server);
    else
        *out = server;
    return code;
}

int server_node(struct server *server, int number)
{
    return server_node_of(&server->jobs, number);
}

int server_fd(const struct server *server)
{
    return server->fd;
}

int server_environment(struct server *server, int number, char ***environment)
{
    pmix_proc_t proc;
    *environment = NULL;
    pmix_status_t status =
        server_proc(&server->jobs, number, &proc) ? PMIx_server_setup_fork(&proc, environment) : PMIX_ERR_NOT_FOUND;
    return status == PMIX_SUCCESS ? NCCLX_SUCCESS : server_error(status, "prepare a rank's environment");
}

void server_free_environment(char **environment)
{
    for (char **entry = environment; entry && *entry; entry++) free(*entry);
    free(environment);
}

bool server_joined(struct server *server, int number)
{
    return server_has_mark(&server->jobs, number, SERVER_JOINED);
}

bool server_left(struct server *server, int number)
{
    return server_has_mark(&server->jobs, number, SERVER_LEFT);
}

void server_rank_died(struct server *server, int number)
{
    server_set_mark(&server->jobs, number, SERVER_DEAD, true);
    server_exchange_rank_died(server, number);
    hand_over_all(server);
}

void server_dump(struct server *server)
{
    pmix_proc_t source;
    pmix_info_t info;
    bool only_asked = true;
    if (!server->serves) return;
    PMIX_LOAD_PROCID(&source, server->launch->job, PMIX_RANK_UNDEF);
    PMIX_INFO_LOAD(&info, PMIX_EVENT_NON_DEFAULT, &only_asked, PMIX_BOOL);
    PMIx_Notify_event(BOOTSTRAP_EVENT_DUMP, &source, PMIX_RANGE_LOCAL, &info, 1, NULL, NULL);
    PMIX_INFO_DESTRUCT(&info);
}
