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

/* Bytes of the target that one message of the operation covers at most. */
static uint64_t piece_of(const struct window_origin *origin, const struct window_operation *operation)
{
    if (operation->element <= 1 || PLANTED_BUG(BUG_ELEMENT_CUT)) return origin->piece;
    return origin->piece - origin->piece % operation->element;
}

void window_origin_submit(struct window_origin *origin, struct window_operation *operation)
{
    uint64_t piece = piece_of(origin, operation);
    operation->made = 0;
    operation->next = NULL;
    if (origin->head) origin->tail->next = operation;
    else origin->head = operation;
    origin->tail = operation;
    uint64_t pieces = operation->bytes / piece + (operation->bytes % piece > 0);
    if (operation->kind == WINDOW_LOCK && !PLANTED_BUG(BUG_GRANT_KEPT)) {
        origin->lock = 0;
        origin->locked = false;
    }
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

static void add_data(const struct window_operation *operation, uint64_t bytes, struct window_message *message)
{
    const char *from = operation->from ? operation->from + operation->made : operation->small;
    bool carries = operation->kind == WINDOW_PUT || operation->kind == WINDOW_ACCUMULATE || operation->kind == WINDOW_FETCH;
    message->bytes = !carries ? 0 : operation->kind == WINDOW_FETCH ? bytes * operation->operands : bytes;
    if (message->bytes) message->data = from;
}

/* The next piece of the first operation. */
static void make_piece(struct window_origin *origin, struct window_message *message)
{
    struct window_operation *operation = origin->head;
    struct window_header *header = &message->header;
    uint64_t bytes = least(operation->bytes - operation->made, piece_of(origin, operation));
    bool whole = operation->made + bytes == operation->bytes;

    header->kind = (uint8_t)operation->kind;
    header->offset = operation->offset + operation->made;
    header->bytes = bytes;
    header->type = operation->type;
    header->op = operation->op;
    if (operation->has_signal && (PLANTED_BUG(BUG_SIGNAL_EARLY) ? operation->made == 0 : whole)) {
        header->flags |= WINDOW_HAS_SIGNAL;
        header->signal_op = (uint8_t)operation->signal_op;
        header->slot = operation->slot;
        header->value = operation->value;
    }
    add_data(operation, bytes, message);
    number(origin, header);
    origin->queued--;
    if (operation->kind == WINDOW_GET || operation->kind == WINDOW_FETCH) remember_get(origin, operation, bytes);
    if (operation->kind == WINDOW_LOCK) origin->lock = origin->last;
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

static int receive_locked(struct window_origin *origin, const struct window_header *header, uint64_t bytes)
{
    if (bytes || origin->locked || !origin->lock || header->sequence != origin->lock) return NCCLX_ERR_TRANSPORT;
    origin->locked = true;
    return NCCLX_SUCCESS;
}

int window_origin_receive(struct window_origin *origin, const struct window_header *header, uint64_t bytes, char **to)
{
    *to = NULL;
    if (header->kind == WINDOW_ACK) return receive_ack(origin, header, bytes);
    if (header->kind == WINDOW_DATA) return receive_data(origin, header, bytes, to);
    if (header->kind == WINDOW_LOCKED) return receive_locked(origin, header, bytes);
    return NCCLX_ERR_TRANSPORT;
}

static bool signal_is_valid(const struct window_header *header, const struct window_limits *limits)
{
    if (!(header->flags & WINDOW_HAS_SIGNAL)) return header->kind != WINDOW_SIGNAL;
    if (header->kind != WINDOW_SIGNAL && header->kind != WINDOW_PUT) return false;
    return header->slot < limits->slots && (header->signal_op == NCCLX_SIGNAL_ADD || header->signal_op == NCCLX_SIGNAL_SET);
}

static bool elements_are_valid(const struct window_header *header, uint64_t bytes, const struct window_limits *limits)
{
    if (!limits->element || !header->bytes || header->bytes % limits->element) return false;
    if (limits->operands > 1 && header->bytes != limits->element) return false;
    uint64_t expected;
    if (__builtin_mul_overflow(header->bytes, limits->operands, &expected) || bytes != expected) return false;
    return window_within(header->offset, header->bytes, limits->bytes);
}

static int ask(const struct window_target *target, const struct window_header *header, uint64_t bytes,
               const struct window_limits *limits, struct window_request *request)
{
    bool fits = header->bytes && window_within(header->offset, header->bytes, limits->bytes), empty = !bytes && !header->bytes;
    bool one_piece = header->bytes <= limits->piece;
    switch (header->kind) {
    case WINDOW_PUT:
        request->write = true;
        return bytes == header->bytes && fits ? NCCLX_SUCCESS : NCCLX_ERR_TRANSPORT;
    case WINDOW_GET:
        request->read = true;
        return !bytes && fits && one_piece ? NCCLX_SUCCESS : NCCLX_ERR_TRANSPORT;
    case WINDOW_FETCH:
    case WINDOW_ACCUMULATE:
        request->combine = true;
        request->read = header->kind == WINDOW_FETCH;
        return one_piece && elements_are_valid(header, bytes, limits) ? NCCLX_SUCCESS : NCCLX_ERR_TRANSPORT;
    case WINDOW_LOCK:
        request->lock = true;
        if (header->op != WINDOW_SHARED && header->op != WINDOW_EXCLUSIVE) return NCCLX_ERR_TRANSPORT;
        return empty && !target->lock ? NCCLX_SUCCESS : NCCLX_ERR_TRANSPORT;
    case WINDOW_UNLOCK:
        request->unlock = true;
        return empty && target->locked ? NCCLX_SUCCESS : NCCLX_ERR_TRANSPORT;
    case WINDOW_SIGNAL:
    case WINDOW_FLUSH:
        return empty ? NCCLX_SUCCESS : NCCLX_ERR_TRANSPORT;
    default:
        return NCCLX_ERR_TRANSPORT;
    }
}

int window_target_receive(struct window_target *target, const struct window_header *header, uint64_t bytes,
                          const struct window_limits *limits, struct window_request *request)
{
    *request = (struct window_request){.write = false};
    if (header->version != WINDOW_VERSION || header->flags & ~(WINDOW_WANTS_ACK | WINDOW_HAS_SIGNAL)) return NCCLX_ERR_TRANSPORT;
    if (header->sequence != target->handled + 1 || !signal_is_valid(header, limits)) return NCCLX_ERR_TRANSPORT;
    int error = ask(target, header, bytes, limits, request);
    if (error) return error;
    target->handled = header->sequence;
    if (request->lock) target->lock = header->sequence;
    if (request->unlock) {
        target->lock = 0;
        target->locked = false;
    }
    request->signal = header->flags & WINDOW_HAS_SIGNAL;
    /* The data answers a GET; a second acknowledgement of the same number would be refused. */
    request->acknowledge = header->flags & WINDOW_WANTS_ACK && !request->read;
    return NCCLX_SUCCESS;
}

uint64_t window_target_grant(struct window_target *target)
{
    target->locked = true;
    return target->lock;
}
