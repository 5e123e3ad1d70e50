/* message.c - messages of the link as bytes. Every index that a receiver will use is checked against its range here. */
#include "launcher/message.h"

#include "launcher/jobs.h"
#include "launcher/message_gpus.h"
#include "runtime/base/base.h"

#include <stdio.h>
#include <string.h>

#define MESSAGE_MAX_CPUS 65536
#define MESSAGE_MAX_RADIX 256 /* the exchange of keys takes no more */

int message_malformed(const struct frame *frame)
{
    return base_error(NCCLX_ERR_TRANSPORT, "a message of type %u on the link between ncclxrun and ncclxd is malformed",
                      frame->type);
}

void message_write_node(struct frame_writer *writer, const struct message_node *node)
{
    frame_begin(writer, MESSAGE_NODE);
    frame_put_u32(writer, (uint32_t)node->file_limit);
    frame_put_u32(writer, (uint32_t)node->process_limit);
    frame_put_u32(writer, (uint32_t)node->cpu_count);
    for (int i = 0; i < node->cpu_count; i++) {
        frame_put_u32(writer, (uint32_t)node->cpus[i].os_index);
        for (int level = 0; level < MAP_LEVELS; level++) frame_put_u32(writer, (uint32_t)node->cpus[i].object[level]);
    }
    message_put_gpus(writer, node->gpus, node->gpu_count);
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

int message_read_node(const struct frame *frame, struct message_node *node)
{
    struct frame_reader reader;
    memset(node, 0, sizeof *node);
    frame_read(&reader, frame);
    node->file_limit = get_below(&reader, INT32_MAX);
    node->process_limit = get_below(&reader, INT32_MAX);
    uint32_t cpus = frame_get_count(&reader, 4 * (1 + MAP_LEVELS));
    if (reader.failed || cpus > MESSAGE_MAX_CPUS)
        return message_malformed(frame);
    node->cpus = base_calloc(AREA_LAUNCHER, cpus, sizeof *node->cpus);
    if (!node->cpus) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the description of a node");
    node->cpu_count = (int)cpus;
    for (uint32_t i = 0; i < cpus; i++) {
        node->cpus[i].os_index = get_below(&reader, MESSAGE_MAX_CPUS);
        for (int level = 0; level < MAP_LEVELS; level++)
            node->cpus[i].object[level] = get_below(&reader, MESSAGE_MAX_CPUS);
    }
    node->gpus = message_get_gpus(&reader, &node->gpu_count);
    if (frame_read_all(&reader)) return NCCLX_SUCCESS;
    base_free(AREA_LAUNCHER, node->cpus);
    base_free(AREA_LAUNCHER, node->gpus);
    node->cpus = NULL;
    node->gpus = NULL;
    return message_malformed(frame);
}

void message_write_launch(struct frame_writer *writer, const struct message_launch *launch)
{
    frame_begin(writer, MESSAGE_LAUNCH);
    frame_put_text(writer, launch->job);
    frame_put_u32(writer, (uint32_t)launch->first);
    frame_put_u32(writer, (uint32_t)(launch->parent + 1));
    frame_put_u8(writer, launch->notify);
    frame_put_u64(writer, launch->kill_grace_ns);
    frame_put_u8(writer, (uint8_t)launch->input);
    frame_put_u32(writer, (uint32_t)(launch->input_rank + 1));
    frame_put_u32(writer, (uint32_t)launch->radix - 1);
    frame_put_texts(writer, launch->nodes, launch->node_count);
    for (int i = 0; i < launch->node_count; i++) {
        frame_put_u32(writer, (uint32_t)launch->positions[i]);
        frame_put_u8(writer, launch->oversubscribed[i]);
    }
    frame_put_texts(writer, (const char *const *)launch->environment, -1);
    frame_put_u32(writer, (uint32_t)launch->app_count);
    for (int i = 0; i < launch->app_count; i++) {
        const struct message_app *app = &launch->apps[i];
        frame_put_texts(writer, (const char *const *)app->argv, -1);
        frame_put_texts(writer, app->settings, app->setting_count);
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
        app->argv = frame_get_texts(reader, &arguments);
        app->settings = (const char **)frame_get_texts(reader, &app->setting_count);
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
    launch->first = get_below(&reader, JOBS_MAX_NUMBER);
    launch->parent = get_below(&reader, JOBS_MAX_NUMBER + 1) - 1;
    launch->notify = frame_get_u8(&reader) != 0;
    launch->kill_grace_ns = frame_get_u64(&reader);
    uint8_t input = frame_get_u8(&reader);
    launch->input = (enum message_input)input;
    launch->input_rank = get_below(&reader, MAP_MAX_RANKS + 1) - 1;
    launch->radix = get_below(&reader, MESSAGE_MAX_RADIX) + 1;
    launch->nodes = (const char **)frame_get_texts(&reader, &launch->node_count);
    if (!reader.failed) read_nodes(&reader, launch);
    launch->environment = frame_get_texts(&reader, &environment);
    if (!reader.failed) read_apps(&reader, launch);
    if (!reader.failed) read_ranks(&reader, launch);
    if (frame_read_all(&reader) && launch->job && input <= MESSAGE_INPUT_FORWARDED &&
        launch->input_rank < launch->rank_count && launch->rank_count <= JOBS_MAX_NUMBER - launch->first)
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
    frame_put_u32(writer, (uint32_t)exited->number);
    frame_put_u32(writer, (uint32_t)exited->pid);
    frame_put_u32(writer, (uint32_t)exited->status);
    frame_put_u8(writer, exited->joined);
    frame_put_u8(writer, exited->left);
    frame_put_u8(writer, exited->told);
}

int message_read_exited(const struct frame *frame, struct message_exited *exited)
{
    struct frame_reader reader;
    frame_read(&reader, frame);
    exited->number = get_below(&reader, JOBS_MAX_NUMBER);
    exited->pid = (int)frame_get_u32(&reader);
    exited->status = (int)frame_get_u32(&reader);
    exited->joined = frame_get_u8(&reader) != 0;
    exited->left = frame_get_u8(&reader) != 0;
    exited->told = frame_get_u8(&reader) != 0;
    return frame_read_all(&reader) ? NCCLX_SUCCESS : message_malformed(frame);
}

int message_read_job(const struct frame *frame, int *first)
{
    struct frame_reader reader;
    frame_read(&reader, frame);
    *first = get_below(&reader, JOBS_MAX_NUMBER);
    return frame_read_all(&reader) ? NCCLX_SUCCESS : message_malformed(frame);
}

void message_name_rank(const struct message_launch *launch, int rank, char *text, size_t bytes)
{
    if (launch->first == 0)
        snprintf(text, bytes, "rank %d", rank);
    else
        snprintf(text, bytes, "rank %d of %.*s", rank, MAP_NAME_BYTES, launch->job);
}
