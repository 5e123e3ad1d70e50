/* ten.c - what ten communicators, and windows, cost beside the one that is there: no connection, no descriptor, little memory, which
 * is given back, no word to PMIx, and few messages. Each is used with every peer.
 *
 * Sees hidden symbols, and stands between the library and PMIx. Rank 0 prints the worst rank's figures. */
#include "check.h"

#include "pml/pml.h"

#include <dlfcn.h>
#include <pmix.h>
#include <string.h>
#include <time.h>

#define WORLD NCCLX_COMM_WORLD
#define TEN 10
#define SMALL 8
#define LARGE 100000 /* by single copies; over sockets still with its envelope */
#define WARM_UP 6    /* calls, after which collectives have the memory that ranks share */
/* A wait after which a rank under Slurm has looked who else there is, for which it asks PMIx once. */
#define LONG_WAIT_NS 250000000
/* A communicator's own memory, of few ranks: matching of three kinds of traffic, and the state of its collectives. */
#define MOST_BYTES 8192

static int rank, size;

/* ---- All calls of the library to PMIx, once it has joined, are these (comm.t looks) ---- */

static atomic_uint asked;

#define NEXT(name) ((__typeof__(name) *)next_function(#name))

static void *next_function(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    atomic_fetch_add(&asked, 1);
    CHECK(function);
    return function;
}

pmix_status_t PMIx_Get(const pmix_proc_t *proc, const char key[], const pmix_info_t info[], size_t ninfo, pmix_value_t **val)
{
    return NEXT(PMIx_Get)(proc, key, info, ninfo, val);
}

pmix_status_t PMIx_Get_nb(const pmix_proc_t *proc, const char key[], const pmix_info_t info[], size_t ninfo, pmix_value_cbfunc_t cbfunc,
                          void *cbdata)
{
    return NEXT(PMIx_Get_nb)(proc, key, info, ninfo, cbfunc, cbdata);
}

pmix_status_t PMIx_Fence_nb(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t cbfunc,
                            void *cbdata)
{
    return NEXT(PMIx_Fence_nb)(procs, nprocs, info, ninfo, cbfunc, cbdata);
}

pmix_status_t PMIx_Put(pmix_scope_t scope, const char key[], pmix_value_t *val)
{
    return NEXT(PMIx_Put)(scope, key, val);
}

pmix_status_t PMIx_Commit(void)
{
    return NEXT(PMIx_Commit)();
}

pmix_status_t PMIx_Resolve_peers(const char *nodename, const pmix_nspace_t nspace, pmix_proc_t **procs, size_t *nprocs)
{
    return NEXT(PMIx_Resolve_peers)(nodename, nspace, procs, nprocs);
}

pmix_status_t PMIx_Resolve_nodes(const pmix_nspace_t nspace, char **nodelist)
{
    return NEXT(PMIx_Resolve_nodes)(nspace, nodelist);
}

/* ---- Figures of this rank ---- */

struct figures {
    int peers, descriptors, all_descriptors;
    int64_t bytes, connection_bytes; /* bytes: of everything but connections */
    uint64_t messages;
    unsigned asked;
};

static struct figures look(void)
{
    static const char *const transports[] = {"self", "shm", "tcp"};
    struct ncclx_rt *rt = ncclx_process.rt;
    struct figures figures = {.all_descriptors = open_descriptors(), .asked = atomic_load(&asked)};
    struct pml_counters counters;
    struct base_area_usage usage;
    base_rt_lock(rt);
    for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++) {
        struct pml_holdings holdings;
        OK(pml_get_holdings(rt, transports[i], -1, &holdings));
        figures.peers += holdings.peers;
        figures.descriptors += holdings.descriptors;
        for (int kind = 0; kind < PML_MEMORY_KINDS; kind++)
            if (kind != PML_MEMORY_RINGS) figures.connection_bytes += (int64_t)holdings.bytes[kind]; /* rings are in no area */
    }
    for (int area = 0; area < AREA_COUNT; area++) {
        base_area_usage((enum base_area)area, &usage);
        figures.bytes += (int64_t)usage.bytes;
    }
    figures.bytes -= figures.connection_bytes;
    pml_get_counters(rt, &counters);
    base_rt_unlock(rt);
    figures.messages = counters.messages_sent + counters.messages_received;
    return figures;
}

static int64_t worst(int64_t mine)
{
    int64_t most;
    OK(ncclx_coll_allreduce(&mine, &most, 1, NCCLX_INT64, NCCLX_MAX, WORLD));
    return most;
}

/* ---- Communicators ---- */

/* Receives first, so that no message has to be kept. */
static void exchange(ncclx_comm_t comm, size_t bytes)
{
    int me, count;
    OK(ncclx_comm_rank(comm, &me));
    OK(ncclx_comm_size(comm, &count));
    char *out = malloc(bytes), *in = malloc(bytes);
    CHECK(out && in && count == size);
    for (int step = 1; step < count; step++) {
        int to = (me + step) % count, from = (me + count - step) % count;
        ncclx_request_t request;
        memset(out, me + step, bytes);
        memset(in, 0, bytes);
        OK(ncclx_irecv(in, bytes, NCCLX_BYTE, from, step, comm, &request));
        OK(ncclx_send(out, bytes, NCCLX_BYTE, to, step, comm));
        OK(ncclx_wait(&request, NCCLX_STATUS_IGNORE));
        CHECK(in[0] == (char)(from + step) && in[bytes - 1] == (char)(from + step));
    }
    free(out);
    free(in);
}

static void use(ncclx_comm_t comm)
{
    exchange(comm, SMALL);
    exchange(comm, LARGE);
    OK(ncclx_coll_barrier(comm));
}

