/* sweep.h - signals to everything a job has started on this node, also what left its rank's process group or session.
 */
#ifndef LAUNCHER_SWEEP_H
#define LAUNCHER_SWEEP_H

#include <stdbool.h>
#include <sys/types.h>

/* Whom a sweep leaves alone. */
struct sweep_spare {
    bool one_session;       /* all of `session`, which is 0 where its leader is outside the PID namespace */
    pid_t session;
    const pid_t *processes; /* these, with what they have started */
    int count;
    const char *job; /* other daemons of this job with what is theirs: several may share a machine, and an orphan among
                      * them becomes our child; null: none */
};

/* Signals every descendant of the calling process, which is a subreaper, so that orphans are among them. Signal 0 only
 * counts. Returns how many there are. */
int sweep_descendants(int signal_number, const struct sweep_spare *spare);
/* Kills them, and reaps those that become children, until none is found or `timeout_ms` have passed. */
void sweep_kill(const struct sweep_spare *spare, int timeout_ms);

/* Kills what a job has left on this host, whose daemon was killed together with its guard, or is stopped: processes that
 * have the job's name in their environment, and stopped daemons. */
void sweep_job(const char *job);

#endif
