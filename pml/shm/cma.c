/* cma.c - process_vm_readv and _writev, in as many calls as it takes. */
#include "config.h"

#include "pml/shm/cma.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/uio.h>

/* The kernel moves at most 2 GiB less a page in one call. */
#define PIECE_MAX ((size_t)1 << 30)

static int copy(bool write, pid_t pid, char *here, uint64_t there, size_t bytes)
{
    while (bytes) {
        struct iovec local = {.iov_base = here, .iov_len = bytes < PIECE_MAX ? bytes : PIECE_MAX};
        struct iovec remote = {.iov_base = (void *)(uintptr_t)there, .iov_len = local.iov_len};
        ssize_t moved =
            write ? process_vm_writev(pid, &local, 1, &remote, 1, 0) : process_vm_readv(pid, &local, 1, &remote, 1, 0);
        if (moved < 0 && errno == EINTR) continue;
        if (moved <= 0) return moved < 0 ? errno : EFAULT;
        here += moved;
        there += (uint64_t)moved;
        bytes -= (size_t)moved;
    }
    return 0;
}

int cma_read(pid_t pid, void *to, uint64_t address, size_t bytes)
{
    return copy(false, pid, to, address, bytes);
}

int cma_write(pid_t pid, const void *from, uint64_t address, size_t bytes)
{
    return copy(true, pid, (char *)(uintptr_t)from, address, bytes);
}
