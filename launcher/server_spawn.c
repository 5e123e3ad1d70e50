/* server_spawn.c - PMIx_Spawn: what a rank asks for, as a request to ncclxrun, and its answer. Whatever comes from the
 * rank is bounded here. A directive that is not known is left out, as PMIx wants it, unless the rank says that it is
 * required; one that would send ranks elsewhere is refused in any case. */
#include "config.h"

#include "launcher/server_private.h"

#include "runtime/base/base.h"

#include <stdio.h>
#include <string.h>

#define MAX_PENDING 256 /* requests of the ranks of one node */
#define MAX_INFO 1024   /* directives, for the job or one program */

/* A request that waits for its answer. */
struct pending_spawn {
    struct pending_spawn *next;
    uint64_t token;
    pmix_spawn_cbfunc_t done;
    void *arg;
    pmix_status_t status;
    pmix_nspace_t job;
};

struct server_spawns {
    pthread_mutex_t lock;
    struct pending_spawn *first;
    int count;
    uint64_t last_token;
};

struct server_spawns *server_spawns_create(void)
{
    struct server_spawns *spawns = base_calloc(AREA_LAUNCHER, 1, sizeof *spawns);
    if (spawns) pthread_mutex_init(&spawns->lock, NULL);
    return spawns;
}

void server_spawns_free(struct server_spawns *spawns)
{
    while (spawns && spawns->first) {
        struct pending_spawn *next = spawns->first->next;
        base_free(AREA_LAUNCHER, spawns->first);
        spawns->first = next;
    }
    base_free(AREA_LAUNCHER, spawns);
}

/* ---- What the rank wants ---------------------------------------------------------------------------------------- */

/* A request as it is read, with the reason why it is refused. */
struct reading {
    struct spawn_request request;
    const pmix_info_t *info; /* of the job */
    size_t info_count;
    int copied[SPAWN_MAX_APPS]; /* the first edits of each program: their names are ours, with the values behind */
    pmix_status_t status;
    char why[200];
};

static bool refuse(struct reading *reading, pmix_status_t status, const char *what, const char *key)
{
    reading->status = status;
    snprintf(reading->why, sizeof reading->why, "%.40s %.100s", key, what);
    return false;
}

/* Of a directive; null when it is something else. */
static const char *text_of(const pmix_info_t *info)
{
    return info->value.type == PMIX_STRING ? info->value.data.string : NULL;
}

/* Those that ask for what happens anyway, or that libpmix itself has dealt with. */
static bool is_granted(const pmix_info_t *info)
{
    static const char *const keys[] = {
        PMIX_FWD_STDOUT,       PMIX_FWD_STDERR, PMIX_WDIR_USER_SPECIFIED, PMIX_SETUP_APP_ENVARS,
        PMIX_ENVARS_HARVESTED, PMIX_SPAWNED,    PMIX_REQUESTOR_IS_CLIENT, NULL};
    for (const char *const *key = keys; *key; key++)
        if (PMIX_CHECK_KEY(info, *key)) return PMIX_INFO_TRUE(info);
    return false;
}

static bool must_refuse(const pmix_info_t *info)
{
    return PMIX_CHECK_KEY(info, PMIX_HOSTFILE) || PMIX_CHECK_KEY(info, PMIX_ADD_HOST) ||
           PMIX_CHECK_KEY(info, PMIX_ADD_HOSTFILE);
}

/* One of them, the same for all programs. */
static bool take_text(struct reading *reading, const pmix_info_t *info, const char **text)
{
    const char *value = text_of(info);
    if (!value || !*value || strlen(value) > SPAWN_MAX_BYTES / 4)
        return refuse(reading, PMIX_ERR_BAD_PARAM, "is not a text", info->key);
    if (*text && strcmp(*text, value))
        return refuse(reading, PMIX_ERR_NOT_SUPPORTED, "cannot differ between programs", info->key);
    *text = value;
    return true;
}

