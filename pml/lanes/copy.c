/* copy.c - the copy protocol (copy.h) over lanes: slots, and what the two ends tell each other. */
#include "pml/copy.h"
#include "pml/lanes/private.h"

struct lanes_copy {
    /* What goes to the peer. */
    struct copy_origin origin;
    struct dqplb_order order;
    char *here;            /* null: no slots yet */
    size_t chunk;          /* bytes used of each */
    size_t stride;         /* from slot to slot at the target */
    uint64_t key, address; /* there */
    bool asked;
    struct pml_request *first, *last; /* sends, in their order */
    /* What comes from it. */
    struct copy_target target;
    char *slots; /* null: it has not asked */
    size_t slot_bytes;
    uint64_t slots_key;
};

static struct lanes_copy *copy_of(struct lanes *lanes)
{
    if (!lanes->copy) lanes->copy = base_calloc(AREA_PML, 1, sizeof *lanes->copy);
    if (!lanes->copy) lanes_breach(lanes, "memory is short for the copy protocol");
    return lanes->copy;
}

static unsigned slots_wanted(const struct pml *pml)
{
    return (unsigned)pml->rt->config.value[CONFIG_COPY_SLOTS].number;
}

static size_t chunk_wanted(const struct pml *pml)
{
    return (size_t)pml->rt->config.value[CONFIG_COPY_CHUNK].number;
}

void lanes_copy_free(struct lanes *lanes)
{
    struct lanes_copy *copy = lanes->copy;
    if (!copy) return;
    if (copy->slots) lanes_range_drop(lanes->connection->pml, copy->slots_key);
    base_free(AREA_PML, copy->slots);
    base_free(AREA_PML, copy->here);
    base_free(AREA_PML, copy);
    lanes->copy = NULL;
}

uint64_t lanes_copy_bytes(const struct lanes *lanes)
{
    return base_block_bytes(lanes->copy) + base_block_bytes(lanes->copy->slots) + base_block_bytes(lanes->copy->here);
}

/* ---- At the origin ---- */

static void post_chunk(struct lanes *lanes, struct lanes_put *put, unsigned here, unsigned there)
{
    struct lanes_copy *copy = lanes->copy;
    struct pml_request *request = copy->first;
    struct protocol_send *send = &request->u.send.core;
    uint64_t offset = send->stream.moved;
    size_t bytes = protocol_stream_next(send, copy->chunk);
    char *slot = copy->here + here * copy->chunk;
    bool last = send->state == STATE_DONE;
    memcpy(slot, (const char *)request->u.send.buffer + offset, bytes);
    put->slot = here + 1;
    put->core.from = slot;
    put->core.bytes = bytes;
    put->core.to = copy->address + there * copy->stride;
    put->core.key = copy->key;
    put->core.notice = true;
    put->notice = (struct pml_packet){.kind = PROTOCOL_LANES,
                                      .count = LANES_CHUNK,
                                      .inline_bytes = 4 * sizeof(uint64_t),
                                      .context = send->receive,
                                      .tag = LANES_ORDER_CHUNKS,
                                      .u.word = {0, 0, offset, bytes}};
    if (last) {
        copy->first = request->next;
        if (!copy->first) copy->last = NULL;
    }
    lanes_submit(lanes, &copy->order, put); /* which may post the next ones */
    if (last) base_request_complete(&request->base, NCCLX_SUCCESS);
}

static void post_chunks(struct lanes *lanes)
{
    struct lanes_copy *copy = lanes->copy;
    unsigned here, there;
    while (!lanes->lost && copy->here && copy->first && copy_next(&copy->origin, &here, &there)) {
        struct lanes_put *put = lanes_put_get(lanes->connection->pml);
        if (!put) {
            lanes_breach(lanes, "memory is short for a chunk to it");
            return;
        }
        post_chunk(lanes, put, here, there);
    }
}

void lanes_copy_send(struct pml_connection *connection, struct pml_request *request)
{
    struct lanes *lanes = connection->lanes;
    struct lanes_origin *origin;
    if (!lanes->lost && lanes_origin_of(lanes, &origin)) lanes_breach(lanes, base_error_detail());
    struct lanes_copy *copy = lanes->lost ? NULL : copy_of(lanes);
    if (!copy) return; /* the wait for it ends with the connection */
    request->next = NULL;
    if (copy->last) copy->last->next = request;
    else copy->first = request;
    copy->last = request;
    if (!copy->asked) {
        const struct pml_packet packet = {.kind = PROTOCOL_LANES, .count = LANES_COPY};
        copy->asked = true;
        pml_post_control(connection, &packet);
    }
    post_chunks(lanes);
}

