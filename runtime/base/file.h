/* file.h - the small files of /proc and /sys. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* What one read gives, at most bytes - 1, with a zero behind it. False, and an empty text: the file is not there, or has nothing in it. */
bool base_read_small(const char *path, char *text, size_t bytes);

#endif
