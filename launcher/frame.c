/* frame.c - frames and their fields. */
#include "launcher/frame.h"

#include "runtime/base/base.h"

#include <string.h>

static uint32_t load_u32(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static void store_u32(unsigned char *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++) bytes[i] = (unsigned char)(value >> (8 * i));
}

int frame_parse(const void *data, size_t bytes, struct frame *frame)
{
    const unsigned char *header = data;
    memset(frame, 0, sizeof *frame);
    if (bytes >= 1 && header[0] != 'N')
        return base_error(NCCLX_ERR_TRANSPORT, "the other end of the link does not speak ncclx frames");
    if (bytes >= 2 && header[1] != 'X')
        return base_error(NCCLX_ERR_TRANSPORT, "the other end of the link does not speak ncclx frames");
    if (bytes >= 3 && header[2] != FRAME_VERSION)
        return base_error(
            NCCLX_ERR_TRANSPORT,
            "the other end of the link speaks frame version %u, this one %u: install one version of ncclx", header[2],
            FRAME_VERSION);
    if (bytes < FRAME_HEADER_BYTES) return NCCLX_SUCCESS;
    uint32_t length = load_u32(header + 4);
    if (length > FRAME_MAX_PAYLOAD)
        return base_error(NCCLX_ERR_TRANSPORT, "a frame of %u bytes is announced, above the limit of %u", length,
                          FRAME_MAX_PAYLOAD);
    if (bytes - FRAME_HEADER_BYTES < length) return NCCLX_SUCCESS;
    frame->type = header[3];
    frame->payload = header + FRAME_HEADER_BYTES;
    frame->bytes = length;
    frame->total = FRAME_HEADER_BYTES + (size_t)length;
    return NCCLX_SUCCESS;
}

size_t frame_wanted(const void *data, size_t bytes)
{
    if (bytes < FRAME_HEADER_BYTES) return FRAME_HEADER_BYTES;
    uint32_t length = load_u32((const unsigned char *)data + 4);
    return length > FRAME_MAX_PAYLOAD ? 0 : FRAME_HEADER_BYTES + (size_t)length;
}

static unsigned char *grow(struct frame_writer *writer, size_t bytes)
{
    if (writer->failed) return NULL;
    if (bytes > writer->room - writer->used) {
        size_t room = writer->room ? writer->room : 256;
        while (room - writer->used < bytes) {
            if (__builtin_mul_overflow(room, (size_t)2, &room)) {
                writer->failed = true;
                return NULL;
            }
        }
        unsigned char *data = base_realloc(AREA_LAUNCHER, writer->data, room);
        if (!data) {
            writer->failed = true;
            return NULL;
        }
        writer->data = data;
        writer->room = room;
    }
    unsigned char *place = writer->data + writer->used;
    writer->used += bytes;
    return place;
}

void frame_begin(struct frame_writer *writer, uint8_t type)
{
    memset(writer, 0, sizeof *writer);
    unsigned char *header = grow(writer, FRAME_HEADER_BYTES);
    if (!header) return;
    header[0] = 'N';
    header[1] = 'X';
    header[2] = FRAME_VERSION;
    header[3] = type;
}

void frame_put_u8(struct frame_writer *writer, uint8_t value)
{
    unsigned char *place = grow(writer, 1);
    if (place) *place = value;
}

void frame_put_u32(struct frame_writer *writer, uint32_t value)
{
    unsigned char *place = grow(writer, 4);
    if (place) store_u32(place, value);
}

void frame_put_u64(struct frame_writer *writer, uint64_t value)
{
    frame_put_u32(writer, (uint32_t)value);
    frame_put_u32(writer, (uint32_t)(value >> 32));
}

void frame_put_raw(struct frame_writer *writer, const void *data, size_t bytes)
{
    unsigned char *place = bytes ? grow(writer, bytes) : NULL;
    if (place) memcpy(place, data, bytes);
}