/* What concerns the whole job, wherever it stands. False: refused. */
static bool take_directive(struct reading *reading, const pmix_info_t *info, bool *taken)
{
    *taken = true;
    if (must_refuse(info))
        return refuse(reading, PMIX_ERR_NOT_SUPPORTED, "is not possible: the hosts are those that ncclxrun started on",
                      info->key);
    if (PMIX_CHECK_KEY(info, PMIX_HOST)) return take_text(reading, info, &reading->request.hosts);
    if (PMIX_CHECK_KEY(info, PMIX_MAPBY)) return take_text(reading, info, &reading->request.map_by);
    if (PMIX_CHECK_KEY(info, PMIX_BINDTO)) return take_text(reading, info, &reading->request.bind_to);
    if (PMIX_CHECK_KEY(info, PMIX_NOTIFY_COMPLETION))
        reading->request.notify = PMIX_INFO_TRUE(info);
    else
        *taken = false;
    return true;
}

/* ---- Programs --------------------------------------------------------------------------------------------------- */

static bool edit_kind(const pmix_info_t *info, enum spawn_edit_kind *kind)
{
    static const char *const keys[SPAWN_EDIT_KINDS] = {[SPAWN_SET] = PMIX_SET_ENVAR,
                                                       [SPAWN_ADD] = PMIX_ADD_ENVAR,
                                                       [SPAWN_UNSET] = PMIX_UNSET_ENVAR,
                                                       [SPAWN_PREPEND] = PMIX_PREPEND_ENVAR,
                                                       [SPAWN_APPEND] = PMIX_APPEND_ENVAR};
    for (int i = 0; i < SPAWN_EDIT_KINDS; i++) {
        if (!PMIX_CHECK_KEY(info, keys[i])) continue;
        *kind = (enum spawn_edit_kind)i;
        return true;
    }
    return false;
}

static bool take_edit(struct reading *reading, const pmix_info_t *info, enum spawn_edit_kind kind,
                      struct spawn_app *app)
{
    struct spawn_edit *edit = &app->edits[app->edit_count];
    bool unset = kind == SPAWN_UNSET;
    if (info->value.type != (unset ? PMIX_STRING : PMIX_ENVAR))
        return refuse(reading, PMIX_ERR_BAD_PARAM, "is not a variable", info->key);
    edit->kind = kind;
    edit->name = unset ? info->value.data.string : info->value.data.envar.envar;
    edit->value = unset ? NULL : info->value.data.envar.value;
    edit->separator = unset ? 0 : info->value.data.envar.separator;
    if (!edit->name || !*edit->name || strchr(edit->name, '=') || (!unset && !edit->value))
        return refuse(reading, PMIX_ERR_BAD_PARAM, "is not a variable", info->key);
    app->edit_count++;
    return true;
}

/* Directives of the job, or of the program. */
static bool take_all(struct reading *reading, const pmix_info_t *info, size_t count, struct spawn_app *app)
{
    enum spawn_edit_kind kind;
    bool taken;
    for (size_t i = 0; i < count; i++) {
        if (edit_kind(&info[i], &kind)) {
            if (!take_edit(reading, &info[i], kind, app)) return false;
            continue;
        }
        if (PMIX_CHECK_KEY(&info[i], PMIX_WDIR)) {
            app->directory = text_of(&info[i]);
            if (!app->directory || !*app->directory)
                return refuse(reading, PMIX_ERR_BAD_PARAM, "is not a directory", info[i].key);
            continue;
        }
        if (!take_directive(reading, &info[i], &taken)) return false;
        if (!taken && !is_granted(&info[i]) && PMIX_INFO_IS_REQUIRED(&info[i]))
            return refuse(reading, PMIX_ERR_NOT_SUPPORTED, "is required, but not known here", info[i].key);
    }
    return true;
}

static size_t count_texts(char **texts)
{
    size_t count = 0;
    while (texts && texts[count] && count < SPAWN_MAX_BYTES) count++;
    return count;
}

/* A variable as NAME=value. The copy is freed with the program. */
static bool take_variable(struct spawn_app *app, const char *entry)
{
    const char *value = strchr(entry, '=');
    char *name = value && value > entry ? base_strdup(AREA_LAUNCHER, entry) : NULL;
    if (!name) return false;
    name[value - entry] = 0;
    app->edits[app->edit_count++] =
        (struct spawn_edit){.kind = SPAWN_SET, .name = name, .value = name + (value - entry) + 1};
    return true;
}

