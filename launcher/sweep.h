/* sweep.h - signals to everything a job has started on this node, also what left its rank's process group or session.
 */
#ifndef LAUNCHER_SWEEP_H
#define LAUNCHER_SWEEP_H

#include <sys/types.h>

/* Signals every descendant of the calling process, which is a subreaper, so that orphans are among them; less those of
 * the session `spared` (0: none). Returns how many there are. */
int sweep_descendants(int signal_number, pid_t spared);
/* Kills them, and reaps those that become children, until none is found or `timeout_ms` have passed. */
void sweep_kill(pid_t spared, int timeout_ms);

#endif
