/* startup_costs.c - measures what the parts of a job's start cost on this machine, for the model in
 * tests/sim/startup_scale.c: prints NAME=NANOSECONDS lines, which that program takes as arguments.
 *
 *     tests/perf/startup_costs >costs && tests/sim/startup_scale $(grep -v "^#" costs)
 *     tests/perf/startup_costs NODES LAUNCHER PROGRAM...
 *
 * The second form also runs a real job of 16 and one of 64 ranks: what one rank more costs in all, with its share of
 * the daemon's work, from exec to exit.
 *
 * The real functions are measured: libpmix through launcher/server, launch orders through launcher/message, frames
 * through launcher/link over a socket pair, records through bootstrap/oob. Lines with # are for people: how the
 * registration of a job grows with its ranks and nodes.
 */
#include "config.h"

#include "bootstrap/oob/oob.h"
#include "launcher/cpus.h"
#include "launcher/link.h"
#include "launcher/server_private.h"
#include "runtime/base/base.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 5
#define RANKS_A_NODE 8

static double now(void) /* seconds */
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double cpu(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void fail(const char *what)
{
    fprintf(stderr, "startup_costs: %s: %s\n", what, base_error_detail());
    _exit(1);
}

static void print_cost(const char *name, double seconds)
{
    printf("%s=%.0f\n", name, seconds < 0 ? 0 : seconds * 1e9);
    fflush(stdout);
}

static long memory_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* ---- Jobs of any size ---- */

struct job {
    char name[64];
    struct message_launch launch;
    bool *oversubscribed;
};

static void make_job(struct job *job, const char *name, int nodes, int each)
{
    int ranks = nodes * each;
    struct message_launch *launch = &job->launch;
    snprintf(job->name, sizeof job->name, "%s", name);
    *launch = (struct message_launch){
        .job = job->name, .parent = -1, .node_count = nodes, .radix = 32, .rank_count = ranks, .app_count = 1};
    launch->nodes = calloc((size_t)nodes, sizeof *launch->nodes);
    launch->positions = calloc((size_t)nodes, sizeof *launch->positions);
    launch->ranks = calloc((size_t)ranks, sizeof *launch->ranks);
    launch->apps = calloc(1, sizeof *launch->apps);
    job->oversubscribed = launch->oversubscribed = calloc((size_t)nodes, sizeof *job->oversubscribed);
    static char *arguments[] = {(char *)(uintptr_t) "hello", NULL}, *none[] = {NULL};
    static char own[256];
    gethostname(own, sizeof own - 1);
    launch->environment = none;
    launch->apps[0].argv = arguments;
    for (int i = 0; i < nodes; i++) {
        char text[64];
        snprintf(text, sizeof text, "node%05d", i);
        launch->nodes[i] = i ? strdup(text) : own;
        launch->positions[i] = i;
    }
    for (int i = 0; i < ranks; i++)
        launch->ranks[i] = (struct map_rank){.node = i / each, .local_rank = i % each, .cpus = (char *)(uintptr_t) "3"};
}

/* ---- libpmix ---- */

static char scratch[64];

static struct server_options options_of(const struct job *job, struct cpus *cpus)
{
    return (struct server_options){.launch = &job->launch,
                                   .scratch = scratch,
                                   .segment = "/proc/1/fd/1",
                                   .topology = topo_node_hwloc(cpus->node)};
}

static void ignore_abort(void *arg, int rank, int code, const char *text)
{
    (void)arg, (void)rank, (void)code, (void)text;
}

static void ignore_text(void *arg, int rank, const char *text)
{
    (void)arg, (void)rank, (void)text;
}

static void ignore_send(void *arg, int link, const void *data, size_t bytes)
{
    (void)arg, (void)link, (void)data, (void)bytes;
}

struct sample {
    double init, registration;
    double first_client; /* what it costs the server that the first one connects */
    double client;       /* CPU time of a later one, until PMIx_Init returns */
    double vforked;      /* what the server's thread waits for that one to be another program */
    long kib;
};

/* This program again, as rank `rank` of the job, which writes its CPU time to `fd`. Returns what the server used. */
static double run_client(const struct job *job, int rank, int fd, double *vforked)
{
    pmix_proc_t proc;
    char **environment = NULL, number[16];
    PMIX_LOAD_PROCID(&proc, job->name, (pmix_rank_t)rank);
    if (PMIx_server_setup_fork(&proc, &environment) != PMIX_SUCCESS) fail("a rank's environment");
    for (char **entry = environment; *entry; entry++) putenv(*entry);
    snprintf(number, sizeof number, "%d", fd);
    double start = cpu(), begin = now();
    pid_t child = vfork(); /* without a copy of the server's page tables */
    if (child == 0) {
        execl("/proc/self/exe", "startup_costs", "--client", number, (char *)NULL);
        _exit(127);
    }
    *vforked = now() - begin;
    int status;
    waitpid(child, &status, 0);
    if (status) fail("a rank");
    return cpu() - start;
}

static int be_client(int fd)
{
    pmix_proc_t self;
    if (PMIx_Init(&self, NULL, 0) != PMIX_SUCCESS) return 1;
    double used = cpu();
    return write(fd, &used, sizeof used) != sizeof used || PMIx_Finalize(NULL, 0) != PMIX_SUCCESS;
}

static void measure_clients(struct sample *sample, const struct job *job)
{
    int ends[2];
    double first;
    if (pipe(ends)) fail("pipe");
    sample->first_client = run_client(job, 0, ends[1], &sample->vforked);
    sample->first_client -= run_client(job, 1, ends[1], &sample->vforked); /* what every one costs */
    if (read(ends[0], &first, sizeof first) != sizeof first ||
        read(ends[0], &sample->client, sizeof sample->client) != sizeof sample->client)
        fail("a rank's figures");
}

/* A process of its own starts a server for one rank, and registers one job more. */
static struct sample measure_server(int nodes, int each)
{
    static const struct server_events events = {.aborted = ignore_abort, .logged = ignore_text, .send = ignore_send};
    struct sample sample = {.kib = 0};
    int ends[2];
    if (pipe(ends)) fail("pipe");
    pid_t child = fork();
    if (child == 0) {
        struct job first, job;
        struct server *server;
        struct cpus cpus;
        snprintf(scratch, sizeof scratch, "/dev/shm/startup-costs.%d", (int)getpid());
        if (mkdir(scratch, 0700) || cpus_discover(&cpus)) fail("a private directory and the topology");
        make_job(&first, "first", 1, 1);
        make_job(&job, "job", nodes, each);
        struct server_options options = options_of(&first, &cpus);
        double start = cpu(); /* of all threads: what others do on this machine is left out */
        if (server_start(&options, &events, NULL, &server)) fail("the server");
        sample.init = cpu() - start;
        long before = memory_kib();
        start = cpu();
        if (server_register_job(server, &job.launch, "/proc/1/fd/1")) fail("the registration");
        sample.registration = cpu() - start;
        sample.kib = memory_kib() - before;
        if (job.launch.rank_count > 1 && each > 1) measure_clients(&sample, &job);
        if (write(ends[1], &sample, sizeof sample) != sizeof sample) fail("pipe");
        char command[128];
        snprintf(command, sizeof command, "rm -rf %s", scratch);
        _exit(system(command) != 0);
    }
    close(ends[1]);
    if (read(ends[0], &sample, sizeof sample) != sizeof sample) fail("a server's figures");
    close(ends[0]);
    waitpid(child, NULL, 0);
    return sample;
}

static struct sample best_server(int nodes, int each)
{
    struct sample best = measure_server(nodes, each);
    for (int i = 1; i < (nodes > 2000 ? 2 : ROUNDS); i++) {
        struct sample sample = measure_server(nodes, each);
        if (sample.init < best.init) best.init = sample.init;
        if (sample.registration < best.registration) best.registration = sample.registration;
        if (sample.first_client < best.first_client) best.first_client = sample.first_client;
        if (sample.client < best.client) best.client = sample.client;
        if (sample.vforked < best.vforked) best.vforked = sample.vforked;
    }
    return best;
}

static struct sample show_server(int nodes, int each)
{
    struct sample sample = best_server(nodes, each);
    printf("# %5d %6d %10.2f %10ld %10.2f %10.2f\n", nodes, nodes * each, sample.registration * 1e3, sample.kib,
           sample.first_client * 1e3, sample.client * 1e3);
    return sample;
}

/* A map is linear enough up to its largest. */
static void measure_pmix(int most_nodes)
{
    const int mapped = SERVER_MAP_NODES;
    const double mapped_ranks = (double)mapped * RANKS_A_NODE, most_ranks = (double)most_nodes * RANKS_A_NODE;
    printf("# nodes  ranks  registration ms  memory KiB  first client ms  client ms\n");
    struct sample one = best_server(1, 1), eight = show_server(1, RANKS_A_NODE), more = show_server(1, 64);
    struct sample large = show_server(mapped, RANKS_A_NODE), thin = best_server(mapped, 1);
    struct sample most = show_server(most_nodes, RANKS_A_NODE);
    double client = (more.registration - eight.registration) / (64 - RANKS_A_NODE);
    double rank = (large.registration - thin.registration) / (mapped_ranks - mapped);
    print_cost("server_init", one.init - one.registration);
    print_cost("register_fixed", one.registration - client);
    print_cost("register_client", client);
    print_cost("register_rank", rank);
    print_cost("register_node", (thin.registration - one.registration) / mapped - rank);
    print_cost("register_far", (most.registration - one.registration) / most_ranks);
    print_cost("fork_rank", eight.vforked);
    print_cost("rank_init", eight.client);
    print_cost("first_client_rank", (most.first_client - eight.first_client) / most_ranks);
    print_cost("rank_init_node", (large.client - eight.client) / mapped);
    print_cost("rank_init_far", (most.client - eight.client) / most_ranks);
}

/* ---- Launch orders ---- */

static void measure_order(int nodes)
{
    struct job job;
    struct message_launch read_back;
    struct frame_writer writer;
    struct frame frame;
    make_job(&job, "job", nodes, RANKS_A_NODE);
    double start = cpu();
    message_write_launch(&writer, &job.launch);
    if (frame_finish(&writer) || frame_parse(writer.data, writer.used, &frame)) fail("a launch order");
    double written = cpu();
    if (message_read_launch(&frame, &read_back)) fail("a launch order");
    double done = cpu();
    printf("# a launch order for %d ranks: %zu bytes, written in %.2f ms, read in %.2f ms\n", job.launch.rank_count,
           writer.used, (written - start) * 1e3, (done - written) * 1e3);
    print_cost("order_rank", (done - written) / job.launch.rank_count);
    printf("order_bytes_rank=%zu\n", writer.used / (size_t)job.launch.rank_count);
}

/* ---- Messages of a daemon ---- */

#define PINGS 20000

struct echo {
    struct event_base *base;
    struct link *link;
    int left;
};

static void send_ping(struct echo *echo)
{
    static const unsigned char text[40];
    struct frame_writer writer;
    frame_begin(&writer, 9);
    frame_put_raw(&writer, text, sizeof text);
    link_send(echo->link, &writer);
}

static int on_ping(void *arg, const struct frame *frame)
{
    struct echo *echo = arg;
    (void)frame;
    if (echo->left-- > 0)
        send_ping(echo);
    else
        event_base_loopbreak(echo->base);
    return NCCLX_SUCCESS;
}

static void on_drained(void *arg)
{
    (void)arg;
}

static void on_closed(void *arg, const char *message)
{
    struct echo *echo = arg;
    (void)message;
    event_base_loopbreak(echo->base);
}

static void echo_run(int fd, bool first)
{
    static const struct link_events events = {.frame = on_ping, .drained = on_drained, .closed = on_closed};
    static const struct oob_keys keys = {{1}, {1}}; /* sealed, as between hosts */
    struct echo echo = {.base = event_base_new(), .left = PINGS};
    echo.link = link_open(echo.base, fd, &keys, &events, &echo);
    if (first) send_ping(&echo);
    event_base_dispatch(echo.base);
}

/* CPU time of one side, for each message that it takes and the one that it sends. */
static void measure_messages(void)
{
    int ends[2];
    double best = 1;
    struct oob *oob;
    struct oob_identity identity = {.job = "job", .positions = 1, .trust = OOB_SECRET};
    const struct oob_options options = {.port_low = 0};
    if (oob_create(&identity, &options, &oob)) { /* which loads libsodium */
        printf("# no records: %s\n", base_error_detail());
        return;
    }
    for (int i = 0; i < ROUNDS; i++) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) fail("a socket pair");
        pid_t child = fork();
        if (child == 0) {
            close(ends[0]);
            echo_run(ends[1], false);
            _exit(0);
        }
        close(ends[1]);
        double start = cpu();
        echo_run(ends[0], true);
        double each = (cpu() - start) / PINGS;
        if (each < best) best = each;
        close(ends[0]);
        waitpid(child, NULL, 0);
    }
    print_cost("receive", best * 0.6); /* the loop's wait and the read weigh more than the write */
    print_cost("send", best * 0.4);
    oob_destroy(oob);
}

