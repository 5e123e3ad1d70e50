/* front_tree.c - the daemons of a job: which host stands where in their tree, the order from which all of theirs are
 * made, and what the wiring tells until all are there. */
#include "config.h"

#include "launcher/front.h"

#include "launcher/agent.h"
#include "launcher/front_progress.h"
#include "launcher/gpus.h"
#include "launcher/pulse.h"
#include "launcher/report.h"
#include "launcher/words.h"
#include "runtime/base/base.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TREE_END_SPARE_NS (4 * BASE_NS_PER_S) /* beyond the grace: KILL, and output on its way */
#define TREE_WINDOW 64                        /* agents of the front under way at a time, when it starts all */
#define TREE_FILES_SPARE 20                   /* standard streams, event loop, signals, doors, one that connects */

/* ---- Hosts ------------------------------------------------------------------------------------------------------ */

/* What the agent is told: [USER@]HOST. Null when memory is short. */
static char *agent_address(const struct hosts_entry *host)
{
    size_t bytes = strlen(host->name) + (host->user ? strlen(host->user) + 1 : 0) + 1;
    char *address = base_alloc(AREA_LAUNCHER, bytes);
    if (address) snprintf(address, bytes, "%s%s%s", host->user ? host->user : "", host->user ? "@" : "", host->name);
    return address;
}

/* Nodes of the job in the order of the hosts. This host, if it is among them, stands first in the tree: it needs no
 * agent. */
int front_place_hosts(struct front *front)
{
    size_t count = (size_t)front->hosts.count;
    char own[MAP_NAME_BYTES];
    int local = -1;
    if (gethostname(own, sizeof own)) snprintf(own, sizeof own, "localhost");
    own[sizeof own - 1] = 0;
    front->nodes = base_calloc(AREA_LAUNCHER, count, sizeof *front->nodes);
    front->places = base_calloc(AREA_LAUNCHER, count, sizeof *front->places);
    front->order.hosts = base_calloc(AREA_LAUNCHER, count, sizeof *front->order.hosts);
    if (!front->nodes || !front->places || !front->order.hosts)
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for the hosts");
    front->node_count = front->order.host_count = (int)count;
    for (int i = 0; i < front->node_count; i++)
        if (front->hosts.entries[i].local) local = i;
    front->local_root = local >= 0;
    for (int i = 0; i < front->node_count; i++) {
        const struct hosts_entry *host = &front->hosts.entries[i];
        int position = i == local ? 0 : i + (i < local);
        snprintf(front->nodes[i].name, MAP_NAME_BYTES, "%s", i == local && !front->allocation ? own : host->name);
        front->nodes[i].slots = host->slots;
        front->places[position].node = i;
        front->order.hosts[i] = (struct order_host){
            .position = position, .name = front->nodes[i].name, .address = agent_address(host)};
        if (!front->order.hosts[i].address) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the hosts");
    }
    return NCCLX_SUCCESS;
}

/* ---- The order -------------------------------------------------------------------------------------------------- */

/* The user's command, or ssh without anything that asks, or opens more than this one connection. */
static int choose_agent(struct front *front)
{
    char text[256];
    front->order.agent = front->options.agent;
    if (front->order.agent) return NCCLX_SUCCESS;
    snprintf(text, sizeof text, "ssh -x -a -T -o BatchMode=yes -o ConnectTimeout=%d",
             (int)(front->options.start_ns / BASE_NS_PER_S) + 1);
    return words_split(text, &front->order.agent);
}

/* Of this process: ranks get them wherever they are. */
static void note_surroundings(struct order *order)
{
    static char directory[PATH_MAX];
    mode_t mask = umask(0);
    umask(mask);
    order->umask = (uint32_t)mask;
    order->directory = getcwd(directory, sizeof directory);
    for (int i = 0; i < ORDER_LIMITS && i < RLIM_NLIMITS; i++) {
        struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
        getrlimit(i, &limit);
        order->limits[i][0] = limit.rlim_cur;
        order->limits[i][1] = limit.rlim_max;
    }
}

