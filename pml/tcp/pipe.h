/* pipe.h - large data goes into a socket as the pages that hold it, through a pipe: nothing is copied at this end. Between
 * processes of one machine the receiver copies straight out of them.
 *
 * Only where both ends have one address: between hosts copies were as fast, and faster from 128 KiB to 1 MiB, as a packet holds
 * far fewer pieces of them (tests/perf/README.md).
 *
 * The pages stay in use until the peer has read them. So this is for data that stays as it is until the peer has said that
 * it is in its place, as all that lanes carry does. (MSG_ZEROCOPY would be for others, too, but copies where both ends are
 * on one machine.) */
#ifndef PML_TCP_PIPE_H
#define PML_TCP_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define TCP_PIPES 4                  /* of a process; who finds none free copies */
#define TCP_PIPE_LEAST ((size_t)32768)  /* below, copying is faster */
#define TCP_PIPE_MOST ((size_t)262144)  /* at a time: the receiver begins while more is got ready */

struct tcp_pipe {
    int in, out; /* -1: not made yet */
    size_t held; /* bytes that are in it */
    bool taken;
};

struct tcp_pipes {
    struct tcp_pipe pipe[TCP_PIPES];
    bool useless; /* this system has none for us */
};

void tcp_pipes_init(struct tcp_pipes *pipes);
void tcp_pipes_release(struct tcp_pipes *pipes);
/* An empty one; null: none is free. */
struct tcp_pipe *tcp_pipe_take(struct tcp_pipes *pipes);
/* What is still in it is lost. */
void tcp_pipe_give(struct tcp_pipe *pipe);
/* Puts a copy of the header and the pages of the data in, of which there may be too many: held says. False: that is not possible here,
 * and pipes are useless. */
bool tcp_pipe_fill(struct tcp_pipes *pipes, struct tcp_pipe *pipe, const void *header, size_t header_bytes, const char *data,
                   size_t bytes);
/* What is in it goes to the socket. As send() returns. */
ssize_t tcp_pipe_drain(struct tcp_pipe *pipe, int fd);

#endif
