/* child_pool.c - see child_pool.h. */
#include "config.h"

#include "launcher/child_pool.h"

#include "runtime/base/base.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#define POOL_MAX_THREADS 4
#define POOL_STACK_BYTES (256u << 10)

struct child_pool {
    pthread_mutex_t lock;
    pthread_cond_t work, idle;
    struct child_job **jobs;
    int count, next, active;
    bool failed;
    int threads;
};

/* Takes jobs until none is left; the lock is held at entry and return. */
static void work(struct child_pool *pool)
{
    while (pool->next < pool->count && !pool->failed) {
        struct child_job *job = pool->jobs[pool->next++];
        pool->active++;
        pthread_mutex_unlock(&pool->lock);
        job->tried = true;
        job->step = child_start(&job->child, &job->pid, &job->error);
        pthread_mutex_lock(&pool->lock);
        pool->active--;
        if (job->step != CHILD_STARTED) pool->failed = true;
    }
    if (pool->active == 0) pthread_cond_signal(&pool->idle);
}

static void *run_thread(void *arg)
{
    struct child_pool *pool = arg;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        work(pool);
        pthread_cond_wait(&pool->work, &pool->lock);
    }
    return NULL;
}

static void start_threads(struct child_pool *pool, int wanted)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, POOL_STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    while (pool->threads < wanted && pthread_create(&thread, &attributes, run_thread, pool) == 0) pool->threads++;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int child_pool_open(int jobs, struct child_pool **out)
{
    struct child_pool *pool = base_calloc(AREA_LAUNCHER, 1, sizeof *pool);
    *out = pool;
    if (!pool) return base_error(NCCLX_ERR_NO_MEM, "memory is short for starting ranks");
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->idle, NULL);
    if (jobs > 1)
        start_threads(pool, (jobs < POOL_MAX_THREADS ? jobs : POOL_MAX_THREADS) - 1); /* the caller works too */
    return NCCLX_SUCCESS;
}

void child_pool_run(struct child_pool *pool, struct child_job **jobs, int count)
{
    pthread_mutex_lock(&pool->lock);
    pool->jobs = jobs;
    pool->count = count;
    pool->next = 0;
    pool->failed = false;
    pthread_cond_broadcast(&pool->work);
    work(pool);
    while (pool->active > 0) pthread_cond_wait(&pool->idle, &pool->lock);
    pool->count = pool->next = 0;
    pthread_mutex_unlock(&pool->lock);
}
