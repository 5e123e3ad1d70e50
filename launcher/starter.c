/* starter.c - the commands that bring daemons up. */
#include "config.h"

#include "launcher/starter.h"

#include "launcher/agent.h"
#include "launcher/environment.h"
#include "launcher/words.h"
#include "runtime/base/base.h"

#include <stdio.h>
#include <string.h>

#define STARTER_GATHER_US 20000 /* for more hosts that the same srun can start */
#define STARTER_MAX_WORDS 64
#define STARTER_ARGUMENT_BYTES 192

extern char **environ;

/* Some positions that one agent starts: one, or with srun all that were wanted when it was run. */
struct batch {
    struct batch *next;
    int tag, count, greeted;
    struct order_contact *places; /* positions, and where the place above each listens */
};

struct starter {
    const struct order *order;
    struct starter_events events;
    void *arg;
    struct agents *agents;
    struct batch *first;
    struct batch *gathering; /* not run yet */
    struct event *gather;
    int tags;
};

/* ---- Batches ---------------------------------------------------------------------------------------------------- */

static bool add_place(struct batch *batch, int position, const char *contact)
{
    struct order_contact *places =
        base_realloc(AREA_LAUNCHER, batch->places, (size_t)(batch->count + 1) * sizeof *places);
    char *text = base_strdup(AREA_LAUNCHER, contact);
    if (places) batch->places = places;
    if (!places || !text) {
        base_free(AREA_LAUNCHER, text);
        return false;
    }
    batch->places[batch->count++] = (struct order_contact){.position = position, .text = text};
    return true;
}

static struct batch *new_batch(struct starter *starter)
{
    struct batch *batch = base_calloc(AREA_LAUNCHER, 1, sizeof *batch);
    if (!batch) return NULL;
    batch->tag = starter->tags++;
    batch->next = starter->first;
    starter->first = batch;
    return batch;
}

static void free_batch(struct starter *starter, struct batch *batch)
{
    struct batch **at = &starter->first;
    while (*at != batch) at = &(*at)->next;
    *at = batch->next;
    for (int i = 0; i < batch->count; i++) base_free(AREA_LAUNCHER, (char *)(uintptr_t)batch->places[i].text);
    base_free(AREA_LAUNCHER, batch->places);
    base_free(AREA_LAUNCHER, batch);
}

static struct batch *batch_of(const struct starter *starter, int position)
{
    for (struct batch *batch = starter->first; batch; batch = batch->next)
        for (int i = 0; i < batch->count; i++)
            if (batch->places[i].position == position) return batch;
    return NULL;
}

static void tell_failed(struct starter *starter, struct batch *batch, const char *why)
{
    char text[1024];
    snprintf(text, sizeof text, "%s", why);
    for (int i = 0; i < batch->count; i++) starter->events.failed(starter->arg, batch->places[i].position, text);
    free_batch(starter, batch);
}

/* ---- Commands --------------------------------------------------------------------------------------------------- */

/* Runs the command with the order for the batch as its input. */
static int run(struct starter *starter, struct batch *batch, char *const *argv, char *const *environment,
               const struct order *order)
{
    struct frame_writer writer;
    order_write(&writer, order);
    int code = frame_finish(&writer);
    if (!code) code = agents_start(starter->agents, batch->tag, argv, environment, writer.data, writer.used);
    if (writer.data) oob_wipe(writer.data, writer.used);
    frame_release(&writer);
    return code;
}

/* The shell of the other host takes the path as one word. */
static char *remote_command(const struct order *order, const char *arguments)
{
    char *path = words_quote(order->daemon), *command = NULL;
    size_t bytes = path ? strlen(path) + strlen(arguments) + 2 : 0;
    if (path) command = base_alloc(AREA_LAUNCHER, bytes);
    if (command) snprintf(command, bytes, "%s %s", path, arguments);
    base_free(AREA_LAUNCHER, path);
    return command;
}

/* The agent's words, the host, and what is to be run there: the last one is to be freed with base_free. */
static int agent_command(const struct order *order, const struct order_host *host, const char *arguments,
                         char *argv[STARTER_MAX_WORDS + 3])
{
    int words = 0;
    for (; order->agent && order->agent[words] && words < STARTER_MAX_WORDS; words++) argv[words] = order->agent[words];
    if (!host || !host->address || !words)
        return base_error(NCCLX_ERR_INTERNAL, "the start order does not say how to reach a host");
    argv[words++] = (char *)(uintptr_t)host->address;
    argv[words] = remote_command(order, arguments);
    argv[words + 1] = NULL;
    return argv[words] ? NCCLX_SUCCESS : base_error(NCCLX_ERR_NO_MEM, "memory is short for starting daemons");
}

static void free_last(char **argv)
{
    while (argv[1]) argv++;
    base_free(AREA_LAUNCHER, *argv);
}

