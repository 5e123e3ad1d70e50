/* cards.c - keys that ranks publish for each other: where a peer is found, fetched on the first connection to it. */
#include "bootstrap/client.h"

#include <string.h>
#include <time.h>

#define KEY_MAX 64

static int check_key(const char *key)
{
    size_t length = strnlen(key, KEY_MAX + 1);
    if (length && length <= KEY_MAX) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_INTERNAL, "a key of %zu bytes; 1 to %d are possible", length, KEY_MAX);
}

int bootstrap_put(struct ncclx_rt *rt, const char *key, const void *value, size_t bytes)
{
    struct bootstrap *boot = rt->bootstrap;
    pmix_value_t card = {.type = PMIX_BYTE_OBJECT};
    int error = check_key(key);
    if (error || !boot) return error; /* a job of one has nobody to tell */
    if (bytes > BOOTSTRAP_VALUE_MAX)
        return base_error(NCCLX_ERR_INTERNAL, "key %s: a value of %zu bytes; at most %d are possible", key, bytes, BOOTSTRAP_VALUE_MAX);
    card.data.bo.bytes = (char *)(uintptr_t)value; /* PMIx copies it */
    card.data.bo.size = bytes;
    pmix_status_t status = PMIx_Put(PMIX_GLOBAL, key, &card);
    if (status != PMIX_SUCCESS) return base_error(NCCLX_ERR_BOOTSTRAP, "cannot publish %s: %s", key, PMIx_Error_string(status));
    boot->dirty = true;
    return NCCLX_SUCCESS;
}

int bootstrap_commit(struct ncclx_rt *rt)
{
    struct bootstrap *boot = rt->bootstrap;
    if (!boot || !boot->dirty) return NCCLX_SUCCESS;
    pmix_status_t status = PMIx_Commit();
    if (status != PMIX_SUCCESS)
        return base_error(NCCLX_ERR_BOOTSTRAP, "cannot hand published keys to the PMIx server: %s", PMIx_Error_string(status));
    boot->dirty = false;
    return NCCLX_SUCCESS;
}

static void pause_before_retry(struct ncclx_rt *rt, unsigned attempt)
{
    struct timespec pause = {.tv_nsec = 1000000L << (attempt < 6 ? attempt : 6)};
    base_rt_unlock(rt);
    nanosleep(&pause, NULL);
    base_rt_lock(rt);
    base_progress(rt);
}

static int get(struct bootstrap *boot, int rank, const char *key, uint64_t timeout_ns, void **value, size_t *bytes)
{
    pmix_value_t *card = NULL;
    pmix_status_t status = PMIX_ERR_TIMEOUT;
    uint64_t now = base_clock_ns(), deadline = now + timeout_ns;
    for (unsigned attempt = 0; bootstrap_card_may_come(status) && now < deadline; attempt++, now = base_clock_ns()) {
        if (attempt) pause_before_retry(boot->rt, attempt - 1);
        struct bootstrap_call *call = bootstrap_ask(boot, rank, key, (int)((deadline - now) / BASE_NS_PER_S) + 1, attempt > 0);
        if (!call) return base_error(NCCLX_ERR_NO_MEM, "no memory for key %s of rank %d", key, rank);
        int error = bootstrap_call_wait(call, boot, "fetching a peer's card", deadline - now, &status, &card);
        if (error) return base_error_context(error, "key %s of rank %d", key, rank);
    }
    if (bootstrap_card_may_come(status))
        return base_error(NCCLX_ERR_TIMEOUT, "rank %d did not publish %s within %.3f s", rank, key, (double)timeout_ns / 1e9);
    return bootstrap_take_card(status, card, rank, key, value, bytes);
}

int bootstrap_get(struct ncclx_rt *rt, int rank, const char *key, void **value, size_t *bytes, int timeout_ms)
{
    int error = check_key(key);
    if (error) return error;
    if (rank < 0 || rank >= rt->job.size)
        return base_error(NCCLX_ERR_RANK, "key %s of rank %d: the job has %d ranks", key, rank, rt->job.size);
    if (timeout_ms < 1) return base_error(NCCLX_ERR_INTERNAL, "key %s of rank %d: a time limit of %d ms", key, rank, timeout_ms);
    if (!rt->bootstrap) return base_error(NCCLX_ERR_BOOTSTRAP, "key %s: a job of one has no published keys", key);
    return get(rt->bootstrap, rank, key, (uint64_t)timeout_ms * 1000000, value, bytes);
}
