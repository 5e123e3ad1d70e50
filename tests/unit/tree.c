/* tree.c - one place in the tree of daemons at a time, fed by hand: what it does is written down as words and compared.
 * What many places do together is the simulator's (tests/sim/startup). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "launcher/tree_private.h"

#define SECOND BASE_NS_PER_S
#define JOB 77

static char said[4000]; /* the actions since it was asked last */

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    size_t used = strlen(said);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(said + used, sizeof said - used, format, arguments);
    va_end(arguments);
}

static void note_frame(const struct tree_action *action)
{
    static const char *const names[] = {"HELLO", "NODES", "LOST", "ENDED", "END", "AWAY", "BEAT", "LEAVE"};
    struct tree_walk walk;
    struct tree_entry entry;
    struct tree_failure failure;
    struct frame frame;
    bool at_once;
    assert_int_equal(frame_parse(action->data, action->bytes, &frame), NCCLX_SUCCESS);
    assert_int_equal(frame.total, action->bytes);
    assert_true(tree_is_frame(frame.type));
    note("%s>%d", names[frame.type - TREE_FRAME_HELLO], action->link);
    if (frame.type == TREE_FRAME_NODES) {
        assert_int_equal(tree_walk_open(&frame, &walk), NCCLX_SUCCESS);
        note(":%u%s", walk.kind_count, walk.last ? "!" : "");
        while (tree_walk_next(&walk, &entry)) note(",%d=%s", entry.position, entry.node);
    } else if (frame.type == TREE_FRAME_LOST) {
        assert_int_equal(tree_read_lost(&frame, &failure), NCCLX_SUCCESS);
        note(":%d,%d", failure.position, (int)failure.cause);
    } else if (frame.type == TREE_FRAME_END) {
        assert_int_equal(tree_read_end(&frame, &at_once), NCCLX_SUCCESS);
        note("%s", at_once ? ":now" : "");
    }
    note(" ");
}

static void expect(struct tree *tree, const char *words)
{
    struct tree_action action;
    said[0] = 0;
    while (tree_next(tree, &action)) {
        switch (action.kind) {
        case TREE_START:
            note("start%d%.*s ", action.position, (int)action.bytes, action.data ? (const char *)action.data : "");
            break;
        case TREE_STOP_AGENT:
            note("stop%d ", action.position);
            break;
        case TREE_SEND:
            note_frame(&action);
            break;
        case TREE_CLOSE:
            note("close%d ", action.link);
            break;
        case TREE_NODE:
            note("node%d=%s/%.*s ", action.position, action.node, (int)action.bytes, (const char *)action.data);
            break;
        case TREE_READY:
            note("ready ");
            break;
        case TREE_REPORT:
            note("report%d,%d ", action.failure.position, (int)action.failure.cause);
            break;
        case TREE_END_LOCAL:
            note("end%s%s ", action.at_once ? "-now" : "", action.orphan ? "-orphan" : "");
            break;
        case TREE_ALL_ENDED:
            note("all-ended ");
            break;
        case TREE_FINISHED:
            note("finished%d ", action.position);
            break;
        }
    }
    if (said[0]) said[strlen(said) - 1] = 0;
    assert_string_equal(said, words);
}

static struct tree_options options_of(int count, int position)
{
    return (struct tree_options){.shape = {count, 2},
                                 .position = position,
                                 .job = JOB,
                                 .start_ns = 10 * SECOND,
                                 .silence_ns = 20 * SECOND,
                                 .end_ns = 5 * SECOND};
}

static struct tree *create(const struct tree_options *options)
{
    char node[16];
    snprintf(node, sizeof node, "n%d", options->position);
    struct tree_self self = {.version = "1.0",
                             .node = node,
                             .description = "d",
                             .description_bytes = 1,
                             .contact = "@f",
                             .contact_bytes = 2};
    struct tree *tree;
    assert_int_equal(tree_create(options, &self, 0, &tree), NCCLX_SUCCESS);
    assert_int_equal(tree_begin(tree, 0), NCCLX_SUCCESS);
    return tree;
}

