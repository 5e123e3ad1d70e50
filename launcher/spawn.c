/* spawn.c - see spawn.h. */
#include "config.h"

#include "launcher/spawn.h"

#include "launcher/jobs.h"
#include "launcher/message.h"
#include "runtime/base/base.h"

#include <stdio.h>
#include <string.h>

#define LEAST_APP_BYTES 16
#define LEAST_EDIT_BYTES 10

/* ---- As bytes --------------------------------------------------------------------------------------------------- */

static void put_app(struct frame_writer *writer, const struct spawn_app *app)
{
    frame_put_texts(writer, (const char *const *)app->argv, -1);
    frame_put_text(writer, app->directory);
    frame_put_u32(writer, (uint32_t)app->ranks);
    frame_put_u32(writer, (uint32_t)app->edit_count);
    for (int i = 0; i < app->edit_count; i++) {
        const struct spawn_edit *edit = &app->edits[i];
        frame_put_u8(writer, (uint8_t)edit->kind);
        frame_put_u8(writer, (uint8_t)edit->separator);
        frame_put_text(writer, edit->name);
        frame_put_text(writer, edit->value);
    }
}

void spawn_write_request(struct frame_writer *writer, const struct spawn_request *request)
{
    frame_begin(writer, MESSAGE_SPAWN);
    frame_put_u32(writer, (uint32_t)request->caller);
    frame_put_u64(writer, request->token);
    frame_put_u8(writer, request->notify);
    frame_put_text(writer, request->hosts);
    frame_put_text(writer, request->map_by);
    frame_put_text(writer, request->bind_to);
    frame_put_u32(writer, (uint32_t)request->app_count);
    for (int i = 0; i < request->app_count; i++) put_app(writer, &request->apps[i]);
}

static int get_number(struct frame_reader *reader, uint32_t least, uint32_t most)
{
    uint32_t value = frame_get_u32(reader);
    if (value >= least && value <= most) return (int)value;
    reader->failed = true;
    return 0;
}

static void get_edit(struct frame_reader *reader, struct spawn_edit *edit)
{
    uint8_t kind = frame_get_u8(reader);
    edit->kind = (enum spawn_edit_kind)kind;
    edit->separator = (char)frame_get_u8(reader);
    edit->name = frame_get_text(reader);
    edit->value = frame_get_text(reader);
    if (kind >= SPAWN_EDIT_KINDS || !edit->name || !*edit->name || strchr(edit->name, '=') ||
        (kind != SPAWN_UNSET && !edit->value))
        reader->failed = true;
}

static void get_app(struct frame_reader *reader, struct spawn_app *app)
{
    int arguments;
    app->argv = frame_get_texts(reader, &arguments);
    app->directory = frame_get_text(reader);
    app->ranks = get_number(reader, 1, MAP_MAX_RANKS);
    uint32_t edits = frame_get_count(reader, LEAST_EDIT_BYTES);
    if (reader->failed || arguments < 1 || !*app->argv[0]) {
        reader->failed = true;
        return;
    }
    app->edits = base_calloc(AREA_LAUNCHER, (size_t)edits + 1, sizeof *app->edits);
    if (!app->edits) reader->failed = true;
    for (uint32_t i = 0; i < edits && !reader->failed; i++) get_edit(reader, &app->edits[app->edit_count++]);
}

int spawn_read_request(const struct frame *frame, struct spawn_request *request)
{
    struct frame_reader reader;
    memset(request, 0, sizeof *request);
    if (frame->type != MESSAGE_SPAWN || frame->bytes > SPAWN_MAX_BYTES) return message_malformed(frame);
    request->storage = base_alloc(AREA_LAUNCHER, frame->bytes + 1);
    if (!request->storage)
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for a request of %zu bytes", frame->bytes);
    memcpy(request->storage, frame->payload, frame->bytes);
    struct frame copy = *frame;
    copy.payload = request->storage;
    frame_read(&reader, &copy);
    request->caller = get_number(&reader, 0, JOBS_MAX_NUMBER - 1);
    request->token = frame_get_u64(&reader);
    request->notify = frame_get_u8(&reader) != 0;
    request->hosts = frame_get_text(&reader);
    request->map_by = frame_get_text(&reader);
    request->bind_to = frame_get_text(&reader);
    uint32_t apps = frame_get_count(&reader, LEAST_APP_BYTES);
    if (apps < 1 || apps > SPAWN_MAX_APPS) reader.failed = true;
    request->apps = reader.failed ? NULL : base_calloc(AREA_LAUNCHER, apps, sizeof *request->apps);
    if (!request->apps) reader.failed = true;
    for (uint32_t i = 0; i < apps && !reader.failed; i++) get_app(&reader, &request->apps[request->app_count++]);
    if (frame_read_all(&reader)) return NCCLX_SUCCESS;
    spawn_release_request(request);
    return message_malformed(frame);
}

