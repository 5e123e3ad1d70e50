/* progress.h - what a user who waits for a start is told, and when: how many hosts are here, which are missing, how
 * many ranks run. Pure: time comes in, lines go out. */
#ifndef LAUNCHER_PROGRESS_H
#define LAUNCHER_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRESS_PATIENCE_NS                                                                                           \
    UINT64_C(2000000000) /* a start that takes no longer is not talked about unless asked for */

struct progress {
    uint64_t started_ns, next_ns; /* when the next line is due; 0: none */
    uint64_t pause_ns;
    bool asked;  /* --show-progress */
    bool spoken; /* something was said, so that the end is said too */
    bool *here;  /* each host; the caller's */
    int host_count, hosts_here;
    int rank_count, ranks_running;
};

/* here: host_count of them, all false. `terminal`: somebody is looking, who is told also without having asked. */
void progress_begin(struct progress *progress, bool *here, int host_count, bool asked, bool terminal, uint64_t now);
void progress_host(struct progress *progress, int host);
void progress_ranks(struct progress *progress, int running, int of);
/* Nanoseconds until progress_line should be called; 0: never again. */
uint64_t progress_wait(const struct progress *progress, uint64_t now);
/* How things are, whether a line is due or not. */
void progress_state(const struct progress *progress, const char *const *names, uint64_t now, char *line, size_t bytes);
/* The line that is due, without its end; false: none is. names: of the hosts. */
bool progress_line(struct progress *progress, const char *const *names, uint64_t now, char *line, size_t bytes);

#endif
