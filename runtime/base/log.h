/* log.h - messages to stderr, one write each, prefixed with host and rank, filtered by NCCLX_LOG=level[,area:level]. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "runtime/base/area.h"

#include <stdbool.h>

enum base_log_level { LOG_NONE, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

extern unsigned char base_log_levels[AREA_COUNT]; /* read by base_log_on, set by base_log_configure */

static inline bool base_log_on(enum base_area area, enum base_log_level level)
{
    return level <= base_log_levels[area];
}

/* The text of NCCLX_LOG; ERR_CONFIG names the bad part. Null sets the default, warnings. */
int base_log_configure(const char *text);
/* Who speaks: set once the rank is known. A job is named when there may be others. */
void base_log_identity(const char *host, const char *job, int rank);
/* The same text again within a second is counted, not printed. */
void base_log(enum base_area area, enum base_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Prints the counts still held, before the rank ends. */
void base_log_flush(void);

#endif