static bool take_app(struct reading *reading, const pmix_app_t *from, struct spawn_app *app, int *copied)
{
    size_t arguments = count_texts(from->argv), variables = count_texts(from->env), info_count = from->ninfo;
    if (!from->cmd || !*from->cmd) return refuse(reading, PMIX_ERR_JOB_NO_EXE_SPECIFIED, "is missing", "a program");
    if (from->maxprocs < 1 || from->maxprocs > MAP_MAX_RANKS)
        return refuse(reading, PMIX_ERR_BAD_PARAM, "is not a number of ranks", "maxprocs");
    if (arguments + variables > SPAWN_MAX_BYTES / 8 || info_count > MAX_INFO)
        return refuse(reading, PMIX_ERR_OUT_OF_RESOURCE, "has too many of them", "a list of arguments or variables");
    app->ranks = from->maxprocs;
    app->directory = from->cwd && *from->cwd ? from->cwd : NULL;
    app->argv = base_calloc(AREA_LAUNCHER, arguments + 2, sizeof *app->argv);
    app->edits = base_calloc(AREA_LAUNCHER, variables + info_count + reading->info_count + 1, sizeof *app->edits);
    if (!app->argv || !app->edits) return refuse(reading, PMIX_ERR_NOMEM, "is short", "memory");
    app->argv[0] = from->cmd; /* what libpmix puts there is its last part only */
    for (size_t i = 1; i < arguments; i++) app->argv[i] = from->argv[i];
    for (size_t i = 0; i < variables; i++) {
        if (!take_variable(app, from->env[i]))
            return refuse(reading, PMIX_ERR_BAD_PARAM, "is not NAME=value", "a variable");
        *copied = app->edit_count;
    }
    return take_all(reading, reading->info, reading->info_count, app) && take_all(reading, from->info, info_count, app);
}

static bool take_apps(struct reading *reading, const struct server_spawn_call *call)
{
    struct spawn_request *request = &reading->request;
    if (!call->app_count || call->app_count > SPAWN_MAX_APPS || call->info_count > MAX_INFO)
        return refuse(reading, PMIX_ERR_BAD_PARAM, "are none, or too many", "programs or directives");
    request->apps = base_calloc(AREA_LAUNCHER, call->app_count, sizeof *request->apps);
    if (!request->apps) return refuse(reading, PMIX_ERR_NOMEM, "is short", "memory");
    for (size_t i = 0; i < call->app_count; i++) {
        request->app_count++;
        if (!take_app(reading, &call->apps[i], &request->apps[i], &reading->copied[i])) return false;
    }
    return true;
}

static void release_reading(struct reading *reading)
{
    for (int i = 0; i < reading->request.app_count; i++) {
        struct spawn_app *app = &reading->request.apps[i];
        for (int j = 0; j < reading->copied[i]; j++) base_free(AREA_LAUNCHER, (char *)(uintptr_t)app->edits[j].name);
        base_free(AREA_LAUNCHER, app->argv);
        base_free(AREA_LAUNCHER, app->edits);
    }
    base_free(AREA_LAUNCHER, reading->request.apps);
}

/* ---- The call, and its answer ----------------------------------------------------------------------------------- */

/* Null: too many, or memory is short. */
static struct pending_spawn *remember(struct server_spawns *spawns, const struct server_spawn_call *call)
{
    struct pending_spawn *pending = base_calloc(AREA_LAUNCHER, 1, sizeof *pending);
    pthread_mutex_lock(&spawns->lock);
    bool fits = pending && spawns->count < MAX_PENDING;
    if (fits) {
        pending->token = ++spawns->last_token;
        pending->done = call->done;
        pending->arg = call->arg;
        pending->next = spawns->first;
        spawns->first = pending;
        spawns->count++;
    }
    pthread_mutex_unlock(&spawns->lock);
    if (fits) return pending;
    base_free(AREA_LAUNCHER, pending);
    return NULL;
}

/* Null: there is no such request. */
static struct pending_spawn *recall(struct server_spawns *spawns, uint64_t token)
{
    pthread_mutex_lock(&spawns->lock);
    struct pending_spawn **place = &spawns->first, *pending;
    while (*place && (*place)->token != token) place = &(*place)->next;
    pending = *place;
    if (pending) {
        *place = pending->next;
        spawns->count--;
    }
    pthread_mutex_unlock(&spawns->lock);
    return pending;
}

