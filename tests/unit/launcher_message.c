/* launcher_message.c - frames and messages of the link: what is written is read, what is cut or bent is refused, and
 * what a rank's end is called. */
#include "launcher/message.h"
#include "launcher/report.h"
#include "runtime/base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct frame finish(struct frame_writer *writer)
{
    struct frame frame;
    assert_int_equal(frame_finish(writer), NCCLX_SUCCESS);
    assert_int_equal(frame_parse(writer->data, writer->used, &frame), NCCLX_SUCCESS);
    assert_int_equal(frame.total, writer->used);
    return frame;
}

static void test_fields(void **state)
{
    (void)state;
    struct frame_writer writer;
    struct frame_reader reader;
    size_t bytes;
    frame_begin(&writer, 9);
    frame_put_u8(&writer, 200);
    frame_put_u32(&writer, 0xfedcba98);
    frame_put_u64(&writer, UINT64_C(0x0123456789abcdef));
    frame_put_text(&writer, "two\nlines");
    frame_put_text(&writer, NULL);
    frame_put_text(&writer, "");
    frame_put_bytes(&writer, "a\0b", 3);
    struct frame frame = finish(&writer);
    assert_int_equal(frame.type, 9);
    frame_read(&reader, &frame);
    assert_int_equal(frame_get_u8(&reader), 200);
    assert_int_equal(frame_get_u32(&reader), 0xfedcba98);
    assert_true(frame_get_u64(&reader) == UINT64_C(0x0123456789abcdef));
    assert_string_equal(frame_get_text(&reader), "two\nlines");
    assert_null(frame_get_text(&reader));
    assert_string_equal(frame_get_text(&reader), "");
    assert_memory_equal(frame_get_bytes(&reader, &bytes), "a\0b", 3);
    assert_int_equal(bytes, 3);
    assert_true(frame_read_all(&reader));
    frame_get_u8(&reader);
    assert_false(frame_read_all(&reader));
    frame_release(&writer);
}

static void test_headers(void **state)
{
    (void)state;
    struct frame frame;
    assert_int_equal(frame_parse("", 0, &frame), NCCLX_SUCCESS);
    assert_int_equal(frame.total, 0);
    assert_int_equal(frame_parse("NX", 2, &frame), NCCLX_SUCCESS);
    assert_int_equal(frame.total, 0);
    assert_int_equal(frame_parse("GET / HTTP/1.1", 14, &frame), NCCLX_ERR_TRANSPORT);
    assert_int_equal(frame_parse("NX\x02\x01\0\0\0\0", 8, &frame), NCCLX_ERR_TRANSPORT);
    assert_non_null(strstr(base_error_detail(), "version 2"));
    assert_int_equal(frame_parse("NX\x01\x01\xff\xff\xff\xff", 8, &frame), NCCLX_ERR_TRANSPORT);
    assert_int_equal(frame_parse("NX\x01\x01\x05\0\0\0abcd", 12, &frame), NCCLX_SUCCESS);
    assert_int_equal(frame.total, 0);
    assert_int_equal(frame_wanted("NX\x01\x01\x05\0\0\0abcd", 12), 13);
}

/* A text with a zero byte inside, or without one at its end, is none. */
static void test_texts(void **state)
{
    (void)state;
    struct frame_writer writer;
    struct frame_reader reader;
    frame_begin(&writer, 1);
    frame_put_bytes(&writer, "a\0b", 4);
    struct frame frame = finish(&writer);
    frame_read(&reader, &frame);
    assert_null(frame_get_text(&reader));
    assert_true(reader.failed);
    frame_release(&writer);
    frame_begin(&writer, 1);
    frame_put_bytes(&writer, "ab", 2);
    frame = finish(&writer);
    frame_read(&reader, &frame);
    assert_null(frame_get_text(&reader));
    assert_true(reader.failed);
    frame_release(&writer);
}

static void write_order(struct frame_writer *writer)
{
    const char *nodes[] = {"n0", "n1"}, *settings[] = {"A=1"};
    char *argv[] = {"prog", "x y", NULL}, *environment[] = {"E=\n", NULL};
    struct message_app app = {.argv = argv, .settings = settings, .setting_count = 1, .directory = "/tmp"};
    struct map_rank ranks[3] = {{.node = 0}, {.node = 1, .cpus = "0-3", .gpu = "GPU-a"}, {.node = 1, .local_rank = 1}};
    int positions[] = {1, 0};
    bool oversubscribed[] = {false, true};
    struct message_launch launch = {.job = "job",
                                    .first = 40,
                                    .parent = 7,
                                    .notify = true,
                                    .nodes = nodes,
                                    .positions = positions,
                                    .oversubscribed = oversubscribed,
                                    .node_count = 2,
                                    .radix = 256,
                                    .apps = &app,
                                    .app_count = 1,
                                    .environment = environment,
                                    .ranks = ranks,
                                    .rank_count = 3,
                                    .kill_grace_ns = 7,
                                    .input = MESSAGE_INPUT_FORWARDED,
                                    .input_rank = -1};
    message_write_launch(writer, &launch);
}

