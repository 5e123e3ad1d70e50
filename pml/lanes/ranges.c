/* ranges.c - memory of this process that peers may reach, by key; and what each write is checked against. */
#include "pml/lanes/private.h"

/* A key is the generation of its place in the table, and the place. Those of receives have PML_RECEIVE_KEY set. */
#define RANGES_MAX (UINT32_C(1) << 24)

struct lanes_range *lanes_range_find(struct pml *pml, uint64_t key)
{
    const struct lanes_state *state = pml->lanes;
    uint32_t place = (uint32_t)key;
    if (place >= state->ranges) return NULL;
    struct lanes_range *range = &state->range[place];
    return range->used && range->generation == (uint32_t)(key >> 32) ? range : NULL;
}

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

int lanes_range_take(struct pml *pml, struct lanes_range **range, uint64_t *key)
{
    struct lanes_state *state = pml->lanes;
    if (!state->free_range) {
        int error = grow(state);
        if (error) return error;
    }
    uint32_t place = state->free_range - 1;
    struct lanes_range *taken = &state->range[place];
    state->free_range = taken->next_free;
    *taken = (struct lanes_range){.generation = taken->generation + 1, .used = true};
    if (!taken->generation) taken->generation = 1; /* no key is 0 */
    *key = (uint64_t)taken->generation << 32 | place;
    *range = taken;
    return NCCLX_SUCCESS;
}

int lanes_range_add(struct pml *pml, uint64_t address, uint64_t bytes, uint64_t *key)
{
    struct lanes_range *range;
    int error = lanes_range_take(pml, &range, key);
    if (error) return error;
    range->address = address;
    range->bytes = bytes;
    return NCCLX_SUCCESS;
}

void lanes_range_drop(struct pml *pml, uint64_t key)
{
    struct lanes_range *range = lanes_range_find(pml, key);
    if (!range) return;
    range->used = false;
    range->next_free = pml->lanes->free_range;
    pml->lanes->free_range = (uint32_t)key + 1;
}

bool lanes_range_holds(const struct lanes_range *range, uint64_t address, uint64_t bytes)
{
    uint64_t offset = address - range->address; /* below its beginning: a huge number */
    return offset <= range->bytes && bytes <= range->bytes - offset;
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
    if (!range || (range->get && range->get->order->lanes->connection != connection))
        return refuse(connection, "with a key that is not valid", to, bytes);
    if (!lanes_range_holds(range, to, bytes)) return refuse(connection, "which is not in the memory of its key", to, bytes);
    return (char *)(uintptr_t)to;
}
