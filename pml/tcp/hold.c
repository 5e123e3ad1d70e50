/* hold.c - what a connection over sockets holds, for ncclx-info. */
#include "pml/tcp/lane.h"

static void add_lanes(const struct tcp_lanes *lanes, struct pml_holdings *holdings)
{
    uint64_t bytes = base_block_bytes(lanes);
    for (unsigned i = 0; i < DQPLB_MAX_LANES; i++) {
        const struct tcp_out *out = lanes->out[i];
        const struct tcp_in *in = lanes->in[i];
        bytes += base_block_bytes(out) + base_block_bytes(in);
        holdings->lanes += (out && out->fd >= 0) + (in && in->fd >= 0);
    }
    holdings->bytes[PML_MEMORY_LANES] += bytes;
}

/* It was open, and its socket was given up rather than lost. */
static bool rests(const struct tcp_channel *channel)
{
    return channel->meet.state == MEET_IDLE && channel->meet.name && !channel->broken && !channel->lost;
}

void tcp_hold(const struct pml_connection *connection, struct pml_holdings *holdings)
{
    const struct tcp_channel *channel = connection->channel;
    int lanes = holdings->lanes;
    holdings->open += meet_talks(&channel->meet) && !channel->lost;
    holdings->resting += rests(channel);
    holdings->bytes[PML_MEMORY_STATE] += base_block_bytes(channel) + base_block_bytes(channel->card);
    holdings->bytes[PML_MEMORY_KEEP] += base_block_bytes(channel->keep.data);
    holdings->bytes[PML_MEMORY_RECEIVE] += base_block_bytes(channel->in) + base_block_bytes(channel->message);
    if (channel->lanes) add_lanes(channel->lanes, holdings);
    lanes_hold(connection, holdings);
    holdings->descriptors += holdings->lanes - lanes + (channel->fd >= 0);
}
