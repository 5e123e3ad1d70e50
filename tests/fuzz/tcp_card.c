/* tcp_card.c - the card of a rank, which comes from the PMIx store: whatever follows the version. What is taken says the same when it is
 * written and taken again. */
#include "pml/tcp/tcp.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char fuzz_name[] = "tcp_card";

static int same(const struct tcp_card *a, const struct tcp_card *b)
{
    if (memcmp(a->key, b->key, sizeof a->key) || memcmp(&a->offer, &b->offer, sizeof a->offer)) return 0;
    if (a->addresses.count != b->addresses.count || b->addresses.proven) return 0;
    for (size_t i = 0; i < a->addresses.count; i++) {
        const struct oob_address *x = &a->addresses.list[i], *y = &b->addresses.list[i];
        if (x->family != y->family || x->port != y->port || memcmp(x->bytes, y->bytes, sizeof x->bytes)) return 0;
    }
    return 1;
}

static void check(const struct tcp_card *card)
{
    struct tcp_card again;
    char text[TCP_CARD_TEXT];
    if (card->addresses.count < 1 || card->addresses.count > OOB_MAX_ADDRESSES) abort();
    tcp_card_format(card, text);
    if (tcp_card_parse(text, strlen(text), &again) || !same(card, &again)) abort();
}

static void parse(const char *text, size_t bytes)
{
    struct tcp_card card;
    if (!tcp_card_parse(text, bytes, &card)) check(&card);
}

/* One of ours: else a change of the form would leave this test with nothing to do. */
static void check_ours(void)
{
    struct tcp_card card = {.offer = {.lanes = 16, .receives = 1024, .window = 4096, .notices = 128}};
    memset(card.key, 0xab, sizeof card.key);
    if (oob_addresses_parse("127.0.0.1:4000,[fd99::1]:5,[fe80::2]:65535", &card.addresses)) abort();
    check(&card);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static int looked;
    char *text = malloc(bytes + 32); /* of its size, for the sanitizer */
    if (!text) return 0;
    if (!looked++) check_ours();
    int version = sprintf(text, "%d ", TCP_CARD_VERSION);
    if (bytes) memcpy(text + version, data, bytes);
    text[(size_t)version + bytes] = 0;
    parse(text, (size_t)version + bytes);
    parse(text + version, bytes);
    free(text);
    return 0;
}
