/* front_frames.c - what daemons say of ranks, and what the user is told of it. */
#include "config.h"

#include "launcher/front.h"

#include "launcher/front_mpir.h"
#include "launcher/front_progress.h"
#include "launcher/report.h"
#include "runtime/base/base.h"

#include <stdio.h>
#include <string.h>

static int on_started(struct front *front, const struct frame *frame)
{
    struct frame_reader reader;
    frame_read(&reader, frame);
    uint32_t count = frame_get_count(&reader, 8);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t rank = frame_get_u32(&reader);
        uint32_t pid = frame_get_u32(&reader);
        if (rank >= (uint32_t)front->map.rank_count) return message_malformed(frame);
        front->pids[rank] = (pid_t)pid;
    }
    front->started += (int)count;
    if (front->options.verbose) front_say("%d of %d ranks started", front->started, front->map.rank_count);
    front_progress_ranks(front->progress, front->started, front->map.rank_count);
    if (count > 0 && front->started == front->map.rank_count) { /* a host may have no ranks */
        front_mpir_publish(front);
        front_display(front, front->nodes, front->node_count, front->options.display & OPTIONS_PIDS, false);
    }
    return frame_read_all(&reader) ? NCCLX_SUCCESS : message_malformed(frame);
}

static int on_output(struct front *front, const struct frame *frame)
{
    struct frame_reader reader;
    size_t bytes;
    frame_read(&reader, frame);
    uint32_t rank = frame_get_u32(&reader);
    uint8_t descriptor = frame_get_u8(&reader);
    const void *data = frame_get_bytes(&reader, &bytes);
    if (!frame_read_all(&reader) || rank >= (uint32_t)front->map.rank_count || descriptor < 1 || descriptor > 2)
        return message_malformed(frame);
    output_take(front->output, (int)rank, descriptor, data, bytes);
    return NCCLX_SUCCESS;
}

static int on_exited(struct front *front, const struct frame *frame)
{
    struct message_exited exited;
    char text[512];
    int code = message_read_exited(frame, &exited);
    if (code) return code;
    if (exited.rank >= front->map.rank_count) return message_malformed(frame);
    front->running--;
    front->pids[exited.rank] = 0;
    report_exit(&exited, front_node_name(front, exited.rank), text, sizeof text);
    if (report_is_failure(&exited)) {
        size_t used = strlen(text);
        if (front->running > 0)
            snprintf(text + used, sizeof text - used, "; ending the other %d rank%s", front->running,
                     front->running == 1 ? "" : "s");
        front_blame_job(front, report_may_follow(&exited) ? BLAME_FOLLOWER : BLAME_ORIGIN, report_exit_status(&exited),
                        text);
    } else if (front->options.verbose) {
        front_say("rank %d on %s (pid %d) ended", exited.rank, front_node_name(front, exited.rank), exited.pid);
    }
    return NCCLX_SUCCESS;
}

static int on_aborted(struct front *front, const struct frame *frame)
{
    struct frame_reader reader;
    char text[1024];
    frame_read(&reader, frame);
    uint32_t rank = frame_get_u32(&reader);
    int abort_code = (int)frame_get_u32(&reader);
    const char *message = frame_get_text(&reader);
    if (!frame_read_all(&reader) || rank >= (uint32_t)front->map.rank_count) return message_malformed(frame);
    snprintf(text, sizeof text, "rank %u on %s (pid %d) aborted the job with code %d%s%.700s", rank,
             front_node_name(front, (int)rank), (int)front->pids[rank], abort_code, message && *message ? ": " : "",
             message ? message : "");
    /* An exit status has 8 bits; an abort is never a success. */
    front_blame_job(front, BLAME_FOLLOWER, (abort_code & 0xff) ? (abort_code & 0xff) : 1, text);
    return NCCLX_SUCCESS;
}

static int on_refused(struct front *front, const struct frame *frame)
{
    struct frame_reader reader;
    frame_read(&reader, frame);
    uint32_t status = frame_get_u32(&reader);
    const char *text = frame_get_text(&reader);
    if (!frame_read_all(&reader) || !text || status < 1 || status > 255) return message_malformed(frame);
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
    case MESSAGE_INPUT_WANTED:
        return on_input_wanted(front, frame);
    default:
        return message_malformed(frame);
    }
}
