/* scratch.h - the private directory of a job on a node: the PMIx server's files. Three processes can remove it: the
 * daemon, its guard, the front end. */
#ifndef LAUNCHER_SCRATCH_H
#define LAUNCHER_SCRATCH_H

#include <stddef.h>

/* Makes a new directory of mode 0700 whose name ends in `job`, in memory if possible, for as long as this process and
 * its forked children live: one that nobody uses any more is removed by the next job of the same user. NCCLX_ERR_LIMIT
 * says where it was tried. */
int scratch_make(const char *job, char *path, size_t bytes);
/* What it is called; several daemons of a job may share a machine. */
void scratch_name(const char *job, int position, char *name, size_t bytes);
/* Removes what scratch_make may have made under this name. */
void scratch_remove_job(const char *job);
/* Removes it and what is in it; follows no link and touches nothing of another user. Silent: it may be gone already. */
void scratch_remove(const char *path);

#endif
