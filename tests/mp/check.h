/* check.h - for test programs of several ranks: a failed check says where and on which rank, and ends the job. */
#ifndef TESTS_MP_CHECK_H
#define TESTS_MP_CHECK_H

#include <ncclx.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

static inline void check_failed(const char *file, int line, const char *what)
{
    int rank = -1;
    ncclx_comm_rank(NCCLX_COMM_WORLD, &rank);
    fprintf(stderr, "%s:%d: rank %d: failed: %s\n", file, line, rank, what);
    ncclx_abort(NCCLX_COMM_WORLD, 99);
}

static inline void check_code(const char *file, int line, const char *what, int code, int expected)
{
    char text[1200];
    if (code == expected) return;
    snprintf(text, sizeof text, "%s is %s, expected %.30s; detail: %s", what, ncclx_error_string(code),
             ncclx_error_string(expected), ncclx_error_detail());
    check_failed(file, line, text);
}

#define CHECK(condition) ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition))
/* The call returns SUCCESS, or the given code. */
#define OK(call) check_code(__FILE__, __LINE__, #call, (call), NCCLX_SUCCESS)
#define FAILS(call, code) check_code(__FILE__, __LINE__, #call, (call), (code))

static inline int entries(const char *path)
{
    int count = -2; /* those that every folder has */
    DIR *folder = opendir(path);
    CHECK(folder);
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

static inline int open_descriptors(void)
{
    return entries("/proc/self/fd") - 1; /* the folder itself */
}

#endif
