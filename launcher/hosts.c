/* hosts.c - the list of --host. */
#include "launcher/hosts.h"

#include "runtime/base/base.h"

#include <string.h>

#define HOSTS_MAX 65536

static int bad_entry(const char *entry, size_t length, const char *why)
{
    return base_error(NCCLX_ERR_ARG, "--host: '%.*s' %s; write NAME or NAME:SLOTS", (int)(length < 100 ? length : 100),
                      entry, why);
}

static bool name_byte(char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte && strchr("-._@:%[]", byte));
}

/* Splits "name:slots". A name with more than one colon is an IPv6 address without slots, unless it stands in brackets.
 */
static int parse_entry(const char *entry, size_t length, struct hosts_entry *out)
{
    size_t name = length;
    const char *colon = memchr(entry, ':', length), *bracket = memchr(entry, ']', length);
    if (bracket && entry[0] == '[')
        name = (size_t)(bracket - entry) + 1;
    else if (colon && !memchr(colon + 1, ':', length - (size_t)(colon + 1 - entry)))
        name = (size_t)(colon - entry);
    if (name == 0 || name >= sizeof out->name || (entry[0] == '[' && !bracket))
        return bad_entry(entry, length, "has no usable name");
    for (size_t i = 0; i < name; i++)
        if (!name_byte(entry[i])) return bad_entry(entry, length, "is not a host name");
    memset(out, 0, sizeof *out);
    memcpy(out->name, entry, name);
    if (name == length) return NCCLX_SUCCESS;
    if (entry[name] != ':' || name + 1 == length) return bad_entry(entry, length, "has no number of slots");
    for (size_t i = name + 1; i < length; i++) {
        if (entry[i] < '0' || entry[i] > '9') return bad_entry(entry, length, "has a bad number of slots");
        out->slots = out->slots * 10 + (entry[i] - '0');
        if (out->slots > MAP_MAX_RANKS) return bad_entry(entry, length, "has too many slots");
    }
    return out->slots > 0 ? NCCLX_SUCCESS : bad_entry(entry, length, "has no slots");
}

static int add_entry(struct hosts_entry **entries, int *count, const struct hosts_entry *entry)
{
    for (int i = 0; i < *count; i++) {
        if (strcmp((*entries)[i].name, entry->name)) continue;
        int sum = ((*entries)[i].slots ? (*entries)[i].slots : 1) + (entry->slots ? entry->slots : 1);
        (*entries)[i].slots = sum < MAP_MAX_RANKS ? sum : MAP_MAX_RANKS;
        return NCCLX_SUCCESS;
    }
    if (*count == HOSTS_MAX) return base_error(NCCLX_ERR_ARG, "--host: more than %d hosts", HOSTS_MAX);
    struct hosts_entry *grown = base_realloc(AREA_LAUNCHER, *entries, (size_t)(*count + 1) * sizeof *grown);
    if (!grown) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the list of hosts");
    *entries = grown;
    grown[(*count)++] = *entry;
    return NCCLX_SUCCESS;
}

int hosts_parse(const char *text, struct hosts_entry **entries, int *count)
{
    int code = NCCLX_SUCCESS;
    *entries = NULL;
    *count = 0;
    for (;;) {
        struct hosts_entry entry;
        size_t length = strcspn(text, ",");
        if ((code = parse_entry(text, length, &entry)) || (code = add_entry(entries, count, &entry)) || !text[length])
            break;
        text += length + 1;
    }
    if (!code) return NCCLX_SUCCESS;
    base_free(AREA_LAUNCHER, *entries);
    *entries = NULL;
    *count = 0;
    return code;
}
