/* tree_wire.c - what places of the tree say to each other, as bytes. Every length and number from a neighbour is
 * checked here against its limits; whether it makes sense for the link it came over is checked by who reads it. */
#include "config.h"

#include "launcher/tree_private.h"

#include <string.h>

#define LEAST_ENTRY_BYTES 16 /* position, kind, two lengths */
#define MOST_NODES_BYTES (2 * TREE_FRAME_BYTES + TREE_MAX_DESCRIPTION)

static int malformed(const struct frame *frame)
{
    return base_error(NCCLX_ERR_TRANSPORT, "a frame of type %u and %zu bytes between daemons is malformed", frame->type,
                      frame->bytes);
}

bool tree_is_frame(uint8_t type)
{
    return type >= TREE_FRAME_HELLO && type < TREE_FRAME_LIMIT;
}

/* A text of 1 to `most` characters; null when it is not. */
static const char *get_name(struct frame_reader *reader, size_t most)
{
    const char *name = frame_get_text(reader);
    return name && *name && strlen(name) <= most ? name : NULL;
}

static int get_below(struct frame_reader *reader, uint32_t end)
{
    uint32_t value = frame_get_u32(reader);
    if (value >= end) reader->failed = true;
    return reader->failed ? 0 : (int)value;
}

void tree_write_hello(struct frame_writer *writer, const struct tree_hello *hello)
{
    frame_begin(writer, TREE_FRAME_HELLO);
    frame_put_u64(writer, hello->job);
    frame_put_text(writer, hello->version);
    frame_put_u32(writer, (uint32_t)hello->count);
    frame_put_u32(writer, (uint32_t)hello->radix);
    frame_put_u32(writer, (uint32_t)hello->position);
}

int tree_read_hello(const struct frame *frame, struct tree_hello *hello)
{
    struct frame_reader reader;
    if (frame->type != TREE_FRAME_HELLO) return malformed(frame);
    frame_read(&reader, frame);
    hello->job = frame_get_u64(&reader);
    hello->version = get_name(&reader, TREE_MAX_NAME);
    hello->count = get_below(&reader, TREE_MAX_COUNT + 1);
    hello->radix = get_below(&reader, TREE_MAX_RADIX + 1);
    hello->position = get_below(&reader, TREE_MAX_COUNT);
    return frame_read_all(&reader) && hello->version ? NCCLX_SUCCESS : malformed(frame);
}

void tree_write_lost(struct frame_writer *writer, const struct tree_failure *failure)
{
    frame_begin(writer, TREE_FRAME_LOST);
    frame_put_u32(writer, (uint32_t)failure->position);
    frame_put_u8(writer, (uint8_t)failure->cause);
    frame_put_u8(writer, (uint8_t)failure->stage);
    frame_put_u32(writer, (uint32_t)failure->status);
    frame_put_text(writer, failure->text);
}

int tree_read_lost(const struct frame *frame, struct tree_failure *failure)
{
    struct frame_reader reader;
    frame_read(&reader, frame);
    failure->position = get_below(&reader, TREE_MAX_COUNT);
    uint8_t cause = frame_get_u8(&reader), stage = frame_get_u8(&reader);
    failure->status = (int)frame_get_u32(&reader);
    failure->text = frame_get_text(&reader);
    if (!frame_read_all(&reader) || cause == TREE_CAUSE_NONE || cause >= TREE_CAUSE_COUNT || stage > TREE_STAGE_GONE)
        return malformed(frame);
    if (failure->text && strlen(failure->text) > TREE_MAX_TEXT) return malformed(frame);
    failure->cause = (enum tree_cause)cause;
    failure->stage = (enum tree_stage)stage;
    return NCCLX_SUCCESS;
}

int tree_read_end(const struct frame *frame, bool *at_once)
{
    struct frame_reader reader;
    frame_read(&reader, frame);
    uint8_t value = frame_get_u8(&reader);
    *at_once = value == 1;
    return frame_read_all(&reader) && value <= 1 ? NCCLX_SUCCESS : malformed(frame);
}

/* The kind of this number; the table was checked. */
static const void *find_kind(const struct tree_walk *walk, uint32_t number, size_t *bytes)
{
    struct frame_reader reader = {.next = walk->kinds, .end = walk->reader.end};
    const void *kind = NULL;
    for (uint32_t i = 0; i <= number; i++) kind = frame_get_bytes(&reader, bytes);
    return kind;
}

static bool get_entry(struct tree_walk *walk, struct tree_entry *entry, uint32_t *kind)
{
    entry->position = get_below(&walk->reader, TREE_MAX_COUNT);
    *kind = (uint32_t)get_below(&walk->reader, walk->kind_count);
    entry->node = get_name(&walk->reader, TREE_MAX_NAME);
    entry->contact = frame_get_bytes(&walk->reader, &entry->contact_bytes);
    return !walk->reader.failed && entry->node && entry->contact_bytes <= TREE_MAX_CONTACT;
}

int tree_walk_open(const struct frame *frame, struct tree_walk *walk)
{
    struct frame_reader *reader = &walk->reader;
    struct tree_entry entry;
    uint32_t kind;
    frame_read(reader, frame);
    uint8_t last = frame_get_u8(reader);
    walk->last = last == 1;
    walk->kind_count = frame_get_count(reader, 4);
    walk->kinds = reader->next;
    for (uint32_t i = 0; i < walk->kind_count; i++) {
        size_t bytes;
        frame_get_bytes(reader, &bytes);
        if (bytes > TREE_MAX_DESCRIPTION) reader->failed = true;
    }
    walk->left = frame_get_count(reader, LEAST_ENTRY_BYTES);
    struct tree_walk begin = *walk;
    if (reader->failed || last > 1 || frame->bytes > MOST_NODES_BYTES) return malformed(frame);
    for (uint32_t i = 0; i < walk->left; i++)
        if (!get_entry(walk, &entry, &kind)) return malformed(frame);
    if (!frame_read_all(reader)) return malformed(frame);
    *walk = begin;
    return NCCLX_SUCCESS;
}

bool tree_walk_next(struct tree_walk *walk, struct tree_entry *entry)
{
    uint32_t kind;
    if (!walk->left) return false;
    walk->left--;
    if (!get_entry(walk, entry, &kind)) return false;
    entry->description = find_kind(walk, kind, &entry->description_bytes);
    return true;
}
