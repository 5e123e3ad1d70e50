/* spawn.c - PMIx_Spawn by ranks of ncclxrun; rank 0 spawns, the others wait for it.
 *
 *   spawn run N PROGRAM [ARGUMENT]...     N ranks of it; waits until they have ended
 *   spawn many TIMES N PROGRAM...         the same, TIMES in a row
 *   spawn start N PROGRAM...              does not wait, and ends
 *   spawn later N PROGRAM...              PMIx_Spawn_nb, and ends
 *   spawn hold N PROGRAM...               does not wait, and stays
 *   spawn refused STATUS N PROGRAM...     it fails with this status, and all goes on
 *   spawn with KEY VALUE N PROGRAM...     with a directive, of the job; a KEY that begins with ! is required
 *   spawn meet N                          N ranks of this program: names, keys, connect and disconnect, twice
 *   spawn pair                            two programs of one job, each with variables and a directory of its own
 *   spawn nest DEPTH N                    each job's rank 0 spawns the next
 *   spawn flood TIMES PROGRAM...          asks TIMES for one rank of it, without waiting; each is answered
 *   spawn hostile                         requests that make no sense, each refused
 *
 * Several actions follow one another with "+" between them.
 */
#include <pmix.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECONDS 60

static pmix_proc_t self, everyone, parent;
static uint32_t size;
static int is_child;
static atomic_int ended;
static char *program;

static void fail(const char *what, int status)
{
    fprintf(stderr, "rank %u of %s: failed: %s: %s\n", self.rank, self.nspace, what, PMIx_Error_string(status));
    PMIx_Abort(99, "a check failed", NULL, 0);
    exit(99);
}

static void expect(const char *what, int wanted, int status)
{
    if (status == wanted) return;
    fprintf(stderr, "rank %u: expected %s\n", self.rank, PMIx_Error_string(wanted));
    fail(what, status);
}

static void fence(void)
{
    expect("a fence", PMIX_SUCCESS, PMIx_Fence(&everyone, 1, NULL, 0));
}

static void on_end(size_t handler, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t count,
                   pmix_info_t results[], size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *arg)
{
    (void)handler, (void)status, (void)source, (void)results, (void)nresults;
    for (size_t i = 0; i < count; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROC)) atomic_fetch_add(&ended, 1);
    if (done) done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, arg);
}

static void await_ends(int wanted)
{
    for (int i = 0; i < SECONDS * 1000 && atomic_load(&ended) < wanted; i++) usleep(1000);
    if (atomic_load(&ended) != wanted) fail("the end of a job is told once", PMIX_ERR_TIMEOUT);
}

static void append(char ***list, const char *word)
{
    int status;
    PMIX_ARGV_APPEND(status, *list, word);
    expect("memory", PMIX_SUCCESS, status);
}

static void fill_app(pmix_app_t *app, int ranks, char **words)
{
    PMIX_APP_CONSTRUCT(app);
    app->cmd = strdup(words[0]);
    app->maxprocs = ranks;
    for (char **word = words; *word; word++) append(&app->argv, *word);
}

/* Returns PMIx' status; `job` gets the name. */
static int spawn(int ranks, char **words, pmix_info_t *info, size_t count, pmix_nspace_t job)
{
    pmix_app_t app;
    fill_app(&app, ranks, words);
    int status = PMIx_Spawn(info, count, &app, 1, job);
    PMIX_APP_DESTRUCT(&app);
    return status;
}

static void run(int times, int ranks, char **words)
{
    pmix_status_t code = PMIX_EVENT_JOB_END;
    pmix_nspace_t job, last = "";
    pmix_info_t info;
    bool yes = true;
    if (self.rank == 0) {
        PMIX_INFO_LOAD(&info, PMIX_NOTIFY_COMPLETION, &yes, PMIX_BOOL);
        PMIx_Register_event_handler(&code, 1, NULL, 0, on_end, NULL, NULL);
        int before = atomic_load(&ended);
        for (int i = 1; i <= times; i++) {
            expect("spawning", PMIX_SUCCESS, spawn(ranks, words, &info, 1, job));
            if (!strcmp(job, last)) fail("a name of its own for each job", PMIX_ERROR);
            strcpy(last, job);
            await_ends(before + i);
        }
    }
    fence();
}

static void on_later(pmix_status_t status, char job[], void *arg)
{
    (void)status, (void)job, (void)arg;
}

