/* window.c - the window protocol in virtual time: one origin, one target, random operations and delays.
 *
 * Holds at every moment: a signal is raised when the target's memory is exactly what the origin had put before it; no more than
 * WINDOW_DEPTH messages are on their way. After a flush: memory is complete, gets hold what was there. After a local flush: put
 * buffers are overwritten, which must not reach the target.
 */
#include "osc/window_core.h"

#include "tests/sim/engine.h"

#include <inttypes.h>
#include <string.h>

#define MEMORY 2048
#define SLOTS 4
#define PIECE 48 /* at most; at least two elements */
#define ELEMENT 8
#define STEPS 60
#define WINDOW_ID UINT64_C(0x1234)

struct record { /* of an operation, until it is flushed */
    struct record *next;
    struct window_operation operation;
    char buffer[MEMORY], expected[MEMORY], operands[MEMORY];
};

struct stage {
    struct sim *sim;
    struct sim_channel *to_target, *to_origin;
    struct window_origin origin;
    struct window_target target;
    bool holds_lock; /* as the origin sees it */
    char memory[MEMORY], model[MEMORY];
    uint64_t slots[SLOTS], model_slots[SLOTS];
    uint64_t signals_made, signals_seen, hash[2 * STEPS];
    struct record *records;
    int steps;
    uint64_t goal; /* of the flush */
    enum { RUNNING, FLUSHING, FLUSHING_HERE, LOCKING, FINISHED } state;
};

static uint64_t hash_of(const char *bytes, size_t count)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (size_t i = 0; i < count; i++) hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
    return hash;
}

struct packet {
    struct window_header header;
    char data[PIECE];
};

/* Additions to 8-byte elements stand for all operations. */
static void add(char *memory, const char *operands, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i += ELEMENT) {
        uint64_t element, operand;
        memcpy(&element, memory + i, ELEMENT);
        memcpy(&operand, operands + i, ELEMENT);
        element += operand;
        memcpy(memory + i, &element, ELEMENT);
    }
}

static void transmit(struct sim_channel *channel, const struct window_header *header, const void *data, size_t bytes)
{
    struct packet packet = {.header = *header};
    if (bytes) memcpy(packet.data, data, bytes);
    sim_channel_send(channel, &packet, sizeof packet.header + bytes);
}

static void pump(struct stage *stage)
{
    struct window_message message;
    while (window_origin_next(&stage->origin, &message)) {
        transmit(stage->to_target, &message.header, message.data, (size_t)message.bytes);
        if (stage->origin.last - stage->origin.acked > WINDOW_DEPTH) sim_fail(stage->sim, "more messages on their way than allowed");
    }
}

/* ---- Origin's program ---------------------------------------------------------------------------------------- */

static void step(struct sim *sim, void *context, uint64_t a, uint64_t b);

static void flush_is_done(struct stage *stage)
{
    if (stage->state == FLUSHING && memcmp(stage->memory, stage->model, MEMORY))
        sim_fail(stage->sim, "flush returned before the puts were in memory");
    for (struct record *record = stage->records; record; record = record->next) {
        struct window_operation *operation = &record->operation;
        if (operation->to && memcmp(record->buffer, record->expected, (size_t)operation->bytes))
            sim_fail(stage->sim, "a get of %" PRIu64 " bytes is wrong after its flush", operation->bytes);
        memset(record->buffer, 0xee, sizeof record->buffer);
    }
    stage->records = NULL;
    stage->state = stage->steps > STEPS ? FINISHED : RUNNING;
    if (stage->state == RUNNING) sim_after(stage->sim, sim_random(stage->sim, 3000), step, stage, 0, 0);
}

static void check_flush(struct stage *stage)
{
    if (stage->state == FLUSHING && window_origin_reached(&stage->origin, stage->goal)) flush_is_done(stage);
    else if (stage->state == FLUSHING_HERE && window_origin_reached_here(&stage->origin, stage->goal)) flush_is_done(stage);
    else if (stage->state == LOCKING && stage->origin.locked) {
        if (!stage->target.locked) sim_fail(stage->sim, "the origin believes to hold a lock that it does not hold");
        stage->holds_lock = true;
        stage->state = RUNNING;
        sim_after(stage->sim, sim_random(stage->sim, 200), step, stage, 0, 0);
    }
}

