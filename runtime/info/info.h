/* info.h - ncclx-info: one function a question. Each prints its answer to stdout and returns a code. */
#ifndef INFO_INFO_H
#define INFO_INFO_H

#include "runtime/base/base.h"

/* Every variable, its value, where it comes from, what it is for. */
void info_config(const struct base_config *config);
/* "NAME default", one a line, for scripts. */
void info_config_table(void);
/* Which algorithm a collective of so many ranks takes at which size. */
int info_algorithms(const struct base_config *config, int ranks);
/* What a rank of this job (without a launcher, a job of one) holds, by area. */
int info_memory(void);
/* The inside of this node; and, as a rank of a job, how far the others are. */
int info_topology(void);
/* What moves data here, what does not, and why. */
void info_transports(const struct base_config *config);

#endif
