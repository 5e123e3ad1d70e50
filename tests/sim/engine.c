/* engine.c - event queue, channels, chance, and the harness that runs scenarios over seeds and planted bugs. */
#include "tests/sim/engine.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_EVENT_LIMIT UINT64_C(10000000)

enum planted_bug planted_bug = BUG_NONE;

struct event {
    uint64_t time, order; /* order breaks ties: first scheduled, first run */
    sim_event_fn function;
    void *context;
    uint64_t a, b;
};

struct chunk {
    struct chunk *next;
    max_align_t bytes[];
};

struct sim {
    uint64_t now, random, order, events_run;
    struct event *heap;
    size_t used, room;
    struct chunk *chunks;
    void *user;
    bool failed;
    char failure[400];
};

struct sim_channel {
    struct sim *sim;
    uint64_t least, most, last;
    sim_deliver_fn deliver;
    void *context;
    bool cut;
};

struct parcel {
    struct sim_channel *channel;
    size_t bytes;
    unsigned char data[];
};

static void *need(void *block)
{
    if (block) return block;
    fprintf(stderr, "simulator: no memory\n");
    exit(99);
}

void *sim_alloc(struct sim *sim, size_t bytes)
{
    struct chunk *chunk = need(calloc(1, sizeof *chunk + bytes));
    chunk->next = sim->chunks;
    sim->chunks = chunk;
    return chunk->bytes;
}

/* splitmix64 (Steele, Lea, Flood 2014): every seed gives an independent stream. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t sim_random(struct sim *sim, uint64_t below)
{
    return next_random(&sim->random) % below;
}

bool sim_chance(struct sim *sim, unsigned numerator, unsigned denominator)
{
    return sim_random(sim, denominator) < numerator;
}

uint64_t sim_now(const struct sim *sim)
{
    return sim->now;
}

static bool before(const struct event *a, const struct event *b)
{
    return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static void push(struct sim *sim, struct event event)
{
    if (sim->used == sim->room) {
        sim->room = sim->room ? 2 * sim->room : 256;
        sim->heap = need(realloc(sim->heap, sim->room * sizeof *sim->heap));
    }
    size_t at = sim->used++;
    while (at && before(&event, &sim->heap[(at - 1) / 2])) {
        sim->heap[at] = sim->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    sim->heap[at] = event;
}

static struct event pop(struct sim *sim)
{
    struct event first = sim->heap[0], last = sim->heap[--sim->used];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= sim->used) break;
        if (child + 1 < sim->used && before(&sim->heap[child + 1], &sim->heap[child])) child++;
        if (!before(&sim->heap[child], &last)) break;
        sim->heap[at] = sim->heap[child];
        at = child;
    }
    if (sim->used) sim->heap[at] = last;
    return first;
}

void sim_after(struct sim *sim, uint64_t delay, sim_event_fn function, void *context, uint64_t a, uint64_t b)
{
    push(
        sim,
        (struct event){
            .time = sim->now + delay, .order = sim->order++, .function = function, .context = context, .a = a, .b = b});
}

struct sim_channel *sim_channel_create(struct sim *sim, uint64_t least, uint64_t most, sim_deliver_fn deliver,
                                       void *context)
{
    struct sim_channel *channel = sim_alloc(sim, sizeof *channel);
    *channel = (struct sim_channel){.sim = sim, .least = least, .most = most, .deliver = deliver, .context = context};
    return channel;
}

static void arrive(struct sim *sim, void *context, uint64_t a, uint64_t b)
{
    struct parcel *parcel = context;
    (void)a;
    (void)b;
    if (!parcel->channel->cut) parcel->channel->deliver(sim, parcel->channel->context, parcel->data, parcel->bytes);
}

void sim_channel_send(struct sim_channel *channel, const void *data, size_t bytes)
{
    struct sim *sim = channel->sim;
    if (channel->cut) return;
    struct parcel *parcel = sim_alloc(sim, sizeof *parcel + bytes);
    parcel->channel = channel;
    parcel->bytes = bytes;
    if (bytes) memcpy(parcel->data, data, bytes);
    uint64_t time = sim->now + channel->least + sim_random(sim, channel->most - channel->least + 1);
    if (time < channel->last) time = channel->last;
    channel->last = time;
    sim_after(sim, time - sim->now, arrive, parcel, 0, 0);
}

void sim_channel_cut(struct sim_channel *channel)
{
    channel->cut = true;
}

void sim_fail(struct sim *sim, const char *format, ...)
{
    va_list args;
    if (sim->failed) return;
    sim->failed = true;
    va_start(args, format);
    vsnprintf(sim->failure, sizeof sim->failure, format, args);
    va_end(args);
}

bool sim_failed(const struct sim *sim)
{
    return sim->failed;
}

void sim_set_user(struct sim *sim, void *user)
{
    sim->user = user;
}

void *sim_user(const struct sim *sim)
{
    return sim->user;
}

/* ---- Harness ---- */

