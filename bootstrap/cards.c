/* cards.c - keys that ranks publish for each other: where a peer is found, fetched on the first connection to it. */
#include "bootstrap/client.h"

#include <string.h>
#include <time.h>

#define KEY_MAX 64
#define VALUE_MAX (1 << 20) /* of a card; anything larger did not come from us */

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
    if (bytes > VALUE_MAX)
        return base_error(NCCLX_ERR_INTERNAL, "key %s: a value of %zu bytes; at most %d are possible", key, bytes, VALUE_MAX);
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

int bootstrap_copy_value(const pmix_value_t *card, int rank, const char *key, void **value, size_t *bytes)
{
    const void *from = NULL;
    size_t length = 0;
    if (card->type == PMIX_BYTE_OBJECT) {
        from = card->data.bo.bytes;
        length = card->data.bo.size;
    } else if (card->type == PMIX_STRING) {
        from = card->data.string;
        length = from ? strlen(from) : 0;
    }
    if (!from || length > VALUE_MAX) return base_error(NCCLX_ERR_BOOTSTRAP, "rank %d published %s in a form that is not ours", rank, key);
    char *mine = base_alloc(AREA_BOOTSTRAP, length + 1);
    if (!mine) return base_error(NCCLX_ERR_NO_MEM, "no memory for key %s of rank %d", key, rank);
    memcpy(mine, from, length);
    mine[length] = 0; /* so that texts are texts */
    *value = mine;
    *bytes = length;
    return NCCLX_SUCCESS;
}

static void on_value(pmix_status_t status, pmix_value_t *value, void *arg)
{
    bootstrap_call_answer(arg, status, value);
}

/* One question to the server. SUCCESS with its answer in *status, or the error that ended the wait. */
static int ask(struct bootstrap *boot, int rank, const char *key, uint64_t timeout_ns, bool refresh, pmix_status_t *status,
               pmix_value_t **card)
{
    pmix_proc_t proc;
    size_t infos;
    struct bootstrap_call *call = bootstrap_call_new(boot);
    if (!call) return base_error(NCCLX_ERR_NO_MEM, "no memory for key %s of rank %d", key, rank);
    int seconds = (int)(timeout_ns / BASE_NS_PER_S) + 1;
    pmix_info_t *info = bootstrap_call_get_info(call, seconds, refresh, &infos);
    PMIX_LOAD_PROCID(&proc, boot->self.nspace, (pmix_rank_t)rank);
    *status = PMIx_Get_nb(&proc, key, info, infos, on_value, call);
    if (*status == PMIX_SUCCESS) return bootstrap_call_wait(call, boot, "fetching a peer's card", timeout_ns, status, card);
    bootstrap_call_drop(call);
    return NCCLX_SUCCESS;
}

/* A server says "not found" at once when the rank has committed other keys, and "timeout" when an earlier question ran out: neither
 * says that the key will not come. */
static bool may_come(pmix_status_t status)
{
    return status == PMIX_ERR_NOT_FOUND || status == PMIX_ERR_TIMEOUT;
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
    pmix_status_t status = PMIX_SUCCESS;
    uint64_t now = base_clock_ns(), deadline = now + timeout_ns;
    for (unsigned attempt = 0; now < deadline; attempt++) {
        int error = ask(boot, rank, key, deadline - now, attempt > 0, &status, &card);
        if (error) return base_error_context(error, "key %s of rank %d", key, rank);
        if (!may_come(status)) break;
        pause_before_retry(boot->rt, attempt);
        now = base_clock_ns();
    }
    if (may_come(status))
        return base_error(NCCLX_ERR_TIMEOUT, "rank %d did not publish %s within %.3f s", rank, key, (double)timeout_ns / 1e9);
    if (status != PMIX_SUCCESS || !card)
        return base_error(NCCLX_ERR_BOOTSTRAP, "no key %s of rank %d: %s", key, rank, PMIx_Error_string(status));
    int error = bootstrap_copy_value(card, rank, key, value, bytes);
    PMIX_VALUE_RELEASE(card);
    return error;
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
