/* The jobs of one ncclxrun, what a rank may ask for as bytes, and where the ranks of another job go. */
#include "launcher/jobs.h"
#include "launcher/map.h"
#include "launcher/message.h"
#include "launcher/spawn.h"
#include "runtime/base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after the headers it needs */
#include <cmocka.h>

#define DAEMONS 3

static struct jobs *jobs;

static int open_jobs(void **state)
{
    (void)state;
    jobs = jobs_create(DAEMONS);
    return jobs ? 0 : -1;
}

static int close_jobs(void **state)
{
    struct base_area_usage usage;
    (void)state;
    jobs_destroy(jobs);
    base_area_usage(AREA_LAUNCHER, &usage);
    return usage.bytes ? -1 : 0;
}

static void expect(enum jobs_action_kind kind, const struct job *job)
{
    struct jobs_action action;
    assert_true(jobs_next(jobs, &action));
    assert_int_equal(action.kind, kind);
    assert_ptr_equal(action.job, job);
}

static void expect_nothing(void)
{
    struct jobs_action action;
    assert_false(jobs_next(jobs, &action));
}

static void answer_all(const struct job *job)
{
    for (int i = 0; i < DAEMONS; i++) assert_true(jobs_answered(jobs, job->first));
}

static struct job *bring_up(int count, int parent)
{
    struct job *job = jobs_add(jobs, count, parent, NULL);
    assert_non_null(job);
    for (int i = 0; i < count; i++) assert_true(jobs_started(jobs, job->first + i));
    answer_all(job);
    expect(JOBS_UP, job);
    return job;
}

static void end_rank(int number)
{
    assert_true(jobs_output_ended(jobs, number, 1));
    assert_true(jobs_exited(jobs, number));
    assert_true(jobs_output_ended(jobs, number, 2));
}

static void test_life(void **state)
{
    (void)state;
    struct job *user = bring_up(2, -1), *other;
    assert_int_equal(user->first, 0);
    expect_nothing();
    other = jobs_add(jobs, 3, 1, NULL);
    assert_int_equal(other->first, 2);
    assert_int_equal(other->index, 1);
    assert_int_equal(jobs_left(jobs), 5);
    for (int i = 2; i < 5; i++) assert_true(jobs_started(jobs, i));
    end_rank(3); /* before all know of it */
    expect_nothing();
    answer_all(other);
    expect(JOBS_UP, other);
    end_rank(2);
    expect_nothing();
    assert_true(jobs_exited(jobs, 4)); /* its output is still on its way */
    expect_nothing();
    assert_true(jobs_output_ended(jobs, 4, 1));
    assert_true(jobs_output_ended(jobs, 4, 2));
    expect(JOBS_OVER, other);
    jobs_forget(jobs, other);
    assert_null(jobs_of(jobs, 2));
    expect_nothing();
    other = jobs_add(jobs, 1, 0, NULL);
    assert_int_equal(other->first, 5); /* no number twice */
    assert_true(jobs_started(jobs, 5));
    end_rank(0);
    end_rank(1);
    expect(JOBS_OVER, user);
    expect_nothing();
    end_rank(5);
    expect_nothing(); /* two daemons have not said that they know it */
    answer_all(other);
    expect(JOBS_UP, other);
    expect(JOBS_OVER, other);
    expect(JOBS_COMPLETE, NULL);
    expect_nothing();
    assert_null(jobs_add(jobs, 1, 0, NULL));
}

/* One daemon cannot start its part: the job is over when all have answered and what ran has ended. */
static void test_cancel(void **state)
{
    (void)state;
    bring_up(1, -1);
    struct job *job = jobs_add(jobs, 4, 0, NULL);
    assert_true(jobs_started(jobs, 1));
    assert_true(jobs_answered(jobs, 1));
    assert_true(jobs_failed(jobs, 1));
    expect(JOBS_CANCEL, job);
    assert_true(jobs_unstarted(jobs, 2));
    assert_true(jobs_answered(jobs, 1));
    expect_nothing();
    end_rank(1);
    assert_true(jobs_started(jobs, 3)); /* started before it heard of the failure */
    assert_true(jobs_unstarted(jobs, 4));
    expect_nothing();
    end_rank(3);
    expect_nothing();
    assert_true(jobs_answered(jobs, 1));
    expect(JOBS_OVER, job);
    assert_false(job->up);
    jobs_forget(jobs, job);
    expect_nothing();
    end_rank(0);
    expect(JOBS_OVER, jobs_first(jobs));
    expect(JOBS_COMPLETE, NULL);
}

/* What daemons cannot mean is refused. */
static void test_nonsense(void **state)
{
    (void)state;
    struct job *user = bring_up(2, -1);
    assert_false(jobs_started(jobs, 0));
    assert_false(jobs_unstarted(jobs, 1));
    assert_false(jobs_started(jobs, 2));
    assert_false(jobs_exited(jobs, -1));
    assert_false(jobs_exited(jobs, 7));
    assert_false(jobs_answered(jobs, 0));
    assert_false(jobs_answered(jobs, 1));
    assert_false(jobs_failed(jobs, 0));
    assert_false(jobs_output_ended(jobs, 2, 1));
    end_rank(0);
    assert_false(jobs_exited(jobs, 0));
    assert_true(jobs_output_ended(jobs, 0, 1)); /* twice is once */
    expect_nothing();
    assert_null(jobs_add(jobs, 0, 0, NULL));
    assert_null(jobs_add(jobs, JOBS_MAX_NUMBER, 0, NULL));
    assert_ptr_equal(jobs_find(jobs, 0), user);
    assert_null(jobs_find(jobs, 1));
}

