/* fetch.c - a peer's key without waiting for it: for those who have other work meanwhile. */
#include "bootstrap/client.h"

#include <string.h>

/* Until a peer has come so far. A server says "not found" at once when the peer has committed other keys already: that
 * does not say that the key will not come. */
#define FETCH_SECONDS 60
#define AGAIN_NS UINT64_C(5000000)

struct bootstrap_fetch {
    struct bootstrap *boot;
    struct bootstrap_call *call; /* null between two questions */
    uint64_t deadline_ns, again_ns;
    int rank;
    char key[];
};

static void on_value(pmix_status_t status, pmix_value_t *value, void *arg)
{
    bootstrap_call_answer(arg, status, value);
}

static bool ask(struct bootstrap_fetch *fetch, bool refresh)
{
    pmix_proc_t proc;
    size_t infos;
    fetch->call = bootstrap_call_new(fetch->boot);
    if (!fetch->call) return false;
    pmix_info_t *info = bootstrap_call_get_info(fetch->call, FETCH_SECONDS, refresh, &infos);
    PMIX_LOAD_PROCID(&proc, fetch->boot->self.nspace, (pmix_rank_t)fetch->rank);
    pmix_status_t status = PMIx_Get_nb(&proc, fetch->key, info, infos, on_value, fetch->call);
    if (status != PMIX_SUCCESS) bootstrap_call_answer(fetch->call, status, NULL);
    return true;
}

int bootstrap_fetch(struct ncclx_rt *rt, int rank, const char *key, struct bootstrap_fetch **out)
{
    struct bootstrap *boot = rt->bootstrap;
    if (!boot) return base_error(NCCLX_ERR_BOOTSTRAP, "key %s: a job of one has no published keys", key);
    struct bootstrap_fetch *fetch = base_calloc(AREA_BOOTSTRAP, 1, sizeof *fetch + strlen(key) + 1);
    if (fetch) {
        fetch->boot = boot;
        fetch->rank = rank;
        fetch->deadline_ns = base_clock_ns() + FETCH_SECONDS * BASE_NS_PER_S;
        memcpy(fetch->key, key, strlen(key) + 1);
        *out = fetch;
        if (ask(fetch, false)) return NCCLX_SUCCESS;
    }
    base_free(AREA_BOOTSTRAP, fetch);
    return base_error(NCCLX_ERR_NO_MEM, "no memory for key %s of rank %d", key, rank);
}

bool bootstrap_fetched(struct bootstrap_fetch *fetch, int *code, void **value, size_t *bytes)
{
    pmix_status_t status;
    pmix_value_t *card;
    uint64_t now = base_clock_ns();
    if (!fetch->call) {
        if (now >= fetch->again_ns) (void)ask(fetch, true); /* without memory: at the next look */
        return false;
    }
    if (!bootstrap_call_poll(fetch->call, &status, &card)) return false;
    fetch->call = NULL;
    if ((status == PMIX_ERR_NOT_FOUND || status == PMIX_ERR_TIMEOUT) && now < fetch->deadline_ns) {
        fetch->again_ns = now + AGAIN_NS;
        return false;
    }
    if (status == PMIX_SUCCESS && card) {
        *code = bootstrap_copy_value(card, fetch->rank, fetch->key, value, bytes);
        PMIX_VALUE_RELEASE(card);
    } else {
        *code = base_error(NCCLX_ERR_BOOTSTRAP, "no key %s of rank %d: %s", fetch->key, fetch->rank,
                           PMIx_Error_string(status));
    }
    base_free(AREA_BOOTSTRAP, fetch);
    return true;
}

void bootstrap_fetch_leave(struct bootstrap_fetch *fetch)
{
    if (!fetch) return;
    if (fetch->call) bootstrap_call_leave(fetch->call, fetch->boot);
    base_free(AREA_BOOTSTRAP, fetch);
}
