/* daemon_frames.c - what comes over the links of a daemon: orders from above, which also go on to those below, and what
 * those below say, which goes up. */
#include "config.h"

#include "launcher/daemon.h"

#include "runtime/base/base.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/* ---- From above ------------------------------------------------------------------------------------------------- */

/* Input for one rank goes the way to it, for all of them everywhere. */
static void pass_input(struct daemon *daemon, const struct frame *frame, const void *data, size_t bytes)
{
    const struct message_launch *launch = &daemon->jobs->launch; /* no other job reads the user's input */
    int target = launch->input_rank < 0 ? TREE_EVERYBODY : launch->positions[launch->ranks[launch->input_rank].node];
    struct tree_way way = tree_way(&daemon->order->tree.shape, daemon->order->tree.position, target);
    for (int i = 0; i < way.link_count; i++) {
        if (!tree_is_open(wiring_tree(daemon->wiring), way.first + i)) continue;
        if (bytes) daemon->inputs_behind++;
        wiring_pass(daemon->wiring, way.first + i, frame);
    }
    if (way.here) daemon_forward_input(daemon, data, bytes);
}

static int on_input(struct daemon *daemon, const struct frame *frame)
{
    struct frame_reader reader;
    size_t bytes;
    frame_read(&reader, frame);
    const void *data = frame_get_bytes(&reader, &bytes);
    if (!frame_read_all(&reader) || daemon->phase == DAEMON_IDLE) return message_malformed(frame);
    if (bytes == 0) daemon->input_ended = true;
    if (daemon->inputs_behind > 0 && bytes) return message_malformed(frame); /* it was not asked for */
    daemon->input_read = false;
    daemon->inputs_behind++; /* until all have been handed it */
    pass_input(daemon, frame, data, bytes);
    daemon_input_taken(daemon);
    return NCCLX_SUCCESS;
}

static int on_signal(struct daemon *daemon, const struct frame *frame)
{
    struct frame_reader reader;
    frame_read(&reader, frame);
    uint32_t number = frame_get_u32(&reader);
    if (!frame_read_all(&reader) || number == 0 || number >= NSIG) return message_malformed(frame);
    daemon_signal_ranks(daemon, (int)number);
    return NCCLX_SUCCESS;
}

static int on_output_closed(struct daemon *daemon, const struct frame *frame)
{
    struct frame_reader reader;
    frame_read(&reader, frame);
    uint8_t descriptor = frame_get_u8(&reader);
    if (!frame_read_all(&reader)) return message_malformed(frame);
    daemon_close_output(daemon, descriptor);
    return NCCLX_SUCCESS;
}

/* What is for all ranks must not come before the last has been started. */
static bool is_early(const struct daemon *daemon, const struct frame *frame)
{
    return daemon_starts(daemon) &&
           (frame->type == MESSAGE_SIGNAL || frame->type == MESSAGE_INPUT || frame->type == MESSAGE_OUTPUT_CLOSED);
}

static int hold_back(struct daemon *daemon, const struct frame *frame)
{
    if (!daemon->held) daemon->held = evbuffer_new();
    if (!daemon->held || evbuffer_add(daemon->held, frame->payload - FRAME_HEADER_BYTES, frame->total))
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for orders");
    return NCCLX_SUCCESS;
}

/* To the daemon of the rank that asked for a job. */
static int on_spawned(struct daemon *daemon, const struct frame *frame)
{
    struct spawn_answer answer;
    int code = spawn_read_answer(frame, &answer);
    if (code) return code;
    int node = daemon->server ? server_node(daemon->server, answer.caller) : -1;
    if (node < 0) return NCCLX_SUCCESS; /* it has ended since */
    int position = daemon->jobs->launch.positions[node];
    struct tree_way way = tree_way(&daemon->order->tree.shape, daemon->order->tree.position, position);
    if (way.up) return message_malformed(frame);
    for (int i = 0; i < way.link_count; i++) wiring_pass(daemon->wiring, way.first + i, frame);
    if (way.here) server_spawned(daemon->server, &answer);
    return NCCLX_SUCCESS;
}

static int on_complete(struct daemon *daemon)
{
    daemon->complete = true;
    daemon_look_for_end(daemon);
    return NCCLX_SUCCESS;
}

static int on_order(struct daemon *daemon, const struct frame *frame)
{
    if (is_early(daemon, frame)) return hold_back(daemon, frame);
    switch (frame->type) {
    case MESSAGE_LAUNCH:
        wiring_spread(daemon->wiring, frame);
        return daemon_launch(daemon, frame);
    case MESSAGE_SIGNAL:
        wiring_spread(daemon->wiring, frame);
        return on_signal(daemon, frame);
    case MESSAGE_DUMP:
        wiring_spread(daemon->wiring, frame);
        if (daemon->server) server_dump(daemon->server);
        daemon_tell_where(daemon);
        return NCCLX_SUCCESS;
    case MESSAGE_INPUT:
        return on_input(daemon, frame);
    case MESSAGE_SPAWNED:
        return on_spawned(daemon, frame);
    case MESSAGE_CANCEL:
        wiring_spread(daemon->wiring, frame);
        return daemon_cancel(daemon, frame);
    case MESSAGE_RETIRE: {
        int code = daemon_retire(daemon, frame); /* what was said of it before goes down before */
        if (!code) wiring_spread(daemon->wiring, frame);
        return code;
    }
    case MESSAGE_COMPLETE:
        wiring_spread(daemon->wiring, frame);
        return on_complete(daemon);
    case MESSAGE_OUTPUT_CLOSED:
        wiring_spread(daemon->wiring, frame);
        return on_output_closed(daemon, frame);
    default:
        return message_malformed(frame);
    }
}