static int run_agent(struct starter *starter, struct batch *batch)
{
    const struct order *order = starter->order;
    const struct order_host *host = order_find(order, batch->places[0].position);
    char *argv[STARTER_MAX_WORDS + 3], arguments[STARTER_ARGUMENT_BYTES];
    struct order derived;
    snprintf(arguments, sizeof arguments, "--order %s", order->job);
    int code = agent_command(order, host, arguments, argv);
    if (code) return code;
    if (!(code = order_derive(order, host->position, &derived))) {
        struct order_contact contact = {.position = tree_above(&order->tree.shape, host->position),
                                        .text = batch->places[0].text};
        derived.contacts = &contact;
        derived.contact_count = 1;
        code = run(starter, batch, argv, order->agent_environment, &derived);
        base_free(AREA_LAUNCHER, derived.hosts);
    }
    free_last(argv);
    return code;
}

/* ---- Slurm ------------------------------------------------------------------------------------------------------ */

/* What srun needs to find the allocation, and none of what the user's own step or script has set for other steps. */
static bool for_srun(const char *entry)
{
    static const char *const names[] = {"SLURM_CONF=",         "SLURM_JOB_ID=",           "SLURM_JOBID=",
                                        "SLURM_JOB_NODELIST=", "SLURM_NODELIST=",         "SLURM_CLUSTER_NAME=",
                                        "SLURM_JWT=",          "SLURM_WORKING_CLUSTER=",  "SLURM_CONF_SERVER=",
                                        "LD_LIBRARY_PATH=",    "SLURM_JOB_CPUS_PER_NODE="};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strncmp(entry, names[i], strlen(names[i]))) return true;
    return environment_for_daemon(entry);
}

static char **srun_environment(void)
{
    size_t count = 0, kept = 0;
    while (environ[count]) count++;
    char **list = base_calloc(AREA_LAUNCHER, count + 1, sizeof *list);
    for (size_t i = 0; list && i < count; i++)
        if (for_srun(environ[i])) list[kept++] = environ[i];
    return list;
}

/* The hosts of the batch, with commas between. */
static char *list_hosts(const struct order_host *hosts, int count)
{
    size_t bytes = 1, used = 0;
    for (int i = 0; i < count; i++) bytes += strlen(hosts[i].address) + 1;
    char *list = base_calloc(AREA_LAUNCHER, bytes, 1);
    for (int i = 0; list && i < count; i++)
        used += (size_t)snprintf(list + used, bytes - used, "%s%s", i ? "," : "", hosts[i].address);
    return list;
}

/* One order for all: each finds itself by the name that Slurm has given its node. */
static int fill_batch_order(const struct starter *starter, const struct batch *batch, struct order *order)
{
    const struct tree_shape *shape = &starter->order->tree.shape;
    *order = *starter->order;
    order->position = order->tree.position = -1;
    order->host_count = order->contact_count = 0;
    order->hosts = base_calloc(AREA_LAUNCHER, (size_t)batch->count, sizeof *order->hosts);
    order->contacts = base_calloc(AREA_LAUNCHER, (size_t)batch->count, sizeof *order->contacts);
    if (!order->hosts || !order->contacts) return base_error(NCCLX_ERR_NO_MEM, "memory is short for srun");
    for (int i = 0; i < batch->count; i++) {
        const struct order_host *host = order_find(starter->order, batch->places[i].position);
        int above = tree_above(shape, batch->places[i].position), known = 0;
        if (!host || !host->address) return base_error(NCCLX_ERR_INTERNAL, "a host without a name");
        order->hosts[order->host_count++] = *host;
        while (known < order->contact_count && order->contacts[known].position != above) known++;
        if (known == order->contact_count)
            order->contacts[order->contact_count++] =
                (struct order_contact){.position = above, .text = batch->places[i].text};
    }
    return NCCLX_SUCCESS;
}

static int run_srun(struct starter *starter, struct batch *batch)
{
    struct order order;
    char count[16], *hosts = NULL, **environment = srun_environment();
    int code = fill_batch_order(starter, batch, &order);
    snprintf(count, sizeof count, "%d", batch->count);
    if (!code) hosts = list_hosts(order.hosts, batch->count);
    const char *argv[] = {"srun",      "--nodes",        count,     "--ntasks",         count,
                          "--overlap", "--nodelist",     hosts,     "--ntasks-per-node", "1",
                          "--quiet",   "--mpi=none",     "--kill-on-bad-exit=0",
                          "--export=ALL", order.daemon, "--order", order.job, NULL};
    if (!code && (!hosts || !environment)) code = base_error(NCCLX_ERR_NO_MEM, "memory is short for srun");
    if (!code) code = run(starter, batch, (char *const *)argv, environment, &order);
    base_free(AREA_LAUNCHER, order.hosts);
    base_free(AREA_LAUNCHER, order.contacts);
    base_free(AREA_LAUNCHER, hosts);
    base_free(AREA_LAUNCHER, environment);
    return code;
}

static void on_gathered(evutil_socket_t fd, short what, void *arg)
{
    struct starter *starter = arg;
    struct batch *batch = starter->gathering;
    (void)fd, (void)what;
    starter->gathering = NULL;
    if (batch && run_srun(starter, batch)) tell_failed(starter, batch, base_error_detail());
}

