/* engine.h - the deterministic simulator: protocol cores run in virtual time, with a seed that decides every delay,
 * order and crash.
 *
 * A scenario builds ranks around the real cores, lets them exchange messages over channels, and checks properties. The
 * harness runs it over many seeds, then plants each bug it is told of and demands that some seed finds it. A failing
 * seed replays: PROGRAM --seed S [--bug B].
 */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include "runtime/base/planted.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim;

/* ---- Chance: everything random comes from the seed ---- */

uint64_t sim_random(struct sim *sim, uint64_t below); /* 0 .. below - 1; below > 0 */
bool sim_chance(struct sim *sim, unsigned numerator, unsigned denominator);

/* ---- Virtual time ---- */

typedef void (*sim_event_fn)(struct sim *sim, void *context, uint64_t a, uint64_t b);

uint64_t sim_now(const struct sim *sim); /* nanoseconds */
void sim_after(struct sim *sim, uint64_t delay, sim_event_fn function, void *context, uint64_t a, uint64_t b);

/* ---- Channels: bytes from one place to another. In order within a channel, in any order between channels ---- */

struct sim_channel;
typedef void (*sim_deliver_fn)(struct sim *sim, void *context, const void *data, size_t bytes);

/* Each message takes from `least` to `most` nanoseconds, chosen anew each time, and never overtakes an earlier one. */
struct sim_channel *sim_channel_create(struct sim *sim, uint64_t least, uint64_t most, sim_deliver_fn deliver,
                                       void *context);
void sim_channel_send(struct sim_channel *channel, const void *data, size_t bytes);
/* What is under way is lost, and so is all that follows. */
void sim_channel_cut(struct sim_channel *channel);

/* ---- Verdicts ---- */

/* The first failure of a run counts; later ones are its consequences. */
void sim_fail(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool sim_failed(const struct sim *sim);
/* Memory that lives as long as the run. Zeroed; never null. */
void *sim_alloc(struct sim *sim, size_t bytes);

/* ---- Harness ---- */

struct sim_scenario {
    const char *name;
    /* Sets the stage and schedules first events; the engine then runs until no event is left. */
    void (*start)(struct sim *sim);
    /* Checks what must hold at the end: that everything completed, for one. */
    void (*finish)(struct sim *sim);
    /* Frees what is not sim_alloc's, however the run has ended; may be null. */
    void (*release)(struct sim *sim);
    unsigned seeds;               /* run by default; SIM_SEEDS multiplies by percent */
    uint64_t event_limit;         /* more events than this is a livelock; 0: 10 million */
    const enum planted_bug *bugs; /* each must be found; ends with BUG_NONE; may be null */
};

/* For scenarios: their own data, set by start. */
void sim_set_user(struct sim *sim, void *user);
void *sim_user(const struct sim *sim);

/* Runs all scenarios and prints TAP. The body of main(). */
int sim_main(int argc, char **argv, const struct sim_scenario *scenarios, size_t count);

#endif