static struct tree *place(int count, int position)
{
    struct tree_options options = options_of(count, position);
    return create(&options);
}

static struct frame finished(struct frame_writer *writer)
{
    struct frame frame;
    assert_int_equal(frame_finish(writer), NCCLX_SUCCESS);
    assert_int_equal(frame_parse(writer->data, writer->used, &frame), NCCLX_SUCCESS);
    return frame;
}

static int greet_as(struct tree *tree, const struct tree_hello *hello, uint64_t now)
{
    struct frame_writer writer;
    int link = -9;
    tree_write_hello(&writer, hello);
    struct frame frame = finished(&writer);
    int code = tree_greet(tree, &frame, now, &link);
    frame_release(&writer);
    return code ? -code : link;
}

static int greet(struct tree *tree, int count, int position, uint64_t now)
{
    struct tree_hello hello = {.job = JOB, .version = "1.0", .count = count, .radix = 2, .position = position};
    return greet_as(tree, &hello, now);
}

/* Texts: position=name/description, ... */
static void receive_nodes(struct tree *tree, int link, bool last, const char *list, uint64_t now)
{
    struct tree_batch batch = {0};
    struct frame_writer writer;
    char copy[400], *rest = copy;
    snprintf(copy, sizeof copy, "%s", list);
    for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        char node[40], description[40];
        struct tree_entry entry = {.node = node, .description = description, .contact = node};
        assert_int_equal(sscanf(word, "%d=%39[^/]/%39s", &entry.position, node, description), 3);
        entry.description_bytes = strlen(description);
        entry.contact_bytes = strlen(node);
        assert_true(tree_batch_add(&batch, &entry));
    }
    tree_batch_write(&batch, last, &writer);
    struct frame frame = finished(&writer);
    assert_int_equal(tree_receive(tree, link, &frame, now), NCCLX_SUCCESS);
    frame_release(&writer);
}

static void receive_empty(struct tree *tree, int link, uint8_t type, uint64_t now)
{
    struct frame frame = {.type = type};
    assert_int_equal(tree_receive(tree, link, &frame, now), NCCLX_SUCCESS);
}

static void receive_lost(struct tree *tree, int link, int position, uint64_t now)
{
    struct frame_writer writer;
    tree_write_lost(
        &writer,
        &(struct tree_failure){.position = position, .cause = TREE_CAUSE_CLOSED, .stage = TREE_STAGE_UP, .status = -1});
    struct frame frame = finished(&writer);
    assert_int_equal(tree_receive(tree, link, &frame, now), NCCLX_SUCCESS);
    frame_release(&writer);
}

static void receive_end(struct tree *tree, bool at_once, uint64_t now)
{
    unsigned char payload = at_once;
    struct frame frame = {.type = TREE_FRAME_END, .payload = &payload, .bytes = 1};
    assert_int_equal(tree_receive(tree, TREE_PARENT, &frame, now), NCCLX_SUCCESS);
}

static void drop(struct tree *tree)
{
    struct base_area_usage usage;
    tree_destroy(tree);
    base_area_usage(AREA_LAUNCHER, &usage);
    assert_int_equal(usage.bytes, 0);
}

/* ---- The shape: against what following parents says ---- */

static bool is_below(const struct tree_shape *shape, int top, int position)
{
    while (position != TREE_FRONT && position != top) position = tree_above(shape, position);
    return position == top;
}

static void check_below(const struct tree_shape *shape, int top)
{
    int count = 0, height = 0;
    for (int p = 0; p < shape->count; p++) {
        if (!is_below(shape, top, p)) continue;
        assert_int_equal(tree_below(shape, top, count), p);
        count++;
        int levels = 0;
        for (int q = p; q != top; q = tree_above(shape, q)) levels++;
        if (levels > height) height = levels;
        if (p == top) continue;
        int link = tree_link_to(shape, top, p);
        assert_in_range(link, 0, tree_child_count(shape, top) - 1);
        assert_true(is_below(shape, tree_child(shape, top, link), p));
    }
    assert_int_equal(tree_below_count(shape, top), count);
    assert_int_equal(tree_height(shape, top), height);
}

