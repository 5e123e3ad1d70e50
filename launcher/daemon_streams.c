/* daemon_streams.c - output of ranks up the tree, forwarded input to ranks. A link that is full stops the reading, so
 * that a slow reader of ncclxrun's output slows the ranks down instead of filling memory. */
#include "config.h"

#include "launcher/daemon.h"

#include "runtime/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define STREAM_CHUNK 65536 /* what a pipe holds */

static void send_output(struct daemon *daemon, const struct daemon_stream *stream, const void *data, size_t bytes)
{
    struct frame_writer writer;
    if (daemon->alone) return;
    frame_begin(&writer, MESSAGE_OUTPUT);
    frame_put_u32(&writer, (uint32_t)daemon_number(stream->rank));
    frame_put_u8(&writer, (uint8_t)stream->descriptor);
    frame_put_bytes(&writer, data, bytes);
    daemon_send(daemon, &writer);
}

static void finish_if_over(struct daemon *daemon)
{
    if (daemon->gone && daemon->open_streams == 0) daemon_job_over(daemon);
}

static void close_stream(struct daemon_stream *stream, bool tell)
{
    struct daemon *daemon = stream->rank->job->daemon;
    if (stream->fd < 0) return;
    event_free(stream->readable);
    close(stream->fd);
    stream->fd = -1;
    daemon->open_streams--;
    if (tell) send_output(daemon, stream, NULL, 0);
}

/* Reads once. False when there is nothing more now. */
static bool read_stream(struct daemon_stream *stream)
{
    static char chunk[STREAM_CHUNK];
    struct daemon *daemon = stream->rank->job->daemon;
    ssize_t got = read(stream->fd, chunk, sizeof chunk);
    if (got > 0) {
        send_output(daemon, stream, chunk, (size_t)got);
        if (wiring_full(daemon->wiring, TREE_PARENT)) daemon_pause_streams(daemon, true);
        return true;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR) && !daemon->gone) return false;
    close_stream(stream, true); /* its end; or empty, with nobody left who could write */
    return false;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct daemon_stream *stream = arg;
    struct daemon *daemon = stream->rank->job->daemon;
    (void)fd, (void)what;
    read_stream(stream);
    finish_if_over(daemon);
}

/* All streams of all ranks in turn: null begins, and ends. */
static struct daemon_stream *next_stream(struct daemon *daemon, struct daemon_stream *stream)
{
    struct daemon_job *job = stream ? stream->rank->job : daemon->jobs;
    if (stream && stream == &stream->rank->streams[0]) return &stream->rank->streams[1];
    int at = stream ? (int)(stream->rank - job->ranks) + 1 : 0;
    while (job && at >= job->rank_count) {
        job = job->next;
        at = 0;
    }
    return job ? &job->ranks[at].streams[0] : NULL;
}

void daemon_pause_streams(struct daemon *daemon, bool pause)
{
    struct daemon_stream *stream = NULL;
    if (daemon->paused == pause) return;
    daemon->paused = pause;
    wiring_hold_below(daemon->wiring, pause);
    while ((stream = next_stream(daemon, stream))) {
        if (stream->fd < 0) continue;
        if (pause)
            event_del(stream->readable);
        else
            event_add(stream->readable, NULL);
    }
    if (!pause && daemon->gone) daemon_drain_streams(daemon);
}

void daemon_drain_streams(struct daemon *daemon)
{
    struct daemon_stream *stream = NULL;
    while ((stream = next_stream(daemon, stream))) {
        while (stream->fd >= 0) {
            if (!daemon->alone && wiring_full(daemon->wiring, TREE_PARENT)) return; /* on_drained comes back here */
            read_stream(stream);
        }
    }
    finish_if_over(daemon);
}

void daemon_close_output(struct daemon *daemon, int descriptor)
{
    struct daemon_stream *stream = NULL;
    while ((stream = next_stream(daemon, stream)))
        if (stream->descriptor == descriptor) close_stream(stream, false);
    finish_if_over(daemon);
}

