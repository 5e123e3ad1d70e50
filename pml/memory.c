/* memory.c - pml_mem_alloc: anonymous files, allocated for real and sealed against shrinking, so that no access by
 * anyone can raise SIGBUS. */
#include "config.h"

#include "pml/memory.h"

#include "pml/available.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGE ((size_t)4096)

static int short_of(size_t bytes, const char *what)
{
    return base_error(NCCLX_ERR_NO_MEM, "cannot %s %zu bytes of memory that peers reach: %s", what, bytes,
                      strerror(errno));
}

/* Blocks below this size are not worth the question. */
#define ASK_BYTES ((size_t)16 << 20)

static int check_available(size_t bytes)
{
    if (bytes < ASK_BYTES) return NCCLX_SUCCESS;
    uint64_t available = available_memory();
    if (bytes <= available) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_NO_MEM, "%zu bytes of memory that peers reach: only %llu are available", bytes,
                      (unsigned long long)available);
}

static int fill_file(struct pml_memory *block)
{
    struct rlimit limit;
    int error = check_available(block->file_bytes);
    if (error) return error;
    if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < block->file_bytes)
        return base_error(NCCLX_ERR_LIMIT,
                          "the limit on file size (ulimit -f, %llu bytes) is below %zu bytes: raise it",
                          (unsigned long long)limit.rlim_cur, block->file_bytes);
    int failed;
    do failed = fallocate(block->fd, 0, 0, (off_t)block->file_bytes);
    while (failed && errno == EINTR);
    if (failed) return short_of(block->bytes, "allocate");
    if (fcntl(block->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW)) return short_of(block->bytes, "seal");
    void *start = mmap(NULL, block->file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, block->fd, 0);
    if (start == MAP_FAILED) return short_of(block->bytes, "map");
    block->start = start;
    return NCCLX_SUCCESS;
}

/* keep_pages: peers may still be reading. */
static void block_release(struct pml_memory *block, bool keep_pages)
{
    if (block->start) {
        struct pml_memory_trailer *trailer = (struct pml_memory_trailer *)(block->start + block->bytes);
        atomic_store(&trailer->freed, 1);
        munmap(block->start, block->file_bytes);
        base_area_account(AREA_SHM, -(int64_t)block->bytes);
        /* Peers may still map the file, for a moment or by mistake: they keep it, but not its pages. */
        if (!keep_pages) (void)fallocate(block->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)block->bytes);
    }
    base_process_close(block->fd);
    base_free(AREA_SHM, block);
}

static int block_make(size_t bytes, struct pml_memory **out)
{
    struct pml_memory *block = base_calloc(AREA_SHM, 1, sizeof *block);
    if (!block) return base_error(NCCLX_ERR_NO_MEM, "no memory");
    block->bytes = (bytes + PAGE - 1) & ~(PAGE - 1);
    block->file_bytes = block->bytes + PAGE;
    block->fd = memfd_create("ncclx-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int error = block->fd < 0 ? short_of(bytes, "make a file for") : base_process_own_fd(block->fd);
    if (!error) error = fill_file(block);
    if (!error && getrandom(block->token, sizeof block->token, 0) != (ssize_t)sizeof block->token)
        error = base_error(NCCLX_ERR_INTERNAL, "no random numbers: %s", strerror(errno));
    if (block->start) base_area_account(AREA_SHM, (int64_t)block->bytes);
    if (error) {
        block_release(block, false);
        return error;
    }
    struct pml_memory_trailer *trailer = (struct pml_memory_trailer *)(block->start + block->bytes);
    memcpy(trailer->token, block->token, sizeof block->token);
    *out = block;
    return NCCLX_SUCCESS;
}

int pml_mem_alloc(struct ncclx_rt *rt, size_t bytes, void **ptr)
{
    struct pml_memory *block = NULL;
    *ptr = NULL;
    if (!bytes) return NCCLX_SUCCESS;
    if (bytes > (size_t)1 << 62) return base_error(NCCLX_ERR_NO_MEM, "cannot allocate %zu bytes", bytes);
    int error = block_make(bytes, &block);
    if (error) return error;
    block->next = rt->pml->memory;
    rt->pml->memory = block;
    *ptr = block->start;
    return NCCLX_SUCCESS;
}

int pml_mem_free(struct ncclx_rt *rt, void *ptr)
{
    if (!ptr) return NCCLX_SUCCESS;
    for (struct pml_memory **at = &rt->pml->memory; *at; at = &(*at)->next) {
        struct pml_memory *block = *at;
        if (block->start != ptr) continue;
        *at = block->next;
        block_release(block, false);
        return NCCLX_SUCCESS;
    }
    return base_error(NCCLX_ERR_ARG, "%p is not memory from ncclx_mem_alloc, or was freed before", ptr);
}

struct pml_memory *pml_memory_find(struct pml *pml, const void *base, size_t bytes)
{
    for (struct pml_memory *block = pml->memory; block; block = block->next) {
        size_t offset = (size_t)((uintptr_t)base - (uintptr_t)block->start); /* huge when base lies below */
        if (offset <= block->bytes && bytes <= block->bytes - offset) return block;
    }
    return NULL;
}

void pml_memory_release(struct pml *pml)
{
    while (pml->memory) {
        struct pml_memory *block = pml->memory;
        pml->memory = block->next;
        block_release(block, true); /* the last process that maps it ends it */
    }
}