static void the_shape_is_a_tree(void **state)
{
    (void)state;
    for (int count = 1; count <= 40; count++) {
        for (int radix = 1; radix <= 6; radix++) {
            struct tree_shape shape = {count, radix};
            for (int p = TREE_FRONT; p < count; p++) check_below(&shape, p);
        }
    }
}

static void frames_find_their_way(void **state)
{
    (void)state;
    struct tree_shape shape = {7, 2};
    assert_true(tree_way(&shape, 1, 1).here);
    assert_true(tree_way(&shape, 1, TREE_FRONT).up);
    assert_true(tree_way(&shape, 1, 2).up);
    struct tree_way way = tree_way(&shape, 0, 5);
    assert_true(!way.here && !way.up && way.first == 1 && way.link_count == 1);
    way = tree_way(&shape, 1, TREE_EVERYBODY);
    assert_true(way.here && !way.up && way.first == 0 && way.link_count == 2);
    way = tree_way(&shape, TREE_FRONT, TREE_EVERYBODY);
    assert_true(!way.here && way.link_count == 1);
    way = tree_way(&shape, TREE_FRONT, 6);
    assert_true(!way.here && way.first == 0 && way.link_count == 1);
    assert_true(tree_way(&shape, TREE_FRONT, TREE_FRONT).here);
}

/* ---- Start ---- */

static void a_daemon_gathers_those_below(void **state)
{
    (void)state;
    struct tree *tree = place(5, 1);
    expect(tree, "");
    assert_int_equal(tree_parent_up(tree, 1), NCCLX_SUCCESS);
    expect(tree, "HELLO>-1 start3 start4");
    assert_int_equal(greet(tree, 5, 4, 2), 1);
    receive_nodes(tree, 1, true, "4=n4/d", 3);
    expect(tree, "");
    assert_int_equal(tree_tick(tree, SECOND + 5), NCCLX_SUCCESS); /* what is known does not wait for ever */
    expect(tree, "NODES>-1:1,1=n1,4=n4");
    assert_int_equal(greet(tree, 5, 3, SECOND + 6), 0);
    receive_nodes(tree, 0, true, "3=n3/other", SECOND + 7);
    expect(tree, "NODES>-1:1!,3=n3");
    assert_int_equal(tree_up_count(tree), 3);
    drop(tree);
}

static void the_front_is_ready(void **state)
{
    (void)state;
    enum tree_stage stage;
    struct tree *tree = place(3, TREE_FRONT);
    expect(tree, "start0");
    assert_int_equal(greet(tree, 3, 0, 1), 0);
    receive_nodes(tree, 0, false, "0=a/x,2=c/y", 2);
    expect(tree, "node0=a/x node2=c/y");
    assert_int_equal(tree_missing(tree, 0, &stage), 1);
    receive_nodes(tree, 0, true, "1=b/x", 3);
    expect(tree, "node1=b/x ready");
    assert_int_equal(tree_missing(tree, 0, &stage), -1);
    receive_empty(tree, 0, TREE_FRAME_ENDED, 4);
    expect(tree, "all-ended");
    assert_int_equal(tree_end(tree, false, 5), NCCLX_SUCCESS);
    expect(tree, "END>0 end");
    assert_int_equal(tree_local_ended(tree, 6), NCCLX_SUCCESS);
    assert_int_equal(tree_link_closed(tree, 0, NULL, 7), NCCLX_SUCCESS);
    expect(tree, "");
    assert_int_equal(tree_agent_ended(tree, 0, 0, NULL, 8), NCCLX_SUCCESS);
    expect(tree, "finished-2");
    drop(tree);
}

