/* link.c - frames over a bufferevent. */
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
    bool above; /* was above the high water mark */
    bool paused, closed;
};

static void end_link(struct link *link, const char *message)
{
    if (link->closed) return;
    link->closed = true;
    bufferevent_disable(link->stream, EV_READ | EV_WRITE);
    link->events.closed(link->arg, message);
}

/* Hands every complete frame up. The handler may pause the link. */
static void on_read(struct bufferevent *stream, void *arg)
{
    struct link *link = arg;
    struct evbuffer *input = bufferevent_get_input(stream);
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
    if (what & BEV_EVENT_EOF) {
        on_read(stream, link); /* what came before the end */
        end_link(link, NULL);
    } else if (what & BEV_EVENT_ERROR) {
        end_link(link, errno == ECONNRESET || errno == EPIPE ? NULL : strerror(errno));
    }
}

struct link *link_open(struct event_base *base, int fd, const struct link_events *events, void *arg)
{
    struct link *link = base_calloc(AREA_LAUNCHER, 1, sizeof *link);
    if (!link) return NULL;
    evutil_make_socket_nonblocking(fd);
    link->stream = bufferevent_socket_new(base, fd, 0);
    if (!link->stream) {
        base_free(AREA_LAUNCHER, link);
        return NULL;
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
    int fd = bufferevent_getfd(link->stream);
    bufferevent_disable(link->stream, EV_READ | EV_WRITE);
    bufferevent_free(
        link->stream); /* completes in the loop, which may never run again: the other side must see the end now */
    close(fd);
    base_free(AREA_LAUNCHER, link);
}

void link_send(struct link *link, struct frame_writer *writer)
{
    if (!link->closed && frame_finish(writer) == NCCLX_SUCCESS)
        bufferevent_write(link->stream, writer->data, writer->used);
    else if (!link->closed)
        end_link(link, base_error_detail());
    frame_release(writer);
    if (link_unsent(link) > LINK_HIGH_WATER) link->above = true;
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
