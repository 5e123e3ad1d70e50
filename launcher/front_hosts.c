/* front_hosts.c - where the hosts of a job come from: a hostfile, --host, an allocation of Slurm's, or this machine. */
#include "config.h"

#include "launcher/front.h"

#include "launcher/host_lookup.h"
#include "launcher/hostfile.h"
#include "runtime/base/base.h"

#include <stdlib.h>

#define ALLOCATION "the allocation"

/* The hosts of the allocation that this process is in; slots are the tasks that were asked for, or else cpus. */
static int read_allocation(struct hosts *hosts)
{
    const char *slots = getenv("SLURM_TASKS_PER_NODE");
    if (!slots) slots = getenv("SLURM_JOB_CPUS_PER_NODE");
    int code = hosts_parse_slurm(hosts, getenv("SLURM_JOB_NODELIST"), slots);
    return code ? code : hosts_finish(hosts, "SLURM_JOB_NODELIST");
}

/* --host picks hosts of the hostfile or of the allocation, or is the list itself. */
static int apply_host_option(struct hosts *hosts, const char *text, const char *source, bool strict, bool *allocation)
{
    struct hosts wanted = {.count = 0};
    int code = hosts_parse(&wanted, "--host", text);
    if (!code && !source && hosts_are_exclusions(&wanted))
        code = base_error(NCCLX_ERR_ARG, "--host: '%.100s' leaves hosts out, but there is no list of hosts", text);
    if (!code && source) {
        code = hosts_restrict(hosts, source, &wanted, "--host");
        hosts_release(&wanted);
        if (!code || strict) return code;
        *allocation = false; /* hosts that are no part of the allocation may be meant */
        code = hosts_parse(&wanted, "--host", text);
    }
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
    if (!code && hosts_want_lookup(&front->hosts, &lookup.facts)) {
        code = host_lookup_names(&lookup, &front->hosts);
        if (lookup.late && front->options.verbose)
            front_say("the name service did not tell all hosts' addresses within %d s; names decide which are one",
                      HOST_LOOKUP_MS / 1000);
    }
    if (!code) code = hosts_identify(&front->hosts, &lookup.facts);
    host_lookup_release(&lookup);
    return code;
}

int front_choose_hosts(struct front *front)
{
    const struct options *options = &front->options;
    const char *source = options->hostfile;
    bool allocation = false;
    int code = NCCLX_SUCCESS;
    if (source) {
        if (!(code = hostfile_read(&front->hosts, source))) code = hosts_finish(&front->hosts, source);
    } else if (getenv("SLURM_JOB_ID") && getenv("SLURM_JOB_NODELIST")) {
        code = read_allocation(&front->hosts);
        source = ALLOCATION;
        allocation = true;
    }
    if (!code && options->hosts)
        code = apply_host_option(&front->hosts, options->hosts, source, !allocation, &allocation);
    if (!code) code = identify(front, allocation);
    for (int i = 0; i < front->hosts.count && !code; i++)
        if (!front->hosts.entries[i].local)
            code =
                base_error(NCCLX_ERR_ARG, "host '%.100s' is not this machine; this release starts ranks on one machine",
                           front->hosts.entries[i].name);
    if (!code) front->node.slots = front->hosts.entries[0].slots;
    return code;
}
