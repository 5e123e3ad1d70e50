/* hosts.c - lists of hosts: their items, ranges in names, and making one list of them. */
#include "config.h"

#include "launcher/hosts.h"

#include "runtime/base/base.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 256 /* of a host and of a user, with the zero */
#define RANGE_DIGITS 9

/* ---- Items ------------------------------------------------------------------------------------------------------- */

struct item {
    const char *where, *text; /* as the user wrote it, for errors */
    size_t length;
    struct hosts_entry entry; /* what every name of the item gets; strings are borrowed */
};

static int bad_item(const struct item *item, const char *why)
{
    char shown[101];
    size_t length = item->length < sizeof shown - 1 ? item->length : sizeof shown - 1;
    for (size_t i = 0; i < length; i++) shown[i] = isprint((unsigned char)item->text[i]) ? item->text[i] : '?';
    shown[length] = 0;
    return base_error(NCCLX_ERR_ARG, "%s: '%s' %s; write NAME or NAME:SLOTS", item->where, shown, why);
}

static bool name_byte(char byte)
{
    return isalnum((unsigned char)byte) || byte == '-' || byte == '_' || byte == '.';
}

bool hosts_read_address(const char *name, struct hosts_address *address)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    char plain[INET6_ADDRSTRLEN];
    size_t length = strcspn(name, "%"); /* fe80::1%eth0 */
    if (length >= sizeof plain) return false;
    memcpy(plain, name, length);
    plain[length] = 0;
    if (inet_pton(AF_INET6, plain, address->bytes) == 1) return true;
    memcpy(address->bytes, mapped, sizeof mapped);
    return !name[length] && inet_pton(AF_INET, plain, address->bytes + sizeof mapped) == 1;
}