static void test_launch(void **state)
{
    (void)state;
    struct frame_writer writer;
    struct message_launch launch;
    write_order(&writer);
    struct frame frame = finish(&writer);
    assert_int_equal(message_read_launch(&frame, &launch), NCCLX_SUCCESS);
    frame_release(&writer); /* the message stands alone */
    assert_string_equal(launch.job, "job");
    assert_int_equal(launch.first, 40);
    assert_int_equal(launch.parent, 7);
    assert_true(launch.notify);
    char name[MESSAGE_RANK_BYTES];
    message_name_rank(&launch, 2, name, sizeof name);
    assert_string_equal(name, "rank 2 of job");
    assert_int_equal(launch.radix, 256);
    assert_int_equal(launch.positions[0], 1);
    assert_int_equal(launch.positions[1], 0);
    assert_false(launch.oversubscribed[0]);
    assert_true(launch.oversubscribed[1]);
    assert_string_equal(launch.nodes[1], "n1");
    assert_string_equal(launch.apps[0].argv[1], "x y");
    assert_null(launch.apps[0].argv[2]);
    assert_string_equal(launch.apps[0].directory, "/tmp");
    assert_string_equal(launch.environment[0], "E=\n");
    assert_int_equal(launch.rank_count, 3);
    assert_string_equal(launch.ranks[1].cpus, "0-3");
    assert_string_equal(launch.ranks[1].gpu, "GPU-a");
    assert_null(launch.ranks[2].cpus);
    assert_null(launch.ranks[2].gpu);
    assert_int_equal(launch.input_rank, -1);
    message_release_launch(&launch);
}

/* Every shorter payload is refused, and no changed byte is followed out of the frame. */
static void test_bent_launch(void **state)
{
    (void)state;
    struct frame_writer writer;
    struct message_launch launch;
    write_order(&writer);
    struct frame frame = finish(&writer);
    size_t whole = frame.bytes;
    for (size_t bytes = 0; bytes < whole; bytes++) {
        frame.bytes = bytes;
        assert_int_equal(message_read_launch(&frame, &launch), NCCLX_ERR_TRANSPORT);
    }
    frame.bytes = whole;
    for (size_t i = 0; i < whole; i++) {
        unsigned char *byte = writer.data + FRAME_HEADER_BYTES + i, before = *byte;
        *byte ^= 0xff;
        if (message_read_launch(&frame, &launch) == NCCLX_SUCCESS) message_release_launch(&launch);
        *byte = before;
    }
    frame_release(&writer);
}

static void test_node(void **state)
{
    (void)state;
    struct map_cpu cpus[2] = {{.os_index = 0}, {.os_index = 5, .object = {1, 1, 1, 0, 0, 0}}};
    struct message_node node = {.cpus = cpus, .cpu_count = 2, .file_limit = 100}, back;
    struct frame_writer writer;
    message_write_node(&writer, &node);
    struct frame frame = finish(&writer);
    assert_int_equal(message_read_node(&frame, &back), NCCLX_SUCCESS);
    assert_int_equal(back.cpu_count, 2);
    assert_int_equal(back.cpus[1].os_index, 5);
    assert_int_equal(back.cpus[1].object[MAP_CORE], 1);
    base_free(AREA_LAUNCHER, back.cpus);
    size_t whole = frame.bytes;
    for (frame.bytes = 0; frame.bytes < whole; frame.bytes++)
        assert_int_equal(message_read_node(&frame, &back), NCCLX_ERR_TRANSPORT);
    frame_release(&writer);
}

static void check_report(int status, bool joined, bool left, int exit_status, const char *wanted)
{
    char text[200];
    struct message_exited exited =
                              {.number = 3, .pid = 42, .status = status, .joined = joined, .left = left, .told = left},
                          back;
    struct frame_writer writer;
    message_write_exited(&writer, &exited);
    struct frame frame = finish(&writer);
    assert_int_equal(message_read_exited(&frame, &back), NCCLX_SUCCESS);
    frame_release(&writer);
    assert_int_equal(back.told, left);
    assert_int_equal(report_is_failure(&back), wanted != NULL);
    assert_int_equal(report_exit_status(&back), exit_status);
    if (!wanted) return;
    report_exit(&back, "rank 3", "n", text, sizeof text);
    assert_string_equal(text, wanted);
}

static void test_reports(void **state)
{
    (void)state;
    check_report(0, false, false, 0, NULL);
    check_report(0, true, true, 0, NULL);
    check_report(0, true, false, 1, "rank 3 on n (pid 42) exited without calling ncclx_finalize");
    check_report(3 << 8, false, false, 3, "rank 3 on n (pid 42) exited with status 3");
    check_report(11, true, true, 139, "rank 3 on n (pid 42) was killed by signal 11 (SIGSEGV)");
    check_report(9 | 0x80, false, false, 137, "rank 3 on n (pid 42) was killed by signal 9 (SIGKILL), core dumped");
}

static void test_who_may_have_followed(void **state)
{
    (void)state;
    struct message_exited exited = {.status = 9};
    assert_false(report_may_follow(&exited));
    exited.told = true; /* it may be our own KILL */
    assert_true(report_may_follow(&exited));
    exited = (struct message_exited){.status = 3 << 8};
    assert_true(report_may_follow(&exited));
    exited.status = 6; /* an assertion */
    assert_true(report_may_follow(&exited));
    exited.status = 13; /* it wrote to somebody who was gone */
    assert_true(report_may_follow(&exited));
    exited.status = 11;
    assert_false(report_may_follow(&exited));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),      cmocka_unit_test(test_headers),
        cmocka_unit_test(test_texts),       cmocka_unit_test(test_launch),
        cmocka_unit_test(test_bent_launch), cmocka_unit_test(test_node),
        cmocka_unit_test(test_reports),     cmocka_unit_test(test_who_may_have_followed),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