static void later(int ranks, char **words)
{
    static pmix_app_t app;
    if (self.rank == 0) {
        fill_app(&app, ranks, words);
        expect("asking", PMIX_SUCCESS, PMIx_Spawn_nb(NULL, 0, &app, 1, on_later, NULL));
    }
    fence();
}

static void start(int ranks, char **words, int hold)
{
    pmix_nspace_t job;
    if (self.rank == 0) expect("spawning", PMIX_SUCCESS, spawn(ranks, words, NULL, 0, job));
    if (self.rank == 0) printf("spawned\n");
    fflush(stdout);
    fence();
    if (hold) sleep(SECONDS);
}

static void refused(const char *wanted, int ranks, char **words)
{
    pmix_nspace_t job;
    int status = self.rank ? PMIX_SUCCESS : spawn(ranks, words, NULL, 0, job);
    if (self.rank == 0 && strcmp(PMIx_Error_string(status), wanted)) fail(wanted, status);
    fence();
}

static void with(const char *key, const char *value, int ranks, char **words)
{
    pmix_nspace_t job;
    pmix_info_t info[2];
    bool required = *key == '!';
    pmix_envar_t variable = {.separator = ':'};
    char *copy = strdup(value), *equals = strchr(copy, '=');
    bool yes = true;
    key += required;
    PMIX_INFO_LOAD(&info[1], PMIX_NOTIFY_COMPLETION, &yes, PMIX_BOOL);
    if (equals) {
        *equals = 0;
        variable.envar = copy;
        variable.value = equals + 1;
        PMIX_INFO_LOAD(&info[0], key, &variable, PMIX_ENVAR);
    } else {
        PMIX_INFO_LOAD(&info[0], key, value, PMIX_STRING);
    }
    if (required) PMIX_INFO_REQUIRED(&info[0]);
    if (self.rank == 0) {
        pmix_status_t code = PMIX_EVENT_JOB_END;
        PMIx_Register_event_handler(&code, 1, NULL, 0, on_end, NULL, NULL);
        int status = spawn(ranks, words, info, 2, job);
        if (status == PMIX_SUCCESS)
            await_ends(1);
        else
            printf("%s\n", PMIx_Error_string(status));
    }
    fence();
    free(copy);
}

/* ---- Parents and children meet ---- */

static void put_text(const char *key, const char *text)
{
    pmix_value_t value;
    PMIX_VALUE_LOAD(&value, text, PMIX_STRING);
    expect("a put", PMIX_SUCCESS, PMIx_Put(PMIX_GLOBAL, key, &value));
    PMIX_VALUE_DESTRUCT(&value);
    expect("a commit", PMIX_SUCCESS, PMIx_Commit());
}

static void get_text(const char *job, uint32_t rank, const char *key, char *text, size_t bytes)
{
    pmix_proc_t proc;
    pmix_value_t *value = NULL;
    pmix_info_t info;
    int seconds = 20;
    PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &seconds, PMIX_INT);
    PMIX_LOAD_PROCID(&proc, job, rank);
    expect("a get", PMIX_SUCCESS, PMIx_Get(&proc, key, &info, 1, &value));
    if (value->type != PMIX_STRING) fail("its type", PMIX_ERR_TYPE_MISMATCH);
    snprintf(text, bytes, "%s", value->data.string);
    PMIX_VALUE_RELEASE(value);
}

static uint32_t size_of(const char *job)
{
    pmix_proc_t all;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&all, job, PMIX_RANK_WILDCARD);
    expect("the size of a job", PMIX_SUCCESS, PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &value));
    uint32_t ranks = value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return ranks;
}

/* All of both jobs; then each reads a key of every rank of the other. */
static void meet_other(const char *job, uint32_t ranks)
{
    pmix_proc_t both[2];
    char text[64], wanted[64];
    for (int round = 0; round < 2; round++) {
        PMIX_LOAD_PROCID(&both[0], self.nspace, PMIX_RANK_WILDCARD);
        PMIX_LOAD_PROCID(&both[1], job, PMIX_RANK_WILDCARD);
        snprintf(text, sizeof text, "%s %u round %d", is_child ? "child" : "parent", self.rank, round);
        snprintf(wanted, sizeof wanted, "test.meet%d", round);
        put_text(wanted, text);
        expect("a connection", PMIX_SUCCESS, PMIx_Connect(both, 2, NULL, 0));
        if (size_of(job) != ranks) fail("the size of the other job", PMIX_ERROR);
        for (uint32_t rank = 0; rank < ranks; rank++) {
            char key[32];
            snprintf(key, sizeof key, "test.meet%d", round);
            snprintf(wanted, sizeof wanted, "%s %u round %d", is_child ? "parent" : "child", rank, round);
            get_text(job, rank, key, text, sizeof text);
            if (strcmp(text, wanted)) fail(text, PMIX_ERROR);
        }
        expect("a fence of both", PMIX_SUCCESS, PMIx_Fence(both, 2, NULL, 0));
        expect("the end of a connection", PMIX_SUCCESS, PMIx_Disconnect(both, 2, NULL, 0));
    }
}

