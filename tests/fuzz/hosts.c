/* hosts.c - a hostfile, a list of --host and an allocation of Slurm's: the input is each of them, and the second half of
 * it picks hosts of the first. */
#include "launcher/hostfile.h"
#include "launcher/hosts.h"
#include "runtime/base/base.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

const char fuzz_name[] = "hosts";

/* What every list that was accepted must be. */
static void check(const struct hosts *hosts)
{
    for (int i = 0; i < hosts->count; i++) {
        const struct hosts_entry *entry = &hosts->entries[i];
        if (entry->excluded || !entry->name[0] || entry->name[0] == '-' || !entry->key[0]) abort();
        if (entry->slots < 0 || entry->slots > HOSTS_MAX_SLOTS || entry->gpus < -1 || entry->gpus > HOSTS_MAX_GPUS) abort();
        if (entry->user && (!entry->user[0] || entry->user[0] == '-')) abort();
        if (strpbrk(entry->name, " \t\r\n;&|<>()[]`'\"")) abort();
    }
    int *order = hosts_sort(hosts);
    for (int i = 1; order && i < hosts->count; i++) /* each once */
        if (!strcmp(hosts->entries[order[i - 1]].key, hosts->entries[order[i]].key)) abort();
    base_free(AREA_LAUNCHER, order);
}

static void accept(int code, struct hosts *hosts)
{
    struct hosts_address own;
    struct hosts_facts facts = {.own_name = "node1.x", .own = &own, .own_count = 1};
    if (code && !*base_error_detail()) abort(); /* a refusal says why */
    if (!code) {
        check(hosts);
        hosts_read_address("10.0.0.1", &own);
        hosts_want_lookup(hosts, &facts);
        if (!hosts_identify(hosts, &facts)) check(hosts);
    }
    hosts_release(hosts);
    base_error_clear();
}

static void read_file(const char *text, size_t bytes)
{
    struct hosts hosts = {.count = 0};
    int code = hostfile_parse(&hosts, "f", text, bytes);
    accept(code ? code : hosts_finish(&hosts, "f"), &hosts);
}

static void read_list(const char *text)
{
    struct hosts hosts = {.count = 0};
    int code = hosts_parse(&hosts, "h", text);
    accept(code ? code : hosts_finish(&hosts, "h"), &hosts);
}

static void pick(const char *list, const char *wanted)
{
    struct hosts hosts = {.count = 0}, picked = {.count = 0};
    if (!hosts_parse(&hosts, "f", list) && !hosts_finish(&hosts, "f") && !hosts_parse(&picked, "h", wanted))
        accept(hosts_restrict(&hosts, "f", &picked, "h"), &hosts);
    hosts_release(&hosts);
    hosts_release(&picked);
}

static void read_slurm(const char *nodes, const char *slots)
{
    struct hosts hosts = {.count = 0};
    int code = hosts_parse_slurm(&hosts, nodes, slots, "2(x4)");
    accept(code ? code : hosts_finish(&hosts, "s"), &hosts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1);
    if (!text) return 0;
    memcpy(text, data, bytes);
    text[bytes] = 0;
    read_file(text, bytes);
    read_list(text);
    char *rest = text, *first = strsep(&rest, "\n");
    pick(first, rest ? rest : "node1");
    read_slurm(first, rest);
    free(text);
    return 0;
}
