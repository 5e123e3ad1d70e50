/* file.c - see file.h. */
#include "runtime/base/file.h"

#include <fcntl.h>
#include <unistd.h>

bool base_read_small(const char *path, char *text, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, bytes - 1);
    if (fd >= 0) close(fd);
    text[got > 0 ? got : 0] = 0;
    return got > 0;
}
