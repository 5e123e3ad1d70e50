/* upcalls.c - what ranks ask of their PMIx server beyond keys and fences, on however many hosts:
 *
 *   upcalls meet            connect and disconnect wait for all
 *   upcalls names           a name that is published late is waited for, and found with its owner
 *   upcalls late            a key put after others have asked for it is waited for; one that never is, not for ever
 *   upcalls event           an event that the last rank raises reaches the first
 *   upcalls signal          the last rank asks for SIGUSR1 to the first
 *   upcalls limit           the last rank does not come to a fence that has a time limit
 *   upcalls abort           the last rank asks for the end of the first
 */
#include <pmix.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pmix_proc_t self, everyone;
static uint32_t size;
static atomic_int seen;

static void fail(const char *what, int status)
{
    fprintf(stderr, "rank %u: failed: %s: %s\n", self.rank, what, PMIx_Error_string(status));
    PMIx_Abort(99, "a check failed", NULL, 0);
    exit(99);
}

static void expect(const char *what, int wanted, int status)
{
    if (status != wanted) fail(what, status);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int is_last(void)
{
    return self.rank == size - 1;
}

/* What follows is late. */
static void take_time(void)
{
    usleep(500000);
}

static void meet(void)
{
    double begin = now();
    if (is_last()) take_time();
    expect("a connection", PMIX_SUCCESS, PMIx_Connect(&everyone, 1, NULL, 0));
    if (!is_last() && now() - begin < 0.3) fail("a connection that waits for nobody", PMIX_ERROR);
    begin = now();
    if (self.rank == 0) take_time();
    expect("its end", PMIX_SUCCESS, PMIx_Disconnect(&everyone, 1, NULL, 0));
    if (self.rank && now() - begin < 0.3) fail("an end that waits for nobody", PMIX_ERROR);
}

static void names(void)
{
    pmix_info_t info[2];
    pmix_pdata_t found;
    int all = -1, seconds = 30;
    PMIX_PDATA_CONSTRUCT(&found);
    PMIX_LOAD_KEY(found.key, "test.name");
    PMIX_INFO_LOAD(&info[0], PMIX_WAIT, &all, PMIX_INT);
    PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &seconds, PMIX_INT);
    if (is_last()) {
        pmix_info_t name;
        take_time();
        PMIX_INFO_LOAD(&name, "test.name", "here I am", PMIX_STRING);
        expect("publishing", PMIX_SUCCESS, PMIx_Publish(&name, 1));
    }
    expect("a look-up that waits", PMIX_SUCCESS, PMIx_Lookup(&found, 1, info, 2));
    if (found.value.type != PMIX_STRING || strcmp(found.value.data.string, "here I am") || found.proc.rank != size - 1)
        fail("what is found", PMIX_ERROR);
    PMIX_PDATA_DESTRUCT(&found);
    PMIX_PDATA_CONSTRUCT(&found);
    PMIX_LOAD_KEY(found.key, "test.nobody");
    expect("a name that is not there", PMIX_ERR_NOT_FOUND, PMIx_Lookup(&found, 1, NULL, 0));
}

static void put(const char *key)
{
    pmix_value_t value;
    PMIX_VALUE_LOAD(&value, "late", PMIX_STRING);
    expect("a put", PMIX_SUCCESS, PMIx_Put(PMIX_GLOBAL, key, &value));
    expect("a commit", PMIX_SUCCESS, PMIx_Commit());
}

static void late(void)
{
    pmix_proc_t last;
    pmix_value_t *value = NULL;
    pmix_info_t info;
    int seconds = 20;
    PMIX_LOAD_PROCID(&last, self.nspace, size - 1);
    put("test.early");
    expect("a fence", PMIX_SUCCESS, PMIx_Fence(&everyone, 1, NULL, 0));
    if (is_last()) {
        take_time();
        put("test.late");
    } else if (self.rank == 0) {
        PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &seconds, PMIX_INT);
        expect("a late key", PMIX_SUCCESS, PMIx_Get(&last, "test.late", &info, 1, &value));
        if (value->type != PMIX_STRING || strcmp(value->data.string, "late")) fail("its value", PMIX_ERROR);
        seconds = 1;
        PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &seconds, PMIX_INT);
        expect("a key that never comes", PMIX_ERR_TIMEOUT, PMIx_Get(&last, "test.never", &info, 1, &value));
    }
}

