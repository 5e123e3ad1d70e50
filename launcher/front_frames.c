/* front_frames.c - what daemons say of ranks, and what the user is told of it. */
#include "config.h"

#include "launcher/front.h"

#include "launcher/front_progress.h"
#include "launcher/report.h"
#include "runtime/base/base.h"

#include <stdio.h>
#include <string.h>

static void note_started(struct front *front, struct front_job *job, int number, pid_t pid)
{
    job->pids[number - job->job->first] = pid;
    job->started++;
    if (job != &front->user) return;
    if (front->options.verbose) front_say("%d of %d ranks started", job->started, job->map.rank_count);
}

static int on_started(struct front *front, const struct frame *frame)
{
    struct frame_reader reader;
    frame_read(&reader, frame);
    uint32_t first = frame_get_u32(&reader);
    bool last = frame_get_u8(&reader);
    uint32_t count = frame_get_count(&reader, 8);
    struct job *job = first < JOBS_MAX_NUMBER ? jobs_find(front->jobs, (int)first) : NULL;
    bool good = job != NULL;
    for (uint32_t i = 0; i < count && good; i++) {
        uint32_t number = frame_get_u32(&reader), pid = frame_get_u32(&reader);
        good = number >= first && number - first < (uint32_t)job->count && pid <= INT32_MAX &&
               (pid ? jobs_started : jobs_unstarted)(front->jobs, (int)number);
        if (good && pid) note_started(front, job->data, (int)number, (pid_t)pid);
    }
    if (good && last) good = jobs_answered(front->jobs, (int)first);
    if (!good || !frame_read_all(&reader)) return message_malformed(frame);
    if (job->data == &front->user)
        front_progress_ranks(front->progress, front->user.started, front->user.map.rank_count);
    front_review_jobs(front);
    return NCCLX_SUCCESS;
}

static int on_output(struct front *front, const struct frame *frame)
{
    struct frame_reader reader;
    size_t bytes;
    frame_read(&reader, frame);
    uint32_t number = frame_get_u32(&reader);
    uint8_t descriptor = frame_get_u8(&reader);
    const void *data = frame_get_bytes(&reader, &bytes);
    if (!frame_read_all(&reader) || number >= JOBS_MAX_NUMBER || !jobs_of(front->jobs, (int)number) || descriptor < 1 ||
        descriptor > 2)
        return message_malformed(frame);
    output_take(front->output, (int)number, descriptor, data, bytes);
    if (!bytes && jobs_output_ended(front->jobs, (int)number, descriptor)) front_review_jobs(front);
    return NCCLX_SUCCESS;
}

/* One that was killed because its job could not start is no failure. */
static bool is_failure(const struct front *front, const struct message_exited *exited)
{
    const struct job *job = front_job_of(front, exited->number)->job;
    return report_is_failure(exited) && !(job->index > 0 && job->cancelled && exited->told);
}

static int on_exited(struct front *front, const struct frame *frame)
{
    struct message_exited exited;
    char text[800];
    int code = message_read_exited(frame, &exited);
    if (code) return code;
    if (!jobs_exited(front->jobs, exited.number)) return message_malformed(frame);
    struct front_job *job = front_job_of(front, exited.number);
    int others = jobs_left(front->jobs);
    job->pids[exited.number - job->job->first] = 0;
    if (is_failure(front, &exited)) {
        report_exit(&exited, front_rank_name(front, exited.number), front_node_name(front, exited.number), text,
                    sizeof text);
        size_t used = strlen(text);
        if (others > 0)
            snprintf(text + used, sizeof text - used, "; ending the other %d rank%s", others, others == 1 ? "" : "s");
        front_blame_job(front, report_may_follow(&exited) ? BLAME_FOLLOWER : BLAME_ORIGIN, report_exit_status(&exited),
                        text);
    } else if (front->options.verbose) {
        front_say("%s on %s (pid %d) ended", front_rank_name(front, exited.number),
                  front_node_name(front, exited.number), exited.pid);
    }
    front_review_jobs(front);
    return NCCLX_SUCCESS;
}

