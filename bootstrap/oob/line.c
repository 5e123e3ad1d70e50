/* line.c - one socket in its handshake: bytes between the core and the system. */
#include "config.h"

#include "bootstrap/oob/endpoint.h"

#include "runtime/base/base.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define LEAVING_BYTES 4096 /* of a refused stranger, which are read and dropped in one go */

void line_options(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void line_close(struct line *line)
{
    base_process_close(line->fd); /* leaves the epoll set with it */
    line->fd = -1;
    shake_end(&line->shake);
}

static bool would_wait(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK;
}

/* False: *error says why. */
static bool write_some(struct line *line, int *error)
{
    for (;;) {
        size_t bytes;
        const void *data = shake_output(&line->shake, &bytes);
        if (!bytes) return true;
        ssize_t done = send(line->fd, data, bytes, MSG_NOSIGNAL);
        if (done >= 0)
            shake_sent(&line->shake, (size_t)done);
        else if (errno != EINTR) {
            *error = errno;
            return would_wait(errno);
        }
    }
}

/* Never more than the handshake takes: the next byte is the user's. False: the end, or *error says why. */
static bool read_some(struct line *line, int *error)
{
    unsigned char data[SHAKE_MAX_BYTES];
    size_t wanted;
    while ((wanted = shake_wanted(&line->shake)) > 0) {
        ssize_t got = recv(line->fd, data, wanted, 0);
        if (got > 0) {
            shake_receive(&line->shake, data, (size_t)got);
        } else if (got == 0) {
            *error = 0;
            return false;
        } else if (errno != EINTR) {
            *error = errno;
            return would_wait(errno);
        }
        size_t unsent; /* an answer has to go before more can come */
        shake_output(&line->shake, &unsent);
        if (unsent) return true;
    }
    return true;
}

/* Whether the stranger that was refused has gone. Closing earlier would make the system send a reset, which may
 * overtake the refusal. */
static bool has_gone(struct line *line)
{
    unsigned char data[LEAVING_BYTES];
    ssize_t got = recv(line->fd, data, sizeof data, 0);
    return got == 0 || (got < 0 && errno != EINTR && !would_wait(errno));
}

static bool connect_result(struct line *line, int *error)
{
    socklen_t length = sizeof *error;
    if (getsockopt(line->fd, SOL_SOCKET, SO_ERROR, error, &length)) *error = errno;
    line->connecting = *error != 0;
    return *error == 0;
}

/* While a key is looked up nothing is: then only the other end's end wakes us. */
static void watch(struct oob *oob, uint64_t id, struct line *line)
{
    size_t unsent;
    shake_output(&line->shake, &unsent);
    uint32_t events = (unsent ? EPOLLOUT : 0) | (shake_wanted(&line->shake) || line->shake.refused ? EPOLLIN : 0);
    if (events == line->watched) return;
    line->watched = events;
    endpoint_watch(oob, line->fd, id, events, true);
}

static bool has_ended(struct line *line)
{
    char byte;
    ssize_t got = recv(line->fd, &byte, 1, MSG_PEEK);
    return got == 0 || (got < 0 && errno != EINTR && !would_wait(errno));
}

enum line_result line_go(struct oob *oob, uint64_t id, struct line *line, int *error)
{
    size_t before, unsent;
    *error = 0;
    if (line->connecting && !connect_result(line, error)) return LINE_FAILED;
    do {
        shake_output(&line->shake, &before);
        if (!write_some(line, error) || !read_some(line, error)) return LINE_FAILED;
        shake_output(&line->shake, &unsent);
    } while (unsent && !before); /* reading has given it something to say */
    *error = 0;
    watch(oob, id, line);
    if (unsent) return LINE_GOING;
    switch (line->shake.state) {
    case SHAKE_TALKING:
        return LINE_GOING;
    case SHAKE_WANTS_KEY:
        return has_ended(line) ? LINE_FAILED : LINE_GOING;
    case SHAKE_DONE:
        return LINE_DONE;
    case SHAKE_FAILED:
        break;
    }
    if (!line->shake.refused) return LINE_FAILED;
    shutdown(line->fd, SHUT_WR);
    return has_gone(line) ? LINE_FAILED : LINE_LEAVING;
}

void line_hand_over(struct oob *oob, struct line *line, struct oob_event *event)
{
    event->peer = line->shake.peer;
    event->tag = line->shake.tag;
    event->fd = line->fd;
    event->address = line->address;
    event->keys = line->shake.keys;
    epoll_ctl(oob->epoll, EPOLL_CTL_DEL, line->fd, NULL);
    line->fd = -1;
    line_close(line);
}
