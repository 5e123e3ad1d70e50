/* front.c - ncclxrun's event loop: from the first daemon to the last byte of output. */
#include "config.h"

#include "launcher/front.h"

#include "launcher/front_progress.h"
#include "runtime/base/base.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FRONT_PATIENCE_NS (2 * BASE_NS_PER_S) /* for output, after the grace */
#define FRONT_AGENTS_MS 3000                  /* for agents to end, once their daemons have */
#define FRONT_DUMP_NS BASE_NS_PER_S           /* between the dump at --timeout and the end */

static void write_line(const char *line, size_t length)
{
    while (length > 0) {
        ssize_t wrote = write(STDERR_FILENO, line, length);
        if (wrote < 0 && errno != EINTR) return;
        if (wrote < 0) continue;
        line += wrote;
        length -= (size_t)wrote;
    }
}

void front_say(const char *format, ...)
{
    char line[2048] = "ncclxrun: ";
    size_t used = strlen(line);
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line + used, sizeof line - used - 1, format, arguments);
    va_end(arguments);
    if (length < 0) return;
    used += (size_t)length < sizeof line - used - 2 ? (size_t)length : sizeof line - used - 2;
    line[used++] = '\n';
    write_line(line, used);
}

static void arm(struct event *timer, uint64_t ns)
{
    struct timeval delay = {.tv_sec = (time_t)(ns / BASE_NS_PER_S),
                            .tv_usec = (suseconds_t)(ns % BASE_NS_PER_S / 1000)};
    event_add(timer, &delay);
}

static void tell_blame(struct front *front, bool job_has_ended)
{
    uint64_t now = base_clock_ns();
    const char *text = blame_tell(&front->blame, job_has_ended, now);
    if (text && !front->options.quiet) front_say("%s", text);
    if (blame_deadline(&front->blame) != UINT64_MAX) arm(front->teller, blame_deadline(&front->blame) - now);
}

static void on_teller(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    tell_blame(arg, false);
}

void front_blame(struct front *front, enum blame_kind kind, int status, const char *text)
{
    blame_take(&front->blame, kind, status, text, base_clock_ns());
    tell_blame(front, front->done);
}

void front_blame_job(struct front *front, enum blame_kind kind, int status, const char *text)
{
    front_blame(front, kind, status, text);
    if (!front->done) front_end_job(front, false);
}

void front_fail(struct front *front, int status, const char *text)
{
    front_blame(front, BLAME_OTHER, status, text);
}

void front_fail_job(struct front *front, int status, const char *text)
{
    front_blame_job(front, BLAME_OTHER, status, text);
}

void front_finish(struct front *front)
{
    front->done = true;
    tell_blame(front, true);
    if (front->output) output_finish(front->output);
    if (!front->output || output_is_empty(front->output)) event_base_loopbreak(front->base);
}

void front_send(struct front *front, struct frame_writer *writer)
{
    struct frame frame;
    if (frame_finish(writer) == NCCLX_SUCCESS && frame_parse(writer->data, writer->used, &frame) == NCCLX_SUCCESS)
        wiring_spread(front->wiring, &frame);
    frame_release(writer);
}

void front_send_empty(struct front *front, uint8_t type)
{
    struct frame_writer writer;
    frame_begin(&writer, type);
    front_send(front, &writer);
}

void front_close_output(struct front *front, int descriptor)
{
    struct frame_writer writer;
    frame_begin(&writer, MESSAGE_OUTPUT_CLOSED);
    frame_put_u8(&writer, (uint8_t)descriptor);
    front_send(front, &writer);
}

static void on_full(void *arg, bool full)
{
    struct front *front = arg;
    wiring_hold_below(front->wiring, full);
}

static void on_lost(void *arg, int descriptor, const char *reason)
{
    struct front *front = arg;
    char text[512];
    if (reason) {
        snprintf(text, sizeof text, "output is lost: %s%s", descriptor == STDOUT_FILENO ? "standard output: " : "",
                 reason);
        front_fail(front, 1, text);
    }
    if (descriptor == 0) return;
    front->closed[descriptor] = true;
    front_close_output(front, descriptor);
    jobs_output_ended(front->jobs, -1, descriptor);
    front_review_jobs(front);
}

static void on_empty(void *arg)
{
    struct front *front = arg;
    if (front->done) event_base_loopbreak(front->base);
}

static void on_impatience(evutil_socket_t fd, short what, void *arg)
{
    struct front *front = arg;
    (void)fd, (void)what;
    if (front->output) output_discard(front->output);
}

void front_await_end(struct front *front)
{
    arm(front->patience, front->options.kill_grace_ns + FRONT_PATIENCE_NS);
}

void front_end_job(struct front *front, bool at_once)
{
    if (front->end_told && !at_once) return;
    front->end_told = true;
    wiring_end(front->wiring, at_once);
    /* A reader of our output that has stopped must not keep a job alive that is to end. */
    if (at_once && front->output)
        output_discard(front->output);
    else
        front_await_end(front);
}

/* First the ranks say what they wait for, then they are ended. */
static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct front *front = arg;
    (void)fd, (void)what;
    if (front->done || front->ending) return;
    if (front->blame.status < 0) {
        char text[80];
        snprintf(text, sizeof text, "the job ran longer than %g seconds (--timeout): ending it",
                 (double)front->options.timeout_ns / 1e9);
        front_fail(front, FRONT_EXIT_TIMEOUT, text);
        front_ask_where(front);
        arm(front->timeout, FRONT_DUMP_NS);
        return;
    }
    front_end_job(front, false);
}

int front_open_output(struct front *front)
{
    static const struct output_events events = {.full = on_full, .lost = on_lost, .empty = on_empty};
    return output_open(front->base, &front->options, &events, front, &front->output);
}

static int open_loop(struct front *front)
{
    int code;
    front->base = event_base_new();
    if (!front->base) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the event loop");
    front->timeout = evtimer_new(front->base, on_timeout, front);
    front->patience = evtimer_new(front->base, on_impatience, front);
    front->teller = evtimer_new(front->base, on_teller, front);
    if (!front->timeout || !front->patience || !front->teller)
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for the event loop");
    front->progress = front_progress_open(front);
    front->jobs = jobs_create(front->node_count);
    if (!front->jobs) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the jobs");
    if ((code = front_open_signals(front)) || (code = front_open_tree(front))) return code;
    if (front->options.timeout_ns) arm(front->timeout, front->options.timeout_ns);
    return NCCLX_SUCCESS;
}

int front_run(struct front *front)
{
    blame_open(&front->blame);
    if (front_choose_hosts(front) || front_place_hosts(front) || front_check_variables(front)) {
        front->options.quiet = false; /* it is the user's request that is wrong */
        front_fail(front, FRONT_EXIT_USAGE, base_error_detail());
        return front->blame.status;
    }
    if (front->options.dry_run) return front_dry_run(front);
    if (open_loop(front))
        front_fail(front, FRONT_EXIT_USAGE, base_error_detail());
    else if (!front->done)
        event_base_dispatch(front->base);
    front_progress_close(front->progress);
    wiring_close(front->wiring, FRONT_AGENTS_MS);
    if (front->daemon > 0) front_end_daemon(front);
    output_close(front->output);
    input_close(front->input);
    oob_wipe(front->order.secret, sizeof front->order.secret);
    return front->blame.status < 0 ? 0 : front->blame.status;
}
