/* link.c - frames over a bufferevent. A sealed stream is one of records, cut without regard to frames. */
#include "config.h"

#include "launcher/link.h"

#include "runtime/base/base.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

struct link {
    struct bufferevent *stream;
    struct link_events events;
    void *arg;
    struct evbuffer *opened; /* what records held; null: the stream is not sealed */
    struct oob_seal sending, receiving;
    bool above; /* was above the high water mark */
    bool paused, closed;
    bool busy, doomed; /* inside a handler; closed there */
};

static void release(struct link *link)
{
    int fd = bufferevent_getfd(link->stream);
    bufferevent_disable(link->stream, EV_READ | EV_WRITE);
    bufferevent_free(
        link->stream); /* completes in the loop, which may never run again: the other side must see the end now */
    close(fd);
    if (link->opened) evbuffer_free(link->opened);
    oob_wipe(&link->sending, sizeof link->sending);
    oob_wipe(&link->receiving, sizeof link->receiving);
    base_free(AREA_LAUNCHER, link);
}

static void end_link(struct link *link, const char *message)
{
    if (link->closed) return;
    link->closed = true;
    bufferevent_disable(link->stream, EV_READ | EV_WRITE);
    link->events.closed(link->arg, message);
}

/* Opens every complete record. False when the stream is not what the other side wrote. */
static bool open_records(struct link *link)
{
    struct evbuffer *input = bufferevent_get_input(link->stream);
    for (;;) {
        unsigned char header[OOB_RECORD_HEADER];
        ssize_t have = evbuffer_copyout(input, header, sizeof header);
        size_t total = oob_record_bytes(header, have > 0 ? (size_t)have : 0);
        if (total == 0) return false;
        if (total <= OOB_RECORD_HEADER || evbuffer_get_length(input) < total) return true;
        struct evbuffer_iovec room;
        const unsigned char *record = evbuffer_pullup(input, (ev_ssize_t)total);
        if (!record || evbuffer_reserve_space(link->opened, (ev_ssize_t)(total - OOB_RECORD_EXTRA), &room, 1) < 1 ||
            oob_unseal(&link->receiving, record, total, room.iov_base))
            return false;
        room.iov_len = total - OOB_RECORD_EXTRA;
        evbuffer_commit_space(link->opened, &room, 1);
        evbuffer_drain(input, total);
    }
}

/* Hands every complete frame up. The handler may pause or close the link. */
static void take_frames(struct link *link)
{
    struct evbuffer *input = link->opened ? link->opened : bufferevent_get_input(link->stream);
    if (link->opened && !link->closed && !open_records(link)) {
        end_link(link, "the other end of the link sends what is not ours");
        return;
    }
    while (!link->paused && !link->closed) {
        unsigned char header[FRAME_HEADER_BYTES];
        struct frame frame;
        ssize_t have = evbuffer_copyout(input, header, sizeof header);
        if (have <= 0) return;
        if (frame_parse(header, (size_t)have, &frame)) {
            end_link(link, base_error_detail());
            return;
        }
        size_t total = frame_wanted(header, (size_t)have);
        if (evbuffer_get_length(input) < total) return;
        const unsigned char *data = evbuffer_pullup(input, (ev_ssize_t)total);
        if (!data || frame_parse(data, total, &frame) || link->events.frame(link->arg, &frame)) {
            end_link(link, base_error_detail());
            return;
        }
        evbuffer_drain(input, frame.total);
    }
}

static void on_read(struct bufferevent *stream, void *arg)
{
    struct link *link = arg;
    (void)stream;
    link->busy = true;
    take_frames(link);
    link->busy = false;
    if (link->doomed) release(link);
}

static void on_written(struct bufferevent *stream, void *arg)
{
    struct link *link = arg;
    if (!link->above || evbuffer_get_length(bufferevent_get_output(stream)) > LINK_LOW_WATER) return;
    link->above = false;
    link->events.drained(link->arg);
}

static void on_event(struct bufferevent *stream, short what, void *arg)
{
    struct link *link = arg;
    int error = errno;
    (void)stream;
    link->busy = true;
    if (what & BEV_EVENT_EOF) {
        take_frames(link); /* what came before the end */
        end_link(link, NULL);
    } else if (what & BEV_EVENT_ERROR) {
        end_link(link, error == ECONNRESET || error == EPIPE ? NULL : strerror(error));
    }
    link->busy = false;
    if (link->doomed) release(link);
}

