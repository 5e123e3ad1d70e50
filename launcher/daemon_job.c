/* daemon_job.c - the jobs of this node: the user's, and those that ranks have asked for. */
#include "config.h"

#include "launcher/daemon.h"

#include "runtime/base/base.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

/* ---- The memory that ranks of a job share ------------------------------------------------------------------------ */

static int make_segment(struct daemon_job *job, char *where, size_t bytes)
{
    char name[64];
    uint64_t token[2]; /* where another host has the same process number the name is not the same */
    if (getrandom(token, sizeof token, 0) != sizeof token)
        return base_error(NCCLX_ERR_LIMIT, "no random numbers: %s", strerror(errno));
    snprintf(name, sizeof name, "ncclx-%016llx%016llx", (unsigned long long)token[0], (unsigned long long)token[1]);
    job->segment_fd = memfd_create(name, MFD_CLOEXEC);
    if (job->segment_fd < 0) return base_error(NCCLX_ERR_LIMIT, "no shared memory can be made: %s", strerror(errno));
    snprintf(where, bytes, "/proc/%d/fd/%d %s", (int)getpid(), job->segment_fd, name);
    return NCCLX_SUCCESS;
}

/* ---- Begin ------------------------------------------------------------------------------------------------------- */

/* The order is for this tree, and its numbers are behind those of all other jobs. */
static int check_launch(const struct daemon *daemon, const struct message_launch *launch)
{
    const struct tree_shape *shape = &daemon->order->tree.shape;
    int end = 0;
    for (const struct daemon_job *job = daemon->jobs; job; job = job->next)
        end = job->launch.first + job->launch.rank_count;
    if (launch->node_count != shape->count || launch->radix != shape->radix)
        return base_error(NCCLX_ERR_TRANSPORT, "the launch order is for another tree");
    if (launch->first < end || (launch->first == 0) != !daemon->jobs || launch->parent >= launch->first)
        return base_error(NCCLX_ERR_TRANSPORT, "the launch order has numbers that others have");
    return NCCLX_SUCCESS;
}

int daemon_tell_server(struct daemon_job *job)
{
    struct daemon *daemon = job->daemon;
    char segment[128] = "";
    int code = job->rank_count ? make_segment(job, segment, sizeof segment) : NCCLX_SUCCESS;
    if (code) return code;
    if (job == daemon->jobs) return daemon_start_server(daemon, &job->launch, segment);
    return server_add(daemon->server, &job->launch, segment);
}

static void add(struct daemon *daemon, struct daemon_job *job)
{
    struct daemon_job **place = &daemon->jobs;
    while (*place) place = &(*place)->next;
    *place = job;
    job->daemon = daemon;
    while (job->launch.positions[job->launch.node] != daemon->order->tree.position) job->launch.node++;
    daemon->node = daemon->jobs->launch.nodes[daemon->jobs->launch.node];
    if (daemon->phase == DAEMON_IDLE) daemon->phase = DAEMON_RUNNING;
}

int daemon_launch(struct daemon *daemon, const struct frame *frame)
{
    if (daemon->phase > DAEMON_RUNNING) return NCCLX_SUCCESS; /* all is being ended, as will be known above */
    struct daemon_job *job = base_calloc(AREA_LAUNCHER, 1, sizeof *job);
    if (!job) return base_error(NCCLX_ERR_NO_MEM, "memory is short for a launch order");
    job->segment_fd = -1;
    int code = message_read_launch(frame, &job->launch);
    if (!code && (code = check_launch(daemon, &job->launch))) message_release_launch(&job->launch);
    if (code) {
        base_free(AREA_LAUNCHER, job);
        return code;
    }
    add(daemon, job);
    daemon_start_ranks(job);
    return NCCLX_SUCCESS;
}

/* ---- End --------------------------------------------------------------------------------------------------------- */

void daemon_cancel_job(struct daemon_job *job)
{
    job->cancelled = true;
    daemon_stop_start(job);
    for (int i = 0; i < job->rank_count; i++)
        if (job->ranks[i].running) kill(-job->ranks[i].pid, SIGKILL);
}

void daemon_fail_job(struct daemon_job *job, int status, const char *text)
{
    struct frame_writer writer;
    frame_begin(&writer, MESSAGE_REFUSED);
    frame_put_u32(&writer, (uint32_t)job->launch.first);
    frame_put_u32(&writer, (uint32_t)status);
    frame_put_text(&writer, text);
    daemon_send(job->daemon, &writer);
    daemon_cancel_job(job);
}

int daemon_cancel(struct daemon *daemon, const struct frame *frame)
{
    int first, code = message_read_job(frame, &first);
    struct daemon_job *job = code ? NULL : daemon_find_job(daemon, first);
    if (job) daemon_cancel_job(job);
    return code;
}

static void release(struct daemon_job *job)
{
    for (int i = 0; i < job->rank_count; i++) {
        daemon_close_input(&job->ranks[i]);
        daemon_close_streams(&job->ranks[i]);
    }
    if (job->segment_fd >= 0) close(job->segment_fd);
    base_free(AREA_LAUNCHER, job->ranks);
    message_release_launch(&job->launch);
    base_free(AREA_LAUNCHER, job);
}

int daemon_retire(struct daemon *daemon, const struct frame *frame)
{
    int first, code = message_read_job(frame, &first);
    if (code) return code;
    struct daemon_job **place = &daemon->jobs, *job;
    while (*place && (*place)->launch.first != first) place = &(*place)->next;
    job = *place;
    if (!job || daemon->phase > DAEMON_RUNNING) return NCCLX_SUCCESS; /* it did not come to it, or all goes anyway */
    for (int i = 0; i < job->rank_count; i++)
        if (job->ranks[i].running) return message_malformed(frame);
    if (job->start || first == 0) return message_malformed(frame);
    server_retire(daemon->server, &job->launch);
    *place = job->next;
    release(job);
    return NCCLX_SUCCESS;
}