static void meet(int ranks)
{
    char *words[] = {program, (char *)(uintptr_t) "meet", (char *)(uintptr_t) "0", NULL};
    char job[PMIX_MAX_NSLEN + 1];
    if (is_child) {
        meet_other(parent.nspace, size_of(parent.nspace));
        return;
    }
    if (self.rank == 0) {
        expect("spawning", PMIX_SUCCESS, spawn(ranks, words, NULL, 0, job));
        put_text("test.job", job);
    }
    fence();
    if (self.rank) get_text(self.nspace, 0, "test.job", job, sizeof job);
    meet_other(job, (uint32_t)ranks);
}

static void pair(void)
{
    pmix_app_t apps[2];
    pmix_nspace_t job;
    pmix_status_t code = PMIX_EVENT_JOB_END;
    pmix_info_t info;
    bool yes = true;
    char *first[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
                     (char *)(uintptr_t) "echo first $PMIX_RANK $TEST_NAME $PWD", NULL};
    char *second[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
                      (char *)(uintptr_t) "echo second $PMIX_RANK $TEST_NAME $PWD", NULL};
    if (self.rank == 0) {
        fill_app(&apps[0], 2, first);
        fill_app(&apps[1], 1, second);
        append(&apps[0].env, "TEST_NAME=one");
        append(&apps[1].env, "TEST_NAME=two words");
        apps[1].cwd = strdup("/");
        PMIX_INFO_LOAD(&info, PMIX_NOTIFY_COMPLETION, &yes, PMIX_BOOL);
        PMIx_Register_event_handler(&code, 1, NULL, 0, on_end, NULL, NULL);
        expect("spawning", PMIX_SUCCESS, PMIx_Spawn(&info, 1, apps, 2, job));
        await_ends(1);
        PMIX_APP_DESTRUCT(&apps[0]);
        PMIX_APP_DESTRUCT(&apps[1]);
    }
    fence();
}

static void nest(int depth, int ranks)
{
    char left[16], count[16];
    snprintf(left, sizeof left, "%d", depth - 1);
    snprintf(count, sizeof count, "%d", ranks);
    char *words[] = {program, (char *)(uintptr_t) "nest", left, count, NULL};
    printf("depth %d rank %u of %u\n", depth, self.rank, size);
    fflush(stdout);
    if (depth > 0)
        run(1, ranks, words);
    else
        fence();
}

static void hostile(void)
{
    char *words[] = {(char *)(uintptr_t) "true", NULL};
    pmix_app_t apps[200];
    pmix_nspace_t job;
    pmix_info_t info;
    if (self.rank == 0) {
        expect("no ranks", PMIX_ERR_BAD_PARAM, spawn(0, words, NULL, 0, job));
        expect("less than none", PMIX_ERR_BAD_PARAM, spawn(-5, words, NULL, 0, job));
        expect("too many", PMIX_ERR_BAD_PARAM, spawn(1 << 30, words, NULL, 0, job));
        for (int i = 0; i < 200; i++) fill_app(&apps[i], 1, words);
        expect("too many programs", PMIX_ERR_BAD_PARAM, PMIx_Spawn(NULL, 0, apps, 200, job));
        char *large = malloc(3 << 20);
        memset(large, 'x', 3 << 20);
        large[(3 << 20) - 1] = 0;
        append(&apps[0].argv, large);
        expect("arguments without end", PMIX_ERR_OUT_OF_RESOURCE, PMIx_Spawn(NULL, 0, apps, 1, job));
        free(large);
        append(&apps[1].env, "NO VALUE");
        expect("a variable without a value", PMIX_ERR_BAD_PARAM, PMIx_Spawn(NULL, 0, &apps[1], 1, job));
        PMIX_INFO_LOAD(&info, PMIX_MAPBY, "nowhere", PMIX_STRING);
        expect("a place that is none", PMIX_ERR_BAD_PARAM, spawn(1, words, &info, 1, job));
        int number = 5;
        PMIX_INFO_LOAD(&info, PMIX_HOST, &number, PMIX_INT);
        expect("a host that is a number", PMIX_ERR_BAD_PARAM, spawn(1, words, &info, 1, job));
        PMIX_INFO_LOAD(&info, PMIX_SET_ENVAR, "text", PMIX_STRING);
        expect("a variable that is a text", PMIX_ERR_BAD_PARAM, spawn(1, words, &info, 1, job));
        for (int i = 0; i < 200; i++) PMIX_APP_DESTRUCT(&apps[i]);
    }
    fence();
}

