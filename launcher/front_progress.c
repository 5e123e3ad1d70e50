/* front_progress.c - see front_progress.h. */
#include "config.h"

#include "launcher/front_progress.h"

#include "launcher/front.h"
#include "launcher/progress.h"
#include "runtime/base/base.h"

#include <unistd.h>

#define LINE_BYTES 1024

struct front_progress {
    struct front *front;
    struct progress progress;
    bool *here;
    const char **names;
    struct event *timer;
};

static void arm(struct front_progress *told)
{
    uint64_t wait = progress_wait(&told->progress, base_clock_ns());
    struct timeval delay = {.tv_sec = (time_t)(wait / BASE_NS_PER_S),
                            .tv_usec = (suseconds_t)(wait % BASE_NS_PER_S / 1000) + 1};
    if (wait)
        event_add(told->timer, &delay);
    else
        event_del(told->timer);
}

static void tell(struct front_progress *told)
{
    char line[LINE_BYTES];
    if (progress_line(&told->progress, told->names, base_clock_ns(), line, sizeof line)) front_say("%s", line);
    arm(told);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    tell(arg);
}

static bool prepare(struct front_progress *told)
{
    struct front *front = told->front;
    const struct options *options = &front->options;
    size_t count = (size_t)front->hosts.count;
    told->here = base_calloc(AREA_LAUNCHER, count, sizeof *told->here);
    told->names = base_calloc(AREA_LAUNCHER, count, sizeof *told->names);
    told->timer = evtimer_new(front->base, on_timer, told);
    if (!told->here || !told->names || !told->timer) return false;
    for (int i = 0; i < front->hosts.count; i++) told->names[i] = front->hosts.entries[i].name;
    progress_begin(&told->progress, told->here, front->hosts.count, options->show_progress,
                   !options->quiet && isatty(STDERR_FILENO), base_clock_ns());
    return true;
}

struct front_progress *front_progress_open(struct front *front)
{
    struct front_progress *told = base_calloc(AREA_LAUNCHER, 1, sizeof *told);
    if (!told) return NULL;
    told->front = front;
    if (prepare(told)) {
        tell(told);
        return told;
    }
    front_progress_close(told);
    return NULL;
}

void front_progress_host(struct front_progress *told, int host)
{
    if (told) progress_host(&told->progress, host);
}

void front_progress_ranks(struct front_progress *told, int started, int of)
{
    if (!told) return;
    progress_ranks(&told->progress, started, of);
    if (started == of) tell(told);
}

void front_progress_tell(struct front_progress *told)
{
    char line[LINE_BYTES];
    if (!told) return;
    progress_state(&told->progress, told->names, base_clock_ns(), line, sizeof line);
    front_say("%s", line);
}

void front_progress_close(struct front_progress *told)
{
    if (!told) return;
    if (told->timer) event_free(told->timer);
    base_free(AREA_LAUNCHER, told->here);
    base_free(AREA_LAUNCHER, told->names);
    base_free(AREA_LAUNCHER, told);
}
