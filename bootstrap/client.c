/* client.c - joining and leaving the job, fences, the end by abort, and events from the server. */
#include "config.h"

#include "bootstrap/client.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* For a server on a busy node; usually it takes a millisecond. */
#define ABORT_ANSWER_NS (3 * BASE_NS_PER_S)
/* The same, when thousands start; NCCLX_TIMEOUT goes before it. */
#define INIT_LIMIT_NS (60 * BASE_NS_PER_S)

extern char **environ;

/* A process manager names its server in these. PMIX_MCA_* alone are a user's settings. */
static bool server_named(void)
{
    static const char uri[] = "PMIX_SERVER_URI";
    if (getenv("PMIX_NAMESPACE") || getenv("PMIX_RANK")) return true;
    for (char **variable = environ; variable && *variable; variable++)
        if (!strncmp(*variable, uri, sizeof uri - 1)) return true;
    return false;
}

/* ---- Events, on PMIx' thread ---------------------------------------------------------------------------------- */

/* A rank that waits prints its own line, at its next look. One that computes, or whose waits are all short, is spoken for here, without a
 * look into its waits: they may end at any moment. */
static void answer_dump(struct ncclx_rt *rt)
{
    struct timespec pause = {.tv_nsec = 10000000};
    unsigned wanted = atomic_fetch_add_explicit(&rt->dump_requested, 1, memory_order_relaxed) + 1;
    for (int i = 0; i < 30; i++) {
        if (atomic_load_explicit(&rt->dump_answered, memory_order_relaxed) == wanted) return;
        nanosleep(&pause, NULL);
    }
    if (atomic_load_explicit(&rt->dump_answered, memory_order_relaxed) == wanted) return;
    bool waits = __atomic_load_n(&rt->waiting, __ATOMIC_RELAXED) != NULL;
    dprintf(STDERR_FILENO, "ncclx: rank %d on %s: %s\n", rt->job.rank, rt->job.node_name,
            waits ? "communicates: no wait of it lasts" : "waits for nothing: the program computes");
}

static void on_event(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t infos,
                     pmix_info_t results[], size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *done_arg)
{
    struct bootstrap *boot = NULL;
    (void)handler, (void)source, (void)results, (void)nresults;
    for (size_t i = 0; i < infos; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_RETURN_OBJECT)) boot = info[i].value.data.ptr;
    if (boot) {
        pthread_mutex_lock(&boot->lock);
        if (boot->rt && status == BOOTSTRAP_EVENT_DUMP) answer_dump(boot->rt);
        else if (boot->rt && !atomic_load(&boot->leaving)) atomic_store(&boot->rt->aborting, true);
        pthread_mutex_unlock(&boot->lock);
    }
    if (done) done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, done_arg);
}

static void on_registered(pmix_status_t status, size_t handler, void *arg)
{
    (void)status, (void)handler, (void)arg;
}

static void register_events(struct bootstrap *boot)
{
    static pmix_status_t codes[] = {BOOTSTRAP_EVENT_DUMP, PMIX_ERR_LOST_CONNECTION};
    PMIX_INFO_LOAD(&boot->events, PMIX_EVENT_RETURN_OBJECT, boot, PMIX_POINTER);
    PMIx_Register_event_handler(codes, sizeof codes / sizeof codes[0], &boot->events, 1, on_event, on_registered, NULL);
}

/* ---- Joining and leaving -------------------------------------------------------------------------------------- */

/* Calls a function of PMIx that may never return, from a thread that is left behind when it does not: false. Signals
 * belong to the program's threads, and PMIx starts another one. */
static bool call_within(void *(*function)(void *), void *arg, uint64_t limit_ns)
{
    pthread_t thread;
    struct timespec until;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    bool separate = pthread_create(&thread, NULL, function, arg) == 0;
    if (!separate) function(arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)(limit_ns / BASE_NS_PER_S);
    return !separate || pthread_timedjoin_np(thread, NULL, &until) == 0;
}

struct init_call {
    pmix_proc_t self;
    pmix_status_t status;
};

static void *call_init(void *arg)
{
    struct init_call *call = arg;
    call->status = PMIx_Init(&call->self, NULL, 0);
    return NULL;
}

/* A server that takes the connection and says nothing would be waited for without end. */
static pmix_status_t connect_server(const struct ncclx_rt *rt, pmix_proc_t *self)
{
    struct init_call *call = base_calloc(AREA_BOOTSTRAP, 1, sizeof *call);
    uint64_t limit = (uint64_t)rt->config.value[CONFIG_TIMEOUT].number;
    if (!call) return PMIX_ERR_NOMEM;
    if (!limit) limit = INIT_LIMIT_NS;
    if (limit < BASE_NS_PER_S) limit = BASE_NS_PER_S;
    if (!call_within(call_init, call, limit)) return PMIX_ERR_TIMEOUT; /* the thread has the memory */
    pmix_status_t status = call->status;
    *self = call->self;
    base_free(AREA_BOOTSTRAP, call);
    return status;
}

static void disconnect(struct ncclx_rt *rt)
{
    struct bootstrap *boot = rt->bootstrap;
    atomic_store(&boot->leaving, true);
    PMIx_Finalize(NULL, 0);
    bootstrap_call_release(boot);
    bootstrap_watch_release(boot);
    bootstrap_step_release(boot);
    bootstrap_segment_release(boot);
    bootstrap_nodes_release(boot);
    pthread_mutex_destroy(&boot->lock);
    base_free(AREA_BOOTSTRAP, boot);
    rt->bootstrap = NULL;
}

