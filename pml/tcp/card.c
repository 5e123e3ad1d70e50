/* card.c - where a rank listens, and the key by which others know it: "VERSION KEY ADDRESSES" as text, in the PMIx
 * store. */
#include "pml/tcp/tcp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CARD_TEXT 4096

int tcp_card_publish(struct ncclx_rt *rt, const struct tcp_card *card)
{
    char text[CARD_TEXT];
    int length = snprintf(text, sizeof text, "%d ", TCP_CARD_VERSION);
    for (int i = 0; i < OOB_KEY_BYTES; i++) length += sprintf(text + length, "%02x", card->key[i]);
    text[length++] = ' ';
    oob_addresses_format(&card->addresses, text + length, sizeof text - (size_t)length);
    int error = bootstrap_put(rt, TCP_CARD_KEY, text, strlen(text));
    return error ? error : bootstrap_commit(rt);
}

static int digit(char byte)
{
    if (byte >= '0' && byte <= '9') return byte - '0';
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* Ends with a zero, as bootstrap promises. */
int tcp_card_parse(const void *value, size_t bytes, struct tcp_card *card)
{
    const char *text = value;
    char *end;
    if (strlen(text) != bytes || bytes >= CARD_TEXT)
        return base_error(NCCLX_ERR_TRANSPORT, "the card is no text of ours");
    long version = strtol(text, &end, 10);
    if (end == text || *end++ != ' ') return base_error(NCCLX_ERR_TRANSPORT, "the card is no text of ours");
    if (version != TCP_CARD_VERSION)
        return base_error(NCCLX_ERR_TRANSPORT, "its tcp transport is of version %ld, ours of %d", version,
                          TCP_CARD_VERSION);
    for (int i = 0; i < OOB_KEY_BYTES; i++, end += 2) {
        int high = digit(end[0]), low = high < 0 ? -1 : digit(end[1]);
        if (low < 0) return base_error(NCCLX_ERR_TRANSPORT, "the card has no key");
        card->key[i] = (unsigned char)(high << 4 | low);
    }
    if (*end++ != ' ') return base_error(NCCLX_ERR_TRANSPORT, "the card has no addresses");
    return oob_addresses_parse(end, &card->addresses);
}
