/* fetch.c - a peer's key without waiting for it: for those who have other work meanwhile. */
#include "bootstrap/client.h"

#include <string.h>

/* The server's own limit: beyond it nothing is to be expected. */
#define FETCH_SECONDS 60

struct bootstrap_fetch {
    struct bootstrap *boot;
    struct bootstrap_call *call;
    int rank;
    char key[];
};

static void on_value(pmix_status_t status, pmix_value_t *value, void *arg)
{
    bootstrap_call_answer(arg, status, value);
}

int bootstrap_fetch(struct ncclx_rt *rt, int rank, const char *key, struct bootstrap_fetch **out)
{
    struct bootstrap *boot = rt->bootstrap;
    if (!boot) return base_error(NCCLX_ERR_BOOTSTRAP, "key %s: a job of one has no published keys", key);
    struct bootstrap_fetch *fetch = base_calloc(AREA_BOOTSTRAP, 1, sizeof *fetch + strlen(key) + 1);
    struct bootstrap_call *call = fetch ? bootstrap_call_new(boot) : NULL;
    if (!call) {
        base_free(AREA_BOOTSTRAP, fetch);
        return base_error(NCCLX_ERR_NO_MEM, "no memory for key %s of rank %d", key, rank);
    }
    pmix_proc_t proc;
    size_t infos;
    *fetch = (struct bootstrap_fetch){.boot = boot, .call = call, .rank = rank};
    memcpy(fetch->key, key, strlen(key) + 1);
    pmix_info_t *info = bootstrap_call_get_info(call, FETCH_SECONDS, false, &infos);
    PMIX_LOAD_PROCID(&proc, boot->self.nspace, (pmix_rank_t)rank);
    pmix_status_t status = PMIx_Get_nb(&proc, key, info, infos, on_value, call);
    if (status != PMIX_SUCCESS) bootstrap_call_answer(call, status, NULL);
    *out = fetch;
    return NCCLX_SUCCESS;
}

bool bootstrap_fetched(struct bootstrap_fetch *fetch, int *code, void **value, size_t *bytes)
{
    pmix_status_t status;
    pmix_value_t *card;
    if (!bootstrap_call_poll(fetch->call, &status, &card)) return false;
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
    bootstrap_call_leave(fetch->call, fetch->boot);
    base_free(AREA_BOOTSTRAP, fetch);
}
