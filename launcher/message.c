/* message.c - messages of the link as bytes. Every index that a receiver will use is checked against its range here. */
#include "launcher/message.h"

#include "runtime/base/base.h"

#include <string.h>

#define MESSAGE_MAX_CPUS 65536
#define MESSAGE_MAX_RADIX 256 /* the exchange of keys takes no more */

int message_malformed(const struct frame *frame)
{
    return base_error(NCCLX_ERR_TRANSPORT, "a message of type %u on the link between ncclxrun and ncclxd is malformed",
                      frame->type);
}

void message_write_hello(struct frame_writer *writer, const struct message_hello *hello)
{
    frame_begin(writer, MESSAGE_HELLO);
    frame_put_text(writer, hello->version);
    frame_put_text(writer, hello->node);
    frame_put_text(writer, hello->scratch);
    frame_put_u32(writer, (uint32_t)hello->file_limit);
    frame_put_u32(writer, (uint32_t)hello->process_limit);
    frame_put_u32(writer, (uint32_t)hello->cpu_count);
    for (int i = 0; i < hello->cpu_count; i++) {
        frame_put_u32(writer, (uint32_t)hello->cpus[i].os_index);
        for (int level = 0; level < MAP_LEVELS; level++) frame_put_u32(writer, (uint32_t)hello->cpus[i].object[level]);
    }
}

/* A number below `end`, or -1 with the reader failed. */
static int get_below(struct frame_reader *reader, uint32_t end)
{
    uint32_t value = frame_get_u32(reader);
    if (reader->failed || value >= end) {
        reader->failed = true;
        return -1;
    }
    return (int)value;
}

int message_read_hello(const struct frame *frame, struct message_hello *hello)
{
    struct frame_reader reader;
    memset(hello, 0, sizeof *hello);
    frame_read(&reader, frame);
    hello->version = frame_get_text(&reader);
    hello->node = frame_get_text(&reader);
    hello->scratch = frame_get_text(&reader);
    hello->file_limit = get_below(&reader, INT32_MAX);
    hello->process_limit = get_below(&reader, INT32_MAX);
    uint32_t cpus = frame_get_count(&reader, 4 * (1 + MAP_LEVELS));
    if (reader.failed || cpus > MESSAGE_MAX_CPUS || !hello->version || !hello->node || !hello->scratch)
        return message_malformed(frame);
    if (strlen(hello->node) >= MAP_NAME_BYTES) return message_malformed(frame);
    hello->cpus = base_calloc(AREA_LAUNCHER, cpus, sizeof *hello->cpus);
    if (!hello->cpus) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the description of %s", hello->node);
    hello->cpu_count = (int)cpus;
    for (uint32_t i = 0; i < cpus; i++) {
        hello->cpus[i].os_index = get_below(&reader, MESSAGE_MAX_CPUS);
        for (int level = 0; level < MAP_LEVELS; level++)
            hello->cpus[i].object[level] = get_below(&reader, MESSAGE_MAX_CPUS);
    }
    if (frame_read_all(&reader)) return NCCLX_SUCCESS;
    base_free(AREA_LAUNCHER, hello->cpus);
    hello->cpus = NULL;
    return message_malformed(frame);
}

static int count_texts(char **texts)
{
    int count = 0;
    while (texts[count]) count++;
    return count;
}

static void put_texts(struct frame_writer *writer, const char *const *texts, int count)
{
    frame_put_u32(writer, (uint32_t)count);
    for (int i = 0; i < count; i++) frame_put_text(writer, texts[i]);
}