static void the_front_starts_all_through_a_window(void **state)
{
    (void)state;
    struct tree_options options = options_of(5, TREE_FRONT);
    options.start = TREE_START_FRONT;
    options.start_window = 1;
    struct tree *tree = create(&options);
    expect(tree, "start0@f");
    assert_int_equal(greet(tree, 5, 0, 1), 0);
    expect(tree, "");
    receive_nodes(tree, 0, false, "0=a/x", 2);
    expect(tree, "node0=a/x start1a");
    receive_nodes(tree, 0, false, "1=b/x", 3);
    expect(tree, "node1=b/x start2a");
    receive_nodes(tree, 0, false, "2=c/x", 4);
    expect(tree, "node2=c/x start3b");
    assert_int_equal(tree_agent_started(tree, 3, 5), NCCLX_SUCCESS);
    assert_int_equal(tree_tick(tree, 9 * SECOND), NCCLX_SUCCESS);
    expect(tree, "BEAT>0");
    receive_empty(tree, 0, TREE_FRAME_BEAT, 9 * SECOND);
    assert_int_equal(tree_tick(tree, 10 * SECOND + 4), NCCLX_SUCCESS);
    expect(tree, "report3,3 stop3 END>0 end");
    drop(tree);
}

static void one_agent_starts_all(void **state)
{
    (void)state;
    struct tree_options options = options_of(3, TREE_FRONT);
    options.start = TREE_START_ONCE;
    struct tree *tree = create(&options);
    expect(tree, "start-2");
    assert_int_equal(tree_agent_started(tree, TREE_EVERYBODY, 1), NCCLX_SUCCESS);
    assert_int_equal(tree_agent_ended(tree, TREE_EVERYBODY, 1 << 8, "no such node", 2), NCCLX_SUCCESS);
    expect(tree, "report-2,2 end");
    drop(tree);

    tree = create(&options);
    expect(tree, "start-2");
    assert_int_equal(greet(tree, 3, 0, 1), 0);
    assert_int_equal(tree_link_closed(tree, 0, NULL, 2), NCCLX_SUCCESS);
    expect(tree, "report0,5 end");
    assert_int_equal(tree_local_ended(tree, 3), NCCLX_SUCCESS);
    expect(tree, ""); /* the agent has a moment */
    assert_int_equal(tree_tick(tree, 3 + SECOND), NCCLX_SUCCESS);
    expect(tree, "stop-2 finished0");
    drop(tree);

    options.position = 0;
    tree = create(&options);
    expect(tree, "");
    assert_int_equal(tree_parent_up(tree, 1), NCCLX_SUCCESS);
    expect(tree, "HELLO>-1");
    assert_int_equal(greet(tree, 3, 2, 2), 1);
    assert_int_equal(tree_tick(tree, 4 * SECOND), NCCLX_SUCCESS);
    expect(tree, "NODES>-1:1,0=n0");
    assert_int_equal(tree_tick(tree, 10 * SECOND), NCCLX_SUCCESS);
    expect(tree, "BEAT>-1 BEAT>1 LOST>-1:1,3");
    drop(tree);
}

static void strangers_are_not_taken_in(void **state)
{
    (void)state;
    struct tree_hello hello = {.job = JOB + 1, .version = "1.0", .count = 5, .radix = 2, .position = 3};
    struct tree *tree = place(5, 1);
    expect(tree, "");
    assert_int_equal(tree_parent_up(tree, 1), NCCLX_SUCCESS);
    expect(tree, "HELLO>-1 start3 start4");
    assert_int_equal(greet_as(tree, &hello, 2), -NCCLX_ERR_TRANSPORT);
    hello.job = JOB;
    hello.position = 2;
    assert_int_equal(greet_as(tree, &hello, 2), -NCCLX_ERR_TRANSPORT);
    expect(tree, "");
    assert_int_equal(greet(tree, 5, 3, 3), 0);
    assert_int_equal(greet(tree, 5, 3, 4), -NCCLX_ERR_TRANSPORT); /* a second one */
    expect(tree, "");
    hello.position = 4;
    hello.version = "2.0";
    assert_int_equal(greet_as(tree, &hello, 5), -NCCLX_ERR_TRANSPORT);
    expect(tree, "LOST>-1:4,4");
    drop(tree);
}

