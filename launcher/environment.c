/* environment.c - composing the environment of ranks and of the daemon. */
#include "launcher/environment.h"

#include "runtime/base/base.h"

#include <string.h>

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool matches_any(const char *entry, const char *const *starts)
{
    for (; *starts; starts++)
        if (begins_with(entry, *starts)) return true;
    return false;
}

bool environment_is_foreign(const char *entry)
{
    static const char *const starts[] = {"PMIX_",
                                         "PMI_",
                                         "PMI2_",
                                         "PMIX2_",
                                         "SLURM_PMI",
                                         "SLURM_STEP",
                                         "SLURM_PROCID=",
                                         "SLURM_LOCALID=",
                                         "SLURM_NODEID=",
                                         "SLURM_GTIDS=",
                                         "SLURM_TASK_PID=",
                                         "SLURM_LAUNCH_NODE_IPADDR=",
                                         "SLURM_SRUN_COMM_",
                                         "SLURM_TASKS_PER_NODE_STEP",
                                         "SLURM_DISTRIBUTION=",
                                         "SLURM_UMASK=",
                                         "SLURM_PRIO_PROCESS=",
                                         "SLURM_TOPOLOGY_ADDR_STEP",
                                         "SLURM_CPU_BIND",
                                         "OMPI_COMM_WORLD_",
                                         "OMPI_UNIVERSE_SIZE=",
                                         NULL};
    return matches_any(entry, starts);
}

bool environment_for_daemon(const char *entry)
{
    static const char *const starts[] = {"PATH=",
                                         "HOME=",
                                         "USER=",
                                         "LOGNAME=",
                                         "TMPDIR=",
                                         "LANG=",
                                         "LC_",
                                         "TZ=",
                                         "HWLOC_",
                                         "NCCLX_",
                                         "CUDA_VISIBLE_DEVICES=",
                                         "ASAN_OPTIONS=",
                                         "LSAN_OPTIONS=",
                                         "UBSAN_OPTIONS=",
                                         "TSAN_OPTIONS=",
                                         NULL};
    return matches_any(entry, starts);
}

/* Sets NAME=value in the first `count` entries or after them. Returns the new count. */
static int set_entry(char **list, int count, const char *setting)
{
    size_t name = strcspn(setting, "=") + 1;
    for (int i = 0; i < count; i++) {
        if (strncmp(list[i], setting, name)) continue;
        list[i] = (char *)(uintptr_t)setting;
        return count;
    }
    list[count] = (char *)(uintptr_t)setting;
    return count + 1;
}

static int leave_out(char **list, int count, const char *name)
{
    size_t length = strlen(name);
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (strncmp(list[i], name, length) || list[i][length] != '=') list[kept++] = list[i];
    for (int i = kept; i < count; i++) list[i] = NULL;
    return kept;
}

void environment_set(char **list, const char *setting)
{
    int count = 0;
    while (list[count]) count++;
    list[set_entry(list, count, setting)] = NULL;
}

char **environment_compose(char *const *inherited, const char *const *settings, int setting_count)
{
    size_t most = (size_t)setting_count + 1;
    for (char *const *entry = inherited; *entry; entry++) most++;
    char **list = base_calloc(AREA_LAUNCHER, most, sizeof *list);
    if (!list) return NULL;
    int count = 0;
    for (char *const *entry = inherited; *entry; entry++)
        if (!environment_is_foreign(*entry)) list[count++] = *entry;
    for (int i = 0; i < setting_count; i++) {
        if (settings[i][0] == '=') {
            count = leave_out(list, count, settings[i] + 1);
            continue;
        }
        bool ours = environment_is_foreign(settings[i]) &&
                    !begins_with(settings[i], "PMIX_MCA_"); /* the daemon sets these itself */
        if (strchr(settings[i], '=') && !ours) count = set_entry(list, count, settings[i]);
    }
    return list;
}