/* Agents stay: as many descriptors as the system allows. */
static int raise_file_limit(const struct front *front)
{
    const struct tree_options *tree = &front->order.tree;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    long most = limit.rlim_cur > INT32_MAX ? INT32_MAX : (long)limit.rlim_cur;
    int agents = front->node_count - front->local_root, links = tree_child_count(&tree->shape, TREE_FRONT);
    if (tree->start != TREE_START_FRONT || front->order.slurm) return NCCLX_SUCCESS;
    long files = (long)agents * agents_descriptors(agents, most) + links + TREE_FILES_SPARE;
    if (files <= most) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_LIMIT,
                      "--no-tree-spawn: starting %d hosts from here needs %ld open files, the limit is %ld: raise it "
                      "(ulimit -Hn), or let hosts start each other",
                      agents, files, most);
}

static int prepare_order(struct front *front)
{
    static char path[PATH_MAX + 16];
    const struct options *options = &front->options;
    struct order *order = &front->order;
    int code;
    /* Steps of Slurm's are started from here, those of one level of the tree together. */
    order->slurm = front->allocation && !options->agent && front->node_count > front->local_root;
    bool all = options->no_tree_spawn || order->slurm;
    order->version = PACKAGE_VERSION;
    order->job = front->job;
    order->position = TREE_FRONT;
    order->tree = (struct tree_options){.shape = {.count = front->node_count, .radix = options->radix},
                                        .position = TREE_FRONT,
                                        .start = all ? TREE_START_FRONT : TREE_START_EACH,
                                        .start_window = all && !order->slurm ? TREE_WINDOW : 0,
                                        .start_ns = options->start_ns,
                                        .silence_ns = options->silence_ns,
                                        .end_ns = options->kill_grace_ns + TREE_END_SPARE_NS};
    order->port_low = options->port_low;
    order->port_high = options->port_high;
    order->networks = options->networks;
    if ((code = front_find_daemon(front, path, sizeof path))) return code;
    order->daemon = path;
    order->environment = front_daemon_environment();
    if (!order->environment) return base_error(NCCLX_ERR_NO_MEM, "memory is short for starting ncclxd");
    note_surroundings(order);
    if ((code = raise_file_limit(front))) return code;
    if (front->node_count == 1 && front->local_root) return NCCLX_SUCCESS;
    oob_random(order->secret, sizeof order->secret);
    oob_random(&order->tree.job, sizeof order->tree.job);
    return choose_agent(front);
}

/* ---- Events ----------------------------------------------------------------------------------------------------- */

static struct front_kind *find_kind(struct front *front, const void *bytes, size_t count)
{
    for (struct front_kind *kind = front->kinds; kind; kind = kind->next)
        if (kind->count == count && !memcmp(kind->bytes, bytes, count)) return kind;
    struct front_kind *kind = base_calloc(AREA_LAUNCHER, 1, sizeof *kind);
    struct frame frame;
    if (!kind) return NULL;
    kind->bytes = base_alloc(AREA_LAUNCHER, count);
    kind->count = count;
    if (kind->bytes) memcpy(kind->bytes, bytes, count);
    if (!kind->bytes || frame_parse(kind->bytes, count, &frame) || frame.total != count ||
        message_read_node(&frame, &kind->node)) {
        base_free(AREA_LAUNCHER, kind->bytes);
        base_free(AREA_LAUNCHER, kind);
        return NULL;
    }
    kind->next = front->kinds;
    front->kinds = kind;
    return kind;
}

/* As many as the list of hosts says. */
static void give_gpus(struct front *front, int index)
{
    struct map_node *node = &front->nodes[index];
    int count = front->hosts.entries[index].gpus;
    node->gpus = gpus_make(node->gpus, node->gpu_count, count, map_objects(node, MAP_NUMA));
    node->gpu_count = node->gpus ? count : 0;
}

static void on_node(void *arg, int position, const char *name, const void *description, size_t bytes)
{
    struct front *front = arg;
    struct front_kind *kind = find_kind(front, description, bytes);
    struct front_node *place = &front->places[position];
    struct map_node *node = &front->nodes[place->node];
    char text[400];
    if (!kind) {
        snprintf(text, sizeof text, "what ncclxd on %.255s says of itself cannot be read", node->name);
        front_fail_job(front, 1, text);
        return;
    }
    node->cpus = kind->node.cpus;
    node->cpu_count = kind->node.cpu_count;
    node->gpus = kind->node.gpus;
    node->gpu_count = kind->node.gpu_count;
    if (front->hosts.entries[place->node].gpus >= 0) give_gpus(front, place->node);
    place->file_limit = kind->node.file_limit;
    place->process_limit = kind->node.process_limit;
    front_progress_host(front->progress, place->node);
    if (front->options.verbose) front_say("ncclxd on %s: %d cpus", name, node->cpu_count);
}

