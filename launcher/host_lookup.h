/* host_lookup.h - what the system knows about names: this machine's own, its addresses, and the name service's. Never
 * waits longer than HOST_LOOKUP_MS. */
#ifndef LAUNCHER_HOST_LOOKUP_H
#define LAUNCHER_HOST_LOOKUP_H

#include "launcher/hosts.h"

#define HOST_LOOKUP_MS 2000

struct host_lookup {
    struct hosts_facts facts;
    char own_name[256];
    struct hosts_address *own;
    struct hosts_found *found;
    bool late; /* the name service did not answer in time for all */
};

/* This machine's name and addresses. */
int host_lookup_self(struct host_lookup *lookup);
/* Looks the names of the list up, side by side, while time is left. */
int host_lookup_names(struct host_lookup *lookup, const struct hosts *hosts);
void host_lookup_release(struct host_lookup *lookup);

#endif
