/* agent.c - see agent.h. */
#include "config.h"

#include "launcher/agent.h"

#include "launcher/child.h"
#include "runtime/base/base.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define AGENT_MAX_OUTPUT 4096 /* that is kept */
#define AGENT_MAX_LINE 2000   /* what is longer is handed on in pieces */
#define AGENT_POLL_MS 10

struct agent {
    struct agent *next;
    struct agents *agents;
    int tag;
    pid_t pid;
    struct bufferevent *input;  /* its standard input */
    struct bufferevent *stream; /* what it prints; the same when descriptors are to be spared */
    bool shown, stopped;
};

struct agents {
    struct event_base *base;
    struct agents_events events;
    void *arg;
    struct agent *first;
    int count;
    bool sparing;
};

extern char **environ;

int agents_descriptors(int expected, long limit)
{
    return 2L * expected <= limit / 4 ? 2 : 1;
}

struct agents *agents_open(struct event_base *base, int expected, const struct agents_events *events, void *arg)
{
    struct agents *agents = base_calloc(AREA_LAUNCHER, 1, sizeof *agents);
    struct rlimit limit;
    if (!agents) return NULL;
    getrlimit(RLIMIT_NOFILE, &limit);
    agents->sparing = agents_descriptors(expected, limit.rlim_cur > INT32_MAX ? INT32_MAX : (long)limit.rlim_cur) < 2;
    agents->base = base;
    agents->events = *events;
    agents->arg = arg;
    return agents;
}

static void hand_on(struct agent *agent, bool all)
{
    struct evbuffer *input = bufferevent_get_input(agent->stream);
    char text[AGENT_MAX_LINE + 1];
    for (;;) {
        size_t have = evbuffer_get_length(input), line_end;
        struct evbuffer_ptr newline = evbuffer_search_eol(input, NULL, &line_end, EVBUFFER_EOL_ANY);
        bool whole = newline.pos >= 0 && newline.pos <= AGENT_MAX_LINE;
        if (!whole && have < AGENT_MAX_LINE && !(all && have)) return;
        size_t length = whole ? (size_t)newline.pos : have < AGENT_MAX_LINE ? have : AGENT_MAX_LINE;
        evbuffer_remove(input, text, length);
        if (whole) evbuffer_drain(input, line_end);
        text[length] = 0;
        if (length) agent->agents->events.line(agent->agents->arg, agent->tag, text);
    }
}

static void on_read(struct bufferevent *stream, void *arg)
{
    struct agent *agent = arg;
    struct evbuffer *input = bufferevent_get_input(stream);
    size_t have = evbuffer_get_length(input);
    if (agent->shown)
        hand_on(agent, false);
    else if (have > AGENT_MAX_OUTPUT)
        evbuffer_drain(input, have - AGENT_MAX_OUTPUT);
}

/* The end of its output means little: its process tells. */
static void on_event(struct bufferevent *stream, short what, void *arg)
{
    (void)arg;
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) bufferevent_disable(stream, EV_READ);
}

static int start_process(struct agent *agent, char *const *argv, char *const *environment, int in, int out)
{
    struct child_program program;
    struct child child = {.program = &program, .argv = argv, .environment = environment, .stdio = {in, out, out}};
    int error, code = child_find_program(argv[0], environment, &program);
    if (code) return code;
    getrlimit(RLIMIT_NOFILE, &child.files);
    enum child_step step = child_start(&child, &agent->pid, &error);
    child_release_program(&program);
    if (step == CHILD_STARTED) return NCCLX_SUCCESS;
    if (step != CHILD_FORK) waitpid(agent->pid, NULL, 0);
    return base_error(NCCLX_ERR_BOOTSTRAP, "cannot run '%.200s': %s", argv[0], strerror(error));
}

static void close_stream(struct bufferevent *stream)
{
    if (!stream) return;
    int fd = bufferevent_getfd(stream);
    bufferevent_free(stream);
    close(fd);
}

static void release(struct agent *agent)
{
    if (agent->input != agent->stream) close_stream(agent->input);
    close_stream(agent->stream);
    base_free(AREA_LAUNCHER, agent);
}

/* One end as a stream of ours, the other for the child. */
static struct bufferevent *open_stream(struct agents *agents, int *child_end)
{
    int ends[2];
    *child_end = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) return NULL;
    evutil_make_socket_nonblocking(ends[0]);
    struct bufferevent *stream = bufferevent_socket_new(agents->base, ends[0], 0);
    if (!stream) {
        close(ends[0]);
        close(ends[1]);
        return NULL;
    }
    *child_end = ends[1];
    return stream;
}

static int start(struct agent *agent, char *const *argv, char *const *environment, const void *input, size_t bytes)
{
    int in, out, code;
    agent->input = open_stream(agent->agents, &in);
    agent->stream = agent->agents->sparing ? agent->input : open_stream(agent->agents, &out);
    if (agent->agents->sparing) out = in;
    if (!agent->input || !agent->stream)
        code = base_error(NCCLX_ERR_LIMIT, "no socket for '%.200s': %s", argv[0], strerror(errno));
    else
        code = start_process(agent, argv, environment, in, out);
    if (in >= 0) close(in);
    if (out >= 0 && out != in) close(out);
    if (code || !bufferevent_write(agent->input, input, bytes)) return code;
    kill(agent->pid, SIGKILL);
    waitpid(agent->pid, NULL, 0);
    return base_error(NCCLX_ERR_NO_MEM, "memory is short for starting '%.200s'", argv[0]);
}