static void a_failing_agent_is_told_of(void **state)
{
    (void)state;
    struct tree *tree = place(5, 1);
    assert_int_equal(tree_parent_up(tree, 0), NCCLX_SUCCESS);
    expect(tree, "HELLO>-1 start3 start4");
    assert_int_equal(tree_agent_started(tree, 3, 1), NCCLX_SUCCESS);
    assert_int_equal(tree_agent_ended(tree, 3, 255 << 8, "no route", 2), NCCLX_SUCCESS);
    assert_int_equal(tree_agent_failed(tree, 4, "no ssh", 2), NCCLX_SUCCESS);
    expect(tree, "LOST>-1:3,2");
    receive_end(tree, false, 4);
    expect(tree, "end");
    drop(tree);
}

static void a_refusal_waits_for_somebody_to_tell(void **state)
{
    (void)state;
    struct tree *tree = place(1, 0);
    assert_int_equal(tree_refuse(tree, "the disk is full", 1), NCCLX_SUCCESS);
    expect(tree, "");
    assert_int_equal(tree_parent_up(tree, 2), NCCLX_SUCCESS);
    expect(tree, "HELLO>-1 LOST>-1:0,8 NODES>-1:1!,0=n0");
    drop(tree);
    tree = place(1, 0);
    assert_int_equal(tree_tick(tree, 10 * SECOND), NCCLX_SUCCESS); /* nobody is there */
    expect(tree, "close-1 end-orphan");
    assert_int_equal(tree_local_ended(tree, 10 * SECOND), NCCLX_SUCCESS);
    expect(tree, "finished-2");
    drop(tree);
}

/* ---- Loss and silence ---- */

static void silence_has_a_limit(void **state)
{
    (void)state;
    struct tree *tree = place(3, 0);
    uint64_t now;
    assert_int_equal(tree_parent_up(tree, 0), NCCLX_SUCCESS);
    expect(tree, "HELLO>-1 start1 start2");
    assert_int_equal(greet(tree, 3, 1, 0), 0);
    assert_int_equal(greet(tree, 3, 2, 0), 1);
    receive_nodes(tree, 0, true, "1=b/d", 0);
    receive_nodes(tree, 1, true, "2=c/d", 0);
    expect(tree, "NODES>-1:1!,0=n0,1=b,2=c");
    for (now = 5 * SECOND; now <= 15 * SECOND; now += 5 * SECOND) {
        tree_heard(tree, TREE_PARENT, now);
        tree_heard(tree, 1, now);
        tree_sent(tree, TREE_PARENT, now);
        assert_int_equal(tree_tick(tree, now), NCCLX_SUCCESS);
        expect(tree, "BEAT>0 BEAT>1");
    }
    assert_int_equal(tree_deadline(tree), 20 * SECOND);
    assert_int_equal(tree_tick(tree, 20 * SECOND), NCCLX_SUCCESS);
    expect(tree, "BEAT>-1 LOST>-1:1,6 close0 BEAT>1");
    assert_int_not_equal(tree_link_closed(tree, 0, NULL, 20 * SECOND), NCCLX_SUCCESS);
    drop(tree);
}

static void who_was_stopped_blames_nobody(void **state)
{
    (void)state;
    struct tree *tree = place(1, 0);
    assert_int_equal(tree_parent_up(tree, 0), NCCLX_SUCCESS);
    expect(tree, "HELLO>-1 NODES>-1:1!,0=n0");
    assert_int_equal(tree_tick(tree, 3600 * SECOND), NCCLX_SUCCESS);
    expect(tree, "BEAT>-1");
    assert_true(tree_deadline(tree) <= 3605 * SECOND);
    receive_empty(tree, TREE_PARENT, TREE_FRAME_AWAY, 3601 * SECOND);
    for (uint64_t now = 3605 * SECOND; now < 3700 * SECOND; now += 5 * SECOND) {
        assert_int_equal(tree_tick(tree, now), NCCLX_SUCCESS);
    }
    assert_true(tree_is_open(tree, TREE_PARENT));
    tree_heard(tree, TREE_PARENT, 3700 * SECOND);
    tree_hold(tree, TREE_PARENT, true, 3700 * SECOND);
    for (uint64_t now = 3700 * SECOND; now < 3800 * SECOND; now += 5 * SECOND) {
        assert_int_equal(tree_tick(tree, now), NCCLX_SUCCESS);
    }
    assert_true(tree_is_open(tree, TREE_PARENT));
    tree_hold(tree, TREE_PARENT, false, 3800 * SECOND);
    for (uint64_t now = 3800 * SECOND; now <= 3820 * SECOND; now += 5 * SECOND) {
        assert_int_equal(tree_tick(tree, now), NCCLX_SUCCESS);
    }
    assert_false(tree_is_open(tree, TREE_PARENT));
    drop(tree);
}

