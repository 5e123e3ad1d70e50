/* oob.c - what strangers send to an acceptor, what an impostor answers a connector, sealed records, and lists of
 * addresses and networks. The first byte says which, the second in how large pieces it comes. */
#include "bootstrap/oob/address.h"
#include "bootstrap/oob/shake.h"
#include "runtime/base/base.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

const char fuzz_name[] = "oob";

/* All that is random elsewhere is fixed, so that inputs of the corpus get as far as honest ends do. */
static void set_self(struct shake_self *self, enum oob_trust trust, uint32_t position)
{
    struct oob_identity identity = {
        .job = "job", .position = position, .positions = 8, .trust = trust, .release = "1.0"};
    memset(identity.secret, 1, OOB_KEY_BYTES);
    memset(identity.private_key, (int)position + 2, OOB_KEY_BYTES);
    crypto_public(identity.public_key, identity.private_key);
    if (shake_self_set(self, &identity)) abort();
}

static void check(const struct shake *shake)
{
    char text[256];
    size_t bytes;
    const unsigned char *data = shake_output(shake, &bytes);
    if (shake_wanted(shake) > SHAKE_MAX_BYTES || data < shake->out || data + bytes > shake->out + sizeof shake->out)
        abort();
    if ((shake->state == SHAKE_FAILED) != (shake->trouble != SHAKE_NO_TROUBLE)) abort();
    shake_explain(shake, text, sizeof text);
    if (!text[0]) abort();
}

static void talk(struct shake *shake, const unsigned char *key, const uint8_t *data, size_t bytes, size_t piece)
{
    check(shake);
    while (shake_wanted(shake) && bytes) {
        size_t unsent, given = shake_wanted(shake);
        if (given > bytes) given = bytes;
        if (given > piece) given = piece;
        shake_receive(shake, data, given);
        data += given;
        bytes -= given;
        if (shake->state == SHAKE_WANTS_KEY) shake_give_key(shake, shake->peer == 1 ? key : NULL);
        check(shake);
        shake_output(shake, &unsent);
        shake_sent(shake, unsent);
    }
}

static void handshake(bool connector, enum oob_trust trust, const uint8_t *data, size_t bytes, size_t piece)
{
    static const unsigned char random[2][OOB_KEY_BYTES] = {{7}, {8}};
    struct shake_self zero, one;
    struct shake shake;
    set_self(&zero, trust, 0);
    set_self(&one, trust, 1);
    if (connector) {
        shake_connect(&shake, &one, 0, zero.public_key, 5, random[0]);
        shake_sent(&shake, shake.unsent);
    } else {
        shake_accept(&shake, &zero, random[1]);
    }
    talk(&shake, one.public_key, data, bytes, piece);
    shake_end(&shake);
}

static void records(const uint8_t *data, size_t bytes)
{
    static const unsigned char key[OOB_KEY_BYTES] = {9};
    static unsigned char room[OOB_RECORD_MAX];
    struct oob_seal seal;
    oob_seal_begin(&seal, key);
    for (size_t total; (total = oob_record_bytes(data, bytes)) > OOB_RECORD_HEADER && total <= bytes;) {
        if (oob_unseal(&seal, data, total, room)) return;
        data += total;
        bytes -= total;
    }
}

/* What is accepted is understood the same way once it is written anew. */
static void addresses(const uint8_t *data, size_t bytes)
{
    char text[4097], written[OOB_MAX_ADDRESSES * OOB_ADDRESS_TEXT];
    struct oob_addresses one, other;
    struct address_here here = {.address = {.family = 4, .bytes = {10, 1}}, .name = "eth0"};
    memcpy(text, data, bytes);
    text[bytes] = 0;
    if (!address_check_networks(text)) address_in_networks(&here, text);
    if (oob_addresses_parse(text, &one)) return;
    oob_addresses_format(&one, written, sizeof written);
    if (oob_addresses_parse(written, &other) || one.count != other.count) abort();
    for (size_t i = 0; i < one.count; i++)
        if (memcmp(&one.list[i], &other.list[i], sizeof one.list[i])) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 2 || bytes > 4096 || crypto_load()) return 0;
    size_t piece = data[1] ? data[1] : SIZE_MAX;
    switch (data[0] % 8) {
    case 0:
        handshake(false, OOB_SECRET, data + 2, bytes - 2, piece);
        break;
    case 1:
        handshake(false, OOB_CARDS, data + 2, bytes - 2, piece);
        break;
    case 2:
        handshake(true, OOB_SECRET, data + 2, bytes - 2, piece);
        break;
    case 3:
        handshake(true, OOB_CARDS, data + 2, bytes - 2, piece);
        break;
    case 4:
        records(data + 2, bytes - 2);
        break;
    default:
        addresses(data + 2, bytes - 2);
        break;
    }
    return 0;
}
