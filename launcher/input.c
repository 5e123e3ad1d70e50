/* input.c - see input.h. */
#include "config.h"

#include "launcher/input.h"

#include "runtime/base/base.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define INPUT_CHUNK 65536
#define INPUT_FOREGROUND_US 200000 /* how often a launcher in the background looks whether it came to the front */

struct input {
    void (*data)(void *arg, const void *bytes, size_t count);
    void *arg;
    struct event *readable, *look;
    bool regular; /* always readable, and not something epoll takes */
    bool ended;
};

static void read_now(struct input *input)
{
    static char chunk[INPUT_CHUNK];
    ssize_t got = read(STDIN_FILENO, chunk, sizeof chunk);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
        event_add(input->readable, NULL);
        return;
    }
    input->ended = got <= 0;
    input->data(input->arg, chunk, got > 0 ? (size_t)got : 0);
}

static bool in_foreground(void)
{
    return !isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct input *input = arg;
    struct timeval delay = {.tv_usec = INPUT_FOREGROUND_US};
    (void)fd, (void)what;
    if (in_foreground())
        read_now(input);
    else
        event_add(input->look, &delay);
}

void input_want(struct input *input)
{
    if (input->ended) return;
    if (input->regular)
        read_now(input);
    else
        event_add(input->readable, NULL);
}

int input_open(struct event_base *base, void (*data)(void *arg, const void *bytes, size_t count), void *arg,
               struct input **out)
{
    struct stat status;
    struct input *input = base_calloc(AREA_LAUNCHER, 1, sizeof *input);
    *out = input;
    if (!input) return base_error(NCCLX_ERR_NO_MEM, "memory is short for standard input");
    input->data = data;
    input->arg = arg;
    input->regular = fstat(STDIN_FILENO, &status) != 0 || S_ISREG(status.st_mode) || S_ISBLK(status.st_mode) ||
                     (S_ISCHR(status.st_mode) && !isatty(STDIN_FILENO));
    input->readable = event_new(base, STDIN_FILENO, EV_READ, on_readable, input);
    input->look = evtimer_new(base, on_readable, input);
    return input->readable && input->look ? NCCLX_SUCCESS
                                          : base_error(NCCLX_ERR_NO_MEM, "memory is short for standard input");
}

void input_close(struct input *input)
{
    if (!input) return;
    if (input->readable) event_free(input->readable);
    if (input->look) event_free(input->look);
    base_free(AREA_LAUNCHER, input);
}