static void on_ready(void *arg)
{
    struct front *front = arg;
    if (front->blame.status < 0) { /* --timeout may have been faster */
        front->launched = true;
        if (front_launch(front)) {
            front->launched = false;
            front->options.quiet = false; /* it is the user's request that is wrong */
            front_fail_job(front, FRONT_EXIT_USAGE, base_error_detail());
        }
    }
    wiring_local_ended(front->wiring);
}

/* Failures of a start that everybody meets, in the user's words. False: nothing to say. */
static bool explain_start(const struct front *front, const struct tree_failure *failure, const char *host, char *text,
                          size_t bytes)
{
    if (failure->cause != TREE_CAUSE_AGENT_ENDED || failure->status < 0 || !WIFEXITED(failure->status)) return false;
    int status = WEXITSTATUS(failure->status);
    if (status != 126 && status != 127) return false;
    size_t length = failure->text ? strcspn(failure->text, "\r\n") : 0;
    snprintf(text, bytes, "%.255s cannot run %.400s (status %d%s%.*s); --prefix tells where ncclx is installed there",
             host, front->order.daemon, status, length ? ": " : "", (int)(length < 400 ? length : 400),
             failure->text ? failure->text : "");
    return true;
}

static void on_report(void *arg, const struct tree_failure *failure)
{
    struct front *front = arg;
    char text[1900];
    const char *host = failure->position < 0 ? "the hosts" : front->nodes[front->places[failure->position].node].name;
    bool killed = front->local_root && failure->position == 0 && failure->cause == TREE_CAUSE_CLOSED;
    int number = killed ? front_daemon_signal(front) : 0;
    if (!killed && failure->cause == TREE_CAUSE_CLOSED && failure->status >= 0 && WIFEXITED(failure->status) &&
        WEXITSTATUS(failure->status) > 128)
        number = WEXITSTATUS(failure->status) - 128; /* its guard says so, and the agent repeats it */
    if (killed) front->daemon_lost = true;
    if (number)
        snprintf(text, sizeof text, "the daemon ncclxd on %s was killed by signal %d (%s)", host, number,
                 report_signal(number));
    else if (!explain_start(front, failure, host, text, sizeof text))
        tree_explain(wiring_tree(front->wiring), failure, host, text, sizeof text);
    size_t used = strlen(text);
    if (front->launched) snprintf(text + used, sizeof text - used, "; ending the job");
    front->end_told = true; /* the tree ends by itself */
    front_blame(front, BLAME_ORIGIN, 1, text);
    front_await_end(front);
}

static void on_all_ended(void *arg)
{
    front_end_job(arg, false);
}

static void on_finished(void *arg)
{
    front_finish(arg);
}

static void on_say(void *arg, const char *text)
{
    (void)arg;
    front_say("%s", text);
}

static void on_drained(void *arg, int link)
{
    (void)arg, (void)link; /* what goes to daemons is small, or asked for by them */
}

static void on_closed(void *arg, int link)
{
    (void)arg, (void)link; /* the tree tells why */
}

/* The guard's child does the work. */
static pid_t on_neighbour(void *arg)
{
    const struct front *front = arg;
    return front->daemon > 0 ? pulse_child_of(front->daemon) : 0;
}

static void on_end_local(void *arg, bool at_once, bool orphan)
{
    struct front *front = arg;
    (void)at_once, (void)orphan;
    if (!front->launched) wiring_local_ended(front->wiring);
}

int front_open_tree(struct front *front)
{
    static const struct wiring_events events = {.frame = front_take_frame,
                                                .drained = on_drained,
                                                .closed = on_closed,
                                                .neighbour = on_neighbour,
                                                .say = on_say,
                                                .end_local = on_end_local,
                                                .finished = on_finished,
                                                .start_local = front_start_daemon,
                                                .node = on_node,
                                                .ready = on_ready,
                                                .report = on_report,
                                                .all_ended = on_all_ended};
    int code = prepare_order(front);
    struct wiring_options options = {.base = front->base,
                                     .order = &front->order,
                                     .self = {.version = PACKAGE_VERSION},
                                     .parent_fd = -1,
                                     .local_root = front->local_root};
    return code ? code : wiring_open(&options, &events, front, &front->wiring);
}
