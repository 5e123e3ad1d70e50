/* comm.c - the matching spaces of communicators, found by context. */
#include "pml/internal.h"

#include <string.h>

/* Bins of a communicator's spaces: one a member up to this many. */
#define BINS_MAX 256u

static unsigned comm_bin(uint64_t context)
{
    return (unsigned)((context >> 2) * UINT64_C(0x9e3779b97f4a7c15) >> 58);
}
_Static_assert(COMM_BINS == 64, "comm_bin gives six bits");

static unsigned chunks_of(const struct ncclx_comm *comm)
{
    return ((unsigned)comm->size + PEER_CHUNK - 1) / PEER_CHUNK;
}

static int space_make(struct pml_space_state *space, struct ncclx_comm *comm, unsigned number)
{
    uint32_t bins = 16;
    while (bins < BINS_MAX && bins < (uint32_t)comm->size) bins *= 2;
    if (number == PML_SYSTEM) bins = 4;
    struct match_bin *bin = base_alloc(AREA_PML, bins * sizeof *bin);
    space->chunk = base_calloc(AREA_PML, chunks_of(comm), sizeof *space->chunk);
    if (!bin || !space->chunk) {
        base_free(AREA_PML, bin);
        base_free(AREA_PML, space->chunk);
        space->chunk = NULL;
        return base_error(NCCLX_ERR_NO_MEM, "no memory for a communicator of %d ranks", comm->size);
    }
    match_space_init(&space->match, bin, bins);
    space->comm = comm;
    space->context = comm->context | number;
    return NCCLX_SUCCESS;
}

static void end_receives(struct match_link *head)
{
    while (!match_link_empty(head)) pml_receive_end(match_receive_of(head->next));
}

static void space_release(struct pml_space_state *space)
{
    if (!space->chunk) return;
    struct pml *pml = space->comm->rt->pml;
    /* Of waits that ended early, and whose announcements peers have not yet given back; or left at the rank's end. */
    end_receives(&space->match.wild);
    for (uint32_t i = 0; i <= space->match.bin_mask; i++) end_receives(&space->match.bin[i].receives);
    while (!match_link_empty(
        &space->match.envelopes)) { /* messages nobody received: their senders must not wait for ever */
        struct ncclx_message *message =
            (struct ncclx_message *)((char *)space->match.envelopes.next - offsetof(struct ncclx_message, match.all));
        match_take(&message->match);
        if (message->kind == PROTOCOL_REQUEST)
            pml_post_control(message->connection, &(struct pml_packet){.kind = PROTOCOL_FINISHED, .context = message->send});
        pml_hold_release(message->connection, message->kind, message->first);
        pml_message_put(pml, message);
    }
    for (unsigned i = 0; i < chunks_of(space->comm); i++) {
        for (unsigned j = 0; space->chunk[i] && j < PEER_CHUNK; j++) {
            struct pml_peer *peer = &space->chunk[i][j];
            struct protocol_announcement *announcement;
            while ((announcement = peer->core.announced)) {
                peer->core.announced = announcement->next;
                pml_announcement_put(peer->connection, announcement);
            }
        }
        base_free(AREA_PML, space->chunk[i]);
    }
    base_free(AREA_PML, space->chunk);
    base_free(AREA_PML, space->match.bin);
}

int pml_space_peer_make(struct pml_space_state *space, int rank, struct pml_peer **peer)
{
    struct pml_peer **chunk = &space->chunk[(unsigned)rank / PEER_CHUNK];
    if (!*chunk) {
        *chunk = base_calloc(AREA_PML, PEER_CHUNK, sizeof **chunk);
        if (!*chunk) return base_error(NCCLX_ERR_NO_MEM, "no memory for a peer");
    }
    *peer = &(*chunk)[(unsigned)rank % PEER_CHUNK];
    if ((*peer)->connection) return NCCLX_SUCCESS;
    return pml_connection_to(space->comm->rt->pml, base_comm_world(space->comm, rank), &(*peer)->connection);
}

int pml_comm_attach(struct ncclx_comm *comm)
{
    struct pml *pml = comm->rt->pml;
    struct pml_comm *state = base_calloc(AREA_PML, 1, sizeof *state);
    if (!state) return base_error(NCCLX_ERR_NO_MEM, "no memory for a communicator");
    state->pml = pml;
    state->comm = comm;
    for (unsigned i = 0; i < PML_SPACES; i++) {
        int error = space_make(&state->space[i], comm, i);
        if (!error) continue;
        while (i-- > 0) space_release(&state->space[i]);
        base_free(AREA_PML, state);
        return error;
    }
    struct pml_comm **bin = &pml->comm[comm_bin(comm->context)];
    state->next = *bin;
    *bin = state;
    comm->pml = state;
    pml_held_deliver(pml, state);
    return NCCLX_SUCCESS;
}

void pml_comm_detach(struct ncclx_comm *comm)
{
    struct pml_comm *state = comm->pml;
    if (!state) return;
    struct pml *pml = state->pml;
    struct pml_comm **at = &pml->comm[comm_bin(comm->context)];
    while (*at != state) at = &(*at)->next;
    *at = state->next;
    for (int chunk = 0; pml->connection && chunk < (pml->rt->job.size + CONNECTION_CHUNK - 1) / CONNECTION_CHUNK;
         chunk++)
        for (int i = 0; pml->connection[chunk] && i < CONNECTION_CHUNK; i++)
            if (pml->connection[chunk][i]) pml->connection[chunk][i]->last_space = NULL;
    for (unsigned i = 0; i < PML_SPACES; i++) space_release(&state->space[i]);
    pml->detached[pml->detached_count++ % DETACHED_KEPT] = comm->context;
    base_free(AREA_PML, state);
    comm->pml = NULL;
}

struct pml_space_state *pml_space_find(struct pml *pml, uint64_t context)
{
    unsigned number = (unsigned)(context & 3);
    uint64_t base = context & ~UINT64_C(3);
    if (number >= PML_SPACES) return NULL;
    for (struct pml_comm *state = pml->comm[comm_bin(base)]; state; state = state->next)
        if (state->comm->context == base) return &state->space[number];
    return NULL;
}

bool pml_was_detached(const struct pml *pml, uint64_t context)
{
    uint64_t count = pml->detached_count < DETACHED_KEPT ? pml->detached_count : DETACHED_KEPT;
    for (uint64_t i = 0; i < count; i++)
        if (pml->detached[i] == (context & ~UINT64_C(3))) return true;
    return false;
}
