/* copy.c - the copy protocol in virtual time: messages in chunks through the slots of both ends, over lanes that place what
 * they carry in any order, read it late and more than once, and say late that they are through; a target that is slow now
 * and then; a connection that is lost.
 *
 * Holds: every byte of every message is there, in order; a slot is never written while it is in use on either side; no
 * more chunks are under way than the target has slots; everything ends. */
#include "pml/copy.h"

#include "tests/sim/engine.h"

#include <string.h>

#define MAX_CHUNK 24
#define MAX_BYTES 6000

struct world;

/* A put from a slot to a slot, and the notice that follows it. */
struct chunk {
    struct world *world;
    uint64_t index;
    unsigned here, there;
    size_t bytes;
    int parts_left; /* to be placed */
    bool has_come;
};

struct world {
    struct sim *sim;
    struct copy_origin origin;
    struct copy_target target;
    struct sim_channel *clears;
    size_t chunk_bytes, bytes, sent, received;
    char data[MAX_BYTES], got[MAX_BYTES];
    char here[COPY_MAX_SLOTS][MAX_CHUNK], there[COPY_MAX_SLOTS + 1][MAX_CHUNK];
    struct chunk *chunk[MAX_BYTES];
    uint64_t chunks, applied; /* posted; notices that took effect */
    uint64_t copied;
    uint64_t busy_until, slowest; /* the target's */
    uint64_t under_way;           /* puts */
    bool lost;
};

/* ---- Target ---- */

static void copy_out(struct sim *sim, void *context, uint64_t slot, uint64_t b)
{
    struct chunk *chunk = context;
    struct world *world = chunk->world;
    (void)b;
    if (world->lost) return;
    if (world->copied++ != chunk->index) sim_fail(sim, "chunk %d is copied out of turn", (int)chunk->index);
    memcpy(world->got + world->received, world->there[slot], chunk->bytes);
    if (memcmp(world->got + world->received, world->data + world->received, chunk->bytes))
        sim_fail(sim, "chunk %d is not what was sent", (int)chunk->index);
    world->received += chunk->bytes;
    uint64_t taken = copy_taken(&world->target);
    sim_channel_send(world->clears, &taken, sizeof taken);
}

/* Notices take effect in order, each when its put is placed. */
static void apply(struct world *world)
{
    struct sim *sim = world->sim;
    while (world->applied < world->chunks && world->chunk[world->applied]->has_come) {
        struct chunk *chunk = world->chunk[world->applied++];
        uint64_t now = sim_now(sim), begin = world->busy_until > now ? world->busy_until : now;
        world->busy_until = begin + 1 + sim_random(sim, sim_chance(sim, 1, 10) ? world->slowest : 100);
        sim_after(sim, world->busy_until - now, copy_out, chunk, copy_arrived(&world->target), 0);
    }
}

/* ---- Lanes ---- */

static void post(struct world *world);

static void put_ends(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct chunk *chunk = context;
    struct world *world = chunk->world;
    (void)sim, (void)a, (void)b;
    if (world->lost) return;
    world->under_way--;
    copy_placed(&world->origin, chunk->here);
    post(world);
}

static void place(struct sim *sim, void *context, uint64_t offset, uint64_t last)
{
    struct chunk *chunk = context;
    struct world *world = chunk->world;
    size_t bytes = chunk->bytes - offset < MAX_CHUNK / 2 ? chunk->bytes - (size_t)offset : MAX_CHUNK / 2;
    if (world->lost) return;
    memcpy(world->there[chunk->there] + offset, world->here[chunk->here] + offset, bytes);
    if (!last) { /* the lane broke, and it goes again */
        sim_after(sim, 1 + sim_random(sim, 3000), place, chunk, offset, 1);
        return;
    }
    if (--chunk->parts_left) return;
    chunk->has_come = true;
    sim_after(sim, 1 + sim_random(sim, 5000), put_ends, chunk, 0, 0);
    apply(world);
}

static void post(struct world *world)
{
    struct sim *sim = world->sim;
    unsigned here, there;
    while (!world->lost && world->sent < world->bytes && copy_next(&world->origin, &here, &there)) {
        struct chunk *chunk = sim_alloc(sim, sizeof *chunk);
        size_t left = world->bytes - world->sent;
        *chunk = (struct chunk){.world = world, .index = world->chunks, .here = here, .there = there};
        chunk->bytes = left < world->chunk_bytes ? left : world->chunk_bytes;
        if (sim_chance(sim, 1, 8)) chunk->bytes = 1 + sim_random(sim, chunk->bytes); /* a message ends */
        world->chunk[world->chunks++] = chunk;
        memcpy(world->here[here], world->data + world->sent, chunk->bytes);
        world->sent += chunk->bytes;
        if (++world->under_way > world->origin.here) sim_fail(sim, "more puts are under way than there are slots");
        if (world->chunks - world->copied > world->origin.there) sim_fail(sim, "more chunks are under way than the target has slots");
        for (size_t offset = 0; offset < chunk->bytes; offset += MAX_CHUNK / 2) {
            chunk->parts_left++;
            sim_after(sim, 1 + sim_random(sim, 4000), place, chunk, offset, !sim_chance(sim, 1, 6));
        }
    }
}

