/* ranges.c - memory of this process that peers may reach, by key; and what each write is checked against. */
#include "pml/lanes/private.h"

#include <errno.h>
#include <sys/random.h>

/* A key is the generation of its place in the table, and the place. Those of receives have PML_RECEIVE_KEY set. A generation is a
 * random number: who was not told a key cannot know it, and a wrong guess costs the guesser its connection. */
#define RANGES_MAX (UINT32_C(1) << 24)

struct lanes_range *lanes_range_find(struct pml *pml, uint64_t key)
{
    const struct lanes_state *state = pml->lanes;
    uint32_t place = (uint32_t)key;
    if (place >= state->ranges) return NULL;
    struct lanes_range *range = &state->range[place];
    return range->used && range->generation == (uint32_t)(key >> 32) ? range : NULL;
}

/* ---- Making and ending them ---- */

static int grow(struct lanes_state *state)
{
    uint32_t room = state->ranges ? 2 * state->ranges : 16;
    struct lanes_range *grown =
        room > RANGES_MAX ? NULL : base_realloc(AREA_PML, state->range, room * sizeof *grown);
    if (!grown) return base_error(NCCLX_ERR_NO_MEM, "no memory for a table of %u ranges of memory", room);
    for (uint32_t i = room; i-- > state->ranges;) {
        grown[i] = (struct lanes_range){.next_free = state->free_range};
        state->free_range = i + 1;
    }
    state->range = grown;
    state->ranges = room;
    return NCCLX_SUCCESS;
}

/* Many at a time: a system call for each would cost more than the range. */
static int draw(struct lanes_state *state, uint32_t *number)
{
    if (!state->randoms_left) {
        if (getrandom(state->random, sizeof state->random, 0) != sizeof state->random)
            return base_error(NCCLX_ERR_LIMIT, "no random numbers: %s", strerror(errno));
        state->randoms_left = sizeof state->random / sizeof state->random[0];
    }
    *number = state->random[--state->randoms_left];
    return NCCLX_SUCCESS;
}

static int take(struct lanes_state *state, const struct lanes_range *model, uint64_t *key)
{
    uint32_t generation = 0;
    int error = state->free_range ? NCCLX_SUCCESS : grow(state);
    if (!error) error = draw(state, &generation);
    if (error) return error;
    uint32_t place = state->free_range - 1;
    struct lanes_range *range = &state->range[place];
    if (!generation || generation == range->generation) generation = range->generation + 1; /* an old key is not valid again */
    if (!generation) generation = 1;                                                        /* no key is 0 */
    state->free_range = range->next_free;
    *range = *model;
    range->generation = generation;
    range->used = true;
    *key = (uint64_t)generation << 32 | place;
    return NCCLX_SUCCESS;
}

int lanes_range_take(const struct pml_connection *only, void *memory, uint64_t bytes, uint64_t *key)
{
    const struct lanes_range range = {
        .address = (uint64_t)(uintptr_t)memory, .bytes = bytes, .only = only, .writes_only = true};
    return take(only->pml->lanes, &range, key);
}

/* Null, with *members null: all of the job. */
static int list_members(const struct ncclx_comm *comm, uint64_t **members)
{
    size_t ranks = (size_t)comm->rt->job.size;
    *members = NULL;
    if ((size_t)comm->size == ranks) return NCCLX_SUCCESS;
    *members = base_calloc(AREA_PML, (ranks + 63) / 64, sizeof **members);
    if (!*members) return base_error(NCCLX_ERR_NO_MEM, "no memory to tell who may write to a window");
    for (int i = 0; i < comm->size; i++) {
        unsigned rank = (unsigned)base_comm_world(comm, i);
        (*members)[rank / 64] |= UINT64_C(1) << rank % 64;
    }
    return NCCLX_SUCCESS;
}

int lanes_range_add(const struct ncclx_comm *comm, uint64_t address, uint64_t bytes, uint64_t *key)
{
    struct lanes_range range = {.address = address, .bytes = bytes};
    int error = list_members(comm, &range.members);
    if (!error) error = take(comm->rt->pml->lanes, &range, key);
    if (error) base_free(AREA_PML, range.members);
    return error;
}

void lanes_range_drop(struct pml *pml, uint64_t key)
{
    struct lanes_range *range = lanes_range_find(pml, key);
    if (!range) return;
    base_free(AREA_PML, range->members);
    range->members = NULL;
    range->used = false;
    range->next_free = pml->lanes->free_range;
    pml->lanes->free_range = (uint32_t)key + 1;
}

void lanes_ranges_release(struct lanes_state *state)
{
    for (uint32_t i = 0; i < state->ranges; i++) base_free(AREA_PML, state->range[i].members);
    base_free(AREA_PML, state->range);
}

/* ---- Checks ---- */

bool lanes_range_holds(const struct lanes_range *range, uint64_t address, uint64_t bytes)
{
    uint64_t offset = address - range->address; /* below its beginning: a huge number */
    return offset <= range->bytes && bytes <= range->bytes - offset;
}

bool lanes_range_allows(const struct lanes_range *range, const struct pml_connection *connection)
{
    if (range->only) return range->only == connection;
    unsigned rank = (unsigned)connection->rank;
    return !range->members || range->members[rank / 64] >> rank % 64 & 1;
}

static char *refuse(struct pml_connection *connection, const char *what, uint64_t to, size_t bytes)
{
    base_error(NCCLX_ERR_TRANSPORT, "it writes %zu bytes to %#llx, %s", bytes, (unsigned long long)to, what);
    connection->transport->fail(connection, base_error_detail());
    return NULL;
}

char *lanes_place(struct pml_connection *connection, uint64_t key, uint64_t to, size_t bytes)
{
    if (key & PML_RECEIVE_KEY) {
        char *place = pml_receive_granted(connection, key, to, bytes);
        return place ? place : refuse(connection, "which is not in a receive that waits for it", to, bytes);
    }
    const struct lanes_range *range = lanes_range_find(connection->pml, key);
    if (!range) return refuse(connection, "with a key that is not valid", to, bytes);
    if (!lanes_range_allows(range, connection)) return refuse(connection, "with a key that is not its own", to, bytes);
    if (!lanes_range_holds(range, to, bytes)) return refuse(connection, "which is not in the memory of its key", to, bytes);
    return (char *)(uintptr_t)to;
}
