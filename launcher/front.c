/* front.c - ncclxrun's event loop: from the daemon's greeting to its last word, and what the user is told on the way.
 */
#include "config.h"

#include "launcher/front.h"

#include "launcher/front_progress.h"
#include "launcher/report.h"
#include "runtime/base/base.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FRONT_PATIENCE_NS (2 * BASE_NS_PER_S) /* for output, after the grace */
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

void front_fail(struct front *front, int status, const char *text)
{
    if (front->status >= 0) return;
    front->status = status;
    if (text && !front->options.quiet) front_say("%s", text);
}

static void end_loop(struct front *front)
{
    event_base_loopbreak(front->base);
}

static int on_hello(struct front *front, const struct frame *frame)
{
    struct message_hello hello;
    int code = front->launched ? message_malformed(frame) : message_read_hello(frame, &hello);
    if (code) return code;
    front->launched = true;
    if (strcmp(hello.version, PACKAGE_VERSION)) {
        base_free(AREA_LAUNCHER, hello.cpus);
        return base_error(NCCLX_ERR_BOOTSTRAP, "ncclxd on %s is version %s, ncclxrun is %s: install one version",
                          hello.node, hello.version, PACKAGE_VERSION);
    }
    if (front->status >= 0) { /* --timeout was faster */
        base_free(AREA_LAUNCHER, hello.cpus);
        end_loop(front);
        return NCCLX_SUCCESS;
    }
    front_progress_host(front->progress, 0);
    if (front->options.verbose)
        front_say("ncclxd on %s: %d cpus, files in %s", hello.node, hello.cpu_count, hello.scratch);
    if (front_launch(front, &hello)) {
        front->options.quiet = false; /* it is the user's request that is wrong */
        front_fail(front, FRONT_EXIT_USAGE, base_error_detail());
        front->launched = false;
        end_loop(front);
    }
    return NCCLX_SUCCESS;
}

static int on_started(struct front *front, const struct frame *frame)
{
    struct frame_reader reader;
    frame_read(&reader, frame);
    uint32_t count = frame_get_count(&reader, 8);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t rank = frame_get_u32(&reader);
        uint32_t pid = frame_get_u32(&reader);
        if (rank >= (uint32_t)front->map.rank_count) return message_malformed(frame);
        front->pids[rank] = (pid_t)pid;
    }
    if (front->options.verbose) front_say("%u of %d ranks started", count, front->map.rank_count);
    front_progress_ranks(front->progress, (int)count, front->map.rank_count);
    front_display(front, &front->node, 1, front->options.display & OPTIONS_PIDS, false);
    return frame_read_all(&reader) ? NCCLX_SUCCESS : message_malformed(frame);
}

static int on_output(struct front *front, const struct frame *frame)
{
    struct frame_reader reader;
    size_t bytes;
    frame_read(&reader, frame);
    uint32_t rank = frame_get_u32(&reader);
    uint8_t descriptor = frame_get_u8(&reader);
    const void *data = frame_get_bytes(&reader, &bytes);
    if (!frame_read_all(&reader) || rank >= (uint32_t)front->map.rank_count || descriptor < 1 || descriptor > 2)
        return message_malformed(frame);
    output_take(front->output, (int)rank, descriptor, data, bytes);
    return NCCLX_SUCCESS;
}

static int on_exited(struct front *front, const struct frame *frame)
{
    struct message_exited exited;
    char text[512];
    int code = message_read_exited(frame, &exited);
    if (code) return code;
    if (exited.rank >= front->map.rank_count) return message_malformed(frame);
    front->running--;
    front->pids[exited.rank] = 0;
    report_exit(&exited, front->node.name, text, sizeof text);
    if (report_is_failure(&exited)) {
        size_t used = strlen(text);
        if (front->running > 0)
            snprintf(text + used, sizeof text - used, "; ending the other %d rank%s", front->running,
                     front->running == 1 ? "" : "s");
        front_fail(front, report_exit_status(&exited), text);
    } else if (front->options.verbose) {
        front_say("rank %d on %s (pid %d) ended", exited.rank, front->node.name, exited.pid);
    }
    return NCCLX_SUCCESS;
}

static int on_aborted(struct front *front, const struct frame *frame)
{
    struct frame_reader reader;
    char text[1024];
    frame_read(&reader, frame);
    uint32_t rank = frame_get_u32(&reader);
    int abort_code = (int)frame_get_u32(&reader);
    const char *message = frame_get_text(&reader);
    if (!frame_read_all(&reader) || rank >= (uint32_t)front->map.rank_count) return message_malformed(frame);
    snprintf(text, sizeof text, "rank %u on %s (pid %d) aborted the job with code %d%s%.700s", rank, front->node.name,
             (int)front->pids[rank], abort_code, message && *message ? ": " : "", message ? message : "");
    front_fail(front, (abort_code & 0xff) ? (abort_code & 0xff) : 1,
               text); /* an exit status has 8 bits; an abort is never a success */
    return NCCLX_SUCCESS;
}

static int on_refused(struct front *front, const struct frame *frame)
{
    struct frame_reader reader;
    frame_read(&reader, frame);
    uint32_t status = frame_get_u32(&reader);
    const char *text = frame_get_text(&reader);
    if (!frame_read_all(&reader) || !text || status < 1 || status > 255) return message_malformed(frame);
    front->options.quiet = false;
    front_fail(front, (int)status, text);
    return NCCLX_SUCCESS;
}

