/* output.c - see output.h. Standard output may be a pipe that nobody reads for hours, and its file description belongs
 * to the user's shell: it must not be made non-blocking, and writing to it must not block. */
#include "config.h"

#include "launcher/output.h"

#include "runtime/base/base.h"

#include <errno.h>
#include <event2/buffer.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define OUTPUT_HIGH_WATER (4u << 20)
#define OUTPUT_PIECES 64
#define OUTPUT_LOW_WATER (1u << 20)
#define OUTPUT_MAX_LINE (1u << 20) /* a longer line is split when lines are kept whole */
#define OUTPUT_MAX_HELD (1u << 16) /* of an unfinished line, when lines are passed on as they are */
#define OUTPUT_HOLD_US 200000      /* how long at most it is held, so that a prompt appears */

/* Standard output or standard error. */
struct sink {
    struct output *output;
    int fd;
    bool regular; /* always takes something */
    bool polled;  /* cannot be written without waiting, except as poll says */
    bool lost;
    struct evbuffer *waiting;
    struct event *writable;
};

/* A line of one rank that is not finished yet. */
struct partial {
    char *text;
    size_t used, room;
};

/* The ranks of a job. */
struct group {
    struct group *next;
    int first, count;
    char label[16];
    struct partial partials[]; /* two a rank */
};

/* Whose stream it is. */
struct source {
    const struct group *group;
    int rank, descriptor;
};

struct output {
    struct output_events events;
    void *arg;
    struct sink sinks[2];
    struct group *groups; /* the first job's comes first */
    struct event *hold;   /* when unfinished lines are shown after all */
    int directory;        /* of --output; -1: none */
    bool tag, timestamp, full, file_failed;
};

static size_t waiting_bytes(const struct output *output)
{
    return evbuffer_get_length(output->sinks[0].waiting) + evbuffer_get_length(output->sinks[1].waiting);
}

bool output_is_empty(const struct output *output)
{
    return waiting_bytes(output) == 0;
}

static void check_levels(struct output *output)
{
    size_t bytes = waiting_bytes(output);
    bool full = output->full ? bytes > OUTPUT_LOW_WATER : bytes > OUTPUT_HIGH_WATER;
    if (full != output->full) {
        output->full = full;
        output->events.full(output->arg, full);
    }
    if (bytes == 0) output->events.empty(output->arg);
}

static void lose_sink(struct sink *sink, int error)
{
    sink->lost = true;
    evbuffer_drain(sink->waiting, evbuffer_get_length(sink->waiting));
    sink->output->events.lost(sink->output->arg, sink->fd, error == EPIPE ? NULL : strerror(error));
}

/* Writes without waiting, whatever the descriptor's flags are. Where the kernel cannot (terminals; pipes before
 * Linux 6.5), what poll says is relied on: a pipe then takes PIPE_BUF bytes. Returns bytes, or -1 with errno. */
static ssize_t write_some(struct sink *sink)
{
    struct evbuffer_iovec pieces[OUTPUT_PIECES];
    struct pollfd ready = {.fd = sink->fd, .events = POLLOUT};
    if (sink->regular) return evbuffer_write(sink->waiting, sink->fd);
    if (!sink->polled) {
        int count = evbuffer_peek(sink->waiting, -1, NULL, pieces, OUTPUT_PIECES);
        ssize_t wrote = pwritev2(sink->fd, pieces, count < OUTPUT_PIECES ? count : OUTPUT_PIECES, -1, RWF_NOWAIT);
        if (wrote > 0) evbuffer_drain(sink->waiting, (size_t)wrote);
        if (wrote >= 0 || errno != EOPNOTSUPP) return wrote;
        sink->polled = true;
    }
    if (poll(&ready, 1, 0) > 0) return evbuffer_write_atmost(sink->waiting, sink->fd, PIPE_BUF);
    errno = EAGAIN;
    return -1;
}

