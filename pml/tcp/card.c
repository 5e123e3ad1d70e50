/* card.c - where a rank listens, the key by which others know it, and what it takes from each of them:
 * "VERSION KEY LANES:RECEIVES:WINDOW:NOTICES ADDRESSES" as text, in the PMIx store. */
#include "pml/tcp/tcp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tcp_card_format(const struct tcp_card *card, char text[TCP_CARD_TEXT])
{
    int length = sprintf(text, "%d ", TCP_CARD_VERSION);
    for (int i = 0; i < OOB_KEY_BYTES; i++) length += sprintf(text + length, "%02x", card->key[i]);
    length += sprintf(text + length, " %u:%u:%u:%u ", card->offer.lanes, card->offer.receives, card->offer.window,
                      card->offer.notices);
    oob_addresses_format(&card->addresses, text + length, TCP_CARD_TEXT - (size_t)length);
}

int tcp_card_publish(struct ncclx_rt *rt, const struct tcp_card *card)
{
    char text[TCP_CARD_TEXT];
    tcp_card_format(card, text);
    int error = bootstrap_put(rt, TCP_CARD_KEY, text, strlen(text));
    return error ? error : bootstrap_commit(rt);
}

static int digit(char byte)
{
    if (byte >= '0' && byte <= '9') return byte - '0';
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* What the numbers may be is the affair of who uses them. */
static int parse_offer(const char *text, struct lane_offer *offer)
{
    int length = 0;
    bool read = sscanf(text, "%9u:%9u:%9u:%9u %n", &offer->lanes, &offer->receives, &offer->window, &offer->notices,
                       &length) == 4;
    return read && length > 0 && text[length - 1] == ' ' ? length : 0;
}

/* Ends with a zero, as bootstrap promises. */
int tcp_card_parse(const void *value, size_t bytes, struct tcp_card *card)
{
    const char *text = value;
    char *end;
    if (strlen(text) != bytes || bytes >= TCP_CARD_TEXT)
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
    if (*end++ != ' ') return base_error(NCCLX_ERR_TRANSPORT, "the card has no offer");
    int length = parse_offer(end, &card->offer);
    if (!length) return base_error(NCCLX_ERR_TRANSPORT, "the card has no addresses, or no offer");
    return oob_addresses_parse(end + length, &card->addresses);
}
