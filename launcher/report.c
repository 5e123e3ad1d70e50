/* report.c - see report.h. */
#include "config.h"

#include "launcher/report.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

const char *report_signal(int number)
{
    static char other[24];
    const char *name = number > 0 && number < NSIG ? sigabbrev_np(number) : NULL;
    if (name)
        snprintf(other, sizeof other, "SIG%s", name);
    else
        snprintf(other, sizeof other, "signal %d", number);
    return other;
}

bool report_is_failure(const struct message_exited *exited)
{
    return exited->status != 0 || (exited->joined && !exited->left);
}

int report_exit_status(const struct message_exited *exited)
{
    if (WIFSIGNALED(exited->status)) return 128 + WTERMSIG(exited->status);
    if (WIFEXITED(exited->status) && WEXITSTATUS(exited->status)) return WEXITSTATUS(exited->status);
    return report_is_failure(exited) ? 1 : 0;
}

/* Who loses a peer ends with a status, asserts, or writes to a closed connection. */
bool report_may_follow(const struct message_exited *exited)
{
    int number = WIFSIGNALED(exited->status) ? WTERMSIG(exited->status) : 0;
    return exited->told || !number || number == SIGABRT || number == SIGPIPE;
}

void report_exit(const struct message_exited *exited, const char *rank, const char *node, char *text, size_t bytes)
{
    int length = snprintf(text, bytes, "%s on %s (pid %d) ", rank, node, exited->pid);
    if (length < 0 || (size_t)length >= bytes) return;
    text += length;
    bytes -= (size_t)length;
    if (WIFSIGNALED(exited->status)) {
        snprintf(text, bytes, "was killed by signal %d (%s)%s", WTERMSIG(exited->status),
                 report_signal(WTERMSIG(exited->status)), WCOREDUMP(exited->status) ? ", core dumped" : "");
    } else if (WEXITSTATUS(exited->status)) {
        snprintf(text, bytes, "exited with status %d%s", WEXITSTATUS(exited->status),
                 exited->joined && !exited->left ? " without calling ncclx_finalize" : "");
    } else {
        snprintf(text, bytes, "exited without calling ncclx_finalize");
    }
}
