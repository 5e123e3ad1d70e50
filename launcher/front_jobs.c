/* front_jobs.c - the jobs that ncclxrun has started, and what it does when they come up, fail and end. */
#include "config.h"

#include "launcher/front.h"

#include "launcher/front_mpir.h"
#include "runtime/base/base.h"

#include <stdio.h>

struct front_job *front_job_of(const struct front *front, int number)
{
    struct job *job = jobs_of(front->jobs, number);
    return job ? job->data : NULL;
}

const char *front_node_name(const struct front *front, int number)
{
    const struct front_job *job = front_job_of(front, number);
    return job ? front->nodes[job->map.ranks[number - job->job->first].node].name : "?";
}

const char *front_rank_name(const struct front *front, int number)
{
    static char text[MESSAGE_RANK_BYTES];
    const struct front_job *job = front_job_of(front, number);
    if (!job) return "a rank that has ended";
    if (job == &front->user)
        snprintf(text, sizeof text, "rank %d", number);
    else
        snprintf(text, sizeof text, "rank %d of %s", number - job->job->first, job->name);
    return text;
}

void front_release_job(struct front_job *job)
{
    for (int i = 0; i < job->app_count; i++)
        spawn_release_settings((char **)(uintptr_t)job->apps[i].settings, job->apps[i].setting_count);
    base_free(AREA_LAUNCHER, job->apps);
    base_free(AREA_LAUNCHER, job->pids);
    map_release(&job->map);
    spawn_release_request(&job->request);
    base_free(AREA_LAUNCHER, job);
}

static void send_about(struct front *front, uint8_t type, const struct job *job)
{
    struct frame_writer writer;
    frame_begin(&writer, type);
    frame_put_u32(&writer, (uint32_t)job->first);
    front_send(front, &writer);
}

static void come_up(struct front *front, struct front_job *job)
{
    front_display(job, front->nodes, front->options.display & OPTIONS_PIDS, false);
    if (job == &front->user)
        front_mpir_publish(front);
    else
        front_answer(front, job, SPAWN_DONE);
}

static void end(struct front *front, struct front_job *job)
{
    if (job == &front->user) return; /* the map of nodes that others stand on */
    if (!job->job->up) front_answer(front, job, job->status);
    send_about(front, MESSAGE_RETIRE, job->job);
    output_remove(front->output, job->job->first);
    jobs_forget(front->jobs, job->job);
    front_release_job(job);
}

void front_review_jobs(struct front *front)
{
    struct jobs_action action;
    while (jobs_next(front->jobs, &action)) {
        struct front_job *job = action.job ? action.job->data : NULL;
        if (action.kind == JOBS_UP)
            come_up(front, job);
        else if (action.kind == JOBS_CANCEL && job != &front->user)
            send_about(front, MESSAGE_CANCEL, action.job);
        else if (action.kind == JOBS_OVER)
            end(front, job);
        else if (action.kind == JOBS_COMPLETE)
            front_send_empty(front, MESSAGE_COMPLETE);
    }
}
