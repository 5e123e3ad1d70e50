/* tree_batch.c - the frame of nodes that gathers: each different description once, and the nodes that have it. */
#include "config.h"

#include "launcher/tree_private.h"

#include <string.h>

#define FIXED_BYTES (FRAME_HEADER_BYTES + 9) /* last, two counts */

static uint32_t find_kind(const struct tree_batch *batch, const struct tree_entry *entry)
{
    uint32_t kind = 0;
    while (
        kind < batch->kind_count &&
        (batch->kinds[kind].size != entry->description_bytes ||
         (entry->description_bytes && memcmp(batch->kinds[kind].bytes, entry->description, entry->description_bytes))))
        kind++;
    return kind;
}

size_t tree_batch_weight(const struct tree_batch *batch, const struct tree_entry *entry)
{
    size_t weight = 4 + 4 + 4 + strlen(entry->node) + 1 + 4 + entry->contact_bytes;
    return find_kind(batch, entry) < batch->kind_count ? weight : weight + 4 + entry->description_bytes;
}

static bool add_kind(struct tree_batch *batch, const struct tree_entry *entry)
{
    if (batch->kind_count == batch->kind_room) {
        uint32_t room = batch->kind_room ? 2 * batch->kind_room : 4;
        struct tree_kind *kinds = base_realloc(AREA_LAUNCHER, batch->kinds, room * sizeof *kinds);
        if (!kinds) return false;
        batch->kinds = kinds;
        batch->kind_room = room;
    }
    struct tree_kind *kind = &batch->kinds[batch->kind_count];
    kind->size = entry->description_bytes;
    kind->bytes = base_alloc(AREA_LAUNCHER, kind->size + 1);
    if (!kind->bytes) return false;
    if (kind->size) memcpy(kind->bytes, entry->description, kind->size);
    batch->kind_count++;
    return true;
}

bool tree_batch_add(struct tree_batch *batch, const struct tree_entry *entry)
{
    size_t weight = tree_batch_weight(batch, entry);
    uint32_t kind = find_kind(batch, entry);
    if (kind == batch->kind_count && !add_kind(batch, entry)) return false;
    if (!batch->entry_count) frame_begin(&batch->entries, TREE_FRAME_NODES);
    frame_put_u32(&batch->entries, (uint32_t)entry->position);
    frame_put_u32(&batch->entries, kind);
    frame_put_text(&batch->entries, entry->node);
    frame_put_bytes(&batch->entries, entry->contact, entry->contact_bytes);
    batch->entry_count++;
    batch->bytes += weight;
    return !batch->entries.failed;
}

void tree_batch_release(struct tree_batch *batch)
{
    for (uint32_t i = 0; i < batch->kind_count; i++) base_free(AREA_LAUNCHER, batch->kinds[i].bytes);
    base_free(AREA_LAUNCHER, batch->kinds);
    frame_release(&batch->entries);
    memset(batch, 0, sizeof *batch);
}

void tree_batch_write(struct tree_batch *batch, bool last, struct frame_writer *writer)
{
    frame_begin(writer, TREE_FRAME_NODES);
    frame_put_u8(writer, last);
    frame_put_u32(writer, batch->kind_count);
    for (uint32_t i = 0; i < batch->kind_count; i++)
        frame_put_bytes(writer, batch->kinds[i].bytes, batch->kinds[i].size);
    frame_put_u32(writer, batch->entry_count);
    if (batch->entry_count)
        frame_put_raw(writer, batch->entries.data + FRAME_HEADER_BYTES, batch->entries.used - FRAME_HEADER_BYTES);
    tree_batch_release(batch);
}