/* Writes while the descriptor takes something. */
static void write_sink(struct sink *sink)
{
    while (evbuffer_get_length(sink->waiting) > 0) {
        if (write_some(sink) >= 0) continue;
        if (errno == EAGAIN || errno == EINTR) break;
        lose_sink(sink, errno);
        return;
    }
    if (evbuffer_get_length(sink->waiting) > 0) event_add(sink->writable, NULL);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct sink *sink = arg;
    (void)fd, (void)what;
    write_sink(sink);
    check_levels(sink->output);
}

static void put(struct sink *sink, const void *data, size_t bytes)
{
    if (!sink->lost && bytes) evbuffer_add(sink->waiting, data, bytes);
}

static void put_prefix(struct output *output, struct sink *sink, const struct source *source)
{
    char text[80];
    if (output->timestamp) {
        struct timespec now;
        struct tm local;
        clock_gettime(CLOCK_REALTIME, &now);
        localtime_r(&now.tv_sec, &local);
        size_t length = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &local);
        length += (size_t)snprintf(text + length, sizeof text - length, ".%06ld ", now.tv_nsec / 1000);
        put(sink, text, length);
    }
    if (output->tag)
        put(sink, text,
            (size_t)snprintf(text, sizeof text, "[%s%d]<%s> ", source->group->label, source->rank,
                             source->descriptor == 1 ? "stdout" : "stderr"));
}

/* Appends to the unfinished line; false when memory is short. */
static bool keep_partial(struct partial *partial, const char *data, size_t bytes)
{
    if (partial->used + bytes > partial->room) {
        size_t room = partial->room ? partial->room : 256;
        while (room < partial->used + bytes) room *= 2;
        char *text = base_realloc(AREA_LAUNCHER, partial->text, room);
        if (!text) return false;
        partial->text = text;
        partial->room = room;
    }
    memcpy(partial->text + partial->used, data, bytes);
    partial->used += bytes;
    return true;
}

static void end_line(struct output *output, const struct source *source, struct partial *partial, const char *data,
                     size_t bytes)
{
    struct sink *sink = &output->sinks[source->descriptor - 1];
    put_prefix(output, sink, source);
    put(sink, partial->text, partial->used);
    put(sink, data, bytes);
    put(sink, "\n", 1);
    partial->used = 0;
}

static void pass_partial(struct sink *sink, struct partial *partial)
{
    put(sink, partial->text, partial->used);
    partial->used = 0;
}

/* Without prefixes lines need not be whole, but ranks should not write into each other's: the end of a line is waited
 * for, a little. */
static void take_plain(struct output *output, struct sink *sink, struct partial *partial, const char *data,
                       size_t bytes)
{
    struct timeval delay = {.tv_usec = OUTPUT_HOLD_US};
    const char *newline = memrchr(data, '\n', bytes);
    size_t whole = newline ? (size_t)(newline - data) + 1 : 0;
    if (whole) {
        pass_partial(sink, partial);
        put(sink, data, whole);
    }
    data += whole;
    bytes -= whole;
    if (bytes == 0) return;
    if (partial->used + bytes > OUTPUT_MAX_HELD || !keep_partial(partial, data, bytes)) {
        pass_partial(sink, partial);
        put(sink, data, bytes);
    } else if (!event_pending(output->hold, EV_TIMEOUT, NULL)) {
        event_add(output->hold, &delay);
    }
}

/* While a slow reader holds everything up, a line is not late. */
static void on_hold(evutil_socket_t fd, short what, void *arg)
{
    struct output *output = arg;
    struct timeval delay = {.tv_usec = OUTPUT_HOLD_US};
    (void)fd, (void)what;
    if (waiting_bytes(output) > 0) {
        event_add(output->hold, &delay);
        return;
    }
    for (struct group *group = output->groups; group; group = group->next)
        for (int i = 0; i < 2 * group->count; i++) pass_partial(&output->sinks[i % 2], &group->partials[i]);
    write_sink(&output->sinks[0]);
    write_sink(&output->sinks[1]);
}