void lanes_copy_slots_arrived(struct lanes *lanes, const struct pml_packet *packet)
{
    struct lanes_copy *copy = lanes->copy;
    const struct pml *pml = lanes->connection->pml;
    uint64_t slots = packet->u.word[2], bytes = packet->u.word[3];
    if (!copy || !copy->asked || copy->here || !copy_sensible(slots) || !bytes || bytes > SIZE_MAX / COPY_MAX_SLOTS) {
        lanes_breach(lanes, "it offers slots that nobody asked for, or that cannot be");
        return;
    }
    copy->stride = (size_t)bytes;
    copy->chunk = chunk_wanted(pml) < copy->stride ? chunk_wanted(pml) : copy->stride;
    copy->origin.here = slots_wanted(pml);
    copy->origin.there = (unsigned)slots;
    copy->key = packet->u.word[0];
    copy->address = packet->u.word[1];
    copy->here = base_alloc(AREA_PML, copy->origin.here * copy->chunk);
    if (!copy->here) {
        lanes_breach(lanes, "memory is short for chunks to it");
        return;
    }
    base_log(AREA_PML, LOG_INFO, "large messages to rank %d are copied, through %u slots of %zu bytes here and %u there",
             lanes->connection->rank, copy->origin.here, copy->chunk, copy->origin.there);
    post_chunks(lanes);
}

void lanes_copy_placed(struct lanes *lanes, unsigned slot)
{
    copy_placed(&lanes->copy->origin, slot);
    post_chunks(lanes);
}

void lanes_copy_cleared(struct lanes *lanes, uint64_t taken)
{
    if (!lanes->copy || !copy_cleared(&lanes->copy->origin, taken)) lanes_breach(lanes, "it clears chunks that it has not got");
    else post_chunks(lanes);
}

/* ---- At the target ---- */

void lanes_copy_asked(struct lanes *lanes)
{
    struct pml *pml = lanes->connection->pml;
    struct lanes_copy *copy = copy_of(lanes);
    if (!copy) return;
    if (copy->slots) {
        lanes_breach(lanes, "it asks for slots twice");
        return;
    }
    copy->target.slots = slots_wanted(pml);
    copy->slot_bytes = chunk_wanted(pml);
    size_t bytes = copy->target.slots * copy->slot_bytes;
    copy->slots = base_alloc(AREA_PML, bytes);
    if (!copy->slots || lanes_range_take(lanes->connection, copy->slots, bytes, &copy->slots_key)) {
        base_free(AREA_PML, copy->slots);
        copy->slots = NULL;
        lanes_breach(lanes, "memory is short for chunks from it");
        return;
    }
    const struct pml_packet packet = {
        .kind = PROTOCOL_LANES,
        .count = LANES_SLOTS,
        .inline_bytes = 4 * sizeof(uint64_t),
        .u.word = {copy->slots_key, (uint64_t)(uintptr_t)copy->slots, copy->target.slots, copy->slot_bytes}};
    pml_post_control(lanes->connection, &packet);
}

void lanes_chunk_arrived(struct lanes *lanes, const struct pml_packet *packet)
{
    struct lanes_copy *copy = lanes->copy;
    const struct pml_packet data = {.context = packet->context, .u.word[0] = packet->u.word[2]};
    uint64_t bytes = packet->u.word[3];
    if (!copy || !copy->slots || bytes > copy->slot_bytes) {
        lanes_breach(lanes, "it sends a chunk, and there is no such slot");
        return;
    }
    pml_receive_data(lanes->connection, &data, copy->slots + copy_arrived(&copy->target) * copy->slot_bytes, (size_t)bytes);
    struct pml_packet clear = {.kind = PROTOCOL_LANES,
                               .count = LANES_CLEARED,
                               .inline_bytes = sizeof(uint64_t),
                               .u.word[0] = copy_taken(&copy->target)};
    pml_answer(lanes->connection, &clear);
}
