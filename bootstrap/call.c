/* call.c - waiting for an answer of PMIx. */
#include "bootstrap/client.h"

#include <errno.h>
#include <time.h>

/* The answer wakes the waiter, and so do peers that need this rank; this often it looks for other reasons to stop. It gets there step by
 * step, as peers of two kinds can wake it only in turns (pml). */
#define FIRST_LOOK_NS UINT64_C(1000000)
#define LOOK_NS UINT64_C(20000000)

struct bootstrap_call {
    struct bootstrap_call *next; /* of those whose waiter has left */
    struct bootstrap *boot;
    pthread_mutex_t lock;
    pthread_cond_t answered;
    pmix_info_t info[2];
    pmix_value_t *value;
    pmix_status_t status;
    bool done;
};

/* For base_wait, too. */
static bool is_answered(const void *arg)
{
    struct bootstrap_call *call = (struct bootstrap_call *)(uintptr_t)arg;
    pthread_mutex_lock(&call->lock);
    bool done = call->done;
    pthread_mutex_unlock(&call->lock);
    return done;
}

/* Frees those that were left and have been answered since; all of them when PMIx' thread has ended. */
static void reap(struct bootstrap *boot, bool all)
{
    struct bootstrap_call **link = &boot->left;
    while (*link) {
        struct bootstrap_call *call = *link;
        if (all || is_answered(call)) {
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
    call->boot = boot;
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
    struct bootstrap *boot = call->boot;
    pthread_mutex_lock(&call->lock);
    call->value = status == PMIX_SUCCESS && value ? copy(value) : NULL;
    call->status = status == PMIX_SUCCESS && value && !call->value ? PMIX_ERR_NOMEM : status;
    call->done = true;
    pthread_cond_signal(&call->answered);
    pthread_mutex_unlock(&call->lock); /* the call may be gone now */
    pthread_mutex_lock(&boot->lock);
    if (boot->rt) base_rt_wake(boot->rt);
    pthread_mutex_unlock(&boot->lock);
}

/* Where peers cannot reach this rank, such as before and after all communication. */
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

/* Peers may need this rank for what they must finish before the answer can come. Inside of progress they are not served, and
 * would wake it in vain. Of several threads one may take the call that was for another. Whether the answer is there. */
static bool serve_or_sleep(struct ncclx_rt *rt, struct bootstrap_call *call, uint64_t *pause_ns)
{
    bool serves = rt->block && !rt->polling;
    if (serves && base_progress(rt) > 0) {
        *pause_ns = FIRST_LOOK_NS;
        return is_answered(call);
    }
    base_rt_unlock(rt);
    if (serves) rt->block(rt->block_arg, rt->threaded && *pause_ns > rt->sleep_ns ? rt->sleep_ns : *pause_ns);
    bool done = serves ? is_answered(call) : sleep_until_answered(call);
    base_rt_lock(rt);
    *pause_ns = *pause_ns < LOOK_NS / 2 ? 2 * *pause_ns : LOOK_NS;
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
    bool done = is_answered(call);
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
    uint64_t pause_ns = FIRST_LOOK_NS;
    int error = NCCLX_SUCCESS;
    bool done;
    base_wait_begin(&wait, rt, what, NULL, call);
    wait.ready = is_answered;
    if (timeout_ns) base_wait_set_timeout(&wait, timeout_ns);
    while (!(done = is_answered(call) || serve_or_sleep(rt, call, &pause_ns)) && !error) error = base_wait_check(&wait);
    base_wait_end(&wait);
    if (!done) {
        bootstrap_call_leave(call, boot);
        return error;
    }
    take_answer(call, status, value);
    return NCCLX_SUCCESS;
}