/* False: reading->status and why say what is wrong. */
static bool send_request(struct server *server, struct reading *reading, const struct server_spawn_call *call)
{
    struct frame_writer writer;
    struct pending_spawn *pending = remember(server->spawns, call);
    if (!pending) return refuse(reading, PMIX_ERR_OUT_OF_RESOURCE, "are under way already", "too many requests");
    reading->request.token = pending->token;
    spawn_write_request(&writer, &reading->request);
    bool good = frame_finish(&writer) == NCCLX_SUCCESS && writer.used <= SPAWN_MAX_BYTES &&
                server_post(server, SERVER_SPAWN, 0, 0, writer.data, writer.used);
    frame_release(&writer);
    if (good) return true;
    base_free(AREA_LAUNCHER, recall(server->spawns, reading->request.token));
    return refuse(reading, PMIX_ERR_OUT_OF_RESOURCE, "is too large", "the request");
}

static void tell_refusal(struct server *server, int caller, const struct reading *reading)
{
    char text[400];
    if (caller < 0) return;
    int length = snprintf(text, sizeof text, "PMIx_Spawn: %s", reading->why);
    server_post(server, SERVER_LOGGED, caller, 0, text, (size_t)length);
}

pmix_status_t server_spawn(struct server *server, int caller, const struct server_spawn_call *call)
{
    struct reading reading = {.request = {.caller = caller}, .info = call->info, .info_count = call->info_count};
    bool good = caller >= 0 || refuse(&reading, PMIX_ERR_NOT_FOUND, "is not a rank", "who asks");
    good = good && take_apps(&reading, call) && send_request(server, &reading, call);
    if (!good) {
        tell_refusal(server, caller, &reading);
        call->done(reading.status, NULL, call->arg);
    }
    release_reading(&reading);
    return PMIX_SUCCESS;
}

static void on_pmix_thread(pmix_status_t status, void *arg)
{
    struct pending_spawn *pending = arg;
    (void)status;
    pending->done(pending->status, pending->status == PMIX_SUCCESS ? pending->job : NULL, pending->arg);
    base_free(AREA_LAUNCHER, pending);
}

static pmix_status_t status_of(enum spawn_status status)
{
    static const pmix_status_t known[SPAWN_STATUS_COUNT] = {[SPAWN_DONE] = PMIX_SUCCESS,
                                                            [SPAWN_FAILED] = PMIX_ERR_JOB_FAILED_TO_LAUNCH,
                                                            [SPAWN_BAD_REQUEST] = PMIX_ERR_BAD_PARAM,
                                                            [SPAWN_NOT_SUPPORTED] = PMIX_ERR_NOT_SUPPORTED,
                                                            [SPAWN_NO_ROOM] = PMIX_ERR_JOB_INSUFFICIENT_RESOURCES,
                                                            [SPAWN_NO_HOST] = PMIX_ERR_JOB_FAILED_TO_MAP,
                                                            [SPAWN_NO_PROGRAM] = PMIX_ERR_JOB_EXE_NOT_FOUND,
                                                            [SPAWN_NOT_EXECUTABLE] = PMIX_ERR_JOB_APP_NOT_EXECUTABLE,
                                                            [SPAWN_NO_DIRECTORY] = PMIX_ERR_JOB_WDIR_NOT_FOUND,
                                                            [SPAWN_ENDING] = PMIX_ERR_JOB_CANCELED};
    return known[status];
}

void server_spawned(struct server *server, const struct spawn_answer *answer)
{
    struct pending_spawn *pending = recall(server->spawns, answer->token);
    pmix_proc_t nobody;
    if (!pending) return;
    pending->status = status_of(answer->status);
    if (answer->job) PMIX_LOAD_NSPACE(pending->job, answer->job);
    /* PMIx calls back on its thread once it has forgotten a rank that it never knew. */
    PMIX_LOAD_PROCID(&nobody, "ncclxd.nobody", 0);
    PMIx_server_deregister_client(&nobody, on_pmix_thread, pending);
}