static void measure_bytes(void)
{
    static unsigned char data[32768], sealed[sizeof data + OOB_RECORD_EXTRA];
    static const unsigned char key[OOB_KEY_BYTES] = {1};
    struct oob_seal seal, open;
    const int records = 2000;
    oob_seal_begin(&seal, key);
    oob_seal_begin(&open, key);
    double start = cpu();
    for (int i = 0; i < records; i++) {
        oob_seal(&seal, data, sizeof data, sealed);
        if (oob_unseal(&open, sealed, sizeof sealed, data)) fail("a record");
    }
    /* sealed and opened once each, and copied about three times at either end, in the kernel and out of it */
    print_cost("kilobyte", (cpu() - start) / (records * 32.0) / 2 + 1024.0 / 5e9 * 3);
}

/* ---- Connections ---- */

static void wait_connected(struct oob *one, struct oob *other, int wanted)
{
    struct oob_event event;
    while (wanted) {
        uint64_t time = base_clock_ns();
        oob_dispatch(one, time);
        oob_dispatch(other, time);
        struct oob *both[] = {one, other};
        for (int i = 0; i < 2; i++) {
            while (oob_next(both[i], &event)) {
                if (event.kind != OOB_CONNECTED && event.kind != OOB_ACCEPTED) continue;
                close(event.fd);
                wanted--;
            }
        }
    }
}

