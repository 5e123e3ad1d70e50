/* tree_start.c - starting daemons: whose turn it is, how long it may take, and the greeting of one that has come up. */
#include "config.h"

#include "launcher/tree_private.h"

#include "runtime/base/planted.h"

#include <stdio.h>
#include <string.h>

/* Who has been begun and has neither come up nor failed. */
static bool is_under_way(const struct tree_agent *agent)
{
    return agent->stage < TREE_STAGE_UP;
}

static int index_of(const struct tree *tree, int position)
{
    const struct tree_options *options = &tree->options;
    if (position == TREE_EVERYBODY && options->start == TREE_START_ONCE && tree_is_front(tree))
        return tree->agent_count;
    int index =
        options->start == TREE_START_FRONT ? position : position - tree_child(&options->shape, options->position, 0);
    return position >= 0 && index >= 0 && index < tree->agent_count ? index : -1;
}

static int position_of(const struct tree *tree, int index)
{
    if (tree->options.start == TREE_START_FRONT) return index;
    return tree_child(&tree->options.shape, tree->options.position, index);
}

struct tree_agent *tree_agent_of(const struct tree *tree, int position)
{
    int index = index_of(tree, position);
    return index < 0 ? NULL : &tree->agents[index];
}

static void start(struct tree *tree, struct tree_agent *agent, int position)
{
    struct tree_output *output = tree_act(tree, TREE_START);
    if (!output) return;
    agent->stage = TREE_STAGE_STARTING;
    agent->runs = true;
    output->action.position = position;
    if (tree->contacts)
        output->action.data = tree_contact(tree, tree_above(&tree->options.shape, position), &output->action.bytes);
}

/* Nobody starts others before it is tied in itself: what is to end would go on and on. */
static bool waits_for_parent(const struct tree *tree)
{
    return !tree_is_front(tree) && !tree_place_of(tree, TREE_PARENT)->greeted;
}

void tree_start_more(struct tree *tree)
{
    int window = tree->options.start_window;
    bool once = tree->options.start == TREE_START_ONCE, may = once || !waits_for_parent(tree);
    while (may && tree->phase == TREE_RUNS && !tree->failed && tree->begun < tree->queued &&
           (!window || tree->under_way < window)) {
        int index = tree->queue[tree->begun++];
        tree->agents[index].since = tree->now;
        tree->agents[index].begun = true;
        tree->under_way++;
        if (!once) start(tree, &tree->agents[index], position_of(tree, index));
    }
}

void tree_start_open(struct tree *tree)
{
    tree->begun_at = tree->now;
    if (tree->options.start == TREE_START_ONCE) {
        tree->options.start_window = 0;
        for (int i = 0; i < tree->agent_count + tree_is_front(tree); i++) tree->agents[i].status = -1;
        if (tree_is_front(tree)) start(tree, &tree->agents[tree->agent_count], TREE_EVERYBODY);
    }
    for (int i = 0; i < tree->agent_count; i++) tree->agents[i].status = -1;
    int first = tree->options.start == TREE_START_FRONT ? tree_is_front(tree) : tree->agent_count;
    while (tree->queued < first) {
        tree->queue[tree->queued] = tree->queued;
        tree->queued++;
    }
    tree_start_more(tree);
}

static void stop(struct tree *tree, struct tree_agent *agent, int position)
{
    struct tree_output *output = agent->runs && !agent->stopped ? tree_act(tree, TREE_STOP_AGENT) : NULL;
    if (!output) return;
    output->action.position = position;
    agent->stopped = true;
}

static void settle(struct tree *tree, struct tree_agent *agent, enum tree_stage stage)
{
    bool counted = is_under_way(agent) && agent->begun;
    agent->stage = stage;
    if (!counted) return;
    if (!PLANTED_BUG(BUG_TREE_WINDOW_KEPT)) tree->under_way--;
    tree_start_more(tree);
}

void tree_start_known(struct tree *tree, int position)
{
    struct tree_agent *agent = tree_agent_of(tree, position);
    int below = tree->contacts ? tree_child_count(&tree->options.shape, position) : 0;
    for (int i = 0; i < below; i++) tree->queue[tree->queued++] = tree_child(&tree->options.shape, position, i);
    if (agent && agent->stage != TREE_STAGE_GONE) settle(tree, agent, TREE_STAGE_UP);
    tree_start_more(tree);
}

