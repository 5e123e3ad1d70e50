/* gpus.c - lists of GPUs, given or made up; see gpus.h. */
#include "launcher/gpus.h"

#include "runtime/base/base.h"

#include <stdio.h>
#include <string.h>

/* The number of a GPU; -1 for a name; -2 for what ends a list. */
static int read_token(const char *token, size_t length, int found)
{
    long number = 0;
    if (length > 4 && length < MAP_GPU_BYTES && (!strncmp(token, "GPU-", 4) || !strncmp(token, "MIG-", 4))) return -1;
    if (length == 0 || length > 4 || strspn(token, "0123456789") < length) return -2;
    for (size_t i = 0; i < length; i++) number = number * 10 + (token[i] - '0');
    return number < (found ? found : GPUS_MAX) ? (int)number : -2;
}

struct map_gpu *gpus_parse(const char *list, const int *numa, int found, int *count)
{
    size_t most = 1;
    for (const char *at = list; *at; at++) most += *at == ',';
    *count = 0;
    struct map_gpu *gpus = base_calloc(AREA_LAUNCHER, most < GPUS_MAX ? most : GPUS_MAX, sizeof *gpus);
    while (gpus && *count < GPUS_MAX) {
        while (*list == ' ') list++;
        size_t length = strcspn(list, ", ");
        int number = read_token(list, length, found);
        if (number == -2) break;
        memcpy(gpus[*count].id, list, length);
        gpus[(*count)++].numa = number >= 0 && number < found ? numa[number] : -1;
        list += length + strspn(list + length, " ");
        if (*list++ != ',') break;
    }
    if (*count) return gpus;
    base_free(AREA_LAUNCHER, gpus);
    return NULL;
}

struct map_gpu *gpus_make(const struct map_gpu *found, int found_count, int count, int near)
{
    struct map_gpu *gpus = count > 0 ? base_calloc(AREA_LAUNCHER, (size_t)count, sizeof *gpus) : NULL;
    for (int i = 0; gpus && i < count; i++) {
        if (i < found_count) {
            gpus[i] = found[i];
            continue;
        }
        snprintf(gpus[i].id, sizeof gpus[i].id, "%d", i);
        gpus[i].numa = near > 0 ? (int)((long)i * near / count) : -1;
    }
    return gpus;
}