int agents_start(struct agents *agents, int tag, char *const *argv, char *const *environment, const void *input,
                 size_t bytes)
{
    struct agent *agent = base_calloc(AREA_LAUNCHER, 1, sizeof *agent);
    if (!agent) return base_error(NCCLX_ERR_NO_MEM, "memory is short for starting '%.200s'", argv[0]);
    *agent = (struct agent){.agents = agents, .tag = tag};
    int code = start(agent, argv, environment ? environment : environ, input, bytes);
    if (code) {
        release(agent);
        return code;
    }
    bufferevent_setcb(agent->stream, on_read, NULL, on_event, agent);
    bufferevent_disable(agent->input, EV_READ);
    bufferevent_enable(agent->input, EV_WRITE);
    bufferevent_enable(agent->stream, EV_READ);
    agent->next = agents->first;
    agents->first = agent;
    agents->count++;
    return NCCLX_SUCCESS;
}

static struct agent *find(const struct agents *agents, int tag)
{
    struct agent *agent = agents->first;
    while (agent && agent->tag != tag) agent = agent->next;
    return agent;
}

void agents_show(struct agents *agents, int tag)
{
    struct agent *agent = find(agents, tag);
    if (!agent) return;
    struct evbuffer *input = bufferevent_get_input(agent->stream);
    evbuffer_drain(input, evbuffer_get_length(input));
    agent->shown = true;
}

static void stop(struct agent *agent)
{
    shutdown(bufferevent_getfd(agent->input), SHUT_WR);
    kill(-agent->pid, SIGTERM);
    agent->stopped = true;
}

void agents_stop(struct agents *agents, int tag)
{
    struct agent *agent = find(agents, tag);
    if (agent && !agent->stopped) stop(agent);
}

/* What it has printed and nobody has read yet. */
static void read_rest(struct agent *agent)
{
    struct evbuffer *input = bufferevent_get_input(agent->stream);
    bufferevent_disable(agent->stream, EV_READ);
    evbuffer_unfreeze(input, 0); /* the bufferevent keeps others from adding to it */
    while (evbuffer_read(input, bufferevent_getfd(agent->stream), AGENT_MAX_OUTPUT) > 0)
        if (!agent->shown && evbuffer_get_length(input) > AGENT_MAX_OUTPUT)
            evbuffer_drain(input, evbuffer_get_length(input) - AGENT_MAX_OUTPUT);
}

static void take_end(struct agent *agent, int status)
{
    struct agents *agents = agent->agents;
    char text[AGENT_MAX_OUTPUT + 1];
    struct agent **at = &agents->first;
    while (*at != agent) at = &(*at)->next;
    *at = agent->next;
    agents->count--;
    read_rest(agent);
    if (agent->shown) hand_on(agent, true);
    ev_ssize_t length = evbuffer_remove(bufferevent_get_input(agent->stream), text, sizeof text - 1);
    text[length > 0 ? length : 0] = 0;
    int tag = agent->tag;
    release(agent);
    agents->events.ended(agents->arg, tag, status, text);
}

bool agents_reaped(struct agents *agents, pid_t pid, int status)
{
    for (struct agent *agent = agents->first; agent; agent = agent->next) {
        if (agent->pid != pid) continue;
        take_end(agent, status);
        return true;
    }
    return false;
}

void agents_reap(struct agents *agents)
{
    bool again = true;
    while (again) { /* a handler may change the list */
        again = false;
        for (struct agent *agent = agents->first; agent && !again; agent = agent->next) {
            int status;
            if (waitpid(agent->pid, &status, WNOHANG) != agent->pid) continue;
            take_end(agent, status);
            again = true;
        }
    }
}

int agents_count(const struct agents *agents)
{
    return agents->count;
}

void agents_list(const struct agents *agents, pid_t *pids)
{
    for (const struct agent *agent = agents->first; agent; agent = agent->next) *pids++ = agent->pid;
}

/* Takes the ends of those that have ended; true when none is left. */
static bool forget_ended(struct agents *agents)
{
    for (struct agent **at = &agents->first; *at;) {
        struct agent *agent = *at;
        read_rest(agent); /* it must not wait for us to read */
        evbuffer_drain(bufferevent_get_input(agent->stream), (size_t)-1);
        if (waitpid(agent->pid, NULL, WNOHANG) == 0) {
            at = &agent->next;
            continue;
        }
        *at = agent->next;
        release(agent);
    }
    return !agents->first;
}

void agents_close(struct agents *agents, int patience_ms)
{
    if (!agents) return;
    for (struct agent *agent = agents->first; agent; agent = agent->next)
        shutdown(bufferevent_getfd(agent->input), SHUT_WR);
    for (int waited = 0; !forget_ended(agents); waited += AGENT_POLL_MS) {
        if (waited >= patience_ms)
            for (struct agent *agent = agents->first; agent; agent = agent->next)
                kill(-agent->pid, waited >= 2 * patience_ms ? SIGKILL : SIGTERM);
        poll(NULL, 0, AGENT_POLL_MS);
    }
    base_free(AREA_LAUNCHER, agents);
}
