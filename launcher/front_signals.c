/* front_signals.c - signals that ncclxrun passes on or acts on, taken from a descriptor so that they meet the rest in
 * one loop. */
#include "config.h"

#include "launcher/front.h"

#include "launcher/front_progress.h"
#include "launcher/report.h"
#include "runtime/base/base.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void send_signal(struct front *front, int number)
{
    struct frame_writer writer;
    frame_begin(&writer, MESSAGE_SIGNAL);
    frame_put_u32(&writer, (uint32_t)number);
    front_send(front, &writer);
}

/* TERM for the ranks the first time, KILL the second. */
static void end_by_signal(struct front *front, int number)
{
    char text[80];
    snprintf(text, sizeof text, "%s received: ending the job", report_signal(number));
    front_fail(front, 128 + number, text);
    front->ending = true;
    front_end_job(front, front->end_requests++ > 0);
}

static void stop_all(struct front *front)
{
    send_signal(front, SIGTSTP);
    wiring_suspend(front->wiring);
    wiring_flush(front->wiring, 1000);
    raise(SIGSTOP);
}

void front_ask_where(struct front *front)
{
    if (!front->launched) {
        front_progress_tell(front->progress);
        return;
    }
    int known = 0;
    for (const struct job *job = jobs_first(front->jobs); job; job = job->next) known += job->count;
    front_say("%d of %d ranks are running:", jobs_left(front->jobs), known);
    for (const struct job *job = jobs_first(front->jobs); job; job = job->next)
        front_display(job->data, front->nodes, OPTIONS_PLACES, false);
    front_send_empty(front, MESSAGE_DUMP);
}

static void take_signal(struct front *front, int number)
{
    switch (number) {
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
        end_by_signal(front, number);
        break;
    case SIGCHLD:
        wiring_reap(front->wiring);
        front_watch_daemon(front);
        break;
    case SIGQUIT:
        front_ask_where(front);
        break;
    case SIGTSTP:
        stop_all(front);
        break;
    default:
        send_signal(front, number);
        break;
    }
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
    struct signalfd_siginfo info;
    (void)what;
    while (read(fd, &info, sizeof info) == (ssize_t)sizeof info) take_signal(arg, (int)info.ssi_signo);
}

int front_open_signals(struct front *front)
{
    static const int numbers[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,  SIGTSTP,
                                  SIGCONT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCHLD};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction before;
        sigaction(numbers[i], NULL, &before);
        if (numbers[i] == SIGHUP && before.sa_handler == SIG_IGN) continue; /* nohup */
        sigaddset(&set, numbers[i]);
    }
    sigprocmask(SIG_SETMASK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) return base_error(NCCLX_ERR_LIMIT, "no descriptor for signals: %s", strerror(errno));
    front->signals = event_new(front->base, fd, EV_READ | EV_PERSIST, on_signal, front);
    if (!front->signals || event_add(front->signals, NULL))
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for the event loop");
    return NCCLX_SUCCESS;
}
