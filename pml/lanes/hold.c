/* hold.c - what the lanes of a connection hold, for ncclx-info. */
#include "pml/lanes/private.h"

static uint64_t origin_bytes(const struct lanes_origin *origin)
{
    uint64_t bytes = base_block_bytes(origin) + base_block_bytes(origin->sender.lane);
    for (unsigned i = 0; i < origin->sender.terms.lanes; i++) bytes += base_block_bytes(origin->sender.lane[i].ring);
    return bytes;
}

static uint64_t target_bytes(const struct lanes_target *target)
{
    return base_block_bytes(target) + base_block_bytes(target->tracker.early) + base_block_bytes(target->tracker.notice);
}

static void tell_path(const struct dqplb_control *control, struct pml_holdings *holdings)
{
    if (!control->on) return;
    holdings->round_trip_ns = control->base_ns;
    holdings->rate = control_rate(control);
    holdings->window = control->window;
}

void lanes_hold(const struct pml_connection *connection, struct pml_holdings *holdings)
{
    const struct lanes *lanes = connection->lanes;
    holdings->bytes[PML_MEMORY_STATE] += base_block_bytes(lanes);
    if (lanes->origin) holdings->bytes[PML_MEMORY_LANES] += origin_bytes(lanes->origin);
    if (lanes->origin) tell_path(&lanes->origin->sender.control, holdings);
    if (lanes->target) holdings->bytes[PML_MEMORY_REORDER] += target_bytes(lanes->target);
    if (lanes->copy) holdings->bytes[PML_MEMORY_CHUNKS] += lanes_copy_bytes(lanes);
}
