/* hosts_identity.c - which names mean one host, and which mean this machine. What the names say counts until the
 * addresses that were found for them say otherwise. */
#include "config.h"

#include "launcher/hosts.h"

#include "runtime/base/base.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More names than this are compared as text only: a batch of questions to the name server that large would be noticed.
 */
#define LOOKUP_MAX_HOSTS 256

static bool is_loopback(const struct hosts_address *address)
{
    static const uint8_t six[16] = {[15] = 1}, four[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};
    return !memcmp(address, six, sizeof six) || !memcmp(address, four, sizeof four);
}

/* fe80::/10: such an address means another host on every link. */
static bool is_link_local(const struct hosts_address *address)
{
    return address->bytes[0] == 0xfe && (address->bytes[1] & 0xc0) == 0x80;
}

static bool is_own(const struct hosts_facts *facts, const struct hosts_address *address)
{
    if (is_loopback(address)) return true;
    for (int i = 0; i < facts->own_count; i++)
        if (!memcmp(address, &facts->own[i], sizeof *address)) return true;
    return false;
}

static bool is_localhost(const struct hosts_entry *entry)
{
    return !strcmp(entry->key, "localhost") || !strncmp(entry->key, "localhost.", 10);
}

enum likeness { DIFFERENT, MAYBE, SAME };

/* How a name resembles this machine's own: MAYBE when one is the other's short form. */
static enum likeness compare_with_own(const struct hosts_entry *entry, const char *own)
{
    size_t length = strcspn(entry->key, "."), own_length = strcspn(own, ".");
    for (size_t i = 0; i < length || i < own_length; i++)
        if (entry->key[i] != (char)tolower((unsigned char)own[i])) return DIFFERENT;
    bool short_name = !entry->key[length], own_short = !own[own_length];
    if (short_name != own_short) return MAYBE;
    return short_name || !strcasecmp(entry->key + length, own + own_length) ? SAME : DIFFERENT;
}

/* By its name alone. */
static enum likeness is_here(const struct hosts_entry *entry, const struct hosts_facts *facts)
{
    struct hosts_address address;
    if (is_localhost(entry)) return SAME;
    if (!entry->address) return compare_with_own(entry, facts->own_name);
    return hosts_read_address(entry->key, &address) && is_own(facts, &address) ? SAME : DIFFERENT;
}

bool hosts_want_lookup(const struct hosts *hosts, const struct hosts_facts *facts)
{
    bool names = false, addresses = false, here = false, doubt = false;
    if (facts->names_only || hosts->count > LOOKUP_MAX_HOSTS) return false;
    int *order = hosts_sort(hosts);
    if (!order) return false;
    for (int i = 0; i < hosts->count; i++) {
        const struct hosts_entry *entry = &hosts->entries[order[i]];
        enum likeness likeness = is_here(entry, facts);
        here |= likeness == SAME;
        doubt |= likeness == MAYBE;
        names |= !entry->address && likeness != SAME;
        addresses |= entry->address && likeness != SAME;
        if (i == 0 || entry->address) continue; /* "n1" sorts before "n1.x", with nothing but "n1-..." between */
        size_t length = strcspn(entry->key, ".");
        for (int j = i - 1; j >= 0 && !strncmp(hosts->entries[order[j]].key, entry->key, length); j--)
            doubt |= entry->key[length] && !hosts->entries[order[j]].key[length];
    }
    base_free(AREA_LAUNCHER, order);
    return names && (addresses || doubt || !here);
}

/* ---- Names that mean one host ------------------------------------------------------------------------------------ */

struct identity {
    struct hosts *hosts;
    const struct hosts_facts *facts;
    int *leader;         /* of each host: the first of those that are one with it */
    bool *known;         /* an address was found */
    enum likeness *here; /* this machine */
    struct hosts_found *addresses;
    int address_count;
};

static int find_leader(struct identity *identity, int host)
{
    while (identity->leader[host] != host) {
        identity->leader[host] = identity->leader[identity->leader[host]];
        host = identity->leader[host];
    }
    return host;
}

static void unite(struct identity *identity, int a, int b)
{
    a = find_leader(identity, a);
    b = find_leader(identity, b);
    identity->leader[a > b ? a : b] = a > b ? b : a;
}

static void note_address(struct identity *identity, int host, const struct hosts_address *address)
{
    identity->known[host] = true;
    if (is_own(identity->facts, address)) identity->here[host] = SAME;
    if (!is_loopback(address) && !is_link_local(address))
        identity->addresses[identity->address_count++] = (struct hosts_found){.host = host, .address = *address};
}

