/* available.c - /proc/meminfo and the control groups of the process. */
#include "config.h"

#include "pml/available.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 1024

static uint64_t of_machine(void)
{
    char line[256];
    unsigned long long kib;
    uint64_t bytes = UINT64_MAX;
    FILE *file = fopen("/proc/meminfo", "re");
    if (!file) return bytes;
    while (bytes == UINT64_MAX && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) bytes = (uint64_t)kib * 1024;
    fclose(file);
    return bytes;
}

/* The number in a file of a control group; UINT64_MAX: "max", or not there. */
static uint64_t number_in(const char *group, const char *name)
{
    char path[PATH_BYTES + 64], text[64] = "";
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/%s", group, name);
    FILE *file = fopen(path, "re");
    if (!file) return UINT64_MAX;
    if (!fgets(text, sizeof text, file)) text[0] = 0;
    fclose(file);
    return text[0] >= '0' && text[0] <= '9' ? strtoull(text, NULL, 10) : UINT64_MAX;
}

static uint64_t of_group(const char *group)
{
    uint64_t most = number_in(group, "memory.max"), used = number_in(group, "memory.current");
    if (most == UINT64_MAX || used == UINT64_MAX) return UINT64_MAX;
    return used < most ? most - used : 0;
}

/* The process' group and all above it. */
static uint64_t of_groups(void)
{
    char line[PATH_BYTES], group[PATH_BYTES] = "";
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file) return UINT64_MAX;
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, "0::/", 4)) snprintf(group, sizeof group, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    fclose(file);
    uint64_t least = UINT64_MAX;
    for (;;) {
        uint64_t here = of_group(group);
        if (here < least) least = here;
        char *slash = strrchr(group, '/');
        if (!slash) return least;
        *slash = 0;
    }
}

uint64_t available_memory(void)
{
    uint64_t machine = of_machine(), groups = of_groups();
    return machine < groups ? machine : groups;
}