static void a_broken_protocol_is_a_loss(void **state)
{
    (void)state;
    struct tree *tree = place(5, 1);
    assert_int_equal(tree_parent_up(tree, 1), NCCLX_SUCCESS);
    assert_int_equal(greet(tree, 5, 3, 1), 0);
    assert_int_equal(greet(tree, 5, 4, 1), 1);
    expect(tree, "HELLO>-1 start3 start4");
    receive_nodes(tree, 0, true, "4=n4/d", 2); /* not below it */
    expect(tree, "LOST>-1:3,7 close0");
    receive_empty(tree, 1, TREE_FRAME_HELLO, 3);
    expect(tree, "close1"); /* one cause is enough */
    drop(tree);
}

/* ---- End ---- */

static void the_end_waits_for_those_below(void **state)
{
    (void)state;
    struct tree *tree = place(5, 1);
    assert_int_equal(tree_parent_up(tree, 1), NCCLX_SUCCESS);
    assert_int_equal(greet(tree, 5, 3, 1), 0);
    expect(tree, "HELLO>-1 start3 start4");
    receive_end(tree, false, 2);
    expect(tree, "stop4 END>0 end");
    assert_int_equal(greet(tree, 5, 4, 3), 1); /* too late to start, in time to end */
    expect(tree, "END>1");
    receive_end(tree, true, 4);
    expect(tree, "END>0:now END>1:now end-now");
    assert_int_equal(tree_local_ended(tree, 5), NCCLX_SUCCESS);
    receive_empty(tree, 0, TREE_FRAME_ENDED, 6);
    receive_empty(tree, 1, TREE_FRAME_ENDED, 6);
    expect(tree, "ENDED>-1");
    assert_int_equal(tree_link_closed(tree, 0, NULL, 7), NCCLX_SUCCESS);
    assert_int_equal(tree_link_closed(tree, 1, NULL, 7), NCCLX_SUCCESS);
    assert_int_equal(tree_agent_ended(tree, 3, 0, NULL, 7), NCCLX_SUCCESS);
    expect(tree, "");
    assert_int_equal(tree_agent_ended(tree, 4, 9, NULL, 8), NCCLX_SUCCESS);
    expect(tree, "finished-2");
    drop(tree);
}