static int on_trouble(const struct frame *frame)
{
    struct frame_reader reader;
    frame_read(&reader, frame);
    const char *text = frame_get_text(&reader);
    if (!frame_read_all(&reader) || !text) return message_malformed(frame);
    front_say("%s", text);
    return NCCLX_SUCCESS;
}

static int on_done(struct front *front)
{
    front->done = true;
    output_finish(front->output);
    if (output_is_empty(front->output)) end_loop(front);
    return NCCLX_SUCCESS;
}

static int on_frame(void *arg, const struct frame *frame)
{
    struct front *front = arg;
    if (!front->launched && frame->type != MESSAGE_HELLO) return message_malformed(frame);
    switch (frame->type) {
    case MESSAGE_HELLO:
        return on_hello(front, frame);
    case MESSAGE_STARTED:
        return on_started(front, frame);
    case MESSAGE_OUTPUT:
        return on_output(front, frame);
    case MESSAGE_EXITED:
        return on_exited(front, frame);
    case MESSAGE_ABORTED:
        return on_aborted(front, frame);
    case MESSAGE_REFUSED:
        return on_refused(front, frame);
    case MESSAGE_TROUBLE:
        return on_trouble(frame);
    case MESSAGE_INPUT_WANTED:
        if (front->input) input_want(front->input);
        return NCCLX_SUCCESS;
    case MESSAGE_DONE:
        return on_done(front);
    default:
        return message_malformed(frame);
    }
}

static void on_drained(void *arg)
{
    (void)arg; /* what goes to the daemon is small, or asked for by it */
}

static void explain_lost_daemon(const struct front *front, char *text, size_t bytes)
{
    const char *node = front->node.name[0] ? front->node.name : "this machine";
    int number = front_daemon_signal(front);
    if (number)
        snprintf(text, bytes, "the daemon ncclxd on %s was killed by signal %d (%s); ending the job", node, number,
                 report_signal(number));
    else
        snprintf(text, bytes, "the daemon ncclxd on %s died; ending the job", node);
}

static void on_link_closed(void *arg, const char *message)
{
    struct front *front = arg;
    char text[512];
    if (front->done) return;
    front->daemon_lost = true;
    if (message)
        snprintf(text, sizeof text, "%s; ending the job", message);
    else
        explain_lost_daemon(front, text, sizeof text);
    front_fail(front, 1, text);
    if (front->output) output_finish(front->output);
    if (!front->output || output_is_empty(front->output)) end_loop(front);
}

static void on_full(void *arg, bool full)
{
    struct front *front = arg;
    link_pause(front->link, full);
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
    struct frame_writer writer;
    frame_begin(&writer, MESSAGE_OUTPUT_CLOSED);
    frame_put_u8(&writer, (uint8_t)descriptor);
    link_send(front->link, &writer);
}

static void on_empty(void *arg)
{
    struct front *front = arg;
    if (front->done || front->daemon_lost) end_loop(front);
}

static void arm(struct event *timer, uint64_t ns)
{
    struct timeval delay = {.tv_sec = (time_t)(ns / BASE_NS_PER_S),
                            .tv_usec = (suseconds_t)(ns % BASE_NS_PER_S / 1000)};
    event_add(timer, &delay);
}

static void on_impatience(evutil_socket_t fd, short what, void *arg)
{
    struct front *front = arg;
    (void)fd, (void)what;
    output_discard(front->output);
}

void front_end_job(struct front *front, bool at_once)
{
    struct frame_writer writer;
    frame_begin(&writer, MESSAGE_END);
    frame_put_u8(&writer, at_once);
    link_send(front->link, &writer);
    /* A reader of our output that has stopped must not keep a job alive that is to end. */
    if (at_once)
        output_discard(front->output);
    else
        arm(front->patience, front->options.kill_grace_ns + FRONT_PATIENCE_NS);
}

/* First the ranks say what they wait for, then they are ended. */
static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct front *front = arg;
    (void)fd, (void)what;
    if (front->done || front->ending) return;
    if (front->status < 0) {
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
    return output_open(front->base, &front->options, front->map.rank_count, &events, front, &front->output);
}

static int open_loop(struct front *front)
{
    static const struct link_events link_events = {.frame = on_frame, .drained = on_drained, .closed = on_link_closed};
    int code, fd;
    front->base = event_base_new();
    if (!front->base) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the event loop");
    if ((code = front_open_signals(front))) return code;
    if ((code = front_start_daemon(front, &fd))) return code;
    front->link = link_open(front->base, fd, &link_events, front);
    front->timeout = evtimer_new(front->base, on_timeout, front);
    front->patience = evtimer_new(front->base, on_impatience, front);
    if (!front->link || !front->timeout || !front->patience)
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for the event loop");
    front->progress = front_progress_open(front);
    if (front->options.timeout_ns) arm(front->timeout, front->options.timeout_ns);
    return NCCLX_SUCCESS;
}

int front_run(struct front *front)
{
    front->status = -1;
    if (front_choose_hosts(front) || front_check_variables(front)) {
        front->options.quiet = false; /* it is the user's request that is wrong */
        front_fail(front, FRONT_EXIT_USAGE, base_error_detail());
        return front->status;
    }
    if (front->options.dry_run) return front_dry_run(front);
    if (open_loop(front))
        front_fail(front, FRONT_EXIT_USAGE, base_error_detail());
    else
        event_base_dispatch(front->base);
    front_progress_close(front->progress);
    link_close(front->link);
    if (front->daemon > 0) front_end_daemon(front);
    output_close(front->output);
    input_close(front->input);
    return front->status < 0 ? 0 : front->status;
}
