/* sweep.h - signals to everything a job has started on this node, also what left its rank's process group or session. */
#ifndef LAUNCHER_SWEEP_H
#define LAUNCHER_SWEEP_H

#include <sys/types.h>

/* Signals every descendant of `root` (not root itself); returns how many there are. A subreaper keeps orphans among them. */
int sweep_descendants(pid_t root, int signal_number);
/* Signals every process of these sessions which belongs to this user; for when their root is dead. */
int sweep_sessions(const pid_t *sessions, int count, int signal_number);

#endif