void daemon_take_held(struct daemon *daemon)
{
    struct evbuffer *held = daemon_starts(daemon) ? NULL : daemon->held;
    struct frame frame;
    size_t bytes;
    if (held) daemon->held = NULL;
    while (held && (bytes = evbuffer_get_length(held)) > 0) {
        const unsigned char *data = evbuffer_pullup(held, -1);
        int code = data ? frame_parse(data, bytes, &frame) : base_error(NCCLX_ERR_NO_MEM, "memory is short for orders");
        if (!code) code = on_order(daemon, &frame);
        if (code) {
            daemon_refuse(daemon, 1, base_error_detail());
            break;
        }
        evbuffer_drain(held, frame.total);
    }
    if (held) evbuffer_free(held);
}

/* ---- From below ------------------------------------------------------------------------------------------------- */

static int on_input_wanted(struct daemon *daemon, const struct frame *frame)
{
    struct frame_reader reader;
    frame_read(&reader, frame);
    bool read = frame_get_u8(&reader);
    if (!frame_read_all(&reader) || daemon->inputs_behind == 0) return message_malformed(frame);
    daemon->input_read |= read;
    daemon_input_taken(daemon);
    return NCCLX_SUCCESS;
}

static int on_report(struct daemon *daemon, const struct frame *frame)
{
    switch (frame->type) {
    case MESSAGE_STARTED:
    case MESSAGE_OUTPUT:
    case MESSAGE_EXITED:
    case MESSAGE_ABORTED:
    case MESSAGE_DYING:
    case MESSAGE_SPAWN:
    case MESSAGE_REFUSED:
    case MESSAGE_TROUBLE:
        wiring_pass(daemon->wiring, TREE_PARENT, frame);
        if (wiring_full(daemon->wiring, TREE_PARENT)) daemon_pause_streams(daemon, true);
        return NCCLX_SUCCESS;
    case MESSAGE_INPUT_WANTED:
        return on_input_wanted(daemon, frame);
    default:
        return message_malformed(frame);
    }
}

/* ---- Events of the wiring --------------------------------------------------------------------------------------- */

static int on_frame(void *arg, int link, const struct frame *frame)
{
    struct daemon *daemon = arg;
    if (frame->type == MESSAGE_KVX && daemon->phase != DAEMON_IDLE)
        return daemon->server ? server_receive(daemon->server, link, frame->payload, frame->bytes) : NCCLX_SUCCESS;
    return link == TREE_PARENT ? on_order(daemon, frame) : on_report(daemon, frame);
}

void daemon_send_to_server(void *arg, int link, const void *data, size_t bytes)
{
    struct daemon *daemon = arg;
    struct frame_writer writer;
    frame_begin(&writer, MESSAGE_KVX);
    frame_put_raw(&writer, data, bytes);
    wiring_send(daemon->wiring, link, &writer);
    if (link == TREE_PARENT && wiring_full(daemon->wiring, link)) daemon_pause_streams(daemon, true);
    if (link != TREE_PARENT && wiring_full_below(daemon->wiring)) wiring_hold_above(daemon->wiring, true);
}

static void on_drained(void *arg, int link)
{
    struct daemon *daemon = arg;
    if (link == TREE_PARENT)
        daemon_pause_streams(daemon, false);
    else if (!wiring_full_below(daemon->wiring))
        wiring_hold_above(daemon->wiring, false);
}

static void on_closed(void *arg, int link)
{
    struct daemon *daemon = arg;
    bool ends = link != TREE_PARENT && tree_is_ending(wiring_tree(daemon->wiring)); /* those below leave, as they should */
    if (daemon->server && !ends) server_link_lost(daemon->server, link);
    if (link != TREE_PARENT && !wiring_full_below(daemon->wiring)) wiring_hold_above(daemon->wiring, false);
}

static pid_t on_neighbour(void *arg)
{
    const struct daemon *daemon = arg;
    return daemon->parent;
}

static void on_say(void *arg, const char *text)
{
    daemon_trouble(arg, text);
}

/* Everything ends here; when nobody is above any more, also what nobody reads. */
static void on_end_local(void *arg, bool at_once, bool orphan)
{
    struct daemon *daemon = arg;
    daemon_take_deaths(daemon); /* they are not of this */
    if (orphan) {
        daemon->alone = true;
        daemon_close_output(daemon, STDOUT_FILENO);
        daemon_close_output(daemon, STDERR_FILENO);
    }
    if (daemon->phase == DAEMON_IDLE)
        daemon_job_over(daemon);
    else if (daemon->gone && orphan)
        daemon_drain_streams(daemon);
    else
        daemon_end(daemon, at_once);
    daemon_look_for_end(daemon);
}

static void on_finished(void *arg)
{
    struct daemon *daemon = arg;
    event_base_loopbreak(daemon->base);
}

static void on_unreachable(void *arg, const char *why)
{
    struct daemon *daemon = arg;
    daemon->unreachable = true;
    daemon_say(why);
    event_base_loopbreak(daemon->base);
}

const struct wiring_events daemon_wiring_events = {.frame = on_frame,
                                                   .drained = on_drained,
                                                   .closed = on_closed,
                                                   .neighbour = on_neighbour,
                                                   .say = on_say,
                                                   .end_local = on_end_local,
                                                   .finished = on_finished,
                                                   .unreachable = on_unreachable};