static void fill(struct stage *stage, struct record *record)
{
    struct window_operation *operation = &record->operation;
    struct sim *sim = stage->sim;
    bool atomic = operation->kind == WINDOW_ACCUMULATE || operation->kind == WINDOW_FETCH;
    operation->offset = sim_random(sim, MEMORY - ELEMENT + 1);
    operation->bytes = 1 + sim_random(sim, sim_chance(sim, 1, 4) ? MEMORY - operation->offset : PIECE);
    if (operation->bytes > MEMORY - operation->offset) operation->bytes = MEMORY - operation->offset;
    if (atomic) {
        operation->bytes = operation->bytes < ELEMENT ? ELEMENT : operation->bytes - operation->bytes % ELEMENT;
        operation->element = ELEMENT;
        operation->operands = 1;
    }
    char *place = stage->model + operation->offset;
    if (operation->kind == WINDOW_GET || operation->kind == WINDOW_FETCH) {
        memcpy(record->expected, place, (size_t)operation->bytes);
        operation->to = record->buffer;
    }
    if (operation->kind == WINDOW_GET) return;
    char *from = operation->kind == WINDOW_FETCH ? record->operands : record->buffer;
    for (uint64_t i = 0; i < operation->bytes; i++) from[i] = (char)sim_random(sim, 256);
    operation->from = from;
    if (atomic) add(place, from, operation->bytes);
    else memcpy(place, from, (size_t)operation->bytes);
}

static void add_signal(struct stage *stage, struct window_operation *operation)
{
    struct sim *sim = stage->sim;
    operation->has_signal = true;
    operation->slot = sim_random(sim, SLOTS);
    operation->value = sim_random(sim, 1000);
    operation->signal_op = sim_chance(sim, 3, 4) ? NCCLX_SIGNAL_ADD : NCCLX_SIGNAL_SET;
    if (operation->signal_op == NCCLX_SIGNAL_ADD) stage->model_slots[operation->slot] += operation->value;
    else stage->model_slots[operation->slot] = operation->value;
    stage->hash[stage->signals_made++] = hash_of(stage->model, MEMORY);
}

static void operate(struct stage *stage)
{
    struct record *record = sim_alloc(stage->sim, sizeof *record);
    record->next = stage->records;
    stage->records = record;
    struct window_operation *operation = &record->operation;
    static const enum window_kind kinds[] = {WINDOW_PUT, WINDOW_GET, WINDOW_SIGNAL, WINDOW_ACCUMULATE, WINDOW_FETCH};
    operation->kind = kinds[sim_random(stage->sim, 5)];
    if (operation->kind != WINDOW_SIGNAL) fill(stage, record);
    if (operation->kind == WINDOW_SIGNAL || (operation->kind == WINDOW_PUT && sim_chance(stage->sim, 1, 2)))
        add_signal(stage, operation);
    window_origin_submit(&stage->origin, operation);
}

/* Takes the lock, or gives it up. */
static void lock(struct stage *stage)
{
    struct window_operation *operation = sim_alloc(stage->sim, sizeof *operation);
    operation->kind = stage->holds_lock ? WINDOW_UNLOCK : WINDOW_LOCK;
    operation->op = WINDOW_EXCLUSIVE;
    if (stage->holds_lock) stage->holds_lock = false;
    else stage->state = LOCKING;
    window_origin_submit(&stage->origin, operation);
}

static void grant(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct stage *stage = context;
    struct window_header reply = {.version = WINDOW_VERSION, .window = WINDOW_ID, .kind = WINDOW_LOCKED};
    (void)sim, (void)a, (void)b;
    reply.sequence = window_target_grant(&stage->target);
    transmit(stage->to_origin, &reply, NULL, 0);
}

/* Another thread signals while this one flushes, and does not flush itself. */
static void intrude(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct stage *stage = context;
    (void)a, (void)b;
    if (stage->state != FLUSHING) return;
    struct window_operation *operation = sim_alloc(sim, sizeof *operation);
    operation->kind = WINDOW_SIGNAL;
    add_signal(stage, operation);
    window_origin_submit(&stage->origin, operation);
    pump(stage);
}

static void step(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct stage *stage = context;
    (void)a, (void)b;
    bool last = ++stage->steps > STEPS;
    if (last || sim_chance(sim, 1, 12)) {
        stage->state = FLUSHING;
        stage->goal = window_origin_flush(&stage->origin);
        if (sim_chance(sim, 1, 2)) sim_after(sim, sim_random(sim, 20000), intrude, stage, 0, 0);
    } else if (sim_chance(sim, 1, 12)) {
        stage->state = FLUSHING_HERE;
        stage->goal = window_origin_goal(&stage->origin);
    } else if (sim_chance(sim, 1, 12)) {
        lock(stage);
        if (stage->state == RUNNING) sim_after(sim, sim_random(sim, 200), step, stage, 0, 0);
    } else {
        operate(stage);
        sim_after(sim, sim_random(sim, 200), step, stage, 0, 0);
    }
    pump(stage);
    check_flush(stage);
}