static void fail_start(struct tree *tree, int position, enum tree_cause cause, const char *text)
{
    struct tree_agent *agent = tree_agent_of(tree, position);
    struct tree_failure failure = {
        .position = position, .cause = cause, .stage = agent->stage, .status = agent->status, .text = text};
    tree_fail(tree, &failure);
    stop(tree, agent, position);
    settle(tree, agent, TREE_STAGE_GONE);
}

/* ---- Agents ---- */

static struct tree_agent *running_agent(struct tree *tree, int position)
{
    struct tree_agent *agent = tree_agent_of(tree, position);
    if (agent && agent->runs) return agent;
    base_error(NCCLX_ERR_ARG, "no agent of daemon %d is under way", position);
    return NULL;
}

int tree_agent_started(struct tree *tree, int position, uint64_t now)
{
    struct tree_agent *agent = running_agent(tree, position);
    if (!agent) return NCCLX_ERR_ARG;
    tree_advance(tree, now);
    if (agent->stage == TREE_STAGE_STARTING) agent->stage = TREE_STAGE_AGENT;
    return tree_result(tree);
}

int tree_agent_failed(struct tree *tree, int position, const char *why, uint64_t now)
{
    struct tree_agent *agent = running_agent(tree, position);
    if (!agent) return NCCLX_ERR_ARG;
    tree_advance(tree, now);
    agent->runs = false;
    if (is_under_way(agent)) fail_start(tree, position, TREE_CAUSE_AGENT_FAILED, why);
    tree_end_review(tree);
    return tree_result(tree);
}

int tree_agent_ended(struct tree *tree, int position, int status, const char *output, uint64_t now)
{
    struct tree_agent *agent = running_agent(tree, position);
    if (!agent) return NCCLX_ERR_ARG;
    tree_advance(tree, now);
    agent->runs = false;
    agent->status = status;
    bool detached = status == 0 && position != TREE_EVERYBODY;
    if (is_under_way(agent) && (detached || PLANTED_BUG(BUG_TREE_AGENT_IGNORED)))
        agent->stage = TREE_STAGE_DETACHED;
    else if (is_under_way(agent))
        fail_start(tree, position, TREE_CAUSE_AGENT_ENDED, output);
    tree_end_review(tree);
    return tree_result(tree);
}

void tree_stop_agents(struct tree *tree, bool all)
{
    for (int i = 0; i <= tree->agent_count; i++) {
        struct tree_agent *agent = &tree->agents[i];
        bool everybody = i == tree->agent_count;
        if (all || (!everybody && is_under_way(agent)))
            stop(tree, agent, everybody ? TREE_EVERYBODY : position_of(tree, i));
    }
}

/* ---- Time ---- */

static uint64_t limit_from(const struct tree *tree, uint64_t since)
{
    return tree->options.start_ns ? since + tree->options.start_ns : UINT64_MAX;
}

/* Those begun wait in the order of their starts: the first is the first to be late. */
static struct tree_agent *oldest(struct tree *tree)
{
    while (tree->settled < tree->begun && !is_under_way(&tree->agents[tree->queue[tree->settled]])) tree->settled++;
    return tree->settled < tree->begun ? &tree->agents[tree->queue[tree->settled]] : NULL;
}

uint64_t tree_start_deadline(const struct tree *tree)
{
    if (tree->phase != TREE_RUNS) return UINT64_MAX;
    uint64_t at = waits_for_parent(tree) ? limit_from(tree, tree->begun_at) : UINT64_MAX;
    for (int i = tree->settled; i < tree->begun; i++) {
        const struct tree_agent *agent = &tree->agents[tree->queue[i]];
        if (!is_under_way(agent)) continue;
        uint64_t limit = limit_from(tree, agent->since);
        return limit < at ? limit : at;
    }
    return at;
}

void tree_start_check(struct tree *tree)
{
    struct tree_agent *agent;
    while (tree->phase == TREE_RUNS && (agent = oldest(tree)) && limit_from(tree, agent->since) <= tree->now)
        fail_start(tree, position_of(tree, tree->queue[tree->settled]), TREE_CAUSE_NOT_CONNECTED, NULL);
    if (tree->phase == TREE_RUNS && waits_for_parent(tree) && limit_from(tree, tree->begun_at) <= tree->now)
        tree_lose(tree, TREE_PARENT, TREE_CAUSE_NOT_CONNECTED, NULL);
}