static void on_event(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t count,
                     pmix_info_t results[], size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *arg)
{
    int right = 0;
    (void)handler, (void)results, (void)nresults, (void)status;
    for (size_t i = 0; i < count; i++)
        right |= PMIX_CHECK_KEY(&info[i], "test.text") && !strcmp(info[i].value.data.string, "hello");
    atomic_store(&seen, right && source->rank == size - 1 ? 1 : -1);
    if (done) done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, arg);
}

static void await_seen(const char *what)
{
    for (int i = 0; i < 2000 && !atomic_load(&seen); i++) usleep(10000);
    if (atomic_load(&seen) != 1) fail(what, PMIX_ERR_TIMEOUT);
}

static void event(void)
{
    pmix_status_t code = PMIX_EXTERNAL_ERR_BASE - 7;
    pmix_info_t info;
    if (self.rank == 0) PMIx_Register_event_handler(&code, 1, NULL, 0, on_event, NULL, NULL);
    expect("a fence", PMIX_SUCCESS, PMIx_Fence(&everyone, 1, NULL, 0));
    if (is_last()) {
        PMIX_INFO_LOAD(&info, "test.text", "hello", PMIX_STRING);
        expect("raising an event", PMIX_SUCCESS,
               PMIx_Notify_event(code, &self, PMIX_RANGE_GLOBAL, &info, 1, NULL, NULL));
    }
    if (self.rank == 0) await_seen("an event");
}

static void on_signal(int number)
{
    (void)number;
    atomic_store(&seen, 1);
}

static void ask_signal(void)
{
    pmix_proc_t first;
    pmix_info_t info, *results = NULL;
    size_t count = 0;
    int number = SIGUSR1;
    PMIX_LOAD_PROCID(&first, self.nspace, 0);
    if (self.rank == 0) signal(SIGUSR1, on_signal);
    expect("a fence", PMIX_SUCCESS, PMIx_Fence(&everyone, 1, NULL, 0));
    if (is_last()) {
        PMIX_INFO_LOAD(&info, PMIX_JOB_CTRL_SIGNAL, &number, PMIX_INT);
        expect("asking for a signal", PMIX_SUCCESS, PMIx_Job_control(&first, 1, &info, 1, &results, &count));
    }
    if (self.rank == 0) await_seen("a signal");
}

static void limit(void)
{
    pmix_info_t info;
    int seconds = 2;
    PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &seconds, PMIX_INT);
    if (is_last()) sleep(6);
    int status = PMIx_Fence(&everyone, 1, &info, 1);
    expect("a fence whose time has passed", PMIX_ERR_TIMEOUT, status);
}

int main(int argc, char **argv)
{
    const char *action = argc > 1 ? argv[1] : "meet";
    pmix_value_t *value = NULL;
    pmix_proc_t first;
    expect("PMIx_Init", PMIX_SUCCESS, PMIx_Init(&self, NULL, 0));
    PMIX_LOAD_PROCID(&everyone, self.nspace, PMIX_RANK_WILDCARD);
    expect("the job's size", PMIX_SUCCESS, PMIx_Get(&everyone, PMIX_JOB_SIZE, NULL, 0, &value));
    size = value->data.uint32;
    PMIX_LOAD_PROCID(&first, self.nspace, 0);
    if (!strcmp(action, "meet"))
        meet();
    else if (!strcmp(action, "names"))
        names();
    else if (!strcmp(action, "late"))
        late();
    else if (!strcmp(action, "event"))
        event();
    else if (!strcmp(action, "signal"))
        ask_signal();
    else if (!strcmp(action, "limit"))
        limit();
    else if (!strcmp(action, "abort") && is_last())
        PMIx_Abort(5, "enough", &first, 1);
    else if (strcmp(action, "abort"))
        return 2;
    if (strcmp(action, "limit")) expect("the last fence", PMIX_SUCCESS, PMIx_Fence(&everyone, 1, NULL, 0));
    printf("rank %u: well\n", self.rank);
    fflush(stdout);
    expect("PMIx_Finalize", PMIX_SUCCESS, PMIx_Finalize(NULL, 0));
    return 0;
}
