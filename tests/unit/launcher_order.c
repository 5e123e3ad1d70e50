/* launcher_order.c - start orders: what is written is read, what is cut or bent is refused, each place gets the hosts below it; and command lines
 * that are split and quoted without a shell. */
#include "config.h"

#include "launcher/order.h"
#include "launcher/words.h"
#include "runtime/base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct order_host hosts[7];
static struct order_contact contact = {.position = 0, .text = "192.0.2.1:4000,[2001:db8::1]:4000"};
static char *agent[] = {"ssh", "-x", NULL}, *environment[] = {"A=b\nc", NULL};

static struct order make_order(void)
{
    struct order order = {.version = PACKAGE_VERSION,
                          .job = "ncclx-1-2",
                          .position = 1,
                          .tree = {.shape = {.count = 7, .radix = 2}, .job = 77, .start_ns = 5, .silence_ns = 6, .end_ns = 7},
                          .port_low = 1000,
                          .port_high = 65535,
                          .contacts = &contact,
                          .contact_count = 1,
                          .hosts = hosts,
                          .host_count = 7,
                          .daemon = "/opt/ncclxd",
                          .agent = agent,
                          .environment = environment,
                          .directory = "/where/u",
                          .umask = 022};
    memset(order.secret, 0x5a, sizeof order.secret);
    for (int i = 0; i < 7; i++) hosts[i] = (struct order_host){.position = i, .name = "n", .address = "u@n"};
    hosts[3].address = "n3";
    order.limits[ORDER_LIMITS - 1][1] = UINT64_MAX;
    return order;
}

static struct frame write_order(struct frame_writer *writer, const struct order *order)
{
    struct frame frame;
    order_write(writer, order);
    assert_int_equal(frame_finish(writer), NCCLX_SUCCESS);
    assert_int_equal(frame_parse(writer->data, writer->used, &frame), NCCLX_SUCCESS);
    return frame;
}

static void test_order(void **state)
{
    (void)state;
    struct order order = make_order(), back;
    struct frame_writer writer;
    struct frame frame = write_order(&writer, &order);
    assert_int_equal(order_read(&frame, &back), NCCLX_SUCCESS);
    frame_release(&writer);
    assert_string_equal(back.job, "ncclx-1-2");
    assert_memory_equal(back.secret, order.secret, sizeof back.secret);
    assert_int_equal(back.position, 1);
    assert_int_equal(back.tree.position, 1);
    assert_int_equal(back.tree.shape.count, 7);
    assert_int_equal(back.tree.shape.radix, 2);
    assert_true(back.tree.job == 77 && back.tree.start_ns == 5 && back.tree.silence_ns == 6 && back.tree.end_ns == 7);
    assert_int_equal(back.port_high, 65535);
    assert_string_equal(back.contacts[0].text, contact.text);
    assert_string_equal(back.hosts[3].address, "n3");
    assert_string_equal(back.agent[1], "-x");
    assert_null(back.agent[2]);
    assert_null(back.agent_environment);
    assert_string_equal(back.environment[0], "A=b\nc");
    assert_string_equal(back.directory, "/where/u");
    assert_int_equal(back.umask, 022);
    assert_true(back.limits[ORDER_LIMITS - 1][1] == UINT64_MAX);
    order_release(&back);
}

static void test_version(void **state)
{
    (void)state;
    struct order order = make_order(), back;
    struct frame_writer writer;
    order.version = "99.1";
    struct frame frame = write_order(&writer, &order);
    assert_int_equal(order_read(&frame, &back), NCCLX_ERR_BOOTSTRAP);
    assert_non_null(strstr(base_error_detail(), PACKAGE_VERSION));
    assert_non_null(strstr(base_error_detail(), "99.1"));
    frame.bytes = 12; /* whatever follows in that version */
    assert_int_equal(order_read(&frame, &back), NCCLX_ERR_BOOTSTRAP);
    frame_release(&writer);
}