static int on_aborted(struct front *front, const struct frame *frame)
{
    struct frame_reader reader;
    char text[1400];
    frame_read(&reader, frame);
    uint32_t number = frame_get_u32(&reader);
    int abort_code = (int)frame_get_u32(&reader);
    const char *message = frame_get_text(&reader);
    const struct front_job *job = number < JOBS_MAX_NUMBER ? front_job_of(front, (int)number) : NULL;
    if (!frame_read_all(&reader) || !job) return message_malformed(frame);
    snprintf(text, sizeof text, "%s on %s (pid %d) aborted the job with code %d%s%.700s",
             front_rank_name(front, (int)number), front_node_name(front, (int)number),
             (int)job->pids[(int)number - job->job->first], abort_code, message && *message ? ": " : "",
             message ? message : "");
    /* An exit status has 8 bits; an abort is never a success. */
    front_blame_job(front, BLAME_FOLLOWER, (abort_code & 0xff) ? (abort_code & 0xff) : 1, text);
    return NCCLX_SUCCESS;
}

/* A job that a rank has asked for and that cannot start is that rank's affair; the user hears why. */
static int refuse_spawned(struct front *front, struct front_job *job, int status, const char *text)
{
    if (!job->job->cancelled)
        front_say("%s on %s: PMIx_Spawn: %s", front_rank_name(front, job->job->parent),
                  front_node_name(front, job->job->parent), text);
    if (!job->job->cancelled) job->status = spawn_status_of(status);
    bool good = jobs_failed(front->jobs, job->job->first);
    front_review_jobs(front);
    return good ? NCCLX_SUCCESS : NCCLX_ERR_TRANSPORT;
}

static int on_refused(struct front *front, const struct frame *frame)
{
    struct frame_reader reader;
    frame_read(&reader, frame);
    uint32_t first = frame_get_u32(&reader), status = frame_get_u32(&reader);
    const char *text = frame_get_text(&reader);
    if (!frame_read_all(&reader) || !text || status < 1 || status > 255) return message_malformed(frame);
    struct front_job *job = first < JOBS_MAX_NUMBER ? front_job_of(front, (int)first) : NULL;
    if (!job && first != MESSAGE_NO_JOB) return message_malformed(frame);
    if (job && job != &front->user)
        return refuse_spawned(front, job, (int)status, text) ? message_malformed(frame) : NCCLX_SUCCESS;
    front->options.quiet = false;
    front_blame_job(front, BLAME_ORIGIN, (int)status, text);
    return NCCLX_SUCCESS;
}

static int on_trouble(const struct frame *frame)
{
    struct frame_reader reader;
    frame_read(&reader, frame);
    const char *text = frame_get_text(&reader);
    if (!frame_read_all(&reader) || !text) return message_malformed(frame);
    front_say("%s", text);
    return NCCLX_SUCCESS;
}

static int on_input_wanted(struct front *front, const struct frame *frame)
{
    struct frame_reader reader;
    frame_read(&reader, frame);
    bool read = frame_get_u8(&reader);
    if (!frame_read_all(&reader)) return message_malformed(frame);
    if (front->input && read) input_want(front->input);
    return NCCLX_SUCCESS;
}

int front_take_frame(void *arg, int link, const struct frame *frame)
{
    struct front *front = arg;
    (void)link;
    if (frame->type == MESSAGE_REFUSED) return on_refused(front, frame);
    if (frame->type == MESSAGE_TROUBLE) return on_trouble(frame);
    if (!front->launched) return message_malformed(frame);
    switch (frame->type) {
    case MESSAGE_STARTED:
        return on_started(front, frame);
    case MESSAGE_OUTPUT:
        return on_output(front, frame);
    case MESSAGE_EXITED:
        return on_exited(front, frame);
    case MESSAGE_ABORTED:
        return on_aborted(front, frame);
    case MESSAGE_DYING:
        blame_expect(&front->blame);
        return frame->bytes ? message_malformed(frame) : NCCLX_SUCCESS;
    case MESSAGE_SPAWN:
        return front_spawn(front, frame);
    case MESSAGE_INPUT_WANTED:
        return on_input_wanted(front, frame);
    default:
        return message_malformed(frame);
    }
}
