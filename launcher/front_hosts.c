/* front_hosts.c - where the hosts of a job come from: a hostfile, --host, an allocation of Slurm's, or this machine. */
#include "config.h"

#include "launcher/front.h"

#include "launcher/host_lookup.h"
#include "launcher/hostfile.h"
#include "runtime/base/base.h"

#include <stdlib.h>

extern char **environ;

/* The hosts of the allocation that this process is in; slots are the tasks that were asked for, or else cpus. */
static int read_allocation(struct hosts *hosts)
{
    int code = hosts_parse_slurm(hosts, getenv("SLURM_JOB_NODELIST"), getenv("SLURM_TASKS_PER_NODE"),
                                 getenv("SLURM_JOB_CPUS_PER_NODE"));
    return code ? code : hosts_finish(hosts, "SLURM_JOB_NODELIST");
}

/* --host picks hosts of the source, or is the list itself: when there is no other, or when it names what is not part of
 * the allocation. */
static int apply_host_option(struct hosts *hosts, const char *text, const char *source, bool *allocation)
{
    struct hosts wanted = {.count = 0};
    int code = hosts_parse(&wanted, "--host", text);
    if (!code && *allocation && !hosts_include(hosts, &wanted)) {
        *allocation = false;
        source = NULL;
    }
    if (!code && source) {
        code = hosts_restrict(hosts, source, &wanted, "--host");
        hosts_release(&wanted);
        return code;
    }
    if (!code && hosts_are_exclusions(&wanted))
        code = base_error(NCCLX_ERR_ARG, "--host: '%.100s' leaves hosts out, but there is no list of hosts", text);
    if (!code) code = hosts_finish(&wanted, "--host");
    hosts_release(hosts);
    *hosts = wanted;
    return code;
}

static int identify(struct front *front, bool allocation)
{
    struct host_lookup lookup;
    const char *node = getenv("SLURMD_NODENAME");
    int code = host_lookup_self(&lookup);
    lookup.facts.names_only = allocation;
    if (allocation && node) lookup.facts.own_name = node;
    if (!code && !front->hosts.count) code = hosts_parse(&front->hosts, "this machine", "localhost");
    if (!code && !front->options.dry_run && hosts_want_lookup(&front->hosts, &lookup.facts)) {
        code = host_lookup_names(&lookup, &front->hosts);
        if (lookup.late && front->options.verbose)
            front_say("the name service did not tell all hosts' addresses within %d s; names decide which are one",
                      HOST_LOOKUP_MS / 1000);
    }
    if (!code) code = hosts_identify(&front->hosts, &lookup.facts);
    host_lookup_release(&lookup);
    return code;
}

/* NCCLX_HOSTFILE, of the environment or of ncclx.conf; null: none. To be freed with base_free(AREA_LAUNCHER, ...). */
static int configured_hostfile(char **path)
{
    struct base_config config;
    int code = base_config_load(&config, environ);
    *path = NULL;
    if (code) return code;
    if (config.value[CONFIG_HOSTFILE].text[0]) {
        *path = base_strdup(AREA_LAUNCHER, config.value[CONFIG_HOSTFILE].text);
        if (!*path) code = base_error(NCCLX_ERR_NO_MEM, "memory is short for the name of the hostfile");
    }
    base_config_release(&config);
    return code;
}

static int read_hostfile(struct hosts *hosts, const char *path)
{
    int code = hostfile_read(hosts, path);
    return code ? code : hosts_finish(hosts, path);
}

/* The list that --host picks from. `source` says what it is, null: there is none. */
static int read_source(struct front *front, const char **source, bool *allocation)
{
    static char *configured;
    int code;
    *source = front->options.hostfile;
    if (*source) return read_hostfile(&front->hosts, *source);
    if (getenv("SLURM_JOB_ID") && getenv("SLURM_JOB_NODELIST")) {
        *source = "the allocation";
        *allocation = true;
        return read_allocation(&front->hosts);
    }
    if ((code = configured_hostfile(&configured)) || !configured) return code;
    *source = configured;
    return read_hostfile(&front->hosts, configured);
}

int front_choose_hosts(struct front *front)
{
    const struct options *options = &front->options;
    const char *source;
    bool allocation = false;
    int code = read_source(front, &source, &allocation);
    if (!code && options->hosts) code = apply_host_option(&front->hosts, options->hosts, source, &allocation);
    if (!code) code = identify(front, allocation);
    front->allocation = allocation;
    return code;
}
