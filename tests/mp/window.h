/* window.h - what the tests of windows share. */
#ifndef TESTS_MP_WINDOW_H
#define TESTS_MP_WINDOW_H

#include "tests/mp/check.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static int rank, size;

__attribute__((unused)) static void *need(size_t bytes)
{
    void *block = calloc(bytes ? bytes : 1, 1);
    CHECK(block != NULL);
    return block;
}

__attribute__((unused)) static ncclx_win_t allocate(size_t bytes, size_t unit, size_t slots, char **base)
{
    char text[32];
    ncclx_win_t win;
    ncclx_info_t info;
    void *memory = NULL;
    snprintf(text, sizeof text, "%zu", slots);
    OK(ncclx_info_create(&info));
    OK(ncclx_info_set(info, "ncclx_signal_slots", text));
    OK(ncclx_win_allocate(bytes, unit, info, NCCLX_COMM_WORLD, &memory, &win));
    OK(ncclx_info_free(&info));
    CHECK(win != NCCLX_WIN_NULL);
    *base = memory;
    return win;
}

#endif