void frame_put_bytes(struct frame_writer *writer, const void *data, size_t bytes)
{
    if (bytes > FRAME_MAX_PAYLOAD) {
        writer->failed = true;
        return;
    }
    frame_put_u32(writer, (uint32_t)bytes);
    frame_put_raw(writer, data, bytes);
}

/* A text is its length with the zero byte, then both; length 0 stands for null. */
void frame_put_text(struct frame_writer *writer, const char *text)
{
    frame_put_bytes(writer, text, text ? strlen(text) + 1 : 0);
}

void frame_put_texts(struct frame_writer *writer, const char *const *texts, int count)
{
    int known = 0;
    while (count < 0 && texts[known]) known++;
    if (count < 0) count = known;
    frame_put_u32(writer, (uint32_t)count);
    for (int i = 0; i < count; i++) frame_put_text(writer, texts[i]);
}

int frame_finish(struct frame_writer *writer)
{
    if (writer->failed)
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for a message between ncclxrun and ncclxd");
    size_t length = writer->used - FRAME_HEADER_BYTES;
    if (length > FRAME_MAX_PAYLOAD)
        return base_error(
            NCCLX_ERR_LIMIT,
            "a message between ncclxrun and ncclxd takes %zu bytes, above the limit of %u: pass fewer arguments "
            "or a smaller environment",
            length, FRAME_MAX_PAYLOAD);
    store_u32(writer->data + 4, (uint32_t)length);
    return NCCLX_SUCCESS;
}

void frame_release(struct frame_writer *writer)
{
    base_free(AREA_LAUNCHER, writer->data);
    memset(writer, 0, sizeof *writer);
}

void frame_read(struct frame_reader *reader, const struct frame *frame)
{
    reader->next = frame->payload;
    reader->end = frame->payload + frame->bytes;
    reader->failed = false;
}

static const unsigned char *take(struct frame_reader *reader, size_t bytes)
{
    if (reader->failed || bytes > (size_t)(reader->end - reader->next)) {
        reader->failed = true;
        return NULL;
    }
    const unsigned char *place = reader->next;
    reader->next += bytes;
    return place;
}

uint8_t frame_get_u8(struct frame_reader *reader)
{
    const unsigned char *place = take(reader, 1);
    return place ? *place : 0;
}

uint32_t frame_get_u32(struct frame_reader *reader)
{
    const unsigned char *place = take(reader, 4);
    return place ? load_u32(place) : 0;
}

uint64_t frame_get_u64(struct frame_reader *reader)
{
    uint64_t low = frame_get_u32(reader);
    return low | (uint64_t)frame_get_u32(reader) << 32;
}

const void *frame_get_bytes(struct frame_reader *reader, size_t *bytes)
{
    *bytes = frame_get_u32(reader);
    const void *place = take(reader, *bytes);
    if (!place) *bytes = 0;
    return place;
}

const char *frame_get_text(struct frame_reader *reader)
{
    size_t bytes;
    const char *text = frame_get_bytes(reader, &bytes);
    if (!text || bytes == 0) return NULL;
    if (memchr(text, 0, bytes) != text + bytes - 1) {
        reader->failed = true;
        return NULL;
    }
    return text;
}

char **frame_get_texts(struct frame_reader *reader, int *count)
{
    uint32_t texts = frame_get_count(reader, 4);
    char **list = base_calloc(AREA_LAUNCHER, (size_t)texts + 1, sizeof *list);
    *count = (int)texts;
    for (uint32_t i = 0; list && i < texts; i++) {
        list[i] = (char *)(uintptr_t)frame_get_text(reader); /* execve takes no const */
        if (!list[i]) reader->failed = true;
    }
    if (!list) reader->failed = true;
    return list;
}

uint32_t frame_get_count(struct frame_reader *reader, size_t least)
{
    uint32_t count = frame_get_u32(reader);
    if (reader->failed || count > (size_t)(reader->end - reader->next) / least) {
        reader->failed = true;
        return 0;
    }
    return count;
}

bool frame_read_all(const struct frame_reader *reader)
{
    return !reader->failed && reader->next == reader->end;
}