/* ---- Greetings ---- */

int tree_parent_up(struct tree *tree, uint64_t now)
{
    struct tree_place *place = tree_place_of(tree, TREE_PARENT);
    struct frame_writer writer;
    if (tree_is_front(tree) || place->greeted || tree->phase == TREE_NOT_BEGUN || tree->phase == TREE_IS_FINISHED)
        return base_error(NCCLX_ERR_ARG, "a connection upwards that is not expected");
    tree_advance(tree, now);
    place->greeted = place->open = true;
    place->heard = tree->now;
    const struct tree_options *options = &tree->options;
    struct tree_hello hello = {.job = options->job,
                               .version = tree->version,
                               .count = options->shape.count,
                               .radix = options->shape.radix,
                               .position = options->position};
    tree_write_hello(&writer, &hello);
    tree_send(tree, TREE_PARENT, &writer);
    tree_tell_failure(tree);
    tree_nodes_review(tree);
    tree_start_more(tree);
    tree_end_review(tree);
    return tree_result(tree);
}

/* The link of the daemon that greets, or -1 with the reason recorded. */
static int find_link(const struct tree *tree, const struct tree_hello *hello)
{
    const struct tree_shape *shape = &tree->options.shape;
    int me = tree->options.position, link = hello->position - tree_child(shape, me, 0);
    if (hello->job != tree->options.job && !PLANTED_BUG(BUG_TREE_OTHER_JOB)) {
        base_error(NCCLX_ERR_TRANSPORT, "a daemon of another job connects");
        return -1;
    }
    if (link < 0 || link >= tree->child_count) {
        base_error(NCCLX_ERR_TRANSPORT, "daemon %d connects, which belongs elsewhere", hello->position);
        return -1;
    }
    const struct tree_agent *agent = tree_agent_of(tree, hello->position);
    if (tree_place_of(tree, link)->greeted || (agent && (!agent->begun || agent->stage == TREE_STAGE_GONE))) {
        base_error(NCCLX_ERR_TRANSPORT, "daemon %d connects again, too early or too late", hello->position);
        return -1;
    }
    return link;
}

/* True when it will do. */
static bool check_hello(struct tree *tree, const struct tree_hello *hello)
{
    const struct tree_shape *shape = &tree->options.shape;
    struct tree_failure failure = {.position = hello->position, .stage = TREE_STAGE_UP, .status = -1};
    struct tree_agent *agent = tree_agent_of(tree, hello->position);
    char text[80];
    if (strcmp(hello->version, tree->version)) {
        failure.cause = TREE_CAUSE_VERSION;
        failure.text = hello->version;
    } else if (hello->count != shape->count || hello->radix != shape->radix) {
        snprintf(text, sizeof text, "it believes in a tree of %d with radix %d", hello->count, hello->radix);
        failure.cause = TREE_CAUSE_PROTOCOL;
        failure.text = text;
    } else {
        return true;
    }
    tree_fail(tree, &failure);
    if (agent) settle(tree, agent, TREE_STAGE_GONE);
    base_error(NCCLX_ERR_TRANSPORT, "daemon %d is another version, or of another tree", hello->position);
    return false;
}

int tree_greet(struct tree *tree, const struct frame *frame, uint64_t now, int *out)
{
    struct tree_hello hello;
    if (tree->phase == TREE_NOT_BEGUN || tree->phase == TREE_IS_FINISHED)
        return base_error(NCCLX_ERR_TRANSPORT, "a connection that is not expected");
    tree_advance(tree, now);
    int code = tree_read_hello(frame, &hello);
    int link = code ? -1 : find_link(tree, &hello);
    if (link < 0) return NCCLX_ERR_TRANSPORT;
    struct tree_place *place = tree_place_of(tree, link);
    place->greeted = true;
    if (!check_hello(tree, &hello)) return NCCLX_ERR_TRANSPORT;
    place->open = true;
    place->heard = place->sent = tree->now;
    *out = link;
    if (!tree->contacts) tree_start_known(tree, hello.position);
    if (tree->phase == TREE_ENDS && !PLANTED_BUG(BUG_TREE_LATE_NOT_TOLD)) tree_send_end(tree, link);
    return tree_result(tree);
}
