/* seal.c - records that only the other end can read or make, in one order. */
#include "config.h"

#include "bootstrap/oob/oob.h"

#include "bootstrap/oob/crypto.h"
#include "runtime/base/base.h"
#include "runtime/base/planted.h"

#include <string.h>

_Static_assert(OOB_RECORD_EXTRA == OOB_RECORD_HEADER + CRYPTO_PROOF, "a record is header, data and proof");

void oob_seal_begin(struct oob_seal *seal, const unsigned char key[OOB_KEY_BYTES])
{
    memcpy(seal->key, key, OOB_KEY_BYTES);
    seal->count = 0;
}

void oob_seal(struct oob_seal *seal, const void *data, size_t bytes, void *out)
{
    unsigned char *record = out;
    for (int i = 0; i < OOB_RECORD_HEADER; i++) record[i] = (unsigned char)(bytes >> 8 * i);
    crypto_lock(seal->key, seal->count, record, OOB_RECORD_HEADER, data, bytes, record + OOB_RECORD_HEADER);
    if (!PLANTED_BUG(BUG_OOB_RECORD_NUMBER)) seal->count++;
}

size_t oob_record_bytes(const void *stream, size_t have)
{
    const unsigned char *header = stream;
    if (have < OOB_RECORD_HEADER) return OOB_RECORD_HEADER;
    size_t bytes = (size_t)header[0] | (size_t)header[1] << 8 | (size_t)header[2] << 16 | (size_t)header[3] << 24;
    return bytes && bytes <= OOB_RECORD_MAX ? bytes + OOB_RECORD_EXTRA : 0;
}

int oob_unseal(struct oob_seal *seal, const void *record, size_t record_bytes, void *out)
{
    const unsigned char *header = record;
    if (record_bytes <= OOB_RECORD_EXTRA || oob_record_bytes(record, record_bytes) != record_bytes ||
        !crypto_unlock(seal->key, seal->count, header, OOB_RECORD_HEADER, header + OOB_RECORD_HEADER,
                       record_bytes - OOB_RECORD_HEADER, out))
        return base_error(NCCLX_ERR_TRANSPORT, "what arrives on a link is not what the other end sent");
    if (!PLANTED_BUG(BUG_OOB_RECORD_NUMBER)) seal->count++;
    return NCCLX_SUCCESS;
}