void spawn_release_request(struct spawn_request *request)
{
    for (int i = 0; i < request->app_count; i++) {
        base_free(AREA_LAUNCHER, request->apps[i].argv);
        base_free(AREA_LAUNCHER, request->apps[i].edits);
    }
    base_free(AREA_LAUNCHER, request->apps);
    base_free(AREA_LAUNCHER, request->storage);
    memset(request, 0, sizeof *request);
}

void spawn_write_answer(struct frame_writer *writer, const struct spawn_answer *answer)
{
    frame_begin(writer, MESSAGE_SPAWNED);
    frame_put_u32(writer, (uint32_t)answer->caller);
    frame_put_u64(writer, answer->token);
    frame_put_u8(writer, (uint8_t)answer->status);
    frame_put_text(writer, answer->job);
}

int spawn_read_answer(const struct frame *frame, struct spawn_answer *answer)
{
    struct frame_reader reader;
    frame_read(&reader, frame);
    answer->caller = get_number(&reader, 0, JOBS_MAX_NUMBER - 1);
    answer->token = frame_get_u64(&reader);
    uint8_t status = frame_get_u8(&reader);
    answer->status = (enum spawn_status)status;
    answer->job = frame_get_text(&reader);
    bool named = answer->job && *answer->job && strlen(answer->job) <= SPAWN_MAX_NAME;
    if (!frame_read_all(&reader) || status >= SPAWN_STATUS_COUNT || named != (status == SPAWN_DONE))
        return message_malformed(frame);
    return NCCLX_SUCCESS;
}

enum spawn_status spawn_status_of(int exit_status)
{
    if (exit_status == 127) return SPAWN_NO_PROGRAM;
    if (exit_status == 126) return SPAWN_NOT_EXECUTABLE;
    return exit_status == 2 ? SPAWN_NO_DIRECTORY : SPAWN_FAILED;
}

bool spawn_lists_host(const char *hosts, const char *name)
{
    size_t length = strlen(name);
    while (*hosts) {
        size_t part = strcspn(hosts, ",");
        if (part == length && !strncmp(hosts, name, part)) return true;
        hosts += part + (hosts[part] == ',');
    }
    return false;
}

/* ---- The environment -------------------------------------------------------------------------------------------- */

static bool names(const char *setting, const char *name)
{
    size_t length = strlen(name);
    if (setting[0] == '=') return !strcmp(setting + 1, name);
    return !strncmp(setting, name, length) && setting[length] == '=';
}

/* Its value after the edits so far; null: there is none. */
static const char *value_of(const char *name, char *const *environment, char **settings, int count)
{
    for (int i = 0; i < count; i++)
        if (names(settings[i], name)) return settings[i][0] == '=' ? NULL : settings[i] + strlen(name) + 1;
    for (; *environment; environment++)
        if (names(*environment, name)) return *environment + strlen(name) + 1;
    return NULL;
}

/* A new setting. Null: memory is short. */
static char *compose(const struct spawn_edit *edit, const char *before)
{
    bool joined = before && (edit->kind == SPAWN_PREPEND || edit->kind == SPAWN_APPEND);
    size_t bytes = strlen(edit->name) + (edit->value ? strlen(edit->value) : 0) + (joined ? strlen(before) : 0) + 4;
    char *setting = base_alloc(AREA_LAUNCHER, bytes);
    if (!setting) return NULL;
    if (edit->kind == SPAWN_UNSET)
        snprintf(setting, bytes, "=%s", edit->name);
    else if (!joined)
        snprintf(setting, bytes, "%s=%s", edit->name, edit->kind == SPAWN_ADD && before ? before : edit->value);
    else
        snprintf(setting, bytes, "%s=%s%c%s", edit->name, edit->kind == SPAWN_PREPEND ? edit->value : before,
                 edit->separator ? edit->separator : ':', edit->kind == SPAWN_PREPEND ? before : edit->value);
    return setting;
}

char **spawn_settle(const struct spawn_app *app, char *const *environment, int *count)
{
    char **settings = base_calloc(AREA_LAUNCHER, (size_t)app->edit_count + 1, sizeof *settings);
    *count = 0;
    for (int i = 0; settings && i < app->edit_count; i++) {
        const struct spawn_edit *edit = &app->edits[i];
        char *setting = compose(edit, value_of(edit->name, environment, settings, *count));
        if (!setting) {
            spawn_release_settings(settings, *count);
            return NULL;
        }
        int at = 0;
        while (at < *count && !names(settings[at], edit->name)) at++;
        base_free(AREA_LAUNCHER, settings[at]);
        settings[at] = setting;
        if (at == *count) ++*count;
    }
    return settings;
}

void spawn_release_settings(char **settings, int count)
{
    for (int i = 0; settings && i < count; i++) base_free(AREA_LAUNCHER, settings[i]);
    base_free(AREA_LAUNCHER, settings);
}
