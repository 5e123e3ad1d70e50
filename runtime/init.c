/* init.c - joining and leaving the job. */
#include "runtime/api.h"
#include "runtime/debugger.h"
#include "bootstrap/bootstrap.h"
#include "coll/coll.h"
#include "osc/osc.h"
#include "pml/pml.h"
#include "topo/topo.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

/* Indices of the choices of NCCLX_ERRORS and NCCLX_PROGRESS. */
enum { ERRORS_RETURN = 1, PROGRESS_THREAD = 1 };

/* What stands on the process manager's client, in the order of starting. */
static const struct {
    int (*start)(struct ncclx_rt *rt);
    void (*end)(struct ncclx_rt *rt);
} layers[] = {{topo_init, topo_finalize},
              {pml_init, pml_finalize},
              {coll_init, coll_finalize},
              {runtime_init, runtime_finalize}, /* COMM_WORLD and COMM_SELF */
              {osc_init, osc_finalize}};        /* windows hold communicators, so they end first */
#define LAYERS (sizeof layers / sizeof layers[0])

static int start_layers(struct ncclx_rt *rt)
{
    for (size_t i = 0; i < LAYERS; i++) {
        int error = layers[i].start(rt);
        if (!error) continue;
        while (i-- > 0) layers[i].end(rt);
        return error;
    }
    return NCCLX_SUCCESS;
}

static void end_layers(struct ncclx_rt *rt)
{
    for (size_t i = LAYERS; i-- > 0;) layers[i].end(rt);
}

static int start_agent_if_asked(struct ncclx_rt *rt)
{
    if (rt->config.value[CONFIG_PROGRESS].number != PROGRESS_THREAD) return NCCLX_SUCCESS;
    bool was_threaded = rt->threaded;
    base_rt_lock(rt);
    int error = base_agent_start(rt);
    /* Where there was no need for the lock before, a start that succeeds has taken it. */
    if (was_threaded || !error) base_rt_unlock(rt);
    return error;
}

/* level: NCCLX_THREAD_*, or -1 for that of NCCLX_THREAD_LEVEL. */
static int start_rank(struct ncclx_rt *rt, int level)
{
    int error = base_process_init();
    if (!error) error = bootstrap_init(rt);
    if (error) return error;
    if ((error = debugger_wait(rt))) return error;
    base_rt_configure(rt);
    rt->thread_level = level >= 0 ? level : (int)rt->config.value[CONFIG_THREAD_LEVEL].number;
    error = start_layers(rt);
    if (error) return error;
    rt->threaded = rt->thread_level == NCCLX_THREAD_MULTIPLE;
    error = start_agent_if_asked(rt);
    if (error) end_layers(rt);
    return error;
}

/* rt null: the configuration is not read yet, or is what failed. */
static bool errors_return(const struct ncclx_rt *rt)
{
    if (rt) return rt->config.value[CONFIG_ERRORS].number == ERRORS_RETURN;
    const char *how = getenv("NCCLX_ERRORS");
    return how && strcasecmp(how, "return") == 0;
}

/* Without a communicator there is no error handler: NCCLX_ERRORS alone decides. */
static int init_failed(struct ncclx_rt *rt, const char *name, int error, bool configured)
{
    if (!errors_return(configured ? rt : NULL)) api_fatal(rt, name, error);
    if (configured) {
        bootstrap_leave(rt);
        base_rt_release(rt);
    }
    base_free(AREA_RUNTIME, rt);
    atomic_store(&ncclx_process.state, PROCESS_NEW);
    return error;
}

static int init_again(const char *name)
{
    struct api_call call;
    int error = api_enter(&call, name);
    if (error) return error;
    return api_leave(&call, base_error(NCCLX_ERR_INITIALIZED, "this process has joined the job already"));
}

static int init(const char *name, int level)
{
    int expected = PROCESS_NEW;
    if (atomic_load(&ncclx_process.forked)) return api_refuse(name);
    if (!atomic_compare_exchange_strong(&ncclx_process.state, &expected, PROCESS_INITIALIZING)) {
        if (expected != PROCESS_INITIALIZING) return init_again(name);
        return base_error(NCCLX_ERR_INITIALIZED, "%s: another thread is inside ncclx_init", name);
    }
    struct ncclx_rt *rt = base_calloc(AREA_RUNTIME, 1, sizeof *rt);
    if (!rt) return init_failed(NULL, name, base_error(NCCLX_ERR_NO_MEM, "no memory for the rank"), false);
    int error = base_rt_init(rt, NULL);
    if (error) return init_failed(rt, name, error, false);
    error = start_rank(rt, level);
    if (error) return init_failed(rt, name, error, true);
    ncclx_process.rt = rt;
    atomic_store_explicit(&ncclx_process.state, PROCESS_READY, memory_order_release);
    return NCCLX_SUCCESS;
}

API_DEFINE(int, init)(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return init(API_NAME, -1);
}

API_DEFINE(int, init_thread)(int *argc, char ***argv, int required, int *provided)
{
    (void)argc;
    (void)argv;
    if (required < NCCLX_THREAD_SINGLE || required > NCCLX_THREAD_MULTIPLE) {
        int error = base_error(NCCLX_ERR_ARG, "%d is not a thread level", required);
        if (!errors_return(NULL)) api_fatal(NULL, API_NAME, error);
        return error;
    }
    int error = init(API_NAME, required);
    if (!error && provided) *provided = required;
    return error;
}

