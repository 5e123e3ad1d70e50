/* front_dry.c - --dry-run: what hosts are made of comes from descriptions, or from this machine, instead of from their
 * daemons. */
#include "config.h"

#include "launcher/front.h"

#include "launcher/gpus.h"
#include "runtime/base/base.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DESCRIPTION_BYTES ((size_t)4 << 20)

/* Hosts with one description share it. */
struct dry_kind {
    const char *description; /* null: this machine */
    struct map_cpu *cpus;
    int cpu_count;
    struct map_gpu *gpus;
    int gpu_count;
};

struct dry {
    struct front *front;
    struct map_node *nodes;
    struct map_gpu **made; /* for nodes whose number of GPUs is given */
    struct dry_kind *kinds;
    int kind_count;
};

static int refused(const struct frame *frame)
{
    struct frame_reader reader;
    frame_read(&reader, frame);
    frame_get_u32(&reader);
    const char *text = frame_get_text(&reader);
    return base_error(NCCLX_ERR_ARG, "%s", frame_read_all(&reader) && text ? text : "the description is malformed");
}

static int take_description(struct dry_kind *kind, const unsigned char *data, size_t bytes)
{
    struct frame frame;
    struct message_node node;
    int code = frame_parse(data, bytes, &frame);
    if (code) return code;
    if (!frame.total) return base_error(NCCLX_ERR_BOOTSTRAP, "ncclxd describes nothing; is it of this version?");
    if (frame.type == MESSAGE_REFUSED) return refused(&frame);
    if (frame.type != MESSAGE_NODE) return message_malformed(&frame);
    if ((code = message_read_node(&frame, &node))) return code;
    kind->cpus = node.cpus;
    kind->cpu_count = node.cpu_count;
    kind->gpus = node.gpus;
    kind->gpu_count = node.gpu_count;
    return NCCLX_SUCCESS;
}

static void run_describer(const char *path, const char *description, int out)
{
    char *argv[] = {(char *)(uintptr_t)path, (char *)(uintptr_t) "--describe", (char *)(uintptr_t)description, NULL};
    dup2(out, STDOUT_FILENO);
    unsetenv("LD_LIBRARY_PATH");
    unsetenv("LD_PRELOAD");
    execv(path, argv);
    _exit(127);
}

/* ncclxd looks: it knows hwloc. */
static int describe(struct front *front, struct dry_kind *kind)
{
    char path[PATH_MAX + 16];
    int ends[2], code = front_find_daemon(front, path, sizeof path);
    size_t bytes = 0;
    if (code) return code;
    unsigned char *data = base_alloc(AREA_LAUNCHER, DESCRIPTION_BYTES);
    if (!data) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the description of a host");
    pid_t child = pipe(ends) ? -1 : fork();
    if (child == 0) run_describer(path, kind->description, ends[1]);
    if (child < 0) {
        base_free(AREA_LAUNCHER, data);
        return base_error(NCCLX_ERR_LIMIT, "cannot start ncclxd: %s", strerror(errno));
    }
    close(ends[1]);
    for (ssize_t got; bytes < DESCRIPTION_BYTES; bytes += (size_t)got) {
        got = read(ends[0], data + bytes, DESCRIPTION_BYTES - bytes);
        if (got < 0 && errno == EINTR)
            got = 0;
        else if (got <= 0)
            break;
    }
    close(ends[0]);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    code = take_description(kind, data, bytes);
    base_free(AREA_LAUNCHER, data);
    return code;
}

static int find_kind(struct dry *dry, const char *description, struct dry_kind **found)
{
    for (int i = 0; i < dry->kind_count; i++) {
        const char *known = dry->kinds[i].description;
        *found = &dry->kinds[i];
        if (known == description || (known && description && !strcmp(known, description))) return NCCLX_SUCCESS;
    }
    *found = &dry->kinds[dry->kind_count++];
    **found = (struct dry_kind){.description = description};
    return describe(dry->front, *found);
}

static int describe_node(struct dry *dry, int index)
{
    const struct hosts_entry *host = &dry->front->hosts.entries[index];
    struct map_node *node = &dry->nodes[index];
    struct dry_kind *kind;
    int code = find_kind(dry, host->topology ? host->topology : dry->front->options.topology, &kind);
    snprintf(node->name, sizeof node->name, "%.*s", (int)sizeof node->name - 1, host->name);
    node->slots = host->slots;
    node->cpus = kind->cpus;
    node->cpu_count = kind->cpu_count;
    node->gpus = kind->gpus;
    node->gpu_count = kind->gpu_count;
    if (code || host->gpus < 0) return code;
    dry->made[index] = gpus_make(kind->gpus, kind->gpu_count, host->gpus, map_objects(node, MAP_NUMA));
    if (host->gpus > 0 && !dry->made[index]) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the hosts");
    node->gpus = dry->made[index];
    node->gpu_count = host->gpus;
    return NCCLX_SUCCESS;
}

static int map_described(struct dry *dry)
{
    struct front *front = dry->front;
    size_t count = (size_t)front->hosts.count;
    int code = NCCLX_SUCCESS;
    dry->nodes = base_calloc(AREA_LAUNCHER, count, sizeof *dry->nodes);
    dry->made = base_calloc(AREA_LAUNCHER, count, sizeof *dry->made);
    dry->kinds = base_calloc(AREA_LAUNCHER, count, sizeof *dry->kinds);
    if (!dry->nodes || !dry->made || !dry->kinds) code = base_error(NCCLX_ERR_NO_MEM, "memory is short for the hosts");
    for (int i = 0; i < front->hosts.count && !code; i++) code = describe_node(dry, i);
    if (!code) code = front_list_programs(front);
    return code ? code : front_map_ranks(front, dry->nodes, front->hosts.count);
}

int front_dry_run(struct front *front)
{
    struct dry dry = {.front = front};
    unsigned what = front->options.display ? front->options.display : OPTIONS_MAP;
    int code = map_described(&dry);
    front->options.quiet = false;
    if (code)
        front_fail(front, FRONT_EXIT_USAGE, base_error_detail());
    else
        front_display(&front->user, dry.nodes, what, true);
    for (int i = 0; i < front->hosts.count && dry.made; i++) base_free(AREA_LAUNCHER, dry.made[i]);
    for (int i = 0; i < dry.kind_count; i++) {
        base_free(AREA_LAUNCHER, dry.kinds[i].cpus);
        base_free(AREA_LAUNCHER, dry.kinds[i].gpus);
    }
    base_free(AREA_LAUNCHER, dry.made);
    base_free(AREA_LAUNCHER, dry.kinds);
    base_free(AREA_LAUNCHER, dry.nodes);
    if (!code && (fflush(stdout) || ferror(stdout))) front_fail(front, 1, "standard output: the map cannot be written");
    return front->blame.status < 0 ? 0 : front->blame.status;
}