static void test_many(void **state)
{
    (void)state;
    bring_up(1, -1);
    for (int i = 1; i < JOBS_MAX; i++) assert_non_null(jobs_add(jobs, 1, 0, NULL));
    assert_null(jobs_add(jobs, 1, 0, NULL));
}

/* Nobody reads standard output any more: no end of it is waited for, of whatever job. */
static void test_closed(void **state)
{
    (void)state;
    struct job *user = bring_up(1, -1);
    assert_true(jobs_output_ended(jobs, 0, 1));
    assert_true(jobs_output_ended(jobs, -1, 1));
    struct job *job = bring_up(1, 0);
    for (int i = 1; i >= 0; i--) {
        assert_true(jobs_exited(jobs, i));
        assert_true(jobs_output_ended(jobs, i, 2));
    }
    expect(JOBS_OVER, user);
    expect(JOBS_OVER, job);
    expect(JOBS_COMPLETE, NULL);
}

/* ---- Requests ---------------------------------------------------------------------------------------------------- */

static void write_request(struct frame_writer *writer)
{
    char *argv[] = {(char *)(uintptr_t) "prog", (char *)(uintptr_t) "", NULL};
    struct spawn_edit edits[] = {{.kind = SPAWN_SET, .name = "A", .value = "=\n"},
                                 {.kind = SPAWN_PREPEND, .name = "PATH", .value = "/first", .separator = ':'},
                                 {.kind = SPAWN_UNSET, .name = "GONE"}};
    struct spawn_app apps[] = {{.argv = argv, .directory = "/tmp", .ranks = 3, .edits = edits, .edit_count = 3},
                               {.argv = argv, .ranks = 1}};
    const struct spawn_request request = {.caller = 5,
                                          .token = UINT64_C(1) << 40,
                                          .notify = true,
                                          .hosts = "a,b",
                                          .map_by = "core",
                                          .apps = apps,
                                          .app_count = 2};
    spawn_write_request(writer, &request);
    assert_int_equal(frame_finish(writer), NCCLX_SUCCESS);
}

static struct frame parse(const struct frame_writer *writer)
{
    struct frame frame;
    assert_int_equal(frame_parse(writer->data, writer->used, &frame), NCCLX_SUCCESS);
    return frame;
}

static void test_request(void **state)
{
    struct frame_writer writer;
    struct spawn_request request;
    (void)state;
    write_request(&writer);
    struct frame frame = parse(&writer);
    assert_int_equal(spawn_read_request(&frame, &request), NCCLX_SUCCESS);
    frame_release(&writer); /* it stands alone */
    assert_int_equal(request.caller, 5);
    assert_true(request.token == UINT64_C(1) << 40);
    assert_true(request.notify);
    assert_string_equal(request.hosts, "a,b");
    assert_string_equal(request.map_by, "core");
    assert_null(request.bind_to);
    assert_int_equal(request.app_count, 2);
    assert_string_equal(request.apps[0].argv[1], "");
    assert_int_equal(request.apps[0].ranks, 3);
    assert_string_equal(request.apps[0].edits[1].value, "/first");
    assert_null(request.apps[1].directory);
    assert_int_equal(request.apps[1].edit_count, 0);
    spawn_release_request(&request);
}

/* Every shorter one is refused, and no changed byte is followed out of the frame. */
static void test_bent_request(void **state)
{
    struct frame_writer writer;
    struct spawn_request request;
    (void)state;
    write_request(&writer);
    struct frame frame = parse(&writer);
    size_t whole = frame.bytes;
    for (frame.bytes = 0; frame.bytes < whole; frame.bytes++)
        assert_int_equal(spawn_read_request(&frame, &request), NCCLX_ERR_TRANSPORT);
    for (size_t i = 0; i < whole; i++) {
        unsigned char *byte = writer.data + FRAME_HEADER_BYTES + i, before = *byte;
        *byte ^= 0xff;
        if (spawn_read_request(&frame, &request) == NCCLX_SUCCESS) spawn_release_request(&request);
        *byte = before;
    }
    frame_release(&writer);
}

static void test_answer(void **state)
{
    struct frame_writer writer;
    struct spawn_answer good = {.caller = 2, .token = 9, .job = "job.1"}, bad = {.status = SPAWN_NO_PROGRAM}, back;
    (void)state;
    spawn_write_answer(&writer, &good);
    assert_int_equal(frame_finish(&writer), NCCLX_SUCCESS);
    struct frame frame = parse(&writer);
    assert_int_equal(spawn_read_answer(&frame, &back), NCCLX_SUCCESS);
    assert_int_equal(back.token, 9);
    assert_string_equal(back.job, "job.1");
    frame_release(&writer);
    for (int i = 0; i < 2; i++) { /* a failure has no name */
        bad.job = i ? "job.1" : NULL;
        spawn_write_answer(&writer, &bad);
        assert_int_equal(frame_finish(&writer), NCCLX_SUCCESS);
        frame = parse(&writer);
        assert_int_equal(spawn_read_answer(&frame, &back), i ? NCCLX_ERR_TRANSPORT : NCCLX_SUCCESS);
        frame_release(&writer);
    }
}

