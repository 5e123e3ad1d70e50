/* fetch.c - a peer's key: the question to the server, its answer, and both without waiting, for those who have other work
 * meanwhile. */
#include "bootstrap/client.h"

#include <string.h>

/* Until a peer has come so far. */
#define FETCH_SECONDS 60
#define AGAIN_NS UINT64_C(5000000)

struct bootstrap_fetch {
    struct bootstrap *boot;
    struct bootstrap_call *call; /* null between two questions */
    uint64_t deadline_ns, again_ns;
    int rank;
    char key[];
};

/* The bytes of a card, with a zero behind them. */
static int copy_value(const pmix_value_t *card, int rank, const char *key, void **value, size_t *bytes)
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
    if (!from || length > BOOTSTRAP_VALUE_MAX) return base_error(NCCLX_ERR_BOOTSTRAP, "rank %d published %s in a form that is not ours", rank, key);
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

struct bootstrap_call *bootstrap_ask(struct bootstrap *boot, int rank, const char *key, int seconds, bool refresh)
{
    pmix_proc_t proc;
    size_t infos;
    struct bootstrap_call *call = bootstrap_call_new(boot);
    if (!call) return NULL;
    pmix_info_t *info = bootstrap_call_get_info(call, seconds, refresh, &infos);
    PMIX_LOAD_PROCID(&proc, boot->self.nspace, (pmix_rank_t)rank);
    pmix_status_t status = PMIx_Get_nb(&proc, key, info, infos, on_value, call);
    if (status != PMIX_SUCCESS) bootstrap_call_answer(call, status, NULL);
    return call;
}

bool bootstrap_card_may_come(pmix_status_t status)
{
    return status == PMIX_ERR_NOT_FOUND || status == PMIX_ERR_TIMEOUT;
}

int bootstrap_take_card(pmix_status_t status, pmix_value_t *card, int rank, const char *key, void **value, size_t *bytes)
{
    if (status != PMIX_SUCCESS || !card)
        return base_error(NCCLX_ERR_BOOTSTRAP, "no key %s of rank %d: %s", key, rank, PMIx_Error_string(status));
    int error = copy_value(card, rank, key, value, bytes);
    PMIX_VALUE_RELEASE(card);
    return error;
}

static bool ask(struct bootstrap_fetch *fetch, bool refresh)
{
    fetch->call = bootstrap_ask(fetch->boot, fetch->rank, fetch->key, FETCH_SECONDS, refresh);
    return fetch->call;
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
    if (bootstrap_card_may_come(status) && now < fetch->deadline_ns) {
        fetch->again_ns = now + AGAIN_NS;
        return false;
    }
    *code = bootstrap_take_card(status, card, fetch->rank, fetch->key, value, bytes);
    base_free(AREA_BOOTSTRAP, fetch);
    return true;
}

void bootstrap_fetch_leave(struct bootstrap_fetch *fetch)
{
    if (!fetch) return;
    if (fetch->call) bootstrap_call_leave(fetch->call, fetch->boot);
    base_free(AREA_BOOTSTRAP, fetch);
}
