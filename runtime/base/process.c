/* process.c - per-process state, and what a forked child must not keep: it would read the parent's messages and hold its segments. */
#include "runtime/base/base.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct ncclx_process ncclx_process = {.owned_lock = PTHREAD_MUTEX_INITIALIZER};

struct base_owned {
    struct base_owned *next;
    int fd; /* -1: a mapping */
    void *start;
    size_t bytes;
};

/* The list is locked across fork, so that the child sees it whole. */
static void before_fork(void)
{
    pthread_mutex_lock(&ncclx_process.owned_lock);
}

static void after_fork_parent(void)
{
    pthread_mutex_unlock(&ncclx_process.owned_lock);
}

static void after_fork_child(void)
{
    atomic_store(&ncclx_process.forked, true);
    for (struct base_owned *o = ncclx_process.owned; o; o = o->next) {
        if (o->fd >= 0) close(o->fd);
        else munmap(o->start, o->bytes);
    }
    ncclx_process.owned = NULL; /* the blocks stay: malloc may not be called here */
    pthread_mutex_unlock(&ncclx_process.owned_lock);
}

static void install_fork_handlers(void)
{
    (void)pthread_atfork(before_fork, after_fork_parent, after_fork_child); /* fails only without memory */
}

int base_process_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (pthread_once(&once, install_fork_handlers)) return base_error(NCCLX_ERR_INTERNAL, "cannot install fork handlers");
    return NCCLX_SUCCESS;
}

static int own(int fd, void *start, size_t bytes)
{
    struct base_owned *o = base_alloc(AREA_BASE, sizeof *o);
    if (!o) return base_error(NCCLX_ERR_NO_MEM, "no memory");
    pthread_mutex_lock(&ncclx_process.owned_lock);
    *o = (struct base_owned){.next = ncclx_process.owned, .fd = fd, .start = start, .bytes = bytes};
    ncclx_process.owned = o;
    pthread_mutex_unlock(&ncclx_process.owned_lock);
    return NCCLX_SUCCESS;
}

static void disown(int fd, const void *start)
{
    struct base_owned *found = NULL;
    pthread_mutex_lock(&ncclx_process.owned_lock);
    for (struct base_owned **at = &ncclx_process.owned; *at; at = &(*at)->next) {
        if ((*at)->fd != fd || (*at)->start != start) continue;
        found = *at;
        *at = found->next;
        break;
    }
    pthread_mutex_unlock(&ncclx_process.owned_lock);
    base_free(AREA_BASE, found);
}

int base_process_own_fd(int fd)
{
    return own(fd, NULL, 0);
}

void base_process_disown_fd(int fd)
{
    disown(fd, NULL);
}

int base_process_own_mapping(void *start, size_t bytes)
{
    return own(-1, start, bytes);
}

void base_process_disown_mapping(void *start)
{
    disown(-1, start);
}