void message_write_launch(struct frame_writer *writer, const struct message_launch *launch)
{
    frame_begin(writer, MESSAGE_LAUNCH);
    frame_put_text(writer, launch->job);
    frame_put_u64(writer, launch->kill_grace_ns);
    frame_put_u8(writer, (uint8_t)launch->input);
    frame_put_u32(writer, (uint32_t)(launch->input_rank + 1));
    frame_put_u32(writer, (uint32_t)launch->radix - 1);
    put_texts(writer, launch->nodes, launch->node_count);
    for (int i = 0; i < launch->node_count; i++) {
        frame_put_u32(writer, (uint32_t)launch->positions[i]);
        frame_put_u8(writer, launch->oversubscribed[i]);
    }
    put_texts(writer, (const char *const *)launch->environment, count_texts(launch->environment));
    frame_put_u32(writer, (uint32_t)launch->app_count);
    for (int i = 0; i < launch->app_count; i++) {
        const struct message_app *app = &launch->apps[i];
        put_texts(writer, (const char *const *)app->argv, count_texts(app->argv));
        put_texts(writer, app->settings, app->setting_count);
        frame_put_text(writer, app->directory);
    }
    frame_put_u32(writer, (uint32_t)launch->rank_count);
    for (int i = 0; i < launch->rank_count; i++) {
        frame_put_u32(writer, (uint32_t)launch->ranks[i].node);
        frame_put_u32(writer, (uint32_t)launch->ranks[i].app);
        frame_put_u32(writer, (uint32_t)launch->ranks[i].local_rank);
        frame_put_text(writer, launch->ranks[i].cpus);
        frame_put_text(writer, launch->ranks[i].gpu);
    }
}

/* An array of texts that ends with null; null when something is wrong or memory is short. */
static char **get_texts(struct frame_reader *reader, int *count)
{
    uint32_t texts = frame_get_count(reader, 4);
    char **list = base_calloc(AREA_LAUNCHER, (size_t)texts + 1, sizeof *list);
    *count = (int)texts;
    for (uint32_t i = 0; list && i < texts; i++) {
        list[i] =
            (char *)(uintptr_t)frame_get_text(reader); /* storage is ours to hand to execve, which takes no const */
        if (!list[i]) reader->failed = true;
    }
    if (!list) reader->failed = true;
    return list;
}

/* Positions of nodes are a permutation. */
static void read_nodes(struct frame_reader *reader, struct message_launch *launch)
{
    size_t count = (size_t)launch->node_count;
    bool *taken = base_calloc(AREA_LAUNCHER, count, sizeof *taken);
    launch->positions = base_calloc(AREA_LAUNCHER, count, sizeof *launch->positions);
    launch->oversubscribed = base_calloc(AREA_LAUNCHER, count, sizeof *launch->oversubscribed);
    if (!taken || !launch->positions || !launch->oversubscribed) reader->failed = true;
    for (size_t i = 0; i < count && !reader->failed; i++) {
        launch->positions[i] = get_below(reader, (uint32_t)count);
        launch->oversubscribed[i] = frame_get_u8(reader) != 0;
        if (reader->failed || taken[launch->positions[i]])
            reader->failed = true;
        else
            taken[launch->positions[i]] = true;
    }
    base_free(AREA_LAUNCHER, taken);
}

static void read_apps(struct frame_reader *reader, struct message_launch *launch)
{
    uint32_t apps = frame_get_count(reader, 12);
    launch->apps = base_calloc(AREA_LAUNCHER, apps, sizeof *launch->apps);
    if (!launch->apps) reader->failed = true;
    for (uint32_t i = 0; launch->apps && i < apps; i++) {
        struct message_app *app = &launch->apps[i];
        int arguments;
        launch->app_count++;
        app->argv = get_texts(reader, &arguments);
        app->settings = (const char **)get_texts(reader, &app->setting_count);
        app->directory = frame_get_text(reader);
        if (arguments < 1) reader->failed = true;
        if (reader->failed) return;
    }
}

