/* tcp_card.c - cards of ranks: what is taken, and what is said of those that are not. */
#include "pml/tcp/tcp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEXT_OF(number) #number
#define TEXT(macro) TEXT_OF(macro)
#define OURS TEXT(TCP_CARD_VERSION)
#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static void test_good(void **state)
{
    struct tcp_card card;
    const char *text = OURS " " KEY " 16:1024:4096:128 10.0.0.1:4711,[fd99::1]:5";
    char again[TCP_CARD_TEXT];
    (void)state;
    assert_int_equal(tcp_card_parse(text, strlen(text), &card), NCCLX_SUCCESS);
    assert_int_equal(card.key[1], 0x11);
    assert_int_equal(card.key[31], 0xff);
    assert_int_equal(card.offer.lanes, 16);
    assert_int_equal(card.offer.receives, 1024);
    assert_int_equal(card.offer.window, 4096);
    assert_int_equal(card.offer.notices, 128);
    assert_int_equal(card.addresses.count, 2);
    assert_int_equal(card.addresses.list[0].port, 4711);
    tcp_card_format(&card, again);
    assert_string_equal(again, text);
}

static void test_bad(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"1 " KEY " 16:1024:4096:128 10.0.0.1:4711", "its tcp transport is of version 1, ours of " OURS},
        {"999 and all that is new", "its tcp transport is of version 999, ours of " OURS},
        {"", "no text of ours"},
        {"four " KEY " 1:1:1:1 10.0.0.1:1", "no text of ours"},
        {OURS KEY, "no text of ours"},
        {OURS " ", "has no key"},
        {"4 0011223344", "has no key"},
        {OURS " " KEY, "has no offer"},
        {OURS " " KEY "0 1:1:1:1 10.0.0.1:1", "has no offer"},
        {OURS " " KEY " ", "no addresses, or no offer"},
        {OURS " " KEY " 1:1:1 10.0.0.1:1", "no addresses, or no offer"},
        {OURS " " KEY " 1:1:1:1", "no addresses, or no offer"},
        {OURS " " KEY " 1:1:1:1 ", "no address with a port"},
        {OURS " " KEY " 1:1:1:1 10.0.0.1:65536", "no address with a port"},
        {OURS " " KEY " 1:1:1:1 10.0.0.1:1,", "no address with a port"},
    };
    struct tcp_card card;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (!tcp_card_parse(cases[i].text, strlen(cases[i].text), &card)) fail_msg("\"%s\" is taken", cases[i].text);
        if (!strstr(base_error_detail(), cases[i].why)) fail_msg("\"%s\": %s", cases[i].text, base_error_detail());
    }
    const char cut[] = OURS " " KEY " 1:1:1:1 10.0.0.1:1\0more";
    assert_int_equal(tcp_card_parse(cut, sizeof cut - 1, &card), NCCLX_ERR_TRANSPORT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_good), cmocka_unit_test(test_bad)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