static void take_lines(struct output *output, const struct source *source, struct partial *partial, const char *data,
                       size_t bytes)
{
    while (bytes > 0) {
        const char *newline = memchr(data, '\n', bytes);
        size_t length = newline ? (size_t)(newline - data) : bytes;
        if (newline) {
            end_line(output, source, partial, data, length);
            data += length + 1;
            bytes -= length + 1;
        } else {
            if (partial->used + length > OUTPUT_MAX_LINE || !keep_partial(partial, data, length))
                end_line(output, source, partial, data, length);
            return;
        }
    }
}

static void name_file(const struct source *source, char *name, size_t bytes)
{
    snprintf(name, bytes, "rank.%s%d.%s", source->group->label, source->rank, source->descriptor == 1 ? "out" : "err");
}

/* Opened for each piece: 2 files a rank would need more descriptors than many systems allow. */
static void take_file(struct output *output, const struct source *source, const char *data, size_t bytes)
{
    char name[64];
    name_file(source, name, sizeof name);
    int fd = openat(output->directory, name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    while (fd >= 0 && bytes > 0) {
        ssize_t wrote = write(fd, data, bytes);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) break;
        data += wrote;
        bytes -= (size_t)wrote;
    }
    int error = errno;
    if (fd >= 0) close(fd);
    if (bytes == 0 || output->file_failed) return;
    output->file_failed = true;
    base_error(NCCLX_ERR_LIMIT, "%s: %s", name, strerror(error));
    output->events.lost(output->arg, 0, base_error_detail());
}

static struct group *find_group(struct output *output, int number)
{
    struct group *group = output->groups;
    while (group && (number < group->first || number - group->first >= group->count)) group = group->next;
    return group;
}

/* The bytes of a job of one rank just pass, as long as there is no other job. */
static bool is_alone(const struct output *output)
{
    return output->groups->count == 1 && !output->groups->next && !output->groups->partials[0].used &&
           !output->groups->partials[1].used;
}

void output_take(struct output *output, int number, int descriptor, const void *data, size_t bytes)
{
    struct sink *sink = &output->sinks[descriptor - 1];
    struct group *group = find_group(output, number);
    if (!group) return;
    const struct source source = {group, number - group->first, descriptor};
    struct partial *partial = &group->partials[2 * source.rank + descriptor - 1];
    if (output->directory >= 0) {
        if (bytes) take_file(output, &source, data, bytes);
        return;
    }
    bool prefixed = output->tag || output->timestamp;
    if (!prefixed && is_alone(output))
        put(sink, data, bytes);
    else if (!prefixed && bytes)
        take_plain(output, sink, partial, data, bytes);
    else if (!prefixed)
        pass_partial(sink, partial);
    else if (bytes)
        take_lines(output, &source, partial, data, bytes);
    else if (partial->used)
        end_line(output, &source, partial, NULL, 0);
    write_sink(sink);
    check_levels(output);
}

/* Ends lines that were never finished. */
static void finish_group(struct output *output, struct group *group)
{
    for (int i = 0; i < 2 * group->count; i++) {
        const struct source source = {group, i / 2, i % 2 + 1};
        if (!output->tag && !output->timestamp)
            pass_partial(&output->sinks[i % 2], &group->partials[i]);
        else if (group->partials[i].used)
            end_line(output, &source, &group->partials[i], NULL, 0);
    }
}

void output_finish(struct output *output)
{
    for (struct group *group = output->groups; group; group = group->next) finish_group(output, group);
    write_sink(&output->sinks[0]);
    write_sink(&output->sinks[1]);
}

void output_discard(struct output *output)
{
    for (int i = 0; i < 2; i++) {
        output->sinks[i].lost = true;
        evbuffer_drain(output->sinks[i].waiting, evbuffer_get_length(output->sinks[i].waiting));
    }
    check_levels(output);
}