static int by_address(const void *a, const void *b)
{
    const struct hosts_found *left = a, *right = b;
    return memcmp(&left->address, &right->address, sizeof left->address);
}

static void gather(struct identity *identity)
{
    struct hosts *hosts = identity->hosts;
    const struct hosts_facts *facts = identity->facts;
    for (int i = 0; i < hosts->count; i++) {
        struct hosts_address address;
        identity->leader[i] = i;
        identity->here[i] = is_here(&hosts->entries[i], facts);
        if (hosts->entries[i].address && hosts_read_address(hosts->entries[i].key, &address))
            note_address(identity, i, &address);
    }
    for (int i = 0; i < facts->found_count; i++)
        if (!is_localhost(&hosts->entries[facts->found[i].host]))
            note_address(identity, facts->found[i].host, &facts->found[i].address);
    for (int i = 0; i < hosts->count; i++)
        if (identity->here[i] == MAYBE) identity->here[i] = identity->known[i] ? DIFFERENT : SAME;
}

static void unite_by_address(struct identity *identity)
{
    qsort(identity->addresses, (size_t)identity->address_count, sizeof *identity->addresses, by_address);
    for (int i = 1; i < identity->address_count; i++)
        if (!by_address(&identity->addresses[i - 1], &identity->addresses[i]))
            unite(identity, identity->addresses[i - 1].host, identity->addresses[i].host);
}

/* A short name and the only long one that begins with it, unless both have addresses: those have been compared. */
static void unite_by_name(struct identity *identity, const int *order)
{
    const struct hosts_entry *entries = identity->hosts->entries;
    for (int i = 0; i < identity->hosts->count; i++) {
        size_t length = strlen(entries[order[i]].key);
        int found = -1, count = 0;
        if (entries[order[i]].address || strchr(entries[order[i]].key, '.')) continue;
        for (int j = i + 1; j < identity->hosts->count && count < 2; j++) {
            const struct hosts_entry *other = &entries[order[j]];
            if (strncmp(other->key, entries[order[i]].key, length) || other->key[length] > '.') break;
            if (other->key[length] != '.' || other->address) continue;
            found = order[j];
            count++;
        }
        if (count == 1 && !(identity->known[order[i]] && identity->known[found])) unite(identity, order[i], found);
    }
}

static void unite_here(struct identity *identity)
{
    int first = -1;
    for (int i = 0; i < identity->hosts->count; i++) {
        if (identity->here[i] != SAME) continue;
        if (first < 0) first = i;
        unite(identity, first, i);
    }
}

static int apply(struct identity *identity)
{
    struct hosts_entry *entries = identity->hosts->entries;
    int code = NCCLX_SUCCESS;
    for (int i = 0; i < identity->hosts->count && !code; i++) {
        int leader = find_leader(identity, i);
        if (identity->here[i] == SAME) entries[leader].local = true;
        if (leader != i) code = hosts_merge(&entries[leader], &entries[i]);
    }
    hosts_compact(identity->hosts);
    return code;
}

int hosts_identify(struct hosts *hosts, const struct hosts_facts *facts)
{
    size_t count = (size_t)hosts->count;
    for (int i = 0; i < hosts->count && facts->names_only; i++)
        hosts->entries[i].local = compare_with_own(&hosts->entries[i], facts->own_name) != DIFFERENT;
    if (facts->names_only) return NCCLX_SUCCESS;
    struct identity identity = {.hosts = hosts, .facts = facts};
    int *order = hosts_sort(hosts), code;
    identity.leader = base_calloc(AREA_LAUNCHER, count, sizeof *identity.leader);
    identity.known = base_calloc(AREA_LAUNCHER, count, sizeof *identity.known);
    identity.here = base_calloc(AREA_LAUNCHER, count, sizeof *identity.here);
    identity.addresses = base_calloc(AREA_LAUNCHER, count + (size_t)facts->found_count, sizeof *identity.addresses);
    if (!order || !identity.leader || !identity.known || !identity.here || !identity.addresses) {
        code = base_error(NCCLX_ERR_NO_MEM, "memory is short for the list of hosts");
    } else {
        gather(&identity);
        unite_by_address(&identity);
        unite_by_name(&identity, order);
        unite_here(&identity);
        code = apply(&identity);
    }
    base_free(AREA_LAUNCHER, order);
    base_free(AREA_LAUNCHER, identity.leader);
    base_free(AREA_LAUNCHER, identity.known);
    base_free(AREA_LAUNCHER, identity.here);
    base_free(AREA_LAUNCHER, identity.addresses);
    return code;
}
