/* handles.c - growing and changing the set of live handles. */
#include "runtime/handles.h"
#include "runtime/base/base.h"

#include <string.h>

#define FIRST_PLACES_LOG2 5u

static void place(struct handle_table *table, struct handle_entry entry)
{
    size_t at = handle_place(table, entry.pointer);
    while (table->entries[at].pointer) at = (at + 1) & table->mask;
    table->entries[at] = entry;
}

int handle_reserve(struct handle_table *table)
{
    size_t places = table->entries ? table->mask + 1 : 0;
    if (2 * (table->used + 1) <= places) return NCCLX_SUCCESS;
    unsigned log2_places = places ? 64 - table->shift + 1 : FIRST_PLACES_LOG2;
    struct handle_table larger = {
        .shift = 64 - log2_places, .mask = ((size_t)1 << log2_places) - 1, .used = table->used};
    larger.entries = base_calloc(AREA_RUNTIME, larger.mask + 1, sizeof *larger.entries);
    if (!larger.entries) return base_error(NCCLX_ERR_NO_MEM, "no memory for a table of %zu handles", larger.mask + 1);
    for (size_t i = 0; i < places; i++)
        if (table->entries[i].pointer) place(&larger, table->entries[i]);
    memcpy(larger.latest, table->latest, sizeof larger.latest);
    base_free(AREA_RUNTIME, table->entries);
    *table = larger;
    return NCCLX_SUCCESS;
}

void handle_insert(struct handle_table *table, enum handle_kind kind, const void *pointer)
{
    place(table, (struct handle_entry){.pointer = pointer, .kind = kind});
    table->used++;
}

bool handle_find(struct handle_table *table, enum handle_kind kind, const void *pointer)
{
    if (!table->used || !pointer) return false;
    for (size_t at = handle_place(table, pointer); table->entries[at].pointer; at = (at + 1) & table->mask) {
        if (table->entries[at].pointer != pointer) continue;
        if (table->entries[at].kind != kind) return false;
        table->latest[kind] = pointer;
        return true;
    }
    return false;
}

void handle_remove(struct handle_table *table, const void *pointer)
{
    if (!table->used) return;
    size_t hole = handle_place(table, pointer);
    while (table->entries[hole].pointer && table->entries[hole].pointer != pointer) hole = (hole + 1) & table->mask;
    if (!table->entries[hole].pointer) return;
    if (table->latest[table->entries[hole].kind] == pointer) table->latest[table->entries[hole].kind] = NULL;
    table->used--;
    /* Entries behind the hole move into it when their own place is not between the hole and them: no probe may stop
     * early. */
    for (size_t at = (hole + 1) & table->mask; table->entries[at].pointer; at = (at + 1) & table->mask) {
        size_t home = handle_place(table, table->entries[at].pointer);
        if (((at - home) & table->mask) < ((at - hole) & table->mask)) continue;
        table->entries[hole] = table->entries[at];
        hole = at;
    }
    table->entries[hole] = (struct handle_entry){0};
}

void handle_table_release(struct handle_table *table)
{
    base_free(AREA_RUNTIME, table->entries);
    *table = (struct handle_table){0};
}
