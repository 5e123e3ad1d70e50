/* hosts.h - the list of --host. Pure. */
#ifndef LAUNCHER_HOSTS_H
#define LAUNCHER_HOSTS_H

#include "launcher/map.h"

#include <stddef.h>

struct hosts_entry {
    char name[MAP_NAME_BYTES];
    int slots; /* 0: not given */
};

/* Parses NAME[:SLOTS][,...]; IPv6 addresses stand in brackets when slots follow. A name that comes again adds its
 * slots. NCCLX_ERR_ARG names the bad entry. The array is to be freed with base_free(AREA_LAUNCHER, ...). */
int hosts_parse(const char *text, struct hosts_entry **entries, int *count);

#endif
