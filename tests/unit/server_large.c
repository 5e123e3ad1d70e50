/* server_large.c - the PMIx server of one node of a job so large that libpmix is not given the map of all nodes: what
 * its ranks find out all the same. Each rank is this program again, with an argument. */
#include "config.h"

#include "bootstrap/client.h"
#include "launcher/cpus.h"
#include "launcher/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define NODES (SERVER_MAP_NODES + 100)
#define EACH 2
#define HERE 700 /* this node */

/* ---- A rank ---- */

static struct ncclx_rt rt;

static void check(int line, const char *what, bool good)
{
    if (good) return;
    fprintf(stderr, "# %s:%d: rank %d: failed: %s; last detail: %s\n", __FILE__, line, rt.job.rank, what,
            base_error_detail());
    _exit(1);
}
#define CHECK(condition) check(__LINE__, #condition, condition)

static void check_host(int rank, int node)
{
    pmix_proc_t proc;
    pmix_value_t *value = NULL;
    char name[32];
    PMIX_LOAD_PROCID(&proc, rt.job.id, (pmix_rank_t)rank);
    snprintf(name, sizeof name, "node%05d", node);
    CHECK(PMIx_Get(&proc, PMIX_HOSTNAME, NULL, 0, &value) == PMIX_SUCCESS);
    CHECK(value->type == PMIX_STRING && !strcmp(value->data.string, name));
    PMIX_VALUE_RELEASE(value);
}

static void check_peers(const char *host, int status, size_t expected)
{
    pmix_proc_t *procs = NULL;
    size_t count = 0;
    CHECK(PMIx_Resolve_peers(host, rt.job.id, &procs, &count) == status && count == expected);
    PMIX_PROC_FREE(procs, count);
}

static void check_number(const char *key, uint64_t expected)
{
    pmix_value_t *value = NULL;
    uint64_t number;
    CHECK(bootstrap_job_value(rt.bootstrap, key, NULL, &value) == PMIX_SUCCESS);
    CHECK(bootstrap_value_number(value, &number) && number == expected);
    PMIX_VALUE_RELEASE(value);
}

static int be_rank(int rank)
{
    const int *ranks;
    int count, node, mine, far = NODES * EACH - 1;
    CHECK(!base_process_init() && !base_rt_init(&rt, NULL) && !bootstrap_init(&rt));
    CHECK(rt.job.rank == rank && rt.job.size == NODES * EACH);
    CHECK(rt.job.local_size == EACH && rt.job.local_ranks[0] == HERE * EACH && rt.job.local_rank == rank % EACH);
    CHECK(!strcmp(rt.job.node_name, "node00700"));
    check_host(rank, HERE);
    check_host(far, NODES - 1);
    check_host(0, 0);
    check_number(PMIX_JOB_SIZE, NODES * EACH);
    check_number(PMIX_UNIV_SIZE, NODES * EACH);
    check_number(PMIX_NUM_NODES, NODES);
    check_number(PMIX_LOCAL_SIZE, EACH);
    check_peers("node00700", PMIX_SUCCESS, EACH);
    check_peers("node00701", PMIX_ERR_NOT_FOUND, 0); /* at once */
    CHECK(!bootstrap_node_of(&rt, rank, &mine) && !bootstrap_node_of(&rt, far, &node) && node != mine);
    CHECK(!bootstrap_node_ranks(&rt, far, &ranks, &count));
    CHECK(count == EACH && ranks[0] == far - 1 && ranks[1] == far);
    _exit(0); /* the others, whom the end would wait for, do not exist */
}

/* ---- The server ---- */

static void on_abort(void *arg, int rank, int code, const char *text)
{
    (void)arg;
    fprintf(stderr, "# rank %d aborts with %d: %s\n", rank, code, text);
}

static void on_text(void *arg, int rank, const char *text)
{
    (void)arg;
    fprintf(stderr, "# rank %d: %s\n", rank, text);
}

static void on_send(void *arg, int link, const void *data, size_t bytes)
{
    (void)arg, (void)link, (void)data, (void)bytes;
}

static void fill(struct message_launch *launch)
{
    static char *arguments[] = {(char *)(uintptr_t) "rank", NULL}, *none[] = {NULL};
    char name[32];
    *launch = (struct message_launch){.job = (char *)(uintptr_t) "large",
                                      .node_count = NODES,
                                      .node = HERE,
                                      .radix = 32,
                                      .rank_count = NODES * EACH,
                                      .parent = -1,
                                      .app_count = 1,
                                      .environment = none};
    launch->nodes = calloc(NODES, sizeof *launch->nodes);
    launch->positions = calloc(NODES, sizeof *launch->positions);
    launch->oversubscribed = calloc(NODES, sizeof *launch->oversubscribed);
    launch->ranks = calloc(NODES * EACH, sizeof *launch->ranks);
    launch->apps = calloc(1, sizeof *launch->apps);
    launch->apps[0].argv = arguments;
    for (int i = 0; i < NODES; i++) {
        snprintf(name, sizeof name, "node%05d", i);
        launch->nodes[i] = strdup(name);
        launch->positions[i] = i;
    }
    for (int i = 0; i < NODES * EACH; i++)
        launch->ranks[i] = (struct map_rank){.node = i / EACH, .local_rank = i % EACH, .cpus = (char *)(uintptr_t) "0"};
}

static pid_t start_rank(struct server *server, int rank)
{
    char **environment, number[16];
    assert_int_equal(server_environment(server, rank, &environment), 0);
    snprintf(number, sizeof number, "%d", rank);
    pid_t pid = fork();
    if (pid == 0) {
        for (char **entry = environment; *entry; entry++) putenv(*entry);
        execl("/proc/self/exe", "server_large", number, (char *)NULL);
        _exit(127);
    }
    server_free_environment(environment);
    return pid;
}

static void far_ranks_are_known(void **state)
{
    static const struct server_events events = {
        .aborted = on_abort, .logged = on_text, .trouble = NULL, .failed = NULL, .send = on_send};
    static struct message_launch launch;
    static struct cpus cpus; /* as the server, until the process ends */
    static struct server *server;
    char scratch[64], command[96];
    (void)state;
    setenv("PMIX_MCA_psec", "native", 1);
    snprintf(scratch, sizeof scratch, "/dev/shm/ncclx-large.%d", (int)getpid());
    assert_int_equal(mkdir(scratch, 0700), 0);
    assert_int_equal(cpus_discover(&cpus), 0);
    fill(&launch);
    struct server_options options = {.launch = &launch,
                                     .scratch = scratch,
                                     .segment = "/proc/1/fd/1",
                                     .topology = topo_node_hwloc(cpus.node)};
    int code = server_start(&options, &events, NULL, &server), status[EACH] = {-1, -1};
    pid_t pids[EACH];
    for (int i = 0; i < EACH && !code; i++) pids[i] = start_rank(server, HERE * EACH + i);
    for (int i = 0; i < EACH && !code; i++) waitpid(pids[i], &status[i], 0);
    snprintf(command, sizeof command, "rm -rf %s", scratch);
    assert_int_equal(system(command), 0);
    assert_int_equal(code, 0);
    for (int i = 0; i < EACH; i++) assert_int_equal(status[i], 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(far_ranks_are_known)};
    if (argc > 1) return be_rank(atoi(argv[1]));
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fflush(stdout);
    _exit(failed); /* as ncclxd: the server ends with its process */
}