static void read_ranks(struct frame_reader *reader, struct message_launch *launch)
{
    uint32_t ranks = frame_get_count(reader, 20);
    if (ranks > MAP_MAX_RANKS) reader->failed = true;
    launch->ranks = reader->failed ? NULL : base_calloc(AREA_LAUNCHER, ranks, sizeof *launch->ranks);
    if (!launch->ranks) reader->failed = true;
    for (uint32_t i = 0; launch->ranks && i < ranks; i++) {
        launch->ranks[i].node = get_below(reader, (uint32_t)launch->node_count);
        launch->ranks[i].app = get_below(reader, (uint32_t)launch->app_count);
        launch->ranks[i].local_rank = get_below(reader, ranks);
        launch->ranks[i].cpus = frame_get_text(reader);
        launch->ranks[i].gpu = frame_get_text(reader);
    }
    launch->rank_count = reader->failed ? 0 : (int)ranks;
}

int message_read_launch(const struct frame *frame, struct message_launch *launch)
{
    memset(launch, 0, sizeof *launch);
    launch->storage = base_alloc(AREA_LAUNCHER, frame->bytes);
    if (!launch->storage)
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for a launch order of %zu bytes", frame->bytes);
    memcpy(launch->storage, frame->payload, frame->bytes);
    struct frame copy = *frame;
    copy.payload = launch->storage;

    struct frame_reader reader;
    int environment;
    frame_read(&reader, &copy);
    launch->job = frame_get_text(&reader);
    launch->kill_grace_ns = frame_get_u64(&reader);
    uint8_t input = frame_get_u8(&reader);
    launch->input = (enum message_input)input;
    launch->input_rank = get_below(&reader, MAP_MAX_RANKS + 1) - 1;
    launch->radix = get_below(&reader, MESSAGE_MAX_RADIX) + 1;
    launch->nodes = (const char **)get_texts(&reader, &launch->node_count);
    if (!reader.failed) read_nodes(&reader, launch);
    launch->environment = get_texts(&reader, &environment);
    if (!reader.failed) read_apps(&reader, launch);
    if (!reader.failed) read_ranks(&reader, launch);
    if (frame_read_all(&reader) && launch->job && input <= MESSAGE_INPUT_FORWARDED &&
        launch->input_rank < launch->rank_count)
        return NCCLX_SUCCESS;
    message_release_launch(launch);
    return message_malformed(frame);
}

void message_release_launch(struct message_launch *launch)
{
    for (int i = 0; i < launch->app_count; i++) {
        base_free(AREA_LAUNCHER, launch->apps[i].argv);
        base_free(AREA_LAUNCHER, launch->apps[i].settings);
    }
    base_free(AREA_LAUNCHER, launch->apps);
    base_free(AREA_LAUNCHER, launch->nodes);
    base_free(AREA_LAUNCHER, launch->positions);
    base_free(AREA_LAUNCHER, launch->oversubscribed);
    base_free(AREA_LAUNCHER, launch->environment);
    base_free(AREA_LAUNCHER, launch->ranks);
    base_free(AREA_LAUNCHER, launch->storage);
    memset(launch, 0, sizeof *launch);
}

void message_write_exited(struct frame_writer *writer, const struct message_exited *exited)
{
    frame_begin(writer, MESSAGE_EXITED);
    frame_put_u32(writer, (uint32_t)exited->rank);
    frame_put_u32(writer, (uint32_t)exited->pid);
    frame_put_u32(writer, (uint32_t)exited->status);
    frame_put_u8(writer, exited->joined);
    frame_put_u8(writer, exited->left);
}

int message_read_exited(const struct frame *frame, struct message_exited *exited)
{
    struct frame_reader reader;
    frame_read(&reader, frame);
    exited->rank = get_below(&reader, MAP_MAX_RANKS);
    exited->pid = (int)frame_get_u32(&reader);
    exited->status = (int)frame_get_u32(&reader);
    exited->joined = frame_get_u8(&reader) != 0;
    exited->left = frame_get_u8(&reader) != 0;
    return frame_read_all(&reader) ? NCCLX_SUCCESS : message_malformed(frame);
}