/* ---- Events ----------------------------------------------------------------------------------------------------- */

static struct batch *batch_by_tag(const struct starter *starter, int tag)
{
    struct batch *batch = starter->first;
    while (batch && batch->tag != tag) batch = batch->next;
    return batch;
}

static void on_ended(void *arg, int tag, int status, const char *output)
{
    struct starter *starter = arg;
    struct batch *batch = batch_by_tag(starter, tag);
    for (int i = 0; batch && i < batch->count; i++)
        starter->events.ended(starter->arg, batch->places[i].position, status, output);
    if (batch) free_batch(starter, batch);
}

static void on_line(void *arg, int tag, const char *line)
{
    struct starter *starter = arg;
    struct batch *batch = batch_by_tag(starter, tag);
    if (batch) starter->events.line(starter->arg, batch->count == 1 ? batch->places[0].position : -1, line);
}

struct starter *starter_open(struct event_base *base, const struct order *order, int hosts,
                             const struct starter_events *events, void *arg)
{
    static const struct agents_events agents_events = {.ended = on_ended, .line = on_line};
    struct starter *starter = base_calloc(AREA_LAUNCHER, 1, sizeof *starter);
    if (!starter) return NULL;
    starter->order = order;
    starter->events = *events;
    starter->arg = arg;
    starter->agents = agents_open(base, order->slurm ? 1 : hosts, &agents_events, starter);
    starter->gather = evtimer_new(base, on_gathered, starter);
    if (starter->agents && starter->gather) return starter;
    starter_close(starter, 0);
    return NULL;
}

/* Another place for the srun to come. */
static void gather(struct starter *starter, int position, const char *contact)
{
    struct timeval delay = {.tv_usec = STARTER_GATHER_US};
    if (!starter->gathering) {
        starter->gathering = new_batch(starter);
        event_add(starter->gather, &delay);
    }
    if (!starter->gathering || !add_place(starter->gathering, position, contact))
        starter->events.failed(starter->arg, position, "memory is short for starting daemons");
    else
        starter->events.started(starter->arg, position);
}

void starter_start(struct starter *starter, int position, const char *contact)
{
    if (starter->order->slurm) {
        gather(starter, position, contact);
        return;
    }
    struct batch *batch = new_batch(starter);
    if (!batch) {
        starter->events.failed(starter->arg, position, "memory is short for starting daemons");
        return;
    }
    if (!add_place(batch, position, contact) || run_agent(starter, batch))
        tell_failed(starter, batch, base_error_detail());
    else
        starter->events.started(starter->arg, position);
}

void starter_greeted(struct starter *starter, int position)
{
    struct batch *batch = batch_of(starter, position);
    if (batch && ++batch->greeted == batch->count) agents_show(starter->agents, batch->tag);
}

bool starter_runs(const struct starter *starter, int position)
{
    const struct batch *batch = batch_of(starter, position);
    return batch && batch->count == 1;
}

/* With srun none is stopped alone. */
void starter_stop(struct starter *starter, int position)
{
    struct batch *batch = batch_of(starter, position);
    if (batch) agents_stop(starter->agents, batch->tag);
}

void starter_sweep(struct starter *starter, int position)
{
    const struct order *order = starter->order;
    const struct order_host *host = order_find(order, position);
    char *argv[STARTER_MAX_WORDS + 3], arguments[STARTER_ARGUMENT_BYTES], number[16];
    snprintf(arguments, sizeof arguments, "--sweep %s %d", order->job, position);
    snprintf(number, sizeof number, "%d", position);
    if (order->slurm && host && host->address) {
        const char *srun[] = {"srun", "--nodes", "1", "--ntasks", "1", "--overlap", "--nodelist", host->address, "--quiet",
                              "--mpi=none", order->daemon, "--sweep", order->job, number, NULL};
        char **environment = srun_environment();
        if (environment) agents_start(starter->agents, starter->tags++, (char *const *)srun, environment, "", 0);
        base_free(AREA_LAUNCHER, environment);
    } else if (!agent_command(order, host, arguments, argv)) {
        agents_start(starter->agents, starter->tags++, argv, order->agent_environment, "", 0);
        free_last(argv);
    }
}

bool starter_reaped(struct starter *starter, pid_t pid, int status)
{
    return agents_reaped(starter->agents, pid, status);
}

void starter_reap(struct starter *starter)
{
    agents_reap(starter->agents);
}

int starter_count(const struct starter *starter)
{
    return agents_count(starter->agents);
}

void starter_list(const struct starter *starter, pid_t *pids)
{
    agents_list(starter->agents, pids);
}

void starter_close(struct starter *starter, int patience_ms)
{
    if (!starter) return;
    agents_close(starter->agents, patience_ms);
    while (starter->first) free_batch(starter, starter->first);
    if (starter->gather) event_free(starter->gather);
    base_free(AREA_LAUNCHER, starter);
}
