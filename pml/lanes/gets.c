/* gets.c - reading a peer's memory where nothing but the peer can: it is asked to put the data here. */
#include "pml/lanes/private.h"

/* Gets that a peer is asked for at a time: each holds some of its memory. One is over when its data is here, and the peer has told of
 * that before. */
#define ASKED_MAX 64

/* ---- The one who wants ---- */

static void ask(struct lanes *lanes, const struct lanes_get *get, uint64_t key)
{
    const struct lanes_range *range = lanes_range_find(lanes->connection->pml, get->name);
    struct pml_packet packet = {.kind = PROTOCOL_LANES,
                                .count = LANES_GET,
                                .inline_bytes = 4 * sizeof(uint64_t),
                                .context = get->name,
                                .u.word = {key, get->address, get->bytes, range->address}};
    lanes->asked++;
    pml_post_control(lanes->connection, &packet);
}

/* As many as the peer allows, in their order. */
static void ask_more(struct lanes *lanes)
{
    while (lanes->unasked && (lanes->asked < ASKED_MAX || PLANTED_BUG(BUG_LANES_GETS_UNBOUNDED))) {
        const struct lanes_get *get = lanes->unasked;
        lanes->unasked = get->next;
        ask(lanes, get, get->order->key);
    }
}

static struct lanes_get *make(const struct pml_connection *connection, void *to, size_t bytes)
{
    struct pml *pml = connection->pml;
    struct lanes_get *get = pml->lanes->free_gets;
    if (get) pml->lanes->free_gets = get->next;
    else get = base_alloc(AREA_PML, sizeof *get);
    if (!get) return NULL;
    if (!lanes_range_take(connection, to, bytes, &get->name)) return get;
    get->next = pml->lanes->free_gets;
    pml->lanes->free_gets = get;
    return NULL;
}

int pml_order_get(struct pml_order *order, size_t offset, void *to, size_t bytes)
{
    struct lanes *lanes = order->lanes;
    struct pml *pml = lanes->connection->pml;
    if (order->error || lanes->lost)
        return base_error(NCCLX_ERR_PROC_FAILED, "the way to rank %d has failed", lanes->connection->rank);
    if (!bytes) return NCCLX_SUCCESS;
    struct lanes_get *get = make(lanes->connection, to, bytes);
    if (!get) return base_error(NCCLX_ERR_NO_MEM, "no memory for a get");
    get->order = order;
    get->address = order->address + offset;
    get->bytes = bytes;
    get->next = NULL;
    if (lanes->last_get) lanes->last_get->next = get;
    else lanes->first_get = get;
    lanes->last_get = get;
    if (!lanes->unasked) lanes->unasked = get;
    lanes->gets++;
    order->gets++;
    order->under_way++;
    pml->lanes->under_way++;
    lanes->connection->traffic.received += bytes;
    ask_more(lanes);
    return NCCLX_SUCCESS;
}

static void end_first(struct lanes *lanes, int code)
{
    struct pml *pml = lanes->connection->pml;
    struct lanes_get *get = lanes->first_get;
    struct pml_order *order = get->order;
    lanes->first_get = get->next;
    if (!get->next) lanes->last_get = NULL;
    if (lanes->unasked == get) lanes->unasked = get->next;
    lanes->gets--;
    if (lanes->asked) lanes->asked--;
    pml->lanes->under_way--;
    lanes_range_drop(pml, get->name);
    get->next = pml->lanes->free_gets;
    pml->lanes->free_gets = get;
    order->got++;
    if (code) order->error = code;
    lanes_order_changed(order);
}

void lanes_get_ended(struct lanes *lanes, uint64_t name)
{
    if (!lanes->asked || lanes->first_get->name != name) {
        lanes_breach(lanes, "it answers a get that nobody made");
        return;
    }
    end_first(lanes, NCCLX_SUCCESS);
    ask_more(lanes);
}

void lanes_gets_fail(struct lanes *lanes)
{
    while (lanes->first_get) end_first(lanes, NCCLX_ERR_PROC_FAILED);
}

/* ---- The one who has ---- */

void lanes_get_arrived(struct lanes *lanes, const struct pml_packet *packet)
{
    struct pml *pml = lanes->connection->pml;
    uint64_t key = packet->u.word[0], address = packet->u.word[1], bytes = packet->u.word[2];
    const struct lanes_range *range = lanes_range_find(pml, key);
    struct lanes_origin *origin;
    if (!range || range->writes_only || !lanes_range_allows(range, lanes->connection) || !bytes || !lanes_range_holds(range, address, bytes)) {
        lanes_breach(lanes, "it reads memory that it may not");
        return;
    }
    if (lanes->answering == ASKED_MAX) {
        lanes_breach(lanes, "it reads at more places at a time than it may");
        return;
    }
    struct lanes_put *put = lanes_origin_of(lanes, &origin) ? NULL : lanes_put_get(pml);
    if (!put) {
        lanes_breach(lanes, "memory is short for an answer to it");
        return;
    }
    lanes->answering++;
    put->core.from = (const char *)(uintptr_t)address;
    put->core.bytes = bytes;
    put->core.to = packet->u.word[3];
    put->core.key = packet->context;
    put->core.notice = true;
    put->notice = (struct pml_packet){.kind = PROTOCOL_LANES,
                                      .count = LANES_ANSWERED,
                                      .inline_bytes = 2 * sizeof(uint64_t),
                                      .context = packet->context,
                                      .tag = LANES_ORDER_ANSWERS};
    lanes_submit(lanes, &origin->answers, put);
}