static void cleared(struct sim *sim, void *context, const void *data, size_t bytes)
{
    struct world *world = context;
    uint64_t taken;
    memcpy(&taken, data, bytes);
    if (world->lost) return;
    if (!copy_cleared(&world->origin, taken)) sim_fail(sim, "a clear to send is refused");
    post(world);
}

/* ---- Scenarios ---- */

static void begin(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    (void)sim, (void)a, (void)b;
    post(context);
}

static void is_lost(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct world *world = context;
    (void)a, (void)b;
    world->lost = true;
    for (uint64_t i = 0; i < world->chunks; i++) /* the driver of lanes ends all puts */
        copy_placed(&world->origin, world->chunk[i]->here);
    if (world->origin.busy) sim_fail(sim, "a slot stays in use when all has ended");
}

static void start(struct sim *sim)
{
    struct world *world = sim_alloc(sim, sizeof *world);
    sim_set_user(sim, world);
    world->sim = sim;
    world->target.slots = world->origin.there = 1 + (unsigned)sim_random(sim, sim_chance(sim, 1, 2) ? 4 : COPY_MAX_SLOTS);
    world->origin.here = 1 + (unsigned)sim_random(sim, sim_chance(sim, 1, 2) ? 4 : COPY_MAX_SLOTS);
    world->chunk_bytes = 1 + sim_random(sim, MAX_CHUNK);
    world->bytes = 1 + sim_random(sim, sim_chance(sim, 1, 2) ? MAX_BYTES : 500);
    world->slowest = 1 + sim_random(sim, 50000);
    for (size_t i = 0; i < world->bytes; i++) world->data[i] = (char)sim_random(sim, 256);
    world->clears = sim_channel_create(sim, 100, 100 + sim_random(sim, 5000), cleared, world);
    sim_after(sim, 1, begin, world, 0, 0);
    if (sim_chance(sim, 1, 8)) sim_after(sim, 1 + sim_random(sim, 100000), is_lost, world, 0, 0);
}

static void finish(struct sim *sim)
{
    const struct world *world = sim_user(sim);
    if (world->lost) return;
    if (world->received != world->bytes) sim_fail(sim, "%zu of %zu bytes have come", world->received, world->bytes);
    if (world->origin.busy) sim_fail(sim, "a slot stays in use");
}

/* What a peer may claim, against a model. */
static void start_lies(struct sim *sim)
{
    struct copy_origin origin = {.here = 1 + (unsigned)sim_random(sim, 8), .there = 1 + (unsigned)sim_random(sim, 8)};
    for (int i = 0; i < 200; i++) {
        unsigned here, there;
        uint64_t before = origin.cleared, claim = sim_random(sim, origin.sent + 3);
        if (sim_chance(sim, 1, 20)) claim = UINT64_MAX - sim_random(sim, 3);
        if (copy_next(&origin, &here, &there)) {
            if (here >= origin.here || there >= origin.there) sim_fail(sim, "a slot that is not there");
            if (sim_chance(sim, 3, 4)) copy_placed(&origin, here);
        }
        bool taken = copy_cleared(&origin, claim);
        if (taken != (claim >= before && claim <= origin.sent)) sim_fail(sim, "a claim is believed that cannot be, or the other way round");
        if (origin.cleared != (taken ? claim : before)) sim_fail(sim, "a claim that is refused counts");
        if (origin.sent - origin.cleared > origin.there) sim_fail(sim, "too much is under way");
    }
}

static void finish_lies(struct sim *sim)
{
    (void)sim;
}

static const enum planted_bug bugs[] = {BUG_COPY_SLOT_REUSED, BUG_COPY_NOT_CLEARED, BUG_COPY_RING_OFF_BY_ONE, BUG_COPY_SLOT_LEAK,
                                        BUG_COPY_CLEAR_EARLY, BUG_COPY_CLEAR_LEAK, BUG_NONE};
static const enum planted_bug lies_bugs[] = {BUG_COPY_NOT_CLEARED, BUG_NONE};

int main(int argc, char **argv)
{
    static const struct sim_scenario scenarios[] = {
        {.name = "chunks", .start = start, .finish = finish, .seeds = 5000, .bugs = bugs},
        {.name = "claims", .start = start_lies, .finish = finish_lies, .seeds = 200, .bugs = lies_bugs},
    };
    return sim_main(argc, argv, scenarios, sizeof scenarios / sizeof scenarios[0]);
}
