/* crypto.h - the few things that are taken from libsodium, which is loaded when the first endpoint is made: processes
 * that never open a socket pay nothing for it. */
#ifndef BOOTSTRAP_OOB_CRYPTO_H
#define BOOTSTRAP_OOB_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>

#define CRYPTO_BYTES 32 /* of keys, public or not, and of digests */

struct crypto_piece {
    const void *data;
    size_t bytes;
};

/* NCCLX_ERR_UNSUPPORTED: libsodium cannot be loaded. Needed once before anything else; any thread. */
int crypto_load(void);

/* Keyed digest (BLAKE2b) of a label of up to 16 characters, which says what for, and of pieces of known lengths. The
 * key may be null. */
void crypto_digest(unsigned char out[CRYPTO_BYTES], const unsigned char *key, const char *label,
                   const struct crypto_piece *pieces, size_t count);
/* Equal? Takes as long whatever the answer. */
bool crypto_equal(const void *a, const void *b, size_t bytes);

/* X25519 (RFC 7748). crypto_shared is false when the other key is one of those that give everybody the same result. */
void crypto_public(unsigned char public_key[CRYPTO_BYTES], const unsigned char private_key[CRYPTO_BYTES]);
bool crypto_shared(unsigned char out[CRYPTO_BYTES], const unsigned char private_key[CRYPTO_BYTES],
                   const unsigned char public_key[CRYPTO_BYTES]);

/* ChaCha20-Poly1305 (RFC 8439) of record number `count`; `head` is proven, too, but not encrypted. In place will do. */
#define CRYPTO_PROOF 16
void crypto_lock(const unsigned char key[CRYPTO_BYTES], unsigned long long count, const void *head, size_t head_bytes,
                 const void *data, size_t bytes, void *out);
/* `bytes` counts the proof. False: not what was locked. */
bool crypto_unlock(const unsigned char key[CRYPTO_BYTES], unsigned long long count, const void *head, size_t head_bytes,
                   const void *data, size_t bytes, void *out);

#endif
