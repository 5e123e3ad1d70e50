/* error.c - the detail sentence, one a thread, in a fixed buffer: reporting an error never needs memory. */
#include "runtime/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DETAIL_BYTES 1024

static __thread char detail[DETAIL_BYTES];

int base_error(int code, const char *format, ...)
{
    char text[DETAIL_BYTES]; /* the arguments may point into the old sentence */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    memcpy(detail, text, sizeof detail);
    return code;
}

int base_error_context(int code, const char *format, ...)
{
    char text[DETAIL_BYTES];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length >= 0 && (size_t)length < sizeof text)
        snprintf(text + length, sizeof text - (size_t)length, ": %s", detail);
    memcpy(detail, text, sizeof detail);
    return code;
}

const char *base_error_detail(void)
{
    return detail;
}

void base_error_clear(void)
{
    detail[0] = 0;
}
