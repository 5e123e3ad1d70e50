/* message_gpus.c - see message_gpus.h: u32 count, then text id and u32 NUMA node each, 0 for one that is not known. */
#include "launcher/message_gpus.h"

#include "runtime/base/base.h"

#include <string.h>

#define MAX_NUMA 65536

void message_put_gpus(struct frame_writer *writer, const struct map_gpu *gpus, int count)
{
    frame_put_u32(writer, (uint32_t)count);
    for (int i = 0; i < count; i++) {
        frame_put_text(writer, gpus[i].id);
        frame_put_u32(writer, (uint32_t)(gpus[i].numa + 1));
    }
}

static bool get_gpu(struct frame_reader *reader, struct map_gpu *gpu)
{
    const char *id = frame_get_text(reader);
    uint32_t numa = frame_get_u32(reader);
    if (reader->failed || !id || !*id || strlen(id) >= sizeof gpu->id || numa > MAX_NUMA) return false;
    memcpy(gpu->id, id, strlen(id) + 1);
    gpu->numa = (int)numa - 1;
    return true;
}

struct map_gpu *message_get_gpus(struct frame_reader *reader, int *count)
{
    uint32_t gpus = frame_get_count(reader, 8);
    *count = 0;
    if (gpus > MESSAGE_MAX_GPUS) reader->failed = true;
    if (reader->failed || gpus == 0) return NULL;
    struct map_gpu *list = base_calloc(AREA_LAUNCHER, gpus, sizeof *list);
    while (list && *count < (int)gpus && get_gpu(reader, &list[*count])) (*count)++;
    if (list && *count == (int)gpus) return list;
    reader->failed = true;
    base_free(AREA_LAUNCHER, list);
    *count = 0;
    return NULL;
}
