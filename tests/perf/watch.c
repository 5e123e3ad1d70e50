/* watch.c - looks after jobs that measure in turns: one that hangs would let all others wait.
 *
 *     perf-watch FILE COUNT SECONDS
 *
 * prints "JOB WHAT" for each job that does not go on for so long: one that has not arrived when it should, keeps its
 * turn, or does not end after all have measured. Who reads this ends it, and notes that it is gone (turns.h). Ends when
 * all are gone.
 */
#define _GNU_SOURCE
#include "turns.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LOOK_NS 250000000

static const char *blame(const struct turns *turns, unsigned job)
{
    const struct turns_file *file = turns->file;
    if (file->gone[job]) return NULL;
    if (!turns_all(turns, file->arrived)) return file->arrived[job] ? NULL : "did not start";
    if (!turns_all(turns, file->left)) return file->now % turns->count == job ? "kept its turn" : NULL;
    return "measured, but did not end";
}

static void name_all(const struct turns *turns)
{
    for (unsigned job = 0; job < turns->count; job++) {
        const char *what = blame(turns, job);
        if (what) printf("%u %s\n", job, what);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};
    struct turns turns;
    struct turns_file before;
    long idle = 0;
    char *arguments[] = {argc > 3 ? argv[1] : NULL, "0", argc > 3 ? argv[2] : NULL};
    if (argc < 4 || turns_open(&turns, 3, arguments)) {
        fprintf(stderr, "usage: perf-watch FILE COUNT SECONDS\n");
        return 2;
    }
    long patience = atol(argv[3]) * (1000000000 / LOOK_NS);
    memcpy(&before, turns.file, sizeof before);
    while (!turns_all(&turns, turns.file->gone)) {
        nanosleep(&look, NULL);
        bool is_same = !memcmp(&before, turns.file, sizeof before);
        idle = is_same ? idle + 1 : 0;
        if (!is_same) memcpy(&before, turns.file, sizeof before);
        if (idle < patience) continue;
        name_all(&turns);
        idle = 0;
    }
    return 0;
}
