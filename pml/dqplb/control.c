/* control.c - the window of a connection, from what its segments tell. */
#include "pml/dqplb/control.h"

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The product may be more than 64 bits hold. */
static uint64_t scaled(uint64_t value, uint64_t by, uint64_t over)
{
    return (uint64_t)((double)value * (double)by / (double)over);
}

static void keep_within(struct dqplb_control *control)
{
    if (!PLANTED_BUG(BUG_CONTROL_CAP_IGNORED)) control->window = least_of(control->window, control->cap);
    control->window = most_of(control->window, control->floor);
}

void control_limits(struct dqplb_control *control, unsigned lanes, unsigned outstanding, uint64_t segment)
{
    control->cap = segment * outstanding * lanes;
    control->floor = least_of(2 * segment * lanes, control->cap);
    control->step = segment * (lanes < 2 ? 2 : lanes);
    keep_within(control);
}

/* ---- Rates ---- */

uint64_t control_rate(const struct dqplb_control *control)
{
    uint64_t best = 0;
    for (unsigned i = 0; i < CONTROL_RATES; i++) best = most_of(best, control->rate[i]);
    return best;
}

static void count_rate(struct dqplb_control *control, uint64_t now)
{
    uint64_t bytes = control->completed - control->round_completed;
    uint64_t ns = most_of(now - control->round_begin_ns, control->base_ns); /* completions come many at a time */
    if (!ns) return;
    uint64_t rate = scaled(bytes, UINT64_C(1000000000), ns);
    if (!control->limited && rate <= control_rate(control)) return;
    control->rate[control->turn++ % CONTROL_RATES] = rate;
}

/* ---- Rounds ---- */

static void begin_round(struct dqplb_control *control, uint64_t now)
{
    control->round_end = control->posted;
    control->round_begin_ns = now;
    control->round_completed = control->completed;
    control->round = (struct control_round){.samples = 0};
    control->limited = false;
}

static void decrease(struct dqplb_control *control, uint64_t standing, uint64_t noise)
{
    control->window = scaled(control->window, least_of(control->base_ns + noise, standing), standing) / 8 * 7;
    control->settled = true;
    control->holding = true;
    control->calm = 0;
    if (++control->decreases < CONTROL_DECREASES || control->rounds < CONTROL_ROUNDS || PLANTED_BUG(BUG_CONTROL_BASE_KEPT)) return;
    control->decreases = control->rounds = 0;
    control->base_ns = control->next_base_ns;
    control->next_base_ns = control->round.shortest_ns;
}

static void increase(struct dqplb_control *control)
{
    control->window += control->settled ? control->step * (4 + control->calm) / 4 : control->window / 2;
    control->calm++;
}

/* Of this round and the one before. */
static struct control_round seen(const struct dqplb_control *control)
{
    const struct control_round *now = &control->round, *before = &control->before;
    if (!before->samples || PLANTED_BUG(BUG_CONTROL_SPIKES_COUNT)) return *now;
    return (struct control_round){.shortest_ns = least_of(now->shortest_ns, before->shortest_ns), .noise_ns = least_of(now->noise_ns, before->noise_ns)};
}

static void adjust(struct dqplb_control *control)
{
    struct control_round round = seen(control);
    if (PLANTED_BUG(BUG_CONTROL_NOISE_IGNORED)) round.noise_ns = 0;
    bool queue = round.shortest_ns > control->base_ns + most_of(control->base_ns / 2, round.noise_ns) && !PLANTED_BUG(BUG_CONTROL_DELAY_IGNORED);
    if (control->holding) control->holding = false;
    else if (queue) decrease(control, round.shortest_ns, round.noise_ns);
    else if (control->limited || PLANTED_BUG(BUG_CONTROL_UNUSED_GROWS)) increase(control);
    keep_within(control);
}

static void end_round(struct dqplb_control *control, uint64_t now)
{
    count_rate(control, now);
    control->rounds++;
    control->round.noise_ns = 2 * (control->round.sum_ns / control->round.samples - control->round.shortest_ns);
    adjust(control);
    control->before = control->round;
    begin_round(control, now);
}

/* ---- Segments ---- */

void control_posted(struct dqplb_control *control, uint64_t bytes, uint64_t now)
{
    if (control_idle(control)) begin_round(control, now);
    control->posted += bytes;
}

static void shorten(uint64_t *shortest, uint64_t ns)
{
    if (!*shortest || ns < *shortest) *shortest = ns;
}

void control_completed(struct dqplb_control *control, uint64_t bytes, uint64_t posted_ns, uint64_t now)
{
    struct control_round *round = &control->round;
    control->completed += bytes;
    if (posted_ns && now > posted_ns) {
        round->samples++;
        round->sum_ns += now - posted_ns;
        shorten(&round->shortest_ns, now - posted_ns);
        shorten(&control->base_ns, now - posted_ns);
        shorten(&control->next_base_ns, now - posted_ns);
    }
    if (control->completed >= control->round_end && round->samples >= CONTROL_SAMPLES) end_round(control, now);
    else if (control_idle(control)) count_rate(control, now);
}