static int connect_client(struct ncclx_rt *rt)
{
    struct bootstrap *boot = base_calloc(AREA_BOOTSTRAP, 1, sizeof *boot);
    if (!boot) return base_error(NCCLX_ERR_NO_MEM, "no memory for the PMIx client");
    boot->rt = rt;
    boot->segment = -1;
    pthread_mutex_init(&boot->lock, NULL);
    pmix_status_t status = connect_server(rt, &boot->self);
    if (status != PMIX_SUCCESS) {
        pthread_mutex_destroy(&boot->lock);
        base_free(AREA_BOOTSTRAP, boot); /* no PMIx_Finalize: after this failure 4.2 crashes in it */
        return base_error(NCCLX_ERR_BOOTSTRAP,
                          "the environment names a PMIx server (PMIX_NAMESPACE=%s), which cannot be reached: %s; start the program "
                          "with ncclxrun or srun --mpi=pmix, or unset PMIX_*",
                          getenv("PMIX_NAMESPACE") ? getenv("PMIX_NAMESPACE") : "", PMIx_Error_string(status));
    }
    rt->bootstrap = boot;
    int error = bootstrap_fill_job(boot);
    if (!error) error = bootstrap_segment_offer(boot);
    if (error) {
        disconnect(rt);
        return error;
    }
    register_events(boot);
    bootstrap_watch_start(boot);
    return NCCLX_SUCCESS;
}

static void set_rank(struct bootstrap *boot, struct ncclx_rt *rt)
{
    pthread_mutex_lock(&boot->lock);
    boot->rt = rt;
    pthread_mutex_unlock(&boot->lock);
}

int bootstrap_init(struct ncclx_rt *rt)
{
    struct bootstrap *boot = ncclx_process.client;
    if (!boot) return server_named() ? connect_client(rt) : bootstrap_fill_job_of_one(rt);
    ncclx_process.client = NULL;
    set_rank(boot, rt);
    rt->bootstrap = boot;
    int error = bootstrap_fill_job(boot);
    if (error) bootstrap_leave(rt);
    else bootstrap_watch_start(boot);
    return error;
}

void bootstrap_leave(struct ncclx_rt *rt)
{
    if (!rt->bootstrap) return;
    bootstrap_watch_release(rt->bootstrap);
    bootstrap_step_release(rt->bootstrap);
    set_rank(rt->bootstrap, NULL);
    ncclx_process.client = rt->bootstrap;
    rt->bootstrap = NULL;
}

int bootstrap_finalize(struct ncclx_rt *rt)
{
    int error = NCCLX_SUCCESS;
    if (!rt->bootstrap) return NCCLX_SUCCESS;
    rt->bootstrap->ending = true;
    if (!atomic_load(&rt->aborting)) error = bootstrap_fence(rt);
    disconnect(rt);
    return error;
}

/* ---- Fence, abort --------------------------------------------------------------------------------------------- */

static void on_fenced(pmix_status_t status, void *arg)
{
    bootstrap_call_answer(arg, status, NULL);
}

int bootstrap_fence(struct ncclx_rt *rt)
{
    struct bootstrap *boot = rt->bootstrap;
    pmix_status_t status;
    size_t infos;
    /* Slurm 22.05 takes a fence that collects nothing for one of the node's ranks only. What is collected is small: a card a node. */
    bool collect = !rt->job.own_launcher && rt->job.local_size < rt->job.size;
    if (!boot || rt->job.size == 1) return NCCLX_SUCCESS;
    struct bootstrap_call *call = bootstrap_call_new(boot);
    if (!call) return base_error(NCCLX_ERR_NO_MEM, "no memory for a fence");
    pmix_info_t *info = bootstrap_call_fence_info(call, collect, &infos);
    status = PMIx_Fence_nb(NULL, 0, info, infos, on_fenced, call);
    if (status == PMIX_SUCCESS) {
        int error = bootstrap_call_wait(call, boot, "fence of the job", 0, &status, NULL);
        if (error) return error;
        boot->joined |= status == PMIX_SUCCESS;
    } else {
        bootstrap_call_drop(call);
        if (status == PMIX_OPERATION_SUCCEEDED) status = PMIX_SUCCESS;
    }
    if (status == PMIX_SUCCESS) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_BOOTSTRAP, "the fence of the job's ranks failed: %s; a rank may have died", PMIx_Error_string(status));
}

struct abort_call {
    int code;
    const char *message;
    pmix_status_t status;
};

static void *call_abort(void *arg)
{
    struct abort_call *call = arg;
    call->status = PMIx_Abort(call->code, call->message, NULL, 0);
    return NULL;
}

void bootstrap_abort(struct ncclx_rt *rt, int code, const char *message)
{
    struct bootstrap *boot = rt->bootstrap;
    struct abort_call call = {.code = code, .message = message ? message : ""};
    if (!boot) return;
    atomic_store(&rt->aborting, true);
    /* The answer may never come, when the program has closed all descriptors. The caller then exits, which ends the job, too. */
    if (call_within(call_abort, &call, ABORT_ANSWER_NS) && call.status == PMIX_SUCCESS) sleep(5); /* the server kills us */
    _exit(code & 255);
}