static bool run(const struct sim_scenario *scenario, uint64_t seed, char *failure, size_t bytes)
{
    struct sim sim = {.random = seed * UINT64_C(0x2545f4914f6cdd1d) + 1};
    uint64_t limit = scenario->event_limit ? scenario->event_limit : DEFAULT_EVENT_LIMIT;
    scenario->start(&sim);
    while (sim.used && !sim.failed) {
        struct event event = pop(&sim);
        sim.now = event.time;
        if (++sim.events_run > limit)
            sim_fail(&sim, "no end after %" PRIu64 " events", limit);
        else
            event.function(&sim, event.context, event.a, event.b);
    }
    if (!sim.failed) scenario->finish(&sim);
    if (scenario->release) scenario->release(&sim);
    snprintf(failure, bytes, "%s", sim.failure);
    while (sim.chunks) {
        struct chunk *next = sim.chunks->next;
        free(sim.chunks);
        sim.chunks = next;
    }
    free(sim.heap);
    return !sim.failed;
}

/* The first seed that fails, or 0 when none does. Seeds start at 1. */
static uint64_t first_failure(const struct sim_scenario *scenario, uint64_t seeds, char *failure, size_t bytes)
{
    for (uint64_t seed = 1; seed <= seeds; seed++)
        if (!run(scenario, seed, failure, bytes)) return seed;
    return 0;
}

static unsigned count_bugs(const struct sim_scenario *scenario)
{
    unsigned count = 0;
    while (scenario->bugs && scenario->bugs[count] != BUG_NONE) count++;
    return count;
}

static int test_all(const struct sim_scenario *scenarios, size_t count)
{
    const char *percent_text = getenv("SIM_SEEDS");
    uint64_t percent = percent_text ? strtoull(percent_text, NULL, 10) : 100;
    unsigned number = 0, failed = 0;
    char failure[400];
    for (size_t s = 0; s < count; s++) {
        const struct sim_scenario *scenario = &scenarios[s];
        uint64_t seeds = (scenario->seeds * percent + 99) / 100, seed;
        planted_bug = BUG_NONE;
        seed = first_failure(scenario, seeds, failure, sizeof failure);
        printf("%s %u - %s: %" PRIu64 " seeds\n", seed ? "not ok" : "ok", ++number, scenario->name, seeds);
        if (seed) printf("# replay with --scenario %s --seed %" PRIu64 ": %s\n", scenario->name, seed, failure);
        failed += seed != 0;
        for (unsigned b = 0; b < count_bugs(scenario); b++) {
            planted_bug = scenario->bugs[b];
            seed = first_failure(scenario, scenario->seeds, failure, sizeof failure);
            printf("%s %u - %s: finds planted bug %d%s", seed ? "ok" : "not ok", ++number, scenario->name,
                   (int)planted_bug, seed ? "" : "\n");
            if (seed) printf(" with seed %" PRIu64 "\n# %s\n", seed, failure);
            failed += seed == 0;
        }
        fflush(stdout);
    }
    printf("1..%u\n", number);
    return failed != 0;
}

static int usage(const char *program)
{
    fprintf(stderr, "usage: %s [--scenario NAME --seed S [--bug B]]\n", program);
    return 2;
}

int sim_main(int argc, char **argv, const struct sim_scenario *scenarios, size_t count)
{
    const char *name = NULL;
    uint64_t seed = 0;
    char failure[400];
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc) return usage(argv[0]);
        if (!strcmp(argv[i], "--scenario"))
            name = argv[i + 1];
        else if (!strcmp(argv[i], "--seed"))
            seed = strtoull(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--bug"))
            planted_bug = (enum planted_bug)strtoul(argv[i + 1], NULL, 10);
        else
            return usage(argv[0]);
    }
    if (!name) return test_all(scenarios, count);
    for (size_t s = 0; s < count; s++) {
        if (strcmp(scenarios[s].name, name)) continue;
        bool good = run(&scenarios[s], seed, failure, sizeof failure);
        printf("%s seed %" PRIu64 ": %s\n", name, seed, good ? "passes" : failure);
        return !good;
    }
    return usage(argv[0]);
}
