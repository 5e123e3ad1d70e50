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
    if (kind != SERVER_SEND && bytes > SERVER_MAX_TEXT) bytes = SERVER_MAX_TEXT;
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
    base_free(AREA_LAUNCHER, server->closed);
    base_free(AREA_LAUNCHER, server->ranks);
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

static int set_up(struct server *server, const struct server_options *options)
{
    const struct message_launch *launch = options->launch;
    server->launch = launch;
    server->rank_count = launch->rank_count;
    server->ranks = base_calloc(AREA_LAUNCHER, (size_t)server->rank_count, sizeof *server->ranks);
    if (!server->ranks) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the PMIx server");
    snprintf(server->job, sizeof server->job, "%s", launch->job);
    for (int i = 0; i < launch->rank_count; i++) server->serves |= launch->ranks[i].node == launch->node;
    int code = open_descriptors(server);
    if (!code) code = server_exchange_create(server, options);
    if (!code) code = count_links(server);
    if (code || !server->serves) return code;
    code = start_library(options);
    if (!code && (code = server_register_job(options))) PMIx_server_finalize();
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
    server_running = server;
    int code = set_up(server, options);
    if (code)
        release(server);
    else
        *out = server;
    return code;
}

int server_fd(const struct server *server)
{
    return server->fd;
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
    hand_over_all(server);
}

void server_dump(struct server *server)
{
    pmix_proc_t source;
    pmix_info_t info;
    bool only_asked = true;
    if (!server->serves) return;
    PMIX_LOAD_PROCID(&source, server->job, PMIX_RANK_UNDEF);
    PMIX_INFO_LOAD(&info, PMIX_EVENT_NON_DEFAULT, &only_asked, PMIX_BOOL);
    PMIx_Notify_event(BOOTSTRAP_EVENT_DUMP, &source, PMIX_RANGE_LOCAL, &info, 1, NULL, NULL);
    PMIX_INFO_DESTRUCT(&info);
}