/* The normal form of a name, in `key`. */
static bool normalise(const char *name, char *key, bool *is_address)
{
    struct hosts_address address;
    size_t length = strlen(name);
    *is_address = hosts_read_address(name, &address);
    if (*is_address) {
        const char *scope = strchr(name, '%');
        bool four = !memcmp(address.bytes, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
        inet_ntop(four ? AF_INET : AF_INET6, address.bytes + (four ? 12 : 0), key, NAME_BYTES);
        if (scope) snprintf(key + strlen(key), NAME_BYTES - strlen(key), "%s", scope);
        return true;
    }
    if (length > 1 && name[length - 1] == '.') length--;
    for (size_t i = 0; i < length; i++) key[i] = (char)tolower((unsigned char)name[i]);
    key[length] = 0;
    /* The resolver takes "12" and "1.2.3" for addresses, so they are none of a host. */
    const char *label = strrchr(key, '.');
    label = label ? label + 1 : key;
    return label[strspn(label, "0123456789")] != 0;
}

static bool same_user(const char *a, const char *b)
{
    return (a && b) ? !strcmp(a, b) : a == b;
}

/* What a host that is named again has in all. */
static int add_slots(struct hosts_entry *to, const struct hosts_entry *more)
{
    int sum = (to->slots ? to->slots : 1) + (more->slots ? more->slots : 1);
    to->slots = sum < HOSTS_MAX_SLOTS ? sum : HOSTS_MAX_SLOTS;
    if (more->gpus >= 0) to->gpus = more->gpus;
    if (more->topology && !to->topology) {
        to->topology = base_strdup(AREA_LAUNCHER, more->topology);
        if (!to->topology) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the list of hosts");
    }
    if (more->user && !to->user) {
        to->user = base_strdup(AREA_LAUNCHER, more->user);
        if (!to->user) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the list of hosts");
    }
    return NCCLX_SUCCESS;
}

static void release_entry(struct hosts_entry *entry)
{
    base_free(AREA_LAUNCHER, entry->name);
    base_free(AREA_LAUNCHER, entry->key);
    base_free(AREA_LAUNCHER, entry->user);
    base_free(AREA_LAUNCHER, entry->topology);
}

/* A copy of the item's entry with this name. */
static int append(struct hosts *hosts, const struct item *item, const char *name)
{
    char key[NAME_BYTES];
    struct hosts_entry entry = item->entry;
    if (name[0] == '-' || !normalise(name, key, &entry.address)) return bad_item(item, "is not a host name");
    struct hosts_entry *last = hosts->count ? &hosts->entries[hosts->count - 1] : NULL;
    if (last && !strcmp(last->key, key) && last->excluded == entry.excluded && same_user(last->user, entry.user))
        return add_slots(last, &entry); /* batch systems write a line a slot */
    if (hosts->count == HOSTS_MAX) return base_error(NCCLX_ERR_ARG, "%s: more than %d hosts", item->where, HOSTS_MAX);
    if ((hosts->count & (hosts->count - 1)) == 0) { /* room grows in powers of two */
        size_t room = hosts->count ? 2 * (size_t)hosts->count : 1;
        struct hosts_entry *grown = base_realloc(AREA_LAUNCHER, hosts->entries, room * sizeof *grown);
        if (!grown) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the list of hosts");
        hosts->entries = grown;
    }
    entry.name = base_strdup(AREA_LAUNCHER, name);
    entry.key = base_strdup(AREA_LAUNCHER, key);
    entry.user = entry.user ? base_strdup(AREA_LAUNCHER, entry.user) : NULL;
    entry.topology = entry.topology ? base_strdup(AREA_LAUNCHER, entry.topology) : NULL;
    hosts->entries[hosts->count++] = entry;
    if (!entry.name || !entry.key || !entry.user != !item->entry.user || !entry.topology != !item->entry.topology)
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for the list of hosts");
    return NCCLX_SUCCESS;
}

/* ---- Ranges ------------------------------------------------------------------------------------------------------ */

struct names {
    struct hosts *hosts;
    const struct item *item;
    const char *end; /* of the pattern */
    int made;        /* also of doubles, as in n[1,1][1,1] */
    char name[NAME_BYTES];
};

static bool read_number(const char **at, const char *end, long *number, int *digits)
{
    *number = 0;
    for (*digits = 0; *at < end && isdigit((unsigned char)**at); (*at)++, (*digits)++) {
        if (*digits == RANGE_DIGITS) return false;
        *number = *number * 10 + (**at - '0');
    }
    return *digits > 0;
}

static int expand(struct names *names, const char *at, size_t length);

/* Each number of [01-16,20] in turn; `at` is behind the bracket that opens. Numbers are as wide as the first of their
 * range. */
static int expand_ranges(struct names *names, const char *at, size_t length)
{
    const char *close = memchr(at, ']', (size_t)(names->end - at));
    if (!close) return bad_item(names->item, "has a bracket that is not closed");
    for (;;) {
        long first, last;
        int width, digits;
        if (!read_number(&at, close, &first, &width)) return bad_item(names->item, "has a bad range");
        last = first;
        if (at < close && *at == '-') {
            at++;
            if (!read_number(&at, close, &last, &digits)) return bad_item(names->item, "has a bad range");
        }
        if (last < first) return bad_item(names->item, "has a range that ends before it begins");
        if (last - first >= HOSTS_MAX) return bad_item(names->item, "has too many names");
        for (long number = first; number <= last; number++) {
            int written = snprintf(names->name + length, NAME_BYTES - length, "%0*ld", width, number);
            if (written < 0 || length + (size_t)written >= NAME_BYTES) return bad_item(names->item, "is too long");
            int code = expand(names, close + 1, length + (size_t)written);
            if (code) return code;
        }
        if (at == close) return NCCLX_SUCCESS;
        if (*at++ != ',') return bad_item(names->item, "has a bad range");
    }
}

/* The names that begin with the first `length` bytes of names->name and go on as the pattern says. */
static int expand(struct names *names, const char *at, size_t length)
{
    for (; at < names->end; at++) {
        if (*at == '[') return expand_ranges(names, at + 1, length);
        if (!name_byte(*at)) return bad_item(names->item, "is not a host name");
        if (length + 1 == NAME_BYTES) return bad_item(names->item, "is too long");
        names->name[length++] = *at;
    }
    names->name[length] = 0;
    if (!length) return bad_item(names->item, "has no name");
    if (names->made++ == HOSTS_MAX) return bad_item(names->item, "has too many names");
    return append(names->hosts, names->item, names->name);
}

/* ---- Lists ------------------------------------------------------------------------------------------------------- */

/* ":SLOTS" up to the end. */
static int read_slots(struct item *item, const char *at, const char *end)
{
    long slots;
    int digits;
    if (item->entry.slots > 0) return bad_item(item, "has its slots given twice");
    if (++at == end) return bad_item(item, "has no number of slots");
    if (*at == '-') return bad_item(item, "has a negative number of slots");
    const char *start = at;
    if (!read_number(&at, end, &slots, &digits) && digits == 0) return bad_item(item, "has a bad number of slots");
    while (at < end && isdigit((unsigned char)*at)) at++;
    if (at != end) return bad_item(item, "has a bad number of slots");
    if (at - start > RANGE_DIGITS || slots > HOSTS_MAX_SLOTS) return bad_item(item, "has too many slots");
    if (slots == 0) return bad_item(item, "has no slots");
    item->entry.slots = (int)slots;
    return NCCLX_SUCCESS;
}

static int take_address(struct hosts *hosts, const struct item *item, const char *at, const char *end)
{
    char name[NAME_BYTES];
    struct hosts_address address;
    size_t length = (size_t)(end - at);
    if (length >= sizeof name) return bad_item(item, "is too long");
    memcpy(name, at, length);
    name[length] = 0;
    const char *scope = strchr(name, '%');
    for (const char *byte = scope ? scope + 1 : ""; *byte; byte++)
        if (!name_byte(*byte)) return bad_item(item, "is not an IPv6 address");
    if (!strchr(name, ':') || (scope && !scope[1]) || !hosts_read_address(name, &address))
        return bad_item(item, "is not an IPv6 address");
    return append(hosts, item, name);
}

static int take_user(struct item *item, char *user, const char **at, const char *end)
{
    const char *sign = memchr(*at, '@', (size_t)(end - *at));
    if (!sign) return NCCLX_SUCCESS;
    size_t length = (size_t)(sign - *at);
    if (length == 0 || length >= NAME_BYTES || **at == '-') return bad_item(item, "has no usable user");
    for (size_t i = 0; i < length; i++)
        if (!name_byte((*at)[i]) && !strchr("\\$+", (*at)[i])) return bad_item(item, "has no usable user");
    memcpy(user, *at, length);
    user[length] = 0;
    item->entry.user = user;
    *at = sign + 1;
    return NCCLX_SUCCESS;
}

int hosts_add(struct hosts *hosts, const char *where, const char *text, size_t length, int slots, int gpus,
              const char *topology)
{
    struct item item = {.where = where, .text = text, .length = length};
    char user[NAME_BYTES];
    const char *at = text, *end = text + length;
    int code;
    item.entry = (struct hosts_entry){
        .slots = slots > 0 ? slots : 0, .gpus = gpus >= 0 ? gpus : -1, .topology = (char *)(uintptr_t)topology};
    if (length == 0 || memchr(text, 0, length)) return bad_item(&item, "has no usable name");
    if (*at == '^') {
        item.entry.excluded = true;
        at++;
    }
    if ((code = take_user(&item, user, &at, end))) return code;
    if (at < end && *at == '[' &&
        memchr(at, ':', (size_t)(end - at))) { /* [IPv6] or [IPv6]:slots; ranges need a name */
        const char *close = memchr(at, ']', (size_t)(end - at));
        if (close && memchr(at, ':', (size_t)(close - at))) {
            if (close + 1 != end && close[1] != ':') return bad_item(&item, "has something behind its bracket");
            if (close + 1 != end && (code = read_slots(&item, close + 1, end))) return code;
            return take_address(hosts, &item, at + 1, close);
        }
    }
    const char *colon = memchr(at, ':', (size_t)(end - at));
    if (colon && memchr(colon + 1, ':', (size_t)(end - colon - 1))) return take_address(hosts, &item, at, end);
    if (colon && (code = read_slots(&item, colon, end))) return code;
    struct names names = {.hosts = hosts, .item = &item, .end = colon ? colon : end};
    if (item.entry.excluded && item.entry.slots) return bad_item(&item, "excludes a host and has slots");
    return expand(&names, at, 0);
}

/* Up to the next comma outside brackets. */
static size_t item_length(const char *text)
{
    size_t length = 0;
    for (bool inside = false; text[length] && (inside || text[length] != ','); length++)
        if (text[length] == '[' || text[length] == ']') inside = text[length] == '[';
    return length;
}

int hosts_parse(struct hosts *hosts, const char *where, const char *text)
{
    for (;;) {
        size_t length = item_length(text);
        int code = hosts_add(hosts, where, text, length, 0, -1, NULL);
        if (code || !text[length]) return code;
        text += length + 1;
    }
}

/* The next count of "2(x3),1": sets how often it comes. False at the end and when it is none. */
static bool next_count(const char **text, long *count, long *times)
{
    int digits;
    const char *end = *text + strlen(*text);
    *times = 1;
    if (!read_number(text, end, count, &digits) || *count < 1 || *count > HOSTS_MAX_SLOTS) return false;
    if (**text == '(') {
        if ((*text)[1] != 'x') return false;
        *text += 2;
        if (!read_number(text, end, times, &digits) || *times < 1 || **text != ')') return false;
        (*text)++;
    }
    if (**text == ',')
        (*text)++;
    else if (**text)
        return false;
    return true;
}

/* True when the counts are for just so many hosts; with `set` they are written into the list. */
static bool take_counts(struct hosts *hosts, const char *text, bool set)
{
    long count, times, at = 0;
    while (*text) {
        if (!next_count(&text, &count, &times) || times > hosts->count - at) return false;
        for (; times; times--, at++)
            if (set) hosts->entries[at].slots = (int)count;
    }
    return at == hosts->count;
}

int hosts_parse_slurm(struct hosts *hosts, const char *nodes, const char *tasks, const char *cpus)
{
    int code = hosts_parse(hosts, "SLURM_JOB_NODELIST", nodes);
    const char *slots = tasks && take_counts(hosts, tasks, false) ? tasks : cpus;
    if (!code && slots && take_counts(hosts, slots, false)) take_counts(hosts, slots, true);
    return code;
}

/* ---- One list ---------------------------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b, void *arg)
{
    const struct hosts_entry *entries = arg;
    int left = *(const int *)a, right = *(const int *)b;
    int order = strcmp(entries[left].key, entries[right].key);
    return order ? order : (left > right) - (left < right);
}

int *hosts_sort(const struct hosts *hosts)
{
    int *order = base_alloc(AREA_LAUNCHER, (size_t)hosts->count * sizeof *order);
    if (!order) {
        base_error(NCCLX_ERR_NO_MEM, "memory is short for the list of hosts");
        return NULL;
    }
    for (int i = 0; i < hosts->count; i++) order[i] = i;
    qsort_r(order, (size_t)hosts->count, sizeof *order, by_key, hosts->entries);
    return order;
}

void hosts_compact(struct hosts *hosts)
{
    int kept = 0;
    for (int i = 0; i < hosts->count; i++)
        if (hosts->entries[i].name) hosts->entries[kept++] = hosts->entries[i];
    hosts->count = kept;
}

static void drop(struct hosts_entry *entry)
{
    release_entry(entry);
    entry->name = entry->key = entry->user = entry->topology = NULL;
}

int hosts_merge(struct hosts_entry *first, struct hosts_entry *again)
{
    if (first->user && again->user && strcmp(first->user, again->user))
        return base_error(NCCLX_ERR_ARG, "host %.100s has two users, %.60s and %.60s", first->name, first->user,
                          again->user);
    int code = add_slots(first, again);
    drop(again);
    return code;
}

/* Equal keys become one entry; exclusions stay entries of their own. */
static int merge_equal(struct hosts *hosts)
{
    int code = NCCLX_SUCCESS, *order = hosts_sort(hosts);
    if (!order) return NCCLX_ERR_NO_MEM;
    for (int excluded = 0; excluded < 2; excluded++) {
        struct hosts_entry *first = NULL;
        for (int i = 0; i < hosts->count && !code; i++) {
            struct hosts_entry *entry = &hosts->entries[order[i]];
            if (!entry->key || entry->excluded != (bool)excluded) continue;
            if (first && !strcmp(first->key, entry->key))
                code = hosts_merge(first, entry);
            else
                first = entry;
        }
    }
    base_free(AREA_LAUNCHER, order);
    hosts_compact(hosts);
    return code;
}

/* The first of the sorted entries whose key is not below `key`, of which `length` bytes count. */
static int lower_bound(const struct hosts *hosts, const int *order, const char *key, size_t length)
{
    int low = 0, high = hosts->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (strncmp(hosts->entries[order[middle]].key, key, length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#define FIND_NONE (-1)
#define FIND_SEVERAL (-2)

/* The entry that is no exclusion and whose key begins with these bytes; FIND_SEVERAL when more than one does. */
static int find_only(const struct hosts *hosts, const int *order, const char *key, size_t length)
{
    int found = FIND_NONE;
    for (int i = lower_bound(hosts, order, key, length); i < hosts->count; i++) {
        const struct hosts_entry *entry = &hosts->entries[order[i]];
        if (strncmp(entry->key, key, length)) break;
        if (entry->excluded || entry->address) continue;
        if (found != FIND_NONE) return FIND_SEVERAL;
        found = order[i];
    }
    return found;
}

/* The entry that a name means: the same, or the only one that is its long or its short form. */
static int find(const struct hosts *hosts, const int *order, const struct hosts_entry *wanted)
{
    char label[NAME_BYTES + 1];
    size_t length = strlen(wanted->key);
    for (int i = lower_bound(hosts, order, wanted->key, length + 1); i < hosts->count; i++) {
        const struct hosts_entry *entry = &hosts->entries[order[i]];
        if (strcmp(entry->key, wanted->key)) break;
        if (!entry->excluded) return order[i];
    }
    if (wanted->address) return FIND_NONE;
    const char *dot = strchr(wanted->key, '.');
    if (dot) length = (size_t)(dot - wanted->key);
    memcpy(label, wanted->key, length);
    label[length] = dot ? 0 : '.'; /* of a long name the short one, of a short name all that go on with a dot */
    label[length + 1] = 0;
    return find_only(hosts, order, label, length + 1);
}

bool hosts_include(const struct hosts *hosts, const struct hosts *wanted)
{
    int *order = hosts_sort(hosts);
    bool all = order != NULL;
    for (int i = 0; i < wanted->count && all; i++)
        all = wanted->entries[i].excluded || find(hosts, order, &wanted->entries[i]) != FIND_NONE;
    base_free(AREA_LAUNCHER, order);
    return all;
}

static int several(const char *where, const struct hosts_entry *entry)
{
    return base_error(NCCLX_ERR_ARG, "%s: '%.100s' is the short name of more than one host; write the long one", where,
                      entry->name);
}

/* Takes the excluded entries of `out` (which may be `hosts` itself) and the hosts they name out. A name that is not
 * there is none. */
static int exclude(struct hosts *hosts, struct hosts *out, const char *where)
{
    int code = NCCLX_SUCCESS, *order = hosts_sort(hosts);
    bool *gone = base_calloc(AREA_LAUNCHER, (size_t)hosts->count + 1, sizeof *gone);
    if (!gone) code = base_error(NCCLX_ERR_NO_MEM, "memory is short for the list of hosts");
    if (!order) code = NCCLX_ERR_NO_MEM;
    for (int i = 0; i < out->count && !code; i++) {
        if (!out->entries[i].excluded) continue;
        int found = find(hosts, order, &out->entries[i]);
        if (found == FIND_SEVERAL) code = several(where, &out->entries[i]);
        if (found >= 0) gone[found] = true;
    }
    for (int i = 0; i < hosts->count && !code; i++)
        if (gone[i] || hosts->entries[i].excluded) drop(&hosts->entries[i]);
    base_free(AREA_LAUNCHER, gone);
    base_free(AREA_LAUNCHER, order);
    hosts_compact(hosts);
    return code;
}

int hosts_finish(struct hosts *hosts, const char *where)
{
    int code;
    if ((code = merge_equal(hosts)) || (code = exclude(hosts, hosts, where))) return code;
    return hosts->count ? NCCLX_SUCCESS : base_error(NCCLX_ERR_ARG, "%s: there is no host in it", where);
}

bool hosts_are_exclusions(const struct hosts *hosts)
{
    for (int i = 0; i < hosts->count; i++)
        if (!hosts->entries[i].excluded) return false;
    return hosts->count > 0;
}

struct choice {
    struct hosts *from, *wanted, chosen;
    const char *source, *where;
    int *order;  /* of from */
    bool *taken; /* of from */
};

/* Moves the host that the entry names to the chosen ones, with its slots. */
static int choose(struct choice *choice, const struct hosts_entry *wanted)
{
    int found = find(choice->from, choice->order, wanted);
    if (found == FIND_SEVERAL) return several(choice->where, wanted);
    if (found == FIND_NONE)
        return base_error(NCCLX_ERR_ARG, "%s: '%.100s' is not a host of %s", choice->where, wanted->name,
                          choice->source);
    struct hosts_entry *entry = &choice->from->entries[found];
    if (entry->slots && wanted->slots > entry->slots)
        return base_error(NCCLX_ERR_ARG, "%s: '%.100s' has %d slots in %s, not %d", choice->where, wanted->name,
                          entry->slots, choice->source, wanted->slots);
    if (choice->taken[found]) return NCCLX_SUCCESS; /* its long and its short name */
    if (wanted->slots) entry->slots = wanted->slots;
    choice->taken[found] = true;
    choice->chosen.entries[choice->chosen.count++] = *entry;
    return NCCLX_SUCCESS;
}

static int choose_all(struct choice *choice)
{
    int code = NCCLX_SUCCESS;
    if (!choice->order) return NCCLX_ERR_NO_MEM;
    if (!choice->chosen.entries || !choice->taken)
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for the list of hosts");
    for (int i = 0; i < choice->wanted->count && !code; i++) code = choose(choice, &choice->wanted->entries[i]);
    return code;
}

static int nothing_left(const char *source, const char *where)
{
    return base_error(NCCLX_ERR_ARG, "%s: no host of %s is left", where, source);
}

int hosts_restrict(struct hosts *hosts, const char *source, struct hosts *wanted, const char *where)
{
    int code;
    if ((code = merge_equal(wanted))) return code;
    if (hosts_are_exclusions(wanted)) {
        if ((code = exclude(hosts, wanted, where))) return code;
        return hosts->count ? NCCLX_SUCCESS : nothing_left(source, where);
    }
    if ((code = exclude(wanted, wanted, where))) return code;
    if (!wanted->count) return nothing_left(source, where);
    struct choice choice = {.from = hosts, .wanted = wanted, .source = source, .where = where};
    choice.order = hosts_sort(hosts);
    choice.taken = base_calloc(AREA_LAUNCHER, (size_t)hosts->count, sizeof *choice.taken);
    choice.chosen.entries = base_calloc(AREA_LAUNCHER, (size_t)wanted->count, sizeof *choice.chosen.entries);
    if ((code = choose_all(&choice))) {
        base_free(AREA_LAUNCHER, choice.chosen.entries);
    } else {
        for (int i = 0; i < hosts->count; i++)
            if (!choice.taken[i]) release_entry(&hosts->entries[i]);
        base_free(AREA_LAUNCHER, hosts->entries);
        *hosts = choice.chosen;
    }
    base_free(AREA_LAUNCHER, choice.order);
    base_free(AREA_LAUNCHER, choice.taken);
    return code;
}

void hosts_release(struct hosts *hosts)
{
    for (int i = 0; i < hosts->count; i++) release_entry(&hosts->entries[i]);
    base_free(AREA_LAUNCHER, hosts->entries);
    *hosts = (struct hosts){0};
}
