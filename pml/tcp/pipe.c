/* pipe.c - pages into sockets. */
#include "config.h"

#include "pml/tcp/pipe.h"

#include "runtime/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/uio.h>
#include <unistd.h>

/* For TCP_PIPE_MOST bytes, wherever in a page they begin, and a header. */
#define PIPE_BYTES (512 << 10)

void tcp_pipes_init(struct tcp_pipes *pipes)
{
    *pipes = (struct tcp_pipes){0};
    for (int i = 0; i < TCP_PIPES; i++) pipes->pipe[i].in = pipes->pipe[i].out = -1;
}

static void close_both(struct tcp_pipe *pipe)
{
    base_process_close(pipe->in);
    base_process_close(pipe->out);
    pipe->in = pipe->out = -1;
    pipe->held = 0;
}

void tcp_pipes_release(struct tcp_pipes *pipes)
{
    for (int i = 0; i < TCP_PIPES; i++) close_both(&pipes->pipe[i]);
}

/* Users may have so many large ones; small ones are worse than a copy. */
static bool make(struct tcp_pipe *pipe)
{
    int ends[2];
    if (pipe->in >= 0) return true;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK)) return false;
    pipe->out = ends[0];
    pipe->in = ends[1];
    bool owned = !base_process_own_fd(pipe->in) && !base_process_own_fd(pipe->out);
    if (owned && fcntl(pipe->in, F_SETPIPE_SZ, PIPE_BYTES) >= 0) return true;
    close_both(pipe);
    return false;
}

struct tcp_pipe *tcp_pipe_take(struct tcp_pipes *pipes)
{
    for (int i = 0; i < TCP_PIPES && !pipes->useless; i++) {
        struct tcp_pipe *pipe = &pipes->pipe[i];
        if (pipe->taken) continue;
        if (!make(pipe)) return NULL;
        pipe->taken = true;
        return pipe;
    }
    return NULL;
}

void tcp_pipe_give(struct tcp_pipe *pipe)
{
    if (pipe->held) close_both(pipe);
    pipe->taken = false;
}

bool tcp_pipe_fill(struct tcp_pipes *pipes, struct tcp_pipe *pipe, const void *header, size_t header_bytes, const char *data,
                   size_t bytes)
{
    const struct iovec pages = {.iov_base = (char *)(uintptr_t)data, .iov_len = bytes};
    ssize_t written = header_bytes ? write(pipe->in, header, header_bytes) : 0;
    if (written == (ssize_t)header_bytes) {
        pipe->held += header_bytes;
        ssize_t put = vmsplice(pipe->in, &pages, 1, SPLICE_F_NONBLOCK);
        if (put > 0) pipe->held += (size_t)put;
        if (put > 0) return true;
    }
    pipes->useless = true;
    return false;
}

/* Other than send(), splice() sends SIGPIPE when the peer has closed the connection, also when part of what is in the pipe went into
 * the socket before that was known, and then says how much. It is not the program's affair: it is held off, and taken back, unless
 * there was one already. */
ssize_t tcp_pipe_drain(struct tcp_pipe *pipe, int fd)
{
    const struct timespec no_wait = {0};
    sigset_t broken, before, pending;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken, &before);
    bool was_pending = sigismember(&before, SIGPIPE) && !sigpending(&pending) && sigismember(&pending, SIGPIPE);
    ssize_t moved = splice(pipe->out, NULL, fd, NULL, pipe->held, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    int error = errno;
    if (moved < (ssize_t)pipe->held && !was_pending) (void)sigtimedwait(&broken, NULL, &no_wait);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    if (moved > 0) pipe->held -= (size_t)moved;
    return moved;
}
