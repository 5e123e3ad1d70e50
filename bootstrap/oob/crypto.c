/* crypto.c - libsodium, loaded at first use. */
#include "config.h"

#include "bootstrap/oob/crypto.h"

#include "bootstrap/oob/oob.h"
#include "runtime/base/base.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define LABEL_BYTES 16

static struct {
    typeof(&sodium_init) init;
    typeof(&sodium_memcmp) compare;
    typeof(&crypto_generichash_blake2b_init) hash_init;
    typeof(&crypto_generichash_blake2b_update) hash_update;
    typeof(&crypto_generichash_blake2b_final) hash_final;
    typeof(&crypto_scalarmult_curve25519_base) multiply_base;
    typeof(&crypto_scalarmult_curve25519) multiply;
    typeof(&crypto_aead_chacha20poly1305_ietf_encrypt) encrypt;
    typeof(&crypto_aead_chacha20poly1305_ietf_decrypt) decrypt;
} sodium;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *missing; /* what could not be loaded */

static void load(void)
{
    const struct {
        const char *name;
        void *place;
    } functions[] = {
        {"sodium_init", &sodium.init},
        {"sodium_memcmp", &sodium.compare},
        {"crypto_generichash_blake2b_init", &sodium.hash_init},
        {"crypto_generichash_blake2b_update", &sodium.hash_update},
        {"crypto_generichash_blake2b_final", &sodium.hash_final},
        {"crypto_scalarmult_curve25519_base", &sodium.multiply_base},
        {"crypto_scalarmult_curve25519", &sodium.multiply},
        {"crypto_aead_chacha20poly1305_ietf_encrypt", &sodium.encrypt},
        {"crypto_aead_chacha20poly1305_ietf_decrypt", &sodium.decrypt},
    };
    void *library = dlopen(SODIUM_SONAME, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        missing = SODIUM_SONAME;
        return;
    }
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *symbol = dlsym(library, functions[i].name);
        if (!symbol) {
            missing = functions[i].name;
            return;
        }
        memcpy(functions[i].place, &symbol, sizeof symbol);
    }
    if (sodium.init() < 0) missing = "sodium_init";
}

int crypto_load(void)
{
    pthread_once(&once, load);
    if (missing)
        return base_error(NCCLX_ERR_UNSUPPORTED,
                          "sockets between hosts need libsodium, of which %s cannot be loaded (Debian, Ubuntu: "
                          "libsodium23)",
                          missing);
    return NCCLX_SUCCESS;
}

void crypto_digest(unsigned char out[CRYPTO_BYTES], const unsigned char *key, const char *label,
                   const struct crypto_piece *pieces, size_t count)
{
    crypto_generichash_blake2b_state state;
    char block[LABEL_BYTES] = {0};
    memcpy(block, label, strnlen(label, LABEL_BYTES));
    sodium.hash_init(&state, key, key ? CRYPTO_BYTES : 0, CRYPTO_BYTES);
    sodium.hash_update(&state, (const unsigned char *)block, sizeof block);
    for (size_t i = 0; i < count; i++) sodium.hash_update(&state, pieces[i].data, pieces[i].bytes);
    sodium.hash_final(&state, out, CRYPTO_BYTES);
    oob_wipe(&state, sizeof state);
}

bool crypto_equal(const void *a, const void *b, size_t bytes)
{
    return sodium.compare(a, b, bytes) == 0;
}

void crypto_public(unsigned char public_key[CRYPTO_BYTES], const unsigned char private_key[CRYPTO_BYTES])
{
    sodium.multiply_base(public_key, private_key);
}

bool crypto_shared(unsigned char out[CRYPTO_BYTES], const unsigned char private_key[CRYPTO_BYTES],
                   const unsigned char public_key[CRYPTO_BYTES])
{
    return sodium.multiply(out, private_key, public_key) == 0;
}

/* Each key serves one direction of one connection, and each number one record. */
static void number_nonce(unsigned char nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES], unsigned long long count)
{
    memset(nonce, 0, crypto_aead_chacha20poly1305_ietf_NPUBBYTES);
    for (int i = 0; i < 8; i++) nonce[i] = (unsigned char)(count >> 8 * i);
}

void crypto_lock(const unsigned char key[CRYPTO_BYTES], unsigned long long count, const void *head, size_t head_bytes,
                 const void *data, size_t bytes, void *out)
{
    unsigned char nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
    number_nonce(nonce, count);
    sodium.encrypt(out, NULL, data, bytes, head, head_bytes, NULL, nonce, key);
}

bool crypto_unlock(const unsigned char key[CRYPTO_BYTES], unsigned long long count, const void *head, size_t head_bytes,
                   const void *data, size_t bytes, void *out)
{
    unsigned char nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
    number_nonce(nonce, count);
    return sodium.decrypt(out, NULL, NULL, data, bytes, head, head_bytes, nonce, key) == 0;
}

void oob_random(void *bytes, size_t count)
{
    unsigned char *at = bytes;
    while (count) {
        ssize_t got = getrandom(at, count < 256 ? count : 256, 0);
        if (got < 0 && errno != EINTR) abort(); /* ENOSYS: a kernel from before 2014; no key can be had there */
        if (got <= 0) continue;
        at += got;
        count -= (size_t)got;
    }
}

void oob_wipe(void *bytes, size_t count)
{
    explicit_bzero(bytes, count);
}

int oob_key_pair(unsigned char public_key[OOB_KEY_BYTES], unsigned char private_key[OOB_KEY_BYTES])
{
    int code = crypto_load();
    if (code) return code;
    oob_random(private_key, OOB_KEY_BYTES);
    crypto_public(public_key, private_key);
    return NCCLX_SUCCESS;
}
