/* process.c - per-process state, and what a forked child must not keep: it would read the parent's messages and hold its segments. */
#include "runtime/base/base.h"

#include <dirent.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct ncclx_process ncclx_process = {.owned_lock = PTHREAD_MUTEX_INITIALIZER};

struct base_owned {
    struct base_owned *next;
    void *start;
    size_t bytes;
};

#define WORD_BITS 64

/* The list is locked across fork, so that the child sees it whole. */
static void before_fork(void)
{
    pthread_mutex_lock(&ncclx_process.owned_lock);
}

static void after_fork_parent(void)
{
    pthread_mutex_unlock(&ncclx_process.owned_lock);
}

static void close_owned(void)
{
    for (size_t i = 0; i < ncclx_process.owned_words; i++)
        for (uint64_t bits = ncclx_process.owned_fds[i]; bits; bits &= bits - 1)
            close((int)(i * WORD_BITS) + __builtin_ctzll(bits));
    ncclx_process.owned_words = 0;
}

static void after_fork_child(void)
{
    atomic_store(&ncclx_process.forked, true);
    close_owned();
    for (struct base_owned *o = ncclx_process.owned; o; o = o->next) munmap(o->start, o->bytes);
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

/* ---- Descriptors ---- */

static bool has_word(size_t word)
{
    size_t words = ncclx_process.owned_words;
    if (word < words) return true;
    uint64_t *grown = base_realloc(AREA_BASE, ncclx_process.owned_fds, (word + 1) * sizeof *grown);
    if (!grown) return false;
    memset(grown + words, 0, (word + 1 - words) * sizeof *grown);
    ncclx_process.owned_fds = grown;
    ncclx_process.owned_words = word + 1;
    return true;
}

int base_process_own_fd(int fd)
{
    size_t word = (size_t)fd / WORD_BITS;
    pthread_mutex_lock(&ncclx_process.owned_lock);
    bool room = has_word(word);
    if (room) ncclx_process.owned_fds[word] |= UINT64_C(1) << fd % WORD_BITS;
    pthread_mutex_unlock(&ncclx_process.owned_lock);
    return room ? NCCLX_SUCCESS : base_error(NCCLX_ERR_NO_MEM, "no memory");
}

void base_process_close(int fd)
{
    size_t word = (size_t)fd / WORD_BITS;
    if (fd < 0) return;
    pthread_mutex_lock(&ncclx_process.owned_lock);
    if (word < ncclx_process.owned_words) ncclx_process.owned_fds[word] &= ~(UINT64_C(1) << fd % WORD_BITS);
    close(fd);
    pthread_mutex_unlock(&ncclx_process.owned_lock);
}

/* ---- Mappings ---- */

int base_process_own_mapping(void *start, size_t bytes)
{
    struct base_owned *o = base_alloc(AREA_BASE, sizeof *o);
    if (!o) return base_error(NCCLX_ERR_NO_MEM, "no memory");
    pthread_mutex_lock(&ncclx_process.owned_lock);
    *o = (struct base_owned){.next = ncclx_process.owned, .start = start, .bytes = bytes};
    ncclx_process.owned = o;
    pthread_mutex_unlock(&ncclx_process.owned_lock);
    return NCCLX_SUCCESS;
}

void base_process_disown_mapping(void *start)
{
    struct base_owned *found = NULL;
    pthread_mutex_lock(&ncclx_process.owned_lock);
    for (struct base_owned **at = &ncclx_process.owned; *at; at = &(*at)->next) {
        if ((*at)->start != start) continue;
        found = *at;
        *at = found->next;
        break;
    }
    pthread_mutex_unlock(&ncclx_process.owned_lock);
    base_free(AREA_BASE, found);
}

unsigned base_process_descriptors(unsigned if_unknown)
{
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (!folder) return if_unknown;
    while (readdir(folder)) count++;
    closedir(folder);
    return count - 3; /* ".", ".." and the folder itself */
}