static int open_sink(struct output *output, struct event_base *base, int fd)
{
    struct sink *sink = &output->sinks[fd - 1];
    struct stat status;
    *sink = (struct sink){.output = output, .fd = fd};
    sink->regular = fstat(fd, &status) == 0 && !S_ISFIFO(status.st_mode) && !S_ISSOCK(status.st_mode) && !isatty(fd);
    sink->waiting = evbuffer_new();
    sink->writable = event_new(base, fd, EV_WRITE, on_writable, sink);
    return sink->waiting && sink->writable ? NCCLX_SUCCESS
                                           : base_error(NCCLX_ERR_NO_MEM, "memory is short for the output");
}

static int open_directory(struct output *output, const char *path)
{
    if (mkdir(path, 0777) && errno != EEXIST)
        return base_error(NCCLX_ERR_ARG, "--output: cannot make '%.200s': %s", path, strerror(errno));
    output->directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return output->directory >= 0
               ? NCCLX_SUCCESS
               : base_error(NCCLX_ERR_ARG, "--output: cannot open '%.200s': %s", path, strerror(errno));
}

static int make_files(const struct output *output, const struct group *group)
{
    for (int i = 0; i < 2 * group->count; i++) {
        const struct source source = {group, i / 2, i % 2 + 1};
        char name[64];
        name_file(&source, name, sizeof name);
        int fd = openat(output->directory, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (fd < 0) return base_error(NCCLX_ERR_ARG, "--output: cannot write '%.200s': %s", name, strerror(errno));
        close(fd);
    }
    return NCCLX_SUCCESS;
}

int output_open(struct event_base *base, const struct options *options, const struct output_events *events, void *arg,
                struct output **out)
{
    struct output *output = base_calloc(AREA_LAUNCHER, 1, sizeof *output);
    int code = output ? NCCLX_SUCCESS : base_error(NCCLX_ERR_NO_MEM, "memory is short for the output");
    *out = output;
    if (code) return code;
    output->events = *events;
    output->arg = arg;
    output->directory = -1;
    output->tag = options->tag_output;
    output->timestamp = options->timestamp;
    if ((code = open_sink(output, base, STDOUT_FILENO)) || (code = open_sink(output, base, STDERR_FILENO))) return code;
    output->hold = evtimer_new(base, on_hold, output);
    if (!output->hold) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the output");
    return options->output_directory ? open_directory(output, options->output_directory) : NCCLX_SUCCESS;
}

int output_add(struct output *output, int first, int count, const char *label)
{
    struct group *group = base_calloc(AREA_LAUNCHER, 1, sizeof *group + 2 * (size_t)count * sizeof group->partials[0]);
    if (!group) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the output");
    group->first = first;
    group->count = count;
    snprintf(group->label, sizeof group->label, "%s", label);
    struct group **place = &output->groups;
    while (*place) place = &(*place)->next;
    *place = group;
    return output->directory >= 0 ? make_files(output, group) : NCCLX_SUCCESS;
}

static void release_group(struct group *group)
{
    for (int i = 0; i < 2 * group->count; i++) base_free(AREA_LAUNCHER, group->partials[i].text);
    base_free(AREA_LAUNCHER, group);
}

void output_remove(struct output *output, int first)
{
    struct group **place = &output->groups, *group;
    while (*place && (*place)->first != first) place = &(*place)->next;
    group = *place;
    if (!group) return;
    finish_group(output, group);
    *place = group->next;
    release_group(group);
    write_sink(&output->sinks[0]);
    write_sink(&output->sinks[1]);
}

void output_close(struct output *output)
{
    if (!output) return;
    for (int i = 0; i < 2; i++) {
        if (output->sinks[i].writable) event_free(output->sinks[i].writable);
        if (output->sinks[i].waiting) evbuffer_free(output->sinks[i].waiting);
    }
    if (output->hold) event_free(output->hold);
    while (output->groups) {
        struct group *next = output->groups->next;
        release_group(output->groups);
        output->groups = next;
    }
    if (output->directory >= 0) close(output->directory);
    base_free(AREA_LAUNCHER, output);
}
