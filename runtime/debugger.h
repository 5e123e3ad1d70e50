/* debugger.h - ranks that wait for a debugger. */
#ifndef RUNTIME_DEBUGGER_H
#define RUNTIME_DEBUGGER_H

#include "runtime/base/base.h"

/* Whether a list of NCCLX_DEBUG_WAIT has the rank; ERR_CONFIG when it is none. */
int debugger_is_wanted(const char *list, int rank, bool *wanted);
/* Returns when a debugger has attached, at once when this rank is not to wait. Called without the lock, before there is anything that
 * peers could wait for but the rank itself. */
int debugger_wait(const struct ncclx_rt *rt);

#endif
