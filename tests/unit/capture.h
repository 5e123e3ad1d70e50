/* capture.h - what the code under test writes to stderr. */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int capture_saved = -1;
static FILE *capture_file;
static char capture_text[16384];

static inline void capture_begin(void)
{
    fflush(stderr);
    capture_file = tmpfile();
    capture_saved = dup(STDERR_FILENO);
    if (capture_file) dup2(fileno(capture_file), STDERR_FILENO);
}

/* The text is valid until the next call. */
static inline const char *capture_end(void)
{
    size_t length = 0;
    fflush(stderr);
    dup2(capture_saved, STDERR_FILENO);
    close(capture_saved);
    if (capture_file) {
        rewind(capture_file);
        length = fread(capture_text, 1, sizeof capture_text - 1, capture_file);
        fclose(capture_file);
    }
    capture_text[length] = 0;
    return capture_text;
}

#endif
