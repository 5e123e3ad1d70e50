/* frame.h - the bytes between ncclxrun and ncclxd: frames of bounded length with a version, and the writer and reader
 * of what is in them.
 *
 * A frame is 8 bytes of header (magic 'N' 'X', version, type, payload length as 32 bits little endian) and its payload.
 * Pure: no socket, no clock. Every count and length that comes from the other side is checked here, so that the code
 * above reads fields in peace and asks once at the end. */
#ifndef LAUNCHER_FRAME_H
#define LAUNCHER_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_VERSION 1
#define FRAME_HEADER_BYTES 8
#define FRAME_MAX_PAYLOAD (UINT32_C(64) << 20) /* a launch order holds the environment and one entry a rank */

struct frame {
    uint8_t type;
    const unsigned char *payload;
    size_t bytes;
    size_t total; /* header and payload: what to drop from the stream afterwards; 0: not complete yet */
};

/* Looks at the front of a stream. NCCLX_SUCCESS with total 0: more is needed. NCCLX_ERR_TRANSPORT: not ours, or another
 * version. */
int frame_parse(const void *data, size_t bytes, struct frame *frame);
/* How many bytes of the stream frame_parse needs at least to get on; 0 on a bad header. */
size_t frame_wanted(const void *data, size_t bytes);

/* Writes fields; memory that runs short is remembered and reported by frame_finish. */
struct frame_writer {
    unsigned char *data;
    size_t used, room;
    bool failed;
};

void frame_begin(struct frame_writer *writer, uint8_t type);
void frame_put_u8(struct frame_writer *writer, uint8_t value);
void frame_put_u32(struct frame_writer *writer, uint32_t value);
void frame_put_u64(struct frame_writer *writer, uint64_t value);
/* Bytes whose number the reader knows, or fields that were written before. */
void frame_put_raw(struct frame_writer *writer, const void *data, size_t bytes);
/* Their number, then the bytes. */
void frame_put_bytes(struct frame_writer *writer, const void *data, size_t bytes);
/* Without their length: the last field, or bytes that are a payload already. */
void frame_put_raw(struct frame_writer *writer, const void *data, size_t bytes);
/* Null is sent as such. */
void frame_put_text(struct frame_writer *writer, const char *text);
/* Negative count: up to the null that ends them. None may be null. */
void frame_put_texts(struct frame_writer *writer, const char *const *texts, int count);
/* Fills the length in. NCCLX_ERR_NO_MEM or NCCLX_ERR_LIMIT; data and used are then the frame. */
int frame_finish(struct frame_writer *writer);
void frame_release(struct frame_writer *writer);

/* Reads fields; after the first that does not fit every later one is 0 or null, and failed is set. */
struct frame_reader {
    const unsigned char *next, *end;
    bool failed;
};

void frame_read(struct frame_reader *reader, const struct frame *frame);
uint8_t frame_get_u8(struct frame_reader *reader);
uint32_t frame_get_u32(struct frame_reader *reader);
uint64_t frame_get_u64(struct frame_reader *reader);
/* Points into the frame. */
const void *frame_get_bytes(struct frame_reader *reader, size_t *bytes);
/* Points into the frame, ends with a zero byte and holds no other; null when null was sent. */
const char *frame_get_text(struct frame_reader *reader);
/* An array of texts that ends with null, to be freed with base_free(AREA_LAUNCHER, ...); they point into the frame and
 * are the caller's to change if the frame is. Null when something is wrong or memory is short. */
char **frame_get_texts(struct frame_reader *reader, int *count);
/* A count of entries that take at least `least` bytes each, so that no count asks for more memory than the frame is
 * worth. */
uint32_t frame_get_count(struct frame_reader *reader, size_t least);
/* True when nothing failed and nothing is left over. */
bool frame_read_all(const struct frame_reader *reader);

#endif
