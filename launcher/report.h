/* report.h - the sentences that tell a user why a job failed. Pure. */
#ifndef LAUNCHER_REPORT_H
#define LAUNCHER_REPORT_H

#include "launcher/message.h"

#include <stddef.h>

/* "SIGSEGV", or "signal 70". */
const char *report_signal(int number);
/* Whether this end of a rank is a failure of the job. */
bool report_is_failure(const struct message_exited *exited);
/* The job's exit status that a failed rank makes: its own, 128 + signal, or 1 for a rank that left without finalizing.
 */
int report_exit_status(const struct message_exited *exited);
/* Whether it may have failed because another one had: it says so itself by its status, or was ended with the others. */
bool report_may_follow(const struct message_exited *exited);
/* "rank 3 on node7 (pid 4711) was killed by signal 11 (SIGSEGV)". */
void report_exit(const struct message_exited *exited, const char *rank, const char *node, char *text, size_t bytes);

#endif