void daemon_close_streams(struct daemon_rank *rank)
{
    for (int i = 0; i < 2; i++) close_stream(&rank->streams[i], false);
}

static int open_output(struct daemon_stream *stream, int *child_fd)
{
    int ends[2];
    struct daemon *daemon = stream->rank->job->daemon;
    if (pipe2(ends, O_CLOEXEC))
        return base_error(NCCLX_ERR_LIMIT, "no pipe for the output of rank %d: %s", stream->rank->rank,
                          strerror(errno));
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    stream->readable = event_new(daemon->base, ends[0], EV_READ | EV_PERSIST, on_readable, stream);
    if (!stream->readable || (!daemon->paused && event_add(stream->readable, NULL))) {
        close(ends[0]);
        close(ends[1]);
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for the streams of rank %d", stream->rank->rank);
    }
    stream->fd = ends[0];
    daemon->open_streams++;
    *child_fd = ends[1];
    return NCCLX_SUCCESS;
}

/* ---- Input ------------------------------------------------------------------------------------------------------ */

void daemon_input_taken(struct daemon *daemon)
{
    if (--daemon->inputs_behind > 0 || daemon->input_ended || daemon->alone) return;
    struct frame_writer writer;
    frame_begin(&writer, MESSAGE_INPUT_WANTED);
    frame_put_u8(&writer, daemon->input_read);
    daemon_send(daemon, &writer);
}

void daemon_close_input(struct daemon_rank *rank)
{
    if (rank->input_fd < 0) return;
    bool behind = evbuffer_get_length(rank->input) > 0;
    event_free(rank->writable);
    evbuffer_free(rank->input);
    close(rank->input_fd);
    rank->input_fd = -1;
    if (behind) daemon_input_taken(rank->job->daemon);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct daemon_rank *rank = arg;
    struct daemon *daemon = rank->job->daemon;
    (void)what;
    if (evbuffer_write(rank->input, fd) < 0 && errno != EAGAIN && errno != EINTR) {
        daemon_close_input(rank); /* it closed its input or is gone */
        return;
    }
    if (evbuffer_get_length(rank->input) > 0) {
        event_add(rank->writable, NULL);
        return;
    }
    if (daemon->input_ended) daemon_close_input(rank);
    daemon_input_taken(daemon);
}

void daemon_forward_input(struct daemon *daemon, const void *data, size_t bytes)
{
    struct daemon_job *job = daemon->jobs; /* the one that reads the user's input */
    for (int i = 0; i < job->rank_count; i++) {
        struct daemon_rank *rank = &job->ranks[i];
        if (rank->input_fd < 0) continue;
        bool behind = evbuffer_get_length(rank->input) > 0;
        if (bytes == 0 && !behind) daemon_close_input(rank);
        if (bytes == 0) continue;
        if (!behind) daemon->inputs_behind++;
        daemon->input_read = true;
        evbuffer_add(rank->input, data, bytes);
        event_add(rank->writable, NULL);
    }
}

static int open_input(struct daemon_rank *rank, int *child_fd)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return base_error(NCCLX_ERR_LIMIT, "no pipe for the input of rank %d: %s", rank->rank, strerror(errno));
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    rank->input = evbuffer_new();
    rank->writable = event_new(rank->job->daemon->base, ends[1], EV_WRITE, on_writable, rank);
    if (!rank->input || !rank->writable) {
        close(ends[0]);
        close(ends[1]);
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for the streams of rank %d", rank->rank);
    }
    rank->input_fd = ends[1];
    *child_fd = ends[0];
    return NCCLX_SUCCESS;
}

int daemon_open_streams(struct daemon_rank *rank, int child_stdio[3], bool wants_input)
{
    int code;
    for (int i = 0; i < 2; i++)
        if ((code = open_output(&rank->streams[i], &child_stdio[i + 1]))) return code;
    return wants_input ? open_input(rank, &child_stdio[0]) : NCCLX_SUCCESS;
}
