/* interfaces.c - which addresses this host has, and from which a route goes. */
#include "config.h"

#include "bootstrap/oob/address.h"

#include "runtime/base/base.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool usable(const struct ifaddrs *entry)
{
    return entry->ifa_addr && (entry->ifa_flags & IFF_UP) && (entry->ifa_flags & IFF_RUNNING);
}

int address_list_here(struct address_here **list, size_t *count)
{
    struct ifaddrs *all, *entry;
    size_t room = 0;
    *list = NULL;
    *count = 0;
    if (getifaddrs(&all))
        return base_error(errno == ENOMEM ? NCCLX_ERR_NO_MEM : NCCLX_ERR_LIMIT, "addresses of this host: %s",
                          strerror(errno));
    for (entry = all; entry; entry = entry->ifa_next) room++;
    *list = base_calloc(AREA_BOOTSTRAP, room ? room : 1, sizeof **list);
    for (entry = all; *list && entry; entry = entry->ifa_next) {
        struct address_here *here = &(*list)[*count];
        if (!usable(entry) || !address_from_system(entry->ifa_addr, &here->address)) continue;
        here->interface = if_nametoindex(entry->ifa_name);
        snprintf(here->name, sizeof here->name, "%s", entry->ifa_name);
        ++*count;
    }
    freeifaddrs(all);
    return *list ? NCCLX_SUCCESS : base_error(NCCLX_ERR_NO_MEM, "memory is short for addresses of this host");
}

/* Connecting a datagram socket sends nothing, but chooses a route. */
bool address_route(const struct oob_address *towards, struct oob_address *ours)
{
    struct sockaddr_storage storage;
    socklen_t length = address_to_system(towards, &storage);
    int fd = socket(storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    if (towards->port == 0) { /* connect wants one, any */
        if (towards->family == 4)
            ((struct sockaddr_in *)&storage)->sin_port = htons(9);
        else
            ((struct sockaddr_in6 *)&storage)->sin6_port = htons(9);
    }
    bool good = connect(fd, (struct sockaddr *)&storage, length) == 0;
    length = sizeof storage;
    good = good && getsockname(fd, (struct sockaddr *)&storage, &length) == 0 &&
           address_from_system((struct sockaddr *)&storage, ours);
    close(fd);
    ours->port = 0;
    return good;
}

/* ---- Networks that the user has chosen ---- */

struct network {
    bool by_name;
    char name[16];
    struct oob_address address;
    unsigned bits;
};

static bool parse_network(const char *text, size_t length, struct network *network)
{
    char word[64], *slash;
    memset(network, 0, sizeof *network);
    if (length == 0 || length >= sizeof word) return false;
    memcpy(word, text, length);
    word[length] = 0;
    slash = strchr(word, '/');
    if (slash) *slash = 0;
    if (inet_pton(AF_INET, word, network->address.bytes) == 1)
        network->address.family = 4;
    else if (inet_pton(AF_INET6, word, network->address.bytes) == 1)
        network->address.family = 6;
    unsigned most = network->address.family == 4 ? 32 : 128;
    if (!network->address.family) {
        network->by_name = true;
        if (slash || length >= sizeof network->name) return false;
        memcpy(network->name, word, length);
        return true;
    }
    network->bits = most;
    if (!slash) return true;
    char *end;
    unsigned long bits = strtoul(slash + 1, &end, 10);
    network->bits = (unsigned)bits;
    return end != slash + 1 && !*end && slash[1] >= '0' && slash[1] <= '9' && bits <= most;
}

static bool in_network(const struct address_here *here, const struct network *network)
{
    if (network->by_name) return !strcmp(here->name, network->name);
    if (here->address.family != network->address.family) return false;
    for (unsigned bit = 0; bit < network->bits; bit++)
        if ((here->address.bytes[bit / 8] ^ network->address.bytes[bit / 8]) & 0x80u >> bit % 8) return false;
    return true;
}

bool address_in_networks(const struct address_here *here, const char *networks)
{
    if (!networks) return true;
    for (const char *at = networks; *at; at += *at == ',') {
        struct network network;
        size_t length = strcspn(at, ",");
        if (parse_network(at, length, &network) && in_network(here, &network)) return true;
        at += length;
    }
    return false;
}

int address_check_networks(const char *networks)
{
    for (const char *at = networks; at && *at; at += *at == ',') {
        struct network network;
        size_t length = strcspn(at, ",");
        if (!parse_network(at, length, &network))
            return base_error(NCCLX_ERR_ARG,
                              "\"%.*s\" is neither a network such as 10.1.0.0/16 nor the name of an interface",
                              (int)length, at);
        at += length;
    }
    return NCCLX_SUCCESS;
}