API_DEFINE(int, query_thread)(int *provided)
{
    struct api_call call;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    error = api_check_out(provided, "provided");
    if (!error) *provided = call.rt->thread_level;
    return api_leave(&call, error);
}

static void describe_unsent(const void *arg, char *text, size_t bytes)
{
    const struct runtime *runtime = arg;
    snprintf(text, bytes, "messages to leave (%zu operations whose requests were given up)", runtime->detached);
}

/* Operations that nobody waits for any more still have to happen, and messages that wait for room have to leave. */
static bool has_unsent(struct ncclx_rt *rt)
{
    return rt->runtime->detached || !pml_drained(rt);
}

static int drain(struct ncclx_rt *rt)
{
    struct base_wait wait;
    int error = NCCLX_SUCCESS;
    if (!has_unsent(rt)) return NCCLX_SUCCESS;
    base_wait_begin(&wait, rt, "ncclx_finalize", describe_unsent, rt->runtime);
    do error = base_wait_step(&wait);
    while (!error && has_unsent(rt));
    base_wait_end(&wait);
    return error;
}

/* After the barrier no rank needs another one's progress any more, except for the barrier's own last messages; those
 * who wait for them take them in. Ranks of several nodes meet at the process manager: messages may not reach all. */
static int finish_communication(struct ncclx_rt *rt)
{
    int error = drain(rt);
    if (!error) error = coll_check_call(rt->world, "ncclx_finalize", COLL_CALL_FINALIZE, 0, NCCLX_SUCCESS);
    if (!error && rt->job.local_size < rt->job.size) error = bootstrap_fence(rt);
    else if (!error && rt->job.size > 1) error = coll_barrier(rt->world);
    return error ? error : drain(rt);
}

API_DEFINE(int, finalize)(void)
{
    struct api_call call;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    struct ncclx_rt *rt = call.rt;
    error = finish_communication(rt);
    if (error) return api_leave(&call, error);
    int expected = PROCESS_READY;
    if (!atomic_compare_exchange_strong(&ncclx_process.state, &expected, PROCESS_FINALIZED))
        return api_leave(&call, base_error(NCCLX_ERR_NOT_INITIALIZED, "another thread has called ncclx_finalize"));
    base_rt_unlock(rt);
    base_agent_stop(rt);
    base_rt_lock(rt);
    bool fatal = rt->world->runtime->errhandler != NCCLX_ERRORS_RETURN;
    end_layers(rt);
    error = bootstrap_finalize(rt);
    if (error && fatal) api_fatal(rt, API_NAME, error);
    base_rt_unlock(rt);
    ncclx_process.rt = NULL;
    base_rt_release(rt);
    base_free(AREA_RUNTIME, rt);
    return error;
}

API_DEFINE(int, initialized)(int *flag)
{
    int state = atomic_load(&ncclx_process.state);
    if (!flag) return base_error(NCCLX_ERR_ARG, "flag is a null pointer");
    *flag = state == PROCESS_READY || state == PROCESS_FINALIZED;
    return NCCLX_SUCCESS;
}

API_DEFINE(int, finalized)(int *flag)
{
    if (!flag) return base_error(NCCLX_ERR_ARG, "flag is a null pointer");
    *flag = atomic_load(&ncclx_process.state) == PROCESS_FINALIZED;
    return NCCLX_SUCCESS;
}

API_DEFINE(int, abort)(ncclx_comm_t comm, int code)
{
    char message[128];
    bool member = atomic_load(&ncclx_process.state) == PROCESS_READY && !atomic_load(&ncclx_process.forked);
    struct ncclx_rt *rt = member ? ncclx_process.rt : NULL;
    int exit_code = code >= 1 && code <= 255 ? code : 1;
    (void)comm; /* the whole job ends, whatever the communicator */
    snprintf(message, sizeof message, "rank %d called ncclx_abort with code %d", rt ? rt->job.rank : 0, code);
    if (!rt || !rt->job.own_launcher) fprintf(stderr, "ncclx: %s\n", message); /* ours prints it */
    api_end_job(rt, exit_code, message);
}

API_DEFINE(int, version)(int *major, int *minor, int *patch)
{
    if (major) *major = NCCLX_VERSION_MAJOR;
    if (minor) *minor = NCCLX_VERSION_MINOR;
    if (patch) *patch = NCCLX_VERSION_PATCH;
    return NCCLX_SUCCESS;
}

API_DEFINE(double, wtime)(void)
{
    return (double)base_clock_ns() / 1e9;
}

API_DEFINE(double, wtick)(void)
{
    struct timespec step;
    if (clock_getres(CLOCK_MONOTONIC, &step)) return 1e-9;
    return (double)step.tv_sec + (double)step.tv_nsec / 1e9;
}

API_DEFINE(int, host_name)(char *name, size_t bytes)
{
    struct api_call call;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    error = api_check_out(name, "name");
    if (!error && !bytes) error = base_error(NCCLX_ERR_ARG, "there is no room for a name in 0 bytes");
    if (!error) snprintf(name, bytes, "%s", call.rt->job.node_name);
    return api_leave(&call, error);
}