static void check_settle(const struct spawn_edit *edits, int edit_count, const char *wanted)
{
    char *environment[] = {(char *)(uintptr_t) "PATH=/bin", (char *)(uintptr_t) "HOME=/root", NULL}, all[200] = "";
    const struct spawn_app app = {.edits = (struct spawn_edit *)(uintptr_t)edits, .edit_count = edit_count};
    int count;
    char **settings = spawn_settle(&app, environment, &count);
    assert_non_null(settings);
    for (int i = 0; i < count; i++) {
        strcat(all, settings[i]);
        strcat(all, ";");
    }
    assert_string_equal(all, wanted);
    spawn_release_settings(settings, count);
}

static void test_settle(void **state)
{
    (void)state;
    const struct spawn_edit path[] = {{SPAWN_PREPEND, "PATH", "/a", ':'}, {SPAWN_APPEND, "PATH", "/z", ':'}};
    const struct spawn_edit fresh[] = {{SPAWN_APPEND, "LIST", "x", ','}, {SPAWN_ADD, "LIST", "y", 0}};
    const struct spawn_edit home[] = {
        {SPAWN_UNSET, "HOME", NULL, 0}, {SPAWN_ADD, "HOME", "/new", 0}, {SPAWN_SET, "HOM", "", 0}};
    const struct spawn_edit twice[] = {{SPAWN_SET, "A", "1", 0}, {SPAWN_SET, "A", "2", 0}, {SPAWN_UNSET, "A", NULL, 0}};
    check_settle(path, 2, "PATH=/a:/bin:/z;");
    check_settle(fresh, 2, "LIST=x;");
    check_settle(home, 1, "=HOME;");
    check_settle(home, 3, "HOME=/new;HOM=;");
    check_settle(twice, 2, "A=2;");
    check_settle(twice, 3, "=A;");
    check_settle(NULL, 0, "");
    assert_true(spawn_lists_host("a,bb,c", "bb"));
    assert_false(spawn_lists_host("a,bb,c", "b"));
    assert_false(spawn_lists_host("", "b"));
}

/* ---- Where they go ----------------------------------------------------------------------------------------------- */

/* Ranks of each of three nodes with 2 slots, as a text. */
static void check_map(int ranks, const int *taken, const bool *closed, bool oversubscribe, const char *wanted)
{
    struct map_node nodes[3] = {{.name = "a", .slots = 2}, {.name = "b", .slots = 2}, {.name = "c", .slots = 2}};
    const struct map_request request = {
        .app_ranks = &ranks, .app_count = 1, .oversubscribe = oversubscribe, .taken = taken, .closed = closed};
    struct map map;
    char found[32];
    int code = map_compute(&request, nodes, 3, &map);
    if (code)
        strcpy(found, "no");
    else
        snprintf(found, sizeof found, "%d %d %d", map.local_size[0], map.local_size[1], map.local_size[2]);
    assert_string_equal(found, wanted);
    if (!code) map_release(&map);
}

static void test_map(void **state)
{
    const int one[3] = {1, 0, 0}, two[3] = {2, 1, 0}, full[3] = {2, 2, 2}, more[3] = {9, 0, 0};
    const bool only_b[3] = {true, false, true}, none[3] = {true, true, true};
    (void)state;
    check_map(1, one, NULL, true, "1 0 0");
    check_map(3, one, NULL, true, "1 2 0");
    check_map(3, two, NULL, true, "0 1 2");
    check_map(2, more, NULL, true, "0 2 0");
    check_map(4, two, NULL, true, "2 2 0"); /* not free: as if all were */
    check_map(3, full, NULL, true, "2 1 0");
    check_map(1, full, NULL, false, "no");
    check_map(4, two, NULL, false, "no");
    check_map(3, two, NULL, false, "0 1 2");
    check_map(2, one, only_b, true, "0 2 0");
    check_map(5, one, only_b, true, "0 5 0");
    check_map(3, one, only_b, false, "no");
    check_map(1, one, none, true, "no");
}

int main(void)
{
#define WITH_JOBS(test) cmocka_unit_test_setup_teardown(test, open_jobs, close_jobs)
    const struct CMUnitTest tests[] = {WITH_JOBS(test_life),
                                       WITH_JOBS(test_cancel),
                                       WITH_JOBS(test_nonsense),
                                       WITH_JOBS(test_many),
                                       WITH_JOBS(test_closed),
                                       cmocka_unit_test(test_request),
                                       cmocka_unit_test(test_bent_request),
                                       cmocka_unit_test(test_answer),
                                       cmocka_unit_test(test_settle),
                                       cmocka_unit_test(test_map)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
