/* dying.h - whether a process is past all help: its files are closed, or will be at any moment, and its parent does not know yet.
 *
 * Its peers may hear of its death from what it closes, and end of that, before it can be reaped. */
#ifndef LAUNCHER_DYING_H
#define LAUNCHER_DYING_H

#include <stdbool.h>
#include <sys/types.h>

bool process_is_dying(pid_t pid);

#endif