/* The connection is gone before anybody has ended the job; why is known only when the job ends. */
static void a_loss_that_is_explained_late_is_one(void **state)
{
    (void)state;
    struct tree *tree = place(5, 1);
    assert_int_equal(tree_parent_up(tree, 1), NCCLX_SUCCESS);
    assert_int_equal(greet(tree, 5, 3, 1), 0);
    assert_int_equal(greet(tree, 5, 4, 1), 1);
    expect(tree, "HELLO>-1 start3 start4");
    assert_int_equal(tree_link_closing(tree, 0, 2), NCCLX_SUCCESS);
    expect(tree, "");
    receive_end(tree, false, 3);
    assert_int_equal(tree_link_closing(tree, 1, 4), NCCLX_SUCCESS); /* this one has left because of that */
    assert_int_equal(tree_agent_ended(tree, 4, 0, NULL, 5), NCCLX_SUCCESS);
    assert_int_equal(tree_link_closed(tree, 1, NULL, 5), NCCLX_SUCCESS);
    expect(tree, "END>0 END>1 end");
    assert_int_equal(tree_agent_ended(tree, 3, 137 << 8, NULL, 6), NCCLX_SUCCESS);
    assert_int_equal(tree_link_closed(tree, 0, NULL, 6), NCCLX_SUCCESS);
    expect(tree, "LOST>-1:3,5");
    assert_int_equal(tree_local_ended(tree, 7), NCCLX_SUCCESS);
    expect(tree, "finished3");
    drop(tree);

    tree = place(3, TREE_FRONT); /* it is told even to those who have begun the end */
    assert_int_equal(greet(tree, 3, 0, 1), 0);
    expect(tree, "start0");
    assert_int_equal(tree_end(tree, false, 2), NCCLX_SUCCESS);
    expect(tree, "END>0 end");
    receive_lost(tree, 0, 1, 3);
    expect(tree, "report1,5");
    drop(tree);

    tree = place(3, TREE_FRONT); /* unless all was over */
    assert_int_equal(greet(tree, 3, 0, 1), 0);
    expect(tree, "start0");
    receive_nodes(tree, 0, true, "0=a/x,1=b/x,2=c/x", 2);
    expect(tree, "node0=a/x node1=b/x node2=c/x ready");
    receive_empty(tree, 0, TREE_FRAME_ENDED, 3);
    expect(tree, "all-ended");
    assert_int_equal(tree_end(tree, false, 4), NCCLX_SUCCESS);
    expect(tree, "END>0 end");
    receive_lost(tree, 0, 1, 5);
    expect(tree, "");
    drop(tree);
}

/* Nothing can come any more, and the reason is awaited: that is not silence. */
static void a_link_that_closes_is_not_silent(void **state)
{
    (void)state;
    struct tree *tree = place(3, 0);
    assert_int_equal(tree_parent_up(tree, 1), NCCLX_SUCCESS);
    assert_int_equal(greet(tree, 3, 1, 1), 0);
    expect(tree, "HELLO>-1 start1 start2");
    assert_int_equal(greet(tree, 3, 2, 1), 1);
    assert_int_equal(tree_link_closing(tree, 0, 2), NCCLX_SUCCESS);
    tree_hold(tree, 1, true, 2);
    tree_hold(tree, TREE_PARENT, true, 2);
    for (uint64_t at = 1; at <= 25; at += 4) assert_int_equal(tree_tick(tree, at * SECOND), NCCLX_SUCCESS);
    while (1) {
        struct tree_action action;
        if (!tree_next(tree, &action)) break;
        assert_int_equal(action.kind, TREE_SEND); /* beats, to the others */
        assert_int_not_equal(action.link, 0);
    }
    assert_int_equal(tree_link_closed(tree, 0, NULL, 26 * SECOND), NCCLX_SUCCESS);
    expect(tree, "LOST>-1:1,5");
    assert_int_not_equal(tree_link_closing(tree, 0, 27 * SECOND), NCCLX_SUCCESS);
    drop(tree);
}

static void the_end_has_a_bound(void **state)
{
    (void)state;
    struct tree *tree = place(5, 1);
    assert_int_equal(tree_parent_up(tree, 1), NCCLX_SUCCESS);
    assert_int_equal(greet(tree, 5, 3, 1), 0);
    expect(tree, "HELLO>-1 start3 start4");
    assert_int_equal(tree_agent_ended(tree, 4, 9, NULL, 2), NCCLX_SUCCESS);
    expect(tree, "LOST>-1:4,2");
    assert_int_equal(tree_link_closed(tree, TREE_PARENT, NULL, 2), NCCLX_SUCCESS);
    expect(tree, "END>0 end-orphan");
    assert_int_equal(tree_local_ended(tree, 3), NCCLX_SUCCESS);
    assert_int_equal(tree_tick(tree, 6 * SECOND), NCCLX_SUCCESS);
    expect(tree, "BEAT>0");
    assert_int_equal(tree_deadline(tree), 7 * SECOND + 2);
    assert_int_equal(tree_tick(tree, 7 * SECOND + 2), NCCLX_SUCCESS);
    expect(tree, "stop3 close0 finished3");
    drop(tree);
}