/* CPU time of both ends together, halved. */
static void measure_connections(void)
{
    struct oob_identity identity = {.job = "job", .positions = 2, .trust = OOB_SECRET};
    struct oob_options options = {.networks = "127.0.0.1/32"};
    struct oob_addresses addresses;
    struct oob *above, *below;
    const int connections = 200;
    if (oob_create(&identity, &options, &above)) return;
    identity.position = 1;
    if (oob_create(&identity, &options, &below) || oob_listen(above)) fail("an endpoint");
    struct oob_addresses towards;
    if (oob_addresses_parse("127.0.0.1:1", &towards) || oob_addresses(above, &towards.list[0], &addresses))
        fail("addresses");
    double start = cpu();
    for (int i = 0; i < connections; i++) {
        uint64_t id;
        if (oob_connect(below, 0, NULL, &addresses, 0, 1000, base_clock_ns(), &id)) fail("a connection");
        wait_connected(above, below, 2);
    }
    double each = (cpu() - start) / connections / 2;
    print_cost("accept", each);
    print_cost("connect", each);
    oob_destroy(below);
    oob_destroy(above);
}

/* ---- Processes ---- */

static double run_process(char *const argv[], double *forked)
{
    double start = now();
    pid_t child = fork();
    if (child == 0) {
        execv(argv[0], argv);
        _exit(127);
    }
    *forked = now() - start;
    waitpid(child, NULL, 0);
    return now() - start;
}

