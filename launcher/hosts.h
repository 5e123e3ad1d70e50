/* hosts.h - the hosts of a job: the list of --host, a hostfile (hostfile.h) or a batch system's allocation, as one list
 * in which each host stands once. Pure; what has to be asked of the system is in host_lookup.h. */
#ifndef LAUNCHER_HOSTS_H
#define LAUNCHER_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOSTS_MAX 131072
#define HOSTS_MAX_SLOTS 1048576 /* of one host */
#define HOSTS_MAX_GPUS 4096

struct hosts_entry {
    char *name;     /* as given, without user and brackets: what is shown, and what the agent is told */
    char *key;      /* its normal form: lower case, no dot at the end, addresses as inet_ntop writes them */
    char *user;     /* of user@name; null: not given */
    char *topology; /* describes the host in place of what it finds itself; null: not given */
    int slots;      /* 0: not given, one a core */
    int gpus;       /* -1: not given, those that are found there */
    bool address;   /* the name is an IPv4 or IPv6 address */
    bool excluded;  /* of ^name, until hosts_finish */
    bool local;     /* this machine; known after hosts_identify */
};

struct hosts {
    struct hosts_entry *entries;
    int count;
};

void hosts_release(struct hosts *hosts);

/* ---- Sources. `where` begins every error: "--host", or "FILE:LINE". On an error the list is to be released. -------
 */

/* Appends [^][user@]NAME[:SLOTS][,...]. A name may have ranges, node[01-16,20]; an IPv6 address stands in brackets when
 * slots follow. NCCLX_ERR_ARG names the bad item. */
int hosts_parse(struct hosts *hosts, const char *where, const char *text);
/* One item of such a list; slots, gpus and topology (may be null) are what stood beside it, 0 or less: not given. */
int hosts_add(struct hosts *hosts, const char *where, const char *item, size_t length, int slots, int gpus,
              const char *topology);
/* Of Slurm: SLURM_JOB_NODELIST, and SLURM_TASKS_PER_NODE, or else SLURM_JOB_CPUS_PER_NODE, as "2(x3),1"; what is null
 * or not for as many nodes is passed over. */
int hosts_parse_slurm(struct hosts *hosts, const char *nodes, const char *tasks, const char *cpus);

/* ---- One list ---------------------------------------------------------------------------------------------------- */

/* Takes out what is excluded; a name that came again has the sum of its slots. NCCLX_ERR_ARG when nothing is left. */
int hosts_finish(struct hosts *hosts, const char *where);
/* Leaves of `hosts` those that `wanted` names, in its order and with its slots; with exclusions alone, all others. Both
 * are finished but for wanted's exclusions, which stay in it. */
int hosts_restrict(struct hosts *hosts, const char *source, struct hosts *wanted, const char *where);

/* True when it has all that `wanted` names. */
bool hosts_include(const struct hosts *hosts, const struct hosts *wanted);
/* True when there is nothing in it but ^NAME. */
bool hosts_are_exclusions(const struct hosts *hosts);

/* ---- Who is who -------------------------------------------------------------------------------------------------- */

struct hosts_address {
    uint8_t bytes[16]; /* IPv4 as ::ffff:a.b.c.d */
};

struct hosts_found { /* by looking a host's name up */
    int host;
    struct hosts_address address;
};

struct hosts_facts {
    const char *own_name; /* what this machine calls itself */
    const struct hosts_address *own;
    int own_count;
    const struct hosts_found *found;
    int found_count;
    bool names_only; /* the names are a batch system's: another name is another host */
};

bool hosts_read_address(const char *name, struct hosts_address *address);
/* True when looking names up could tell more than comparing them. */
bool hosts_want_lookup(const struct hosts *hosts, const struct hosts_facts *facts);
/* Sets `local`, and makes one entry of names that mean one host: a short and a long name, and names and addresses that
 * share an address. */
int hosts_identify(struct hosts *hosts, const struct hosts_facts *facts);

/* ---- Between hosts.c and hosts_identity.c ------------------------------------------------------------------------ */

/* Indexes of the entries sorted by key and then by place, to be freed with base_free. Null: memory is short. */
int *hosts_sort(const struct hosts *hosts);
/* `again` becomes part of `first`; its place is empty until hosts_compact. */
int hosts_merge(struct hosts_entry *first, struct hosts_entry *again);
void hosts_compact(struct hosts *hosts);

#endif