/* ---- Deliveries ---------------------------------------------------------------------------------------------- */

static void raise_signal(struct stage *stage, const struct window_header *header)
{
    if (header->signal_op == NCCLX_SIGNAL_ADD) stage->slots[header->slot] += header->value;
    else stage->slots[header->slot] = header->value;
    if (stage->signals_seen >= stage->signals_made || stage->hash[stage->signals_seen] != hash_of(stage->memory, MEMORY))
        sim_fail(stage->sim, "signal %" PRIu64 " came when its data was not there", stage->signals_seen);
    stage->signals_seen++;
}

static void send_data(struct stage *stage, const struct window_header *request)
{
    struct window_header reply = *request;
    reply.kind = WINDOW_DATA;
    for (uint64_t done = 0; done < request->bytes; done += reply.bytes) { /* in parts, to exercise them */
        uint64_t left = request->bytes - done;
        reply.offset = done;
        reply.bytes = 1 + sim_random(stage->sim, left);
        transmit(stage->to_origin, &reply, stage->memory + request->offset + done, (size_t)reply.bytes);
    }
}

static void at_target(struct sim *sim, void *context, const void *data, size_t bytes)
{
    struct stage *stage = context;
    const struct packet *packet = data;
    const struct window_limits limits = {.bytes = MEMORY, .slots = SLOTS, .piece = UINT64_MAX, .element = ELEMENT, .operands = 1};
    struct window_request request;
    size_t length = bytes - sizeof packet->header;
    if (window_target_receive(&stage->target, &packet->header, length, &limits, &request)) {
        sim_fail(sim, "the target refuses message %" PRIu64, packet->header.sequence);
        return;
    }
    if (request.write) memcpy(stage->memory + packet->header.offset, packet->data, length);
    if (request.signal) raise_signal(stage, &packet->header);
    if (request.read) send_data(stage, &packet->header);
    if (request.combine) add(stage->memory + packet->header.offset, packet->data, length);
    if (request.lock) sim_after(sim, sim_random(sim, 5000), grant, stage, 0, 0);
    if (request.acknowledge) {
        struct window_header reply = packet->header;
        reply.kind = WINDOW_ACK;
        transmit(stage->to_origin, &reply, NULL, 0);
    }
}

static void at_origin(struct sim *sim, void *context, const void *data, size_t bytes)
{
    struct stage *stage = context;
    const struct packet *packet = data;
    size_t length = bytes - sizeof packet->header;
    char *to;
    if (window_origin_receive(&stage->origin, &packet->header, length, &to)) {
        sim_fail(sim, "the origin refuses an answer to message %" PRIu64, packet->header.sequence);
        return;
    }
    if (to) memcpy(to, packet->data, length);
    pump(stage);
    check_flush(stage);
}

/* ---- Scenario ------------------------------------------------------------------------------------------------ */

static void start(struct sim *sim)
{
    struct stage *stage = sim_alloc(sim, sizeof *stage);
    stage->sim = sim;
    stage->to_target = sim_channel_create(sim, 100, 100 + sim_random(sim, 20000), at_target, stage);
    stage->to_origin = sim_channel_create(sim, 100, 100 + sim_random(sim, 20000), at_origin, stage);
    window_origin_init(&stage->origin, WINDOW_ID, 0, 2 * ELEMENT + sim_random(sim, PIECE - 2 * ELEMENT + 1));
    sim_set_user(sim, stage);
    sim_after(sim, 0, step, stage, 0, 0);
}

static void finish(struct sim *sim)
{
    struct stage *stage = sim_user(sim);
    if (stage->state != FINISHED) sim_fail(sim, "a flush never returned, after %d steps", stage->steps);
    if (memcmp(stage->slots, stage->model_slots, sizeof stage->slots)) sim_fail(sim, "slots hold wrong values");
    if (stage->signals_seen != stage->signals_made) sim_fail(sim, "signals were lost or doubled");
}

int main(int argc, char **argv)
{
    static const enum planted_bug bugs[] = {BUG_SIGNAL_EARLY, BUG_FLUSH_FORGETS_QUEUE,
                                             BUG_FLUSH_WAITS_FOR_LATER, BUG_ACKNOWLEDGEMENT_NOT_ASKED,
                                             BUG_ELEMENT_CUT, BUG_GRANT_KEPT, BUG_NONE};
    static const struct sim_scenario scenario = {
        .name = "window messages", .start = start, .finish = finish, .seeds = 1000, .bugs = bugs};
    return sim_main(argc, argv, &scenario, 1);
}
