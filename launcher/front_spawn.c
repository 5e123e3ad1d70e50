/* front_spawn.c - PMIx_Spawn, where jobs are mapped: from a rank's request to a launch order, or an answer that says
 * why not. */
#include "config.h"

#include "launcher/front.h"

#include "launcher/front_mpir.h"
#include "runtime/base/base.h"

#include <stdio.h>
#include <string.h>

extern char **environ;

static void answer(struct front *front, int caller, uint64_t token, enum spawn_status status, const char *name)
{
    const struct spawn_answer answer = {.caller = caller, .token = token, .status = status, .job = name};
    struct frame_writer writer;
    struct frame frame;
    spawn_write_answer(&writer, &answer);
    if (frame_finish(&writer) == NCCLX_SUCCESS && frame_parse(writer.data, writer.used, &frame) == NCCLX_SUCCESS)
        wiring_pass(front->wiring, 0, &frame);
    frame_release(&writer);
}

void front_answer(struct front *front, const struct front_job *job, enum spawn_status status)
{
    answer(front, job->request.caller, job->request.token, status, status == SPAWN_DONE ? job->name : NULL);
}

/* Why the last step has failed. */
static enum spawn_status status_of(int code)
{
    if (code == NCCLX_ERR_ARG) return SPAWN_NO_ROOM;
    if (code == NCCLX_ERR_CONFIG) return SPAWN_BAD_REQUEST;
    return code == NCCLX_ERR_UNREACHABLE ? SPAWN_NO_HOST : SPAWN_FAILED;
}

/* The table of a debugger has the user's job only: no other waits for it. */
static int fill_app(const struct spawn_app *from, struct message_app *to)
{
    int count;
    to->argv = from->argv;
    to->directory = from->directory;
    char **settings = spawn_settle(from, environ, &count);
    to->settings = (const char **)(uintptr_t)settings;
    if (!settings) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the environment");
    if (MPIR_being_debugged && (settings[count] = base_strdup(AREA_LAUNCHER, "=NCCLX_DEBUG_WAIT"))) count++;
    to->setting_count = count;
    return front_check_settings(to->settings, count);
}

static int fill_job(struct front *front, struct front_job *job)
{
    int code = NCCLX_SUCCESS;
    job->apps = base_calloc(AREA_LAUNCHER, (size_t)job->request.app_count, sizeof *job->apps);
    if (!job->apps) return base_error(NCCLX_ERR_NO_MEM, "memory is short for a job");
    for (; job->app_count < job->request.app_count && !code; job->app_count++)
        code = fill_app(&job->request.apps[job->app_count], &job->apps[job->app_count]);
    if (!code) code = front_map_spawned(front, job);
    if (!code) code = front_check_limits(front, job);
    return code;
}

static int start(struct front *front, struct front_job *job)
{
    int code = fill_job(front, job);
    if (code) return code;
    job->job = jobs_add(front->jobs, job->map.rank_count, job->request.caller, job);
    if (!job->job) return NCCLX_ERR_LIMIT;
    snprintf(job->label, sizeof job->label, "%d.", job->job->index);
    snprintf(job->name, sizeof job->name, "%s.%d", front->job, job->job->index);
    return front_launch_job(front, job);
}

int front_spawn(struct front *front, const struct frame *frame)
{
    struct spawn_request request;
    int code = spawn_read_request(frame, &request);
    if (code) return code;
    struct front_job *job = base_calloc(AREA_LAUNCHER, 1, sizeof *job);
    bool ends = front->end_told || front->ending || front->blame.status >= 0;
    int caller = request.caller;
    uint64_t token = request.token;
    if (!job || ends || !jobs_of(front->jobs, caller)) {
        spawn_release_request(&request);
        base_free(AREA_LAUNCHER, job);
        answer(front, caller, token, ends ? SPAWN_ENDING : SPAWN_FAILED, NULL);
        return NCCLX_SUCCESS;
    }
    job->request = request;
    if ((code = start(front, job)) == NCCLX_SUCCESS) return NCCLX_SUCCESS;
    front_say("%s on %s: PMIx_Spawn: %s", front_rank_name(front, caller), front_node_name(front, caller),
              base_error_detail());
    answer(front, caller, token, status_of(code), NULL);
    if (job->job) { /* no daemon knows of it */
        output_remove(front->output, job->job->first);
        jobs_forget(front->jobs, job->job);
    }
    front_release_job(job);
    return NCCLX_SUCCESS;
}
