/* call.c - waiting for an answer of PMIx. */
#include "bootstrap/client.h"

#include <errno.h>
#include <time.h>

/* The answer wakes the waiter; between answers it looks this often for other reasons to stop. */
#define LOOK_NS UINT64_C(20000000)

struct bootstrap_call {
    struct bootstrap_call *next; /* of those whose waiter has left */
    pthread_mutex_t lock;
    pthread_cond_t answered;
    pmix_info_t info[2];
    pmix_value_t *value;
    pmix_status_t status;
    bool done;
};

/* Frees those that were left and have been answered since; all of them when PMIx' thread has ended. */
static void reap(struct bootstrap *boot, bool all)
{
    struct bootstrap_call **link = &boot->left;
    while (*link) {
        struct bootstrap_call *call = *link;
        pthread_mutex_lock(&call->lock);
        bool done = call->done;
        pthread_mutex_unlock(&call->lock);
        if (done || all) {
            *link = call->next;
            bootstrap_call_drop(call);
        } else {
            link = &call->next;
        }
    }
}

void bootstrap_call_release(struct bootstrap *boot)
{
    reap(boot, true);
}

struct bootstrap_call *bootstrap_call_new(struct bootstrap *boot)
{
    pthread_condattr_t monotonic;
    reap(boot, false);
    struct bootstrap_call *call = base_calloc(AREA_BOOTSTRAP, 1, sizeof *call);
    if (!call) return NULL;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&call->lock, NULL);
    pthread_cond_init(&call->answered, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return call;
}

pmix_info_t *bootstrap_call_get_info(struct bootstrap_call *call, int seconds, bool refresh, size_t *count)
{
    PMIX_INFO_LOAD(&call->info[0], PMIX_TIMEOUT, &seconds, PMIX_INT);
    PMIX_INFO_LOAD(&call->info[1], PMIX_GET_REFRESH_CACHE, &refresh, PMIX_BOOL);
    *count = refresh ? 2 : 1;
    return call->info;
}

pmix_info_t *bootstrap_call_fence_info(struct bootstrap_call *call, bool collect, size_t *count)
{
    PMIX_INFO_LOAD(&call->info[0], PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    *count = 1;
    return call->info;
}

void bootstrap_call_drop(struct bootstrap_call *call)
{
    if (call->value) PMIX_VALUE_RELEASE(call->value);
    pthread_cond_destroy(&call->answered);
    pthread_mutex_destroy(&call->lock);
    base_free(AREA_BOOTSTRAP, call);
}

static pmix_value_t *copy(const pmix_value_t *value)
{
    pmix_value_t *mine;
    PMIX_VALUE_CREATE(mine, 1);
    if (!mine) return NULL;
    if (PMIx_Value_xfer(mine, (pmix_value_t *)(uintptr_t)value) == PMIX_SUCCESS) return mine;
    PMIX_VALUE_RELEASE(mine);
    return NULL;
}

void bootstrap_call_answer(struct bootstrap_call *call, pmix_status_t status, const pmix_value_t *value)
{
    pthread_mutex_lock(&call->lock);
    call->value = status == PMIX_SUCCESS && value ? copy(value) : NULL;
    call->status = status == PMIX_SUCCESS && value && !call->value ? PMIX_ERR_NOMEM : status;
    call->done = true;
    pthread_cond_signal(&call->answered);
    pthread_mutex_unlock(&call->lock);
}

static bool sleep_until_answered(struct bootstrap_call *call)
{
    struct timespec until;
    uint64_t ns = base_clock_ns() + LOOK_NS;
    until.tv_sec = (time_t)(ns / BASE_NS_PER_S);
    until.tv_nsec = (long)(ns % BASE_NS_PER_S);
    pthread_mutex_lock(&call->lock);
    while (!call->done)
        if (pthread_cond_timedwait(&call->answered, &call->lock, &until) == ETIMEDOUT) break;
    bool done = call->done;
    pthread_mutex_unlock(&call->lock);
    return done;
}

static void take_answer(struct bootstrap_call *call, pmix_status_t *status, pmix_value_t **value)
{
    *status = call->status;
    if (value) {
        *value = call->value;
        call->value = NULL;
    }
    bootstrap_call_drop(call);
}

bool bootstrap_call_poll(struct bootstrap_call *call, pmix_status_t *status, pmix_value_t **value)
{
    pthread_mutex_lock(&call->lock);
    bool done = call->done;
    pthread_mutex_unlock(&call->lock);
    if (done) take_answer(call, status, value);
    return done;
}

void bootstrap_call_leave(struct bootstrap_call *call, struct bootstrap *boot)
{
    call->next = boot->left;
    boot->left = call;
}

int bootstrap_call_wait(struct bootstrap_call *call, struct bootstrap *boot, const char *what, uint64_t timeout_ns, pmix_status_t *status,
                        pmix_value_t **value)
{
    struct ncclx_rt *rt = boot->rt;
    struct base_wait wait;
    int error = NCCLX_SUCCESS;
    bool done;
    base_wait_begin(&wait, rt, what, NULL, NULL);
    if (timeout_ns) base_wait_set_timeout(&wait, timeout_ns);
    do {
        base_rt_unlock(rt);
        done = sleep_until_answered(call);
        base_rt_lock(rt);
        if (!done) {
            base_progress(rt); /* peers may need this rank for what they must finish before they answer */
            error = base_wait_check(&wait);
        }
    } while (!done && !error);
    base_wait_end(&wait);
    if (!done) {
        bootstrap_call_leave(call, boot);
        return error;
    }
    take_answer(call, status, value);
    return NCCLX_SUCCESS;
}
