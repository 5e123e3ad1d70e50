/* orders.c - puts, gets and flushes of a window to one target, from their calls to their ends. */
#include "pml/lanes/private.h"

int pml_order_make(struct ncclx_rt *rt, struct pml_region *region, void (*changed)(void *arg), void *arg,
                   struct pml_order **out)
{
    struct pml_connection *connection;
    struct lanes_origin *origin;
    int error = pml_connection_to(rt->pml, region->peer, &connection);
    if (!error) error = lanes_origin_of(connection->lanes, &origin);
    if (error) return error;
    struct pml_order *order = base_calloc(AREA_PML, 1, sizeof *order);
    if (!order) return base_error(NCCLX_ERR_NO_MEM, "no memory for a way to rank %d", region->peer);
    order->lanes = connection->lanes;
    order->id = ++origin->orders;
    order->key = region->key;
    order->address = region->address;
    order->changed = changed;
    order->arg = arg;
    *out = order;
    return NCCLX_SUCCESS;
}

void lanes_order_left(struct pml_order *order)
{
    if (!order->changed && !order->under_way) base_free(AREA_PML, order);
}

void pml_order_leave(struct pml_order *order)
{
    if (!order) return;
    order->changed = NULL;
    lanes_order_left(order);
}

/* Something of it has ended. */
void lanes_order_changed(struct pml_order *order)
{
    order->under_way--;
    if (!order->changed) lanes_order_left(order);
    else if (!PLANTED_BUG(BUG_LANES_UNCHANGED)) order->changed(order->arg);
}

int pml_order_error(const struct pml_order *order)
{
    return order->error;
}

static int check(struct pml_order *order)
{
    struct lanes_origin *origin;
    if (order->error) return base_error(order->error, "the way to rank %d has failed", order->lanes->connection->rank);
    return lanes_origin_of(order->lanes, &origin);
}

/* ---- Puts ---- */

int pml_order_put(struct pml_order *order, size_t offset, const void *from, size_t bytes, const struct pml_signal *signal)
{
    struct pml *pml = order->lanes->connection->pml;
    int error = check(order);
    if (error || (!bytes && !signal)) return error;
    struct lanes_put *put = lanes_put_get(pml);
    if (!put) return base_error(NCCLX_ERR_NO_MEM, "no memory for a put");
    put->order = order;
    put->core.from = from;
    put->core.to = order->address + offset;
    put->core.key = order->key;
    put->core.bytes = bytes;
    put->core.notice = signal != NULL;
    if (signal)
        put->notice = (struct pml_packet){.kind = PROTOCOL_LANES,
                                          .count = LANES_SIGNAL,
                                          .inline_bytes = 5 * sizeof(uint64_t),
                                          .context = signal->window,
                                          .source = signal->rank,
                                          .tag = (int32_t)order->id,
                                          .u.word = {0, 0, signal->value, signal->slot, signal->op}};
    order->under_way++;
    order->lanes->connection->traffic.sent += bytes;
    lanes_submit(order->lanes, &order->core, put);
    return NCCLX_SUCCESS;
}

void lanes_order_put_ended(struct pml_order *order, int code)
{
    if (code) order->error = code;
    lanes_order_changed(order);
}

/* ---- Flushes ---- */

int pml_order_flush(struct pml_order *order, struct pml_goal *goal)
{
    struct lanes *lanes = order->lanes;
    struct lanes_state *state = lanes->connection->pml->lanes;
    int error = check(order);
    if (error) return error;
    struct lanes_flush *flush = state->free_flushes;
    if (flush) state->free_flushes = flush->next;
    else flush = base_alloc(AREA_PML, sizeof *flush);
    if (!flush) return base_error(NCCLX_ERR_NO_MEM, "no memory for a flush");
    flush->order = order;
    *goal = (struct pml_goal){.puts = ++order->flushes, .gets = order->gets};
    order->under_way++;
    lanes->origin->under_way++;
    state->under_way++;
    dqplb_flush(&lanes->origin->sender, &order->core, &flush->core);
    lanes_begin(lanes);
    return NCCLX_SUCCESS;
}

void lanes_order_flushed(struct lanes_flush *flush, int code)
{
    struct pml_order *order = flush->order;
    struct lanes_state *state = order->lanes->connection->pml->lanes;
    flush->next = state->free_flushes;
    state->free_flushes = flush;
    order->flushed++;
    if (code) order->error = code;
    lanes_order_changed(order);
}

bool pml_order_reached(const struct pml_order *order, const struct pml_goal *goal)
{
    return order->flushed >= goal->puts && order->got >= goal->gets;
}

/* ---- Signals ---- */

void pml_signal_register(struct ncclx_rt *rt, pml_signal_fn function, void *arg)
{
    rt->pml->signalled = function;
    rt->pml->signalled_arg = arg;
}