static atomic_int answers, jobs;

static void on_flood(pmix_status_t status, char job[], void *arg)
{
    (void)job, (void)arg;
    if (status == PMIX_SUCCESS) atomic_fetch_add(&jobs, 1);
    atomic_fetch_add(&answers, 1);
}

static void flood(int times, char **words)
{
    pmix_app_t app;
    if (self.rank == 0) {
        fill_app(&app, 1, words);
        for (int i = 0; i < times; i++)
            expect("asking", PMIX_SUCCESS, PMIx_Spawn_nb(NULL, 0, &app, 1, on_flood, NULL));
        for (int i = 0; i < SECONDS * 1000 && atomic_load(&answers) < times; i++) usleep(1000);
        if (atomic_load(&answers) != times) fail("all are answered", PMIX_ERR_TIMEOUT);
        PMIX_APP_DESTRUCT(&app);
        printf("%d jobs\n", atomic_load(&jobs));
    }
    fence();
}

static int act(int argc, char **argv)
{
    const char *action = argv[0];
    if (!strcmp(action, "run") && argc > 2)
        run(1, atoi(argv[1]), argv + 2);
    else if (!strcmp(action, "many") && argc > 3)
        run(atoi(argv[1]), atoi(argv[2]), argv + 3);
    else if (!strcmp(action, "start") && argc > 2)
        start(atoi(argv[1]), argv + 2, 0);
    else if (!strcmp(action, "later") && argc > 2)
        later(atoi(argv[1]), argv + 2);
    else if (!strcmp(action, "hold") && argc > 2)
        start(atoi(argv[1]), argv + 2, 1);
    else if (!strcmp(action, "refused") && argc > 3)
        refused(argv[1], atoi(argv[2]), argv + 3);
    else if (!strcmp(action, "with") && argc > 4)
        with(argv[1], argv[2], atoi(argv[3]), argv + 4);
    else if (!strcmp(action, "meet") && argc > 1)
        meet(atoi(argv[1]));
    else if (!strcmp(action, "flood") && argc > 2)
        flood(atoi(argv[1]), argv + 2);
    else if (!strcmp(action, "pair"))
        pair();
    else if (!strcmp(action, "nest") && argc > 2)
        nest(atoi(argv[1]), atoi(argv[2]));
    else if (!strcmp(action, "hostile"))
        hostile();
    else
        return 0;
    return 1;
}

static void find_parent(void)
{
    pmix_value_t *value = NULL;
    if (PMIx_Get(&self, PMIX_PARENT_ID, NULL, 0, &value) != PMIX_SUCCESS) return;
    if (value->type != PMIX_PROC) fail("the parent's type", PMIX_ERR_TYPE_MISMATCH);
    parent = *value->data.proc;
    is_child = 1;
    PMIX_VALUE_RELEASE(value);
}

int main(int argc, char **argv)
{
    program = argv[0];
    expect("PMIx_Init", PMIX_SUCCESS, PMIx_Init(&self, NULL, 0));
    PMIX_LOAD_PROCID(&everyone, self.nspace, PMIX_RANK_WILDCARD);
    size = size_of(self.nspace);
    find_parent();
    for (int at = 1; at < argc;) {
        int end = at;
        while (end < argc && strcmp(argv[end], "+")) end++;
        argv[end] = NULL;
        if (!act(end - at, argv + at)) return 2;
        at = end + 1;
    }
    expect("PMIx_Finalize", PMIX_SUCCESS, PMIx_Finalize(NULL, 0));
    return 0;
}