/* ---- Sentences ---- */

static void check_sentence(struct tree *tree, struct tree_failure failure, const char *sentence)
{
    char text[400], small[10];
    tree_explain(tree, &failure, "node7", text, sizeof text);
    assert_string_equal(text, sentence);
    tree_explain(tree, &failure, "node7", small, sizeof small);
    assert_int_equal(strlen(small), 9);
}

static void the_causes_are_explained(void **state)
{
    (void)state;
    struct tree *tree = place(1, TREE_FRONT);
    check_sentence(
        tree, (struct tree_failure){.cause = TREE_CAUSE_AGENT_ENDED, .status = 255 << 8, .text = "one\r\ntwo\033[0m\n"},
        "the daemon ncclxd on node7 did not start: its agent ended with status 255: one; two?[0m");
    check_sentence(tree, (struct tree_failure){.cause = TREE_CAUSE_AGENT_FAILED, .text = "No such file"},
                   "the daemon ncclxd on node7 cannot be started: No such file");
    check_sentence(tree, (struct tree_failure){.cause = TREE_CAUSE_NOT_CONNECTED, .stage = TREE_STAGE_AGENT},
                   "the daemon ncclxd on node7 did not connect within 10 s (its agent still runs)");
    check_sentence(tree, (struct tree_failure){.cause = TREE_CAUSE_VERSION, .text = "0.9"},
                   "ncclxd on node7 is version 0.9, ncclxrun is 1.0: install one version");
    check_sentence(tree, (struct tree_failure){.cause = TREE_CAUSE_CLOSED, .status = SIGKILL},
                   "the daemon ncclxd on node7 was killed by signal 9 (SIGKILL)");
    check_sentence(tree, (struct tree_failure){.cause = TREE_CAUSE_CLOSED, .status = -1, .text = "Connection reset"},
                   "the daemon ncclxd on node7 died: Connection reset");
    check_sentence(tree, (struct tree_failure){.cause = TREE_CAUSE_SILENT, .status = -1},
                   "the daemon ncclxd on node7 has been silent for 20 s: it was stopped, or the network to it is cut");
    check_sentence(tree, (struct tree_failure){.position = TREE_FRONT, .cause = TREE_CAUSE_SILENT, .status = -1},
                   "ncclxrun itself did nothing for more than 20 s (was it stopped?), and its daemons have ended");
    check_sentence(tree, (struct tree_failure){.cause = TREE_CAUSE_PROTOCOL, .status = -1, .text = "nonsense"},
                   "the daemon ncclxd on node7 broke the protocol: nonsense");
    check_sentence(tree, (struct tree_failure){.cause = TREE_CAUSE_REFUSED, .status = -1, .text = "the disk is full"},
                   "ncclxd on node7: the disk is full");
    drop(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shape_is_a_tree),
        cmocka_unit_test(frames_find_their_way),
        cmocka_unit_test(a_daemon_gathers_those_below),
        cmocka_unit_test(the_front_is_ready),
        cmocka_unit_test(the_front_starts_all_through_a_window),
        cmocka_unit_test(one_agent_starts_all),
        cmocka_unit_test(strangers_are_not_taken_in),
        cmocka_unit_test(a_failing_agent_is_told_of),
        cmocka_unit_test(a_refusal_waits_for_somebody_to_tell),
        cmocka_unit_test(silence_has_a_limit),
        cmocka_unit_test(who_was_stopped_blames_nobody),
        cmocka_unit_test(a_broken_protocol_is_a_loss),
        cmocka_unit_test(the_end_waits_for_those_below),
        cmocka_unit_test(a_loss_that_is_explained_late_is_one),
        cmocka_unit_test(a_link_that_closes_is_not_silent),
        cmocka_unit_test(the_end_has_a_bound),
        cmocka_unit_test(the_causes_are_explained),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