static void test_bent(void **state)
{
    (void)state;
    struct order order = make_order(), back;
    struct frame_writer writer;
    struct frame frame = write_order(&writer, &order);
    size_t whole = frame.bytes;
    for (frame.bytes = 0; frame.bytes < whole; frame.bytes++)
        assert_int_equal(order_read(&frame, &back), NCCLX_ERR_TRANSPORT);
    for (size_t i = 0; i < whole; i++) {
        unsigned char *byte = writer.data + FRAME_HEADER_BYTES + i, before = *byte;
        *byte ^= 0xff;
        if (order_read(&frame, &back) == NCCLX_SUCCESS) order_release(&back);
        *byte = before;
    }
    frame.type++;
    assert_int_equal(order_read(&frame, &back), NCCLX_ERR_TRANSPORT);
    frame_release(&writer);
}

static void test_settle(void **state)
{
    (void)state;
    struct order order = make_order();
    assert_int_equal(order_settle(&order, "elsewhere"), NCCLX_SUCCESS); /* it is known already */
    assert_int_equal(order.position, 1);
    order.position = -1;
    assert_int_equal(order_settle(&order, "elsewhere"), NCCLX_ERR_BOOTSTRAP);
    assert_int_equal(order_settle(&order, NULL), NCCLX_ERR_BOOTSTRAP);
    assert_int_equal(order_settle(&order, "n3"), NCCLX_SUCCESS);
    assert_int_equal(order.position, 3);
    assert_int_equal(order.tree.position, 3);
}

static void test_derive(void **state)
{
    (void)state;
    struct order order = make_order(), below;
    assert_int_equal(order_derive(&order, 1, &below), NCCLX_SUCCESS);
    assert_int_equal(below.position, 1);
    assert_int_equal(below.contact_count, 0);
    assert_int_equal(below.host_count, 3);
    for (int i = 0; i < 3; i++) assert_non_null(order_find(&below, (int[]){1, 3, 4}[i]));
    assert_null(order_find(&below, 2));
    base_free(AREA_LAUNCHER, below.hosts);
    order.tree.start = TREE_START_FRONT;
    assert_int_equal(order_derive(&order, 1, &below), NCCLX_SUCCESS);
    assert_int_equal(below.host_count, 1);
    base_free(AREA_LAUNCHER, below.hosts);
}

/* The words, each followed by "|"; null: an error. */
static void check_split(const char *text, const char *wanted)
{
    char joined[256] = "", **words;
    int code = words_split(text, &words);
    assert_int_equal(code, wanted ? NCCLX_SUCCESS : NCCLX_ERR_ARG);
    if (code) return;
    for (char **word = words; *word; word++) strcat(strcat(joined, *word), "|");
    assert_string_equal(joined, wanted);
    base_free(AREA_LAUNCHER, words);
}

static void test_split(void **state)
{
    (void)state;
    check_split("ssh", "ssh|");
    check_split("  ssh -p\t22 \n", "ssh|-p|22|");
    check_split("a'b c'd \"e f\"", "ab cd|e f|");
    check_split("'' \"\"", "||");
    check_split("a\\ b \"\\\"\\$\\x\" '\\'", "a b|\"$\\x|\\|");
    check_split("$HOME `x` ; | &", "$HOME|`x`|;|||&|");
    check_split("a\\", "a\\|");
    check_split("", NULL);
    check_split(" \t", NULL);
    check_split("a 'b", NULL);
    check_split("\"", NULL);
}

static void test_quote(void **state)
{
    (void)state;
    static const char *const words[] = {"", "a", "a b", "it's", "''", "\\", "$x\n\"", NULL};
    for (int i = 0; words[i]; i++) {
        char *quoted = words_quote(words[i]), **back;
        assert_int_equal(words_split(quoted, &back), NCCLX_SUCCESS);
        assert_string_equal(back[0], words[i]);
        assert_null(back[1]);
        base_free(AREA_LAUNCHER, quoted);
        base_free(AREA_LAUNCHER, back);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),  cmocka_unit_test(test_version), cmocka_unit_test(test_bent),
        cmocka_unit_test(test_settle), cmocka_unit_test(test_derive),  cmocka_unit_test(test_split),
        cmocka_unit_test(test_quote),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
