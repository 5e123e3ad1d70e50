/* window_core.c - see window_core.h. */
#include "osc/window_core.h"

#include <string.h>

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void window_origin_init(struct window_origin *origin, uint64_t window, int rank, uint64_t piece)
{
    *origin = (struct window_origin){.window = window, .rank = rank, .piece = piece};
}

void window_origin_submit(struct window_origin *origin, struct window_operation *operation)
{
    operation->made = 0;
    operation->next = NULL;
    if (origin->head) origin->tail->next = operation;
    else origin->head = operation;
    origin->tail = operation;
    uint64_t pieces = operation->bytes / origin->piece + (operation->bytes % origin->piece > 0);
    origin->queued += pieces ? pieces : 1; /* a signal without data */
}

uint64_t window_origin_flush(struct window_origin *origin)
{
    uint64_t goal = window_origin_goal(origin);
    origin->flushed = PLANTED_BUG(BUG_FLUSH_FORGETS_QUEUE) ? origin->last : goal;
    return goal;
}

/* Numbers the message. Asking every half depth keeps messages flowing: when the way is full, an acknowledgement is due. */
static void number(struct window_origin *origin, struct window_header *header)
{
    header->version = WINDOW_VERSION;
    header->window = origin->window;
    header->rank = origin->rank;
    header->sequence = ++origin->last;
    bool due = origin->last - origin->asked >= WINDOW_DEPTH / 2 && !PLANTED_BUG(BUG_ACKNOWLEDGEMENT_NOT_ASKED);
    if (due || origin->last == origin->flushed || header->kind == WINDOW_FLUSH) {
        header->flags |= WINDOW_WANTS_ACK;
        origin->asked = origin->last;
    }
}

static void remember_get(struct window_origin *origin, struct window_operation *operation, uint64_t bytes)
{
    unsigned place = (origin->get_first + origin->get_count++) % WINDOW_DEPTH;
    origin->gets[place].sequence = origin->last;
    origin->gets[place].to = operation->to + operation->made;
    origin->gets[place].bytes = bytes;
    origin->gets[place].received = 0;
}

/* The next piece of the first operation. */
static void make_piece(struct window_origin *origin, struct window_message *message)
{
    struct window_operation *operation = origin->head;
    struct window_header *header = &message->header;
    uint64_t bytes = least(operation->bytes - operation->made, origin->piece);
    bool whole = operation->made + bytes == operation->bytes;

    header->kind = (uint8_t)operation->kind;
    header->offset = operation->offset + operation->made;
    header->bytes = bytes;
    if (operation->has_signal && (PLANTED_BUG(BUG_SIGNAL_EARLY) ? operation->made == 0 : whole)) {
        header->flags |= WINDOW_HAS_SIGNAL;
        header->signal_op = (uint8_t)operation->signal_op;
        header->slot = operation->slot;
        header->value = operation->value;
    }
    if (operation->kind == WINDOW_PUT) {
        message->data = operation->from + operation->made;
        message->bytes = bytes;
    }
    number(origin, header);
    origin->queued--;
    if (operation->kind == WINDOW_GET) remember_get(origin, operation, bytes);
    operation->made += bytes;
    if (!whole) return;
    message->finished = operation;
    origin->head = operation->next;
}

bool window_origin_next(struct window_origin *origin, struct window_message *message)
{
    if (origin->last - origin->acked >= WINDOW_DEPTH) return false;
    if (!origin->head && origin->flushed <= origin->asked) return false;
    *message = (struct window_message){.data = NULL};
    if (origin->head) {
        make_piece(origin, message);
    } else {
        message->header.kind = WINDOW_FLUSH;
        number(origin, &message->header);
    }
    return true;
}

static int receive_ack(struct window_origin *origin, const struct window_header *header, uint64_t bytes)
{
    if (bytes || header->sequence <= origin->acked || header->sequence > origin->asked) return NCCLX_ERR_TRANSPORT;
    /* Its data would have come before. */
    if (origin->get_count && origin->gets[origin->get_first].sequence <= header->sequence) return NCCLX_ERR_TRANSPORT;
    origin->acked = header->sequence;
    return NCCLX_SUCCESS;
}

static int receive_data(struct window_origin *origin, const struct window_header *header, uint64_t bytes, char **to)
{
    if (!origin->get_count) return NCCLX_ERR_TRANSPORT;
    __typeof__(origin->gets[0]) *get = &origin->gets[origin->get_first];
    if (header->sequence != get->sequence || header->bytes != bytes || header->offset != get->received)
        return NCCLX_ERR_TRANSPORT;
    if (bytes == 0 || bytes > get->bytes - get->received) return NCCLX_ERR_TRANSPORT;
    *to = get->to + get->received;
    get->received += bytes;
    if (get->received < get->bytes) return NCCLX_SUCCESS;
    if (origin->acked < get->sequence) origin->acked = get->sequence;
    if (origin->asked < origin->acked) origin->asked = origin->acked;
    origin->get_first = (origin->get_first + 1) % WINDOW_DEPTH;
    origin->get_count--;
    return NCCLX_SUCCESS;
}

int window_origin_receive(struct window_origin *origin, const struct window_header *header, uint64_t bytes, char **to)
{
    *to = NULL;
    if (header->kind == WINDOW_ACK) return receive_ack(origin, header, bytes);
    if (header->kind == WINDOW_DATA) return receive_data(origin, header, bytes, to);
    return NCCLX_ERR_TRANSPORT;
}

static bool signal_is_valid(const struct window_header *header, const struct window_limits *limits)
{
    if (!(header->flags & WINDOW_HAS_SIGNAL)) return header->kind != WINDOW_SIGNAL;
    if (header->kind != WINDOW_SIGNAL && header->kind != WINDOW_PUT) return false;
    return header->slot < limits->slots && (header->signal_op == NCCLX_SIGNAL_ADD || header->signal_op == NCCLX_SIGNAL_SET);
}

int window_target_receive(struct window_target *target, const struct window_header *header, uint64_t bytes,
                          const struct window_limits *limits, struct window_request *request)
{
    *request = (struct window_request){.write = false};
    if (header->version != WINDOW_VERSION || header->flags & ~(WINDOW_WANTS_ACK | WINDOW_HAS_SIGNAL)) return NCCLX_ERR_TRANSPORT;
    if (header->sequence != target->handled + 1 || !signal_is_valid(header, limits)) return NCCLX_ERR_TRANSPORT;
    switch (header->kind) {
    case WINDOW_PUT:
        if (bytes == 0 || header->bytes != bytes || !window_within(header->offset, bytes, limits->bytes)) return NCCLX_ERR_TRANSPORT;
        request->write = true;
        break;
    case WINDOW_GET:
        if (bytes || header->bytes == 0 || !window_within(header->offset, header->bytes, limits->bytes)) return NCCLX_ERR_TRANSPORT;
        request->read = true;
        break;
    case WINDOW_SIGNAL:
    case WINDOW_FLUSH:
        if (bytes || header->bytes) return NCCLX_ERR_TRANSPORT;
        break;
    default:
        return NCCLX_ERR_TRANSPORT;
    }
    target->handled = header->sequence;
    request->signal = header->flags & WINDOW_HAS_SIGNAL;
    /* The data answers a GET; a second acknowledgement of the same number would be refused. */
    request->acknowledge = header->flags & WINDOW_WANTS_ACK && !request->read;
    return NCCLX_SUCCESS;
}