struct link *link_open(struct event_base *base, int fd, const struct oob_keys *keys, const struct link_events *events,
                       void *arg)
{
    struct link *link = base_calloc(AREA_LAUNCHER, 1, sizeof *link);
    if (!link) return NULL;
    evutil_make_socket_nonblocking(fd);
    link->stream = bufferevent_socket_new(base, fd, 0);
    if (keys) link->opened = evbuffer_new();
    if (!link->stream || (keys && !link->opened)) {
        if (link->stream) bufferevent_free(link->stream);
        if (link->opened) evbuffer_free(link->opened);
        base_free(AREA_LAUNCHER, link);
        return NULL;
    }
    if (keys) {
        oob_seal_begin(&link->sending, keys->send);
        oob_seal_begin(&link->receiving, keys->receive);
    }
    link->events = *events;
    link->arg = arg;
    bufferevent_setcb(link->stream, on_read, on_written, on_event, link);
    bufferevent_setwatermark(link->stream, EV_WRITE, LINK_LOW_WATER, 0);
    bufferevent_set_max_single_read(link->stream, LINK_LOW_WATER);
    bufferevent_set_max_single_write(link->stream, LINK_LOW_WATER);
    bufferevent_enable(link->stream, EV_READ | EV_WRITE);
    return link;
}

void link_close(struct link *link)
{
    if (!link) return;
    link->closed = true;
    if (link->busy)
        link->doomed = true;
    else
        release(link);
}

/* False when memory is short. */
static bool put_records(struct link *link, const unsigned char *data, size_t bytes)
{
    struct evbuffer *output = bufferevent_get_output(link->stream);
    while (bytes > 0) {
        size_t piece = bytes < OOB_RECORD_MAX ? bytes : OOB_RECORD_MAX;
        struct evbuffer_iovec room;
        if (evbuffer_reserve_space(output, (ev_ssize_t)(piece + OOB_RECORD_EXTRA), &room, 1) < 1) return false;
        oob_seal(&link->sending, data, piece, room.iov_base);
        room.iov_len = piece + OOB_RECORD_EXTRA;
        evbuffer_commit_space(output, &room, 1);
        data += piece;
        bytes -= piece;
    }
    return true;
}

void link_send_whole(struct link *link, const void *data, size_t bytes)
{
    if (link->closed) return;
    bool put = link->opened ? put_records(link, data, bytes) : bufferevent_write(link->stream, data, bytes) == 0;
    if (!put) end_link(link, "memory is short for a message");
    if (link_unsent(link) > LINK_HIGH_WATER) link->above = true;
}

void link_send(struct link *link, struct frame_writer *writer)
{
    if (!link->closed && frame_finish(writer) == NCCLX_SUCCESS)
        link_send_whole(link, writer->data, writer->used);
    else if (!link->closed)
        end_link(link, base_error_detail());
    frame_release(writer);
}

void link_send_empty(struct link *link, uint8_t type)
{
    struct frame_writer writer;
    frame_begin(&writer, type);
    link_send(link, &writer);
}

size_t link_unsent(const struct link *link)
{
    return evbuffer_get_length(bufferevent_get_output(link->stream));
}

void link_pause(struct link *link, bool pause)
{
    if (link->paused == pause || link->closed) return;
    link->paused = pause;
    if (pause) {
        bufferevent_disable(link->stream, EV_READ);
    } else {
        bufferevent_enable(link->stream, EV_READ);
        bufferevent_trigger(link->stream, EV_READ, BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
    }
}

void link_flush(struct link *link, int timeout_ms)
{
    struct evbuffer *output = bufferevent_get_output(link->stream);
    int fd = bufferevent_getfd(link->stream);
    bufferevent_disable(link->stream, EV_WRITE);
    evbuffer_unfreeze(output, 1); /* the bufferevent keeps others from draining it */
    while (!link->closed && evbuffer_get_length(output) > 0) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
        int ready = poll(&poll_fd, 1, timeout_ms);
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0 || (evbuffer_write(output, fd) < 0 && errno != EAGAIN && errno != EINTR)) break;
    }
    evbuffer_freeze(output, 1);
    bufferevent_enable(link->stream, EV_WRITE);
}
