/* wire.c - encoding and decoding of messages. Every count and length from a neighbour is checked here. */
#include "config.h"

#include "bootstrap/kvx/wire.h"

#include "runtime/base/base.h"

#include <string.h>

#define MAGIC 'K'
#define FENCE_BYTES 16
#define LOST_BYTES 8
#define REQUEST_BYTES 20
#define ANSWER_BYTES 16

static unsigned char *put32(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) at[i] = (unsigned char)(value >> 8 * i);
    return at + 4;
}

static unsigned char *put64(unsigned char *at, uint64_t value)
{
    return put32(put32(at, (uint32_t)value), (uint32_t)(value >> 32));
}

static uint32_t get32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t get64(const unsigned char *at)
{
    return get32(at) | (uint64_t)get32(at + 4) << 32;
}

static bool is_fence(enum wire_type type)
{
    return type == WIRE_FENCE_UP || type == WIRE_FENCE_DOWN;
}

static size_t fixed_bytes(enum wire_type type)
{
    if (is_fence(type)) return FENCE_BYTES;
    if (type == WIRE_LOST) return LOST_BYTES;
    return type == WIRE_ANSWER ? ANSWER_BYTES : REQUEST_BYTES;
}

size_t wire_bytes(const struct wire_message *message)
{
    return WIRE_HEADER_BYTES + fixed_bytes(message->type) + message->range_count * 8 + message->key_bytes +
           message->body_bytes;
}

static unsigned char *put_failure(unsigned char *at, const struct kvx_failure *failure)
{
    return put32(put32(at, (uint32_t)failure->rank), (uint32_t)failure->daemon);
}

static unsigned char *put_fence(unsigned char *at, const struct wire_message *message)
{
    at = put_failure(put32(at, (uint32_t)message->last | message->kind << 8), &message->failure);
    at = put32(at, (uint32_t)message->range_count);
    for (size_t i = 0; i < message->range_count; i++)
        at = put32(put32(at, message->ranges[i].first), message->ranges[i].last);
    return at;
}

static unsigned char *put_request(unsigned char *at, const struct wire_message *message)
{
    at = put32(put32(at, message->subject), message->timeout_ms);
    at = put32(put32(at, message->flag), (uint32_t)message->owner);
    at = put32(at, (uint32_t)message->key_bytes);
    if (message->key_bytes) memcpy(at, message->key, message->key_bytes);
    return at + message->key_bytes;
}

void wire_encode(const struct wire_message *message, void *out)
{
    unsigned char *at = out;
    *at++ = MAGIC;
    *at++ = WIRE_VERSION;
    *at++ = (unsigned char)message->type;
    *at++ = (unsigned char)message->status;
    at = put32(at, (uint32_t)(wire_bytes(message) - WIRE_HEADER_BYTES));
    at = put64(at, message->generation);
    if (is_fence(message->type))
        at = put_fence(at, message);
    else if (message->type == WIRE_LOST)
        at = put_failure(at, &message->failure);
    else if (message->type == WIRE_ANSWER)
        at = put32(put_failure(put32(at, message->subject), &message->failure), (uint32_t)message->owner);
    else
        at = put_request(at, message);
    if (message->body_bytes) memcpy(at, message->body, message->body_bytes);
}

void wire_patch(void *message, size_t bytes, bool last)
{
    put32((unsigned char *)message + 4, (uint32_t)(bytes - WIRE_HEADER_BYTES));
    ((unsigned char *)message)[WIRE_HEADER_BYTES] = last; /* the lowest byte of the flags */
}

void wire_put_record(void *out, const struct wire_record *record)
{
    put64(put64(put32(put32(out, (uint32_t)record->daemon), record->bytes), record->offset), record->total);
}

/* -1, or what fits an int: anything else is said to be INT32_MIN, which no user of it accepts. */
static int get_number(const unsigned char *at)
{
    uint32_t value = get32(at);
    return value == UINT32_MAX ? -1 : value <= INT32_MAX ? (int)value : INT32_MIN;
}

static bool get_failure(const unsigned char *at, struct kvx_failure *failure)
{
    *failure = (struct kvx_failure){get_number(at), get_number(at + 4)};
    return failure->rank >= -1 && failure->daemon >= -1;
}

static bool get_ranges(const unsigned char *at, struct kvx_range *room, struct wire_message *message)
{
    for (size_t i = 0; i < message->range_count; i++, at += 8) {
        room[i] = (struct kvx_range){get32(at), get32(at + 4)};
        if (room[i].first > room[i].last || room[i].last > INT32_MAX) return false;
        if (i && room[i].first <= room[i - 1].last + 1) return false;
    }
    message->ranges = room;
    return message->range_count > 0;
}