/* A daemon before it greets: a program is run, and the topology discovered. */
static void measure_daemon(double program)
{
    struct cpus cpus;
    double start = now();
    if (cpus_discover(&cpus)) fail("the topology");
    print_cost("daemon_start", program + now() - start);
}

static void measure_fork(void)
{
    static char *const argv[] = {(char *)(uintptr_t) "/bin/true", NULL};
    double best = 1, best_fork = 1;
    for (int i = 0; i < 50; i++) {
        double forked, whole = run_process(argv, &forked);
        if (whole < best) best = whole;
        if (forked < best_fork) best_fork = forked;
    }
    printf("# fork takes %.0f us of the parent, an empty program %.0f us in all\n", best_fork * 1e6, best * 1e6);
    print_cost("agent_fork", best_fork);
    measure_daemon(best);
}

static double children_cpu(void)
{
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* CPU time of a whole job, the least of some. */
static double run_job(int ranks, char *const command[])
{
    char number[16], *argv[64] = {command[0], (char *)(uintptr_t) "-n", number};
    double best = 1e9, forked;
    snprintf(number, sizeof number, "%d", ranks);
    for (int i = 1; command[i] && i < 60; i++) argv[i + 2] = command[i];
    for (int i = 0; i < ROUNDS; i++) {
        double before = children_cpu();
        run_process(argv, &forked);
        if (children_cpu() - before < best) best = children_cpu() - before;
    }
    return best;
}

static void measure_job(char *const command[])
{
    double few = run_job(16, command), many = run_job(64, command);
    printf("# jobs of 16 and 64 ranks use %.0f and %.0f ms of CPU\n", few * 1e3, many * 1e3);
    print_cost("rank_init_more", (many - few) / 48);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "--client")) return be_client(atoi(argv[2]));
    setenv("PMIX_MCA_psec", "native", 1);         /* as ncclxrun does */
    int nodes = argc > 1 ? atoi(argv[1]) : 12288; /* more than are mapped */
    measure_fork();
    measure_messages();
    measure_bytes();
    measure_connections();
    measure_order(nodes);
    measure_pmix(nodes);
    if (argc > 3) measure_job(argv + 2);
    return 0;
}
