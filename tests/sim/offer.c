/* offer.c - copies that one process offers to another, in virtual time: the target looks at once, late, or in the
 * middle of anything, and the origin withdraws when it likes.
 *
 * Holds: when the origin's copy is over, the memory holds exactly its value, and stays so until the next copy; a target
 * never works on an offer whose origin has gone on; once all descriptions were found, the next offer is possible. */
#include "pml/shm/offer.h"

#include "tests/sim/engine.h"

#include <inttypes.h>
#include <string.h>

#define COPIES 200
#define PATIENCE 1000 /* nanoseconds */
#define COPY_NS 300

struct description {
    uint32_t round;
    uint64_t value;
};

struct stage {
    struct sim *sim;
    struct sim_channel *to_target;
    struct offer offer;
    uint32_t round;     /* of the latest offer */
    uint64_t memory;    /* of the target: the number of the copy that was written last */
    uint64_t copy;      /* in progress, or over */
    uint64_t deadline;
    uint64_t payload;   /* number of the copy whose data the ring holds; 0: the origin has taken it back */
    bool between;       /* no copy is in progress */
    bool served_once;
    uint32_t serving;   /* round, at the target */
    uint64_t serving_value;
};

/* ---- Target ---------------------------------------------------------------------------------------------------- */

static void target_ends(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct stage *stage = context;
    (void)sim;
    (void)a;
    (void)b;
    offer_end(&stage->offer, stage->serving, true);
}

static void target_copies(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct stage *stage = context;
    (void)a;
    (void)b;
    if (stage->payload != stage->serving_value) sim_fail(sim, "the target copies data that is no longer there");
    stage->memory = stage->serving_value;
    sim_after(sim, sim_random(sim, COPY_NS), target_ends, stage, 0, 0);
}

static void target_finds(struct sim *sim, void *context, const void *data, size_t bytes)
{
    struct stage *stage = context;
    struct description description;
    memcpy(&description, data, sizeof description < bytes ? sizeof description : bytes);
    if (!offer_accept(&stage->offer, description.round)) return;
    if (sim_chance(sim, 1, 8)) {
        offer_end(&stage->offer, description.round, false);
        return;
    }
    stage->serving = description.round;
    stage->serving_value = description.value;
    sim_after(sim, sim_random(sim, COPY_NS), target_copies, stage, 0, 0);
}

/* ---- Origin ---------------------------------------------------------------------------------------------------- */

static void origin_begins(struct sim *sim, void *context, uint64_t a, uint64_t b);

static void copy_is_over(struct stage *stage)
{
    struct sim *sim = stage->sim;
    if (stage->memory != stage->copy)
        sim_fail(sim, "copy %" PRIu64 " is over, and the memory holds that of copy %" PRIu64, stage->copy, stage->memory);
    stage->payload = 0;
    stage->between = true;
    if (stage->copy < COPIES) sim_after(sim, sim_random(sim, sim_chance(sim, 1, 4) ? 10000 : 100), origin_begins, stage, 0, 0);
}

static void origin_copied_itself(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    (void)sim;
    (void)a;
    (void)b;
    copy_is_over(context);
}

static void copy_itself(struct stage *stage)
{
    stage->payload = 0;
    stage->memory = stage->copy;
    sim_after(stage->sim, sim_random(stage->sim, COPY_NS), origin_copied_itself, stage, 0, 0);
}

static void origin_looks(struct sim *sim, void *context, uint64_t a, uint64_t b);

/* The target may have accepted since the last look. */
static void origin_withdraws(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct stage *stage = context;
    if (offer_withdraw(&stage->offer, stage->round)) copy_itself(stage);
    else origin_looks(sim, stage, a, b);
}

static void origin_looks(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct stage *stage = context;
    (void)a;
    (void)b;
    enum offer_progress progress = offer_look(&stage->offer, stage->round);
    if (progress == OFFER_DONE) {
        stage->served_once = true;
        copy_is_over(stage);
    } else if (progress == OFFER_DECLINED) {
        offer_forget(&stage->offer, stage->round);
        copy_itself(stage);
    } else if (progress == OFFER_OPEN && sim_now(sim) > stage->deadline) {
        sim_after(sim, sim_random(sim, 20), origin_withdraws, stage, 0, 0);
    } else {
        sim_after(sim, 1 + sim_random(sim, 100), origin_looks, stage, 0, 0);
    }
}

static void origin_begins(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct stage *stage = context;
    (void)a;
    (void)b;
    if (stage->memory != stage->copy) sim_fail(sim, "somebody wrote after copy %" PRIu64 " was over", stage->copy);
    stage->copy++;
    stage->between = false;
    if (!offer_possible(&stage->offer, stage->round)) {
        copy_itself(stage);
        return;
    }
    struct description description = {.round = ++stage->round, .value = stage->copy};
    stage->payload = stage->copy;
    stage->deadline = sim_now(sim) + PATIENCE;
    sim_channel_send(stage->to_target, &description, sizeof description);
    sim_after(sim, sim_random(sim, 100), origin_looks, stage, 0, 0);
}

/* ---- Scenario -------------------------------------------------------------------------------------------------- */

static void start(struct sim *sim)
{
    struct stage *stage = sim_alloc(sim, sizeof *stage);
    sim_set_user(sim, stage);
    stage->sim = sim;
    stage->between = true;
    /* Some targets are always at hand, some hardly ever; most find a description around the origin's deadline. */
    stage->to_target = sim_channel_create(sim, 0, 1 + sim_random(sim, 3 * PATIENCE), target_finds, stage);
    origin_begins(sim, stage, 0, 0);
}

static void finish(struct sim *sim)
{
    struct stage *stage = sim_user(sim);
    if (stage->copy != COPIES || !stage->between) sim_fail(sim, "the origin waits in copy %" PRIu64, stage->copy);
    if (!offer_possible(&stage->offer, stage->round)) sim_fail(sim, "no further offer is possible");
    if (!stage->served_once) sim_fail(sim, "the target did nothing");
}

int main(int argc, char **argv)
{
    static const enum planted_bug bugs[] = {BUG_OFFER_ACCEPTED_LATE, BUG_OFFER_WITHDRAWN_LATE, BUG_OFFER_ENDED_EARLY,
                                            BUG_OFFER_NOT_FREED, BUG_NONE};
    static const struct sim_scenario scenarios[] = {
        {.name = "offers", .start = start, .finish = finish, .seeds = 2000, .bugs = bugs}};
    return sim_main(argc, argv, scenarios, 1);
}