static ncclx_comm_t by_dup(void)
{
    ncclx_comm_t comm;
    OK(ncclx_comm_dup(WORLD, &comm));
    return comm;
}

static ncclx_comm_t by_split(void)
{
    ncclx_comm_t comm;
    OK(ncclx_comm_split(WORLD, 7, -rank, &comm));
    return comm;
}

static ncclx_comm_t by_group(void)
{
    ncclx_comm_t comm;
    ncclx_group_t all, group;
    int range[1][3] = {{size - 1, 0, -1}};
    OK(ncclx_comm_group(WORLD, &all));
    OK(ncclx_group_range_incl(all, 1, (const int (*)[3])range, &group));
    OK(ncclx_comm_create_group(WORLD, group, 3, &comm));
    OK(ncclx_group_free(&group));
    OK(ncclx_group_free(&all));
    return comm;
}

static const struct {
    const char *name;
    ncclx_comm_t (*make)(void);
} ways[] = {{"comm_dup", by_dup}, {"comm_split", by_split}, {"comm_create_group", by_group}};
#define WAYS ((int)(sizeof ways / sizeof ways[0]))

/* A message that was not received when the call before it ended would count for this one. */
static struct figures before(void)
{
    OK(ncclx_coll_barrier(WORLD));
    OK(ncclx_coll_barrier(WORLD));
    return look();
}

static void after(struct figures from, uint64_t *messages)
{
    struct figures to = look();
    CHECK(to.asked == from.asked && to.peers == from.peers);
    if (to.messages - from.messages > *messages) *messages = to.messages - from.messages;
}

static void rest(long ns)
{
    const struct timespec time = {.tv_nsec = ns};
    nanosleep(&time, NULL);
}

/* All others wait for a rank, and then it for another one. */
static void wait_long(void)
{
    for (int late = 0; late < 2; late++) {
        if (rank == late) rest(LONG_WAIT_NS);
        OK(ncclx_coll_barrier(WORLD));
    }
}

/* Under Slurm a rank that is alone on its node asks what became of others, now and then, by a child, to which it has a pipe for so long. */
static bool as_many_descriptors(int count)
{
    int message;
    for (int tries = 0; tries < 500 && open_descriptors() != count; tries++) {
        OK(ncclx_iprobe(NCCLX_ANY_SOURCE, 99, WORLD, &message, NCCLX_STATUS_IGNORE)); /* takes the answer */
        rest(10000000);
    }
    return open_descriptors() == count;
}

static void warm_up(void)
{
    wait_long();
    for (int i = 0; i < WARM_UP; i++) {
        for (int way = 0; way < WAYS; way++) {
            ncclx_comm_t comm = ways[way].make();
            use(comm);
            OK(ncclx_comm_free(&comm));
        }
        use(WORLD);
    }
}

static void communicators(void)
{
    ncclx_comm_t comm[TEN];
    uint64_t messages[WAYS] = {0};
    struct figures first = before();
    for (int i = 0; i < TEN; i++) {
        struct figures from = before();
        comm[i] = ways[i % WAYS].make();
        after(from, &messages[i % WAYS]);
        use(comm[i]);
    }
    struct figures full = before();
    CHECK(full.asked == first.asked);
    CHECK(full.peers == first.peers && full.descriptors == first.descriptors && as_many_descriptors(first.all_descriptors));
    for (int i = 0; i < TEN; i++) OK(ncclx_comm_free(&comm[i]));
    struct figures last = before();
    int64_t each = worst((full.bytes - first.bytes) / TEN), left = worst(last.bytes - first.bytes), peers = worst(first.peers);
    CHECK(each <= MOST_BYTES);
    CHECK(left <= MOST_BYTES); /* pools, of a process */
    for (int way = 0; way < WAYS; way++) {
        int64_t most = worst((int64_t)messages[way]);
        if (rank == 0) printf("%s: %lld messages\n", ways[way].name, (long long)most);
    }
    if (rank == 0) printf("peers %lld, bytes each %lld, left %lld\n", (long long)peers, (long long)each, (long long)left);
}

static void windows(void)
{
    uint64_t messages = 0, value = 0;
    static uint64_t memory[8];
    ncclx_win_t win;
    void *base;
    for (int i = 0; i < 4; i++) {
        struct figures from = before();
        if (i % 2) OK(ncclx_win_create(memory, sizeof memory, 8, NCCLX_INFO_NULL, WORLD, &win));
        else OK(ncclx_win_allocate(sizeof memory, 8, NCCLX_INFO_NULL, WORLD, &base, &win));
        after(from, &messages);
        for (int target = 0; target < size; target++) {
            OK(ncclx_win_put_signal(&value, 1, NCCLX_UINT64, target, 0, win, 1, NCCLX_SIGNAL_ADD, 1));
            OK(ncclx_win_flush(target, win));
        }
        OK(ncclx_win_wait_signal(win, 1, NCCLX_CMP_GE, (uint64_t)size, -1, &value));
        OK(ncclx_win_free(&win));
        CHECK(look().asked == from.asked);
    }
    int64_t most = worst((int64_t)messages);
    if (rank == 0) printf("win_create: %lld messages\n", (long long)most);
}

int main(void)
{
    OK(ncclx_init(NULL, NULL));
    OK(ncclx_comm_rank(WORLD, &rank));
    OK(ncclx_comm_size(WORLD, &size));
    CHECK(atomic_load(&asked) > 0 || size == 1); /* it is counted */
    warm_up();
    communicators();
    windows();
    OK(ncclx_finalize());
    return 0;
}