bool wire_next_record(const struct wire_message *message, size_t *at, struct wire_record *record)
{
    const unsigned char *data = (const unsigned char *)message->body + *at;
    if (message->body_bytes - *at < WIRE_RECORD_BYTES) return false;
    *record = (struct wire_record){.daemon = get_number(data),
                                   .bytes = get32(data + 4),
                                   .offset = get64(data + 8),
                                   .total = get64(data + 16),
                                   .data = data + WIRE_RECORD_BYTES};
    if (record->bytes > message->body_bytes - *at - WIRE_RECORD_BYTES) return false;
    *at += WIRE_RECORD_BYTES + record->bytes;
    return true;
}

static bool check_records(const struct wire_message *message)
{
    struct wire_record record;
    size_t at = 0;
    while (wire_next_record(message, &at, &record))
        if (record.daemon < 0 || record.bytes == 0 || record.offset > record.total ||
            record.bytes > record.total - record.offset)
            return false;
    return at == message->body_bytes;
}

static bool get_fence(const unsigned char *at, size_t bytes, struct kvx_range *room, struct wire_message *message)
{
    uint32_t flags = get32(at);
    message->last = flags & 1;
    message->kind = flags >> 8;
    if (bytes > KVX_FRAME_BYTES - WIRE_HEADER_BYTES || flags & 0xfe || message->kind >= KVX_KINDS) return false;
    if (!get_failure(at + 4, &message->failure)) return false;
    message->range_count = get32(at + 12);
    if (message->range_count > KVX_MAX_RANGES || message->range_count * 8 > bytes - FENCE_BYTES) return false;
    if (!get_ranges(at + FENCE_BYTES, room, message)) return false;
    message->body = at + FENCE_BYTES + message->range_count * 8;
    message->body_bytes = bytes - FENCE_BYTES - message->range_count * 8;
    return check_records(message);
}

static bool get_request(const unsigned char *at, size_t bytes, struct wire_message *message)
{
    message->subject = get32(at);
    message->timeout_ms = get32(at + 4);
    message->flag = get32(at + 8) == 1;
    message->owner = get_number(at + 12);
    message->key_bytes = get32(at + 16);
    if (get32(at + 8) > 1 || message->key_bytes > KVX_MAX_KEY || message->key_bytes > bytes - REQUEST_BYTES)
        return false;
    message->key = (const char *)at + REQUEST_BYTES;
    if (memchr(message->key, 0, message->key_bytes)) return false;
    message->body = at + REQUEST_BYTES + message->key_bytes;
    message->body_bytes = bytes - REQUEST_BYTES - message->key_bytes;
    bool named = message->type == WIRE_PUBLISH || message->type == WIRE_LOOKUP;
    if (named && !message->key_bytes) return false;
    return message->type == WIRE_PUBLISH ? message->body_bytes <= KVX_MAX_VALUE : message->body_bytes == 0;
}

static bool get_answer(const unsigned char *at, size_t bytes, struct wire_message *message)
{
    message->subject = get32(at);
    if (!get_failure(at + 4, &message->failure)) return false;
    message->owner = get_number(at + 12);
    message->body = at + ANSWER_BYTES;
    message->body_bytes = bytes - ANSWER_BYTES;
    return message->body_bytes <= (message->status == KVX_OK ? KVX_MAX_VALUE : 0);
}

static bool get_payload(const unsigned char *at, size_t bytes, struct kvx_range *room, struct wire_message *message)
{
    if (bytes < fixed_bytes(message->type)) return false;
    switch (message->type) {
    case WIRE_FENCE_UP:
    case WIRE_FENCE_DOWN:
        return get_fence(at, bytes, room, message);
    case WIRE_LOST:
        return get_failure(at, &message->failure) && bytes == LOST_BYTES;
    case WIRE_ANSWER:
        return get_answer(at, bytes, message);
    default:
        return get_request(at, bytes, message);
    }
}

int wire_decode(const void *data, size_t bytes, struct kvx_range *room, struct wire_message *message)
{
    const unsigned char *at = data;
    *message = (struct wire_message){.failure = {-1, -1}, .owner = -1};
    if (bytes < WIRE_HEADER_BYTES || bytes > KVX_MAX_MESSAGE || at[0] != MAGIC)
        return base_error(NCCLX_ERR_TRANSPORT, "a message of %zu bytes between daemons is none of the exchange", bytes);
    if (at[1] != WIRE_VERSION)
        return base_error(NCCLX_ERR_TRANSPORT, "a daemon speaks version %d of the exchange, this one version %d", at[1],
                          WIRE_VERSION);
    bool known = at[2] >= WIRE_FENCE_UP && at[2] <= WIRE_ANSWER && at[3] < KVX_STATUS_COUNT;
    if (known) {
        message->type = (enum wire_type)at[2];
        message->status = (enum kvx_status)at[3];
        message->generation = get64(at + 8);
    }
    if (!known || get32(at + 4) != bytes - WIRE_HEADER_BYTES ||
        !get_payload(at + WIRE_HEADER_BYTES, bytes - WIRE_HEADER_BYTES, room, message))
        return base_error(NCCLX_ERR_TRANSPORT, "a message of type %d and %zu bytes between daemons is malformed", at[2],
                          bytes);
    return NCCLX_SUCCESS;
}
