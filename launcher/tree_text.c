/* tree_text.c - the sentences that tell a user why daemons could not start, or were lost. */
#include "config.h"

#include "launcher/tree_private.h"

#include "launcher/report.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

struct line {
    char *at;
    size_t left;
};

__attribute__((format(printf, 2, 3))) static void say(struct line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line->at, line->left, format, arguments);
    va_end(arguments);
    size_t used = length < 0 ? 0 : (size_t)length < line->left ? (size_t)length : line->left - (line->left > 0);
    line->at += used;
    line->left -= used;
}

/* What somebody else wrote, on one line: ends of lines become "; ", what is not print becomes "?". */
static void quote(struct line *line, const char *before, const char *text)
{
    if (!text) return;
    while (isspace((unsigned char)*text)) text++;
    size_t length = strlen(text);
    while (length && isspace((unsigned char)text[length - 1])) length--;
    if (length) say(line, "%s", before);
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte == '\r') continue;
        if (byte == '\n')
            say(line, "; ");
        else
            say(line, "%c", byte < 32 || byte == 127 ? '?' : byte);
    }
}

static void say_status(struct line *line, int status)
{
    if (WIFSIGNALED(status))
        say(line, "was killed by signal %d (%s)", WTERMSIG(status), report_signal(WTERMSIG(status)));
    else
        say(line, "ended with status %d", WEXITSTATUS(status));
}

static const char *stage_text(enum tree_stage stage)
{
    static const char *const texts[] = {[TREE_STAGE_WAITING] = "nothing was heard of it",
                                        [TREE_STAGE_STARTING] = "its agent is being run",
                                        [TREE_STAGE_AGENT] = "its agent still runs",
                                        [TREE_STAGE_DETACHED] = "its agent ended with status 0",
                                        [TREE_STAGE_UP] = "it had greeted",
                                        [TREE_STAGE_GONE] = "it is gone"};
    return texts[stage];
}

static void say_closed(struct line *line, const struct tree_failure *failure, const char *host)
{
    if (failure->status >= 0 && WIFSIGNALED(failure->status)) {
        say(line, "the daemon ncclxd on %s ", host);
        say_status(line, failure->status);
        return;
    }
    say(line, "the daemon ncclxd on %s died", host);
    if (failure->status >= 0) {
        say(line, ": its agent ");
        say_status(line, failure->status);
    }
    quote(line, ": ", failure->text);
}

void tree_explain(const struct tree *tree, const struct tree_failure *failure, const char *host, char *text,
                  size_t bytes)
{
    const struct tree_options *options = &tree->options;
    struct line line = {text, bytes};
    if (bytes) *text = 0;
    switch (failure->cause) {
    case TREE_CAUSE_AGENT_FAILED:
        say(&line, "the daemon ncclxd on %s cannot be started", host);
        quote(&line, ": ", failure->text);
        break;
    case TREE_CAUSE_AGENT_ENDED:
        say(&line, "the daemon ncclxd on %s did not start: its agent ", host);
        say_status(&line, failure->status);
        quote(&line, ": ", failure->text);
        break;
    case TREE_CAUSE_NOT_CONNECTED:
        say(&line, "the daemon ncclxd on %s did not connect within %g s (%s)", host,
            (double)options->start_ns / (double)BASE_NS_PER_S, stage_text(failure->stage));
        break;
    case TREE_CAUSE_VERSION:
        say(&line, "ncclxd on %s is version ", host);
        quote(&line, "", failure->text);
        say(&line, ", ncclxrun is %s: install one version", tree->version);
        break;
    case TREE_CAUSE_CLOSED:
        say_closed(&line, failure, host);
        break;
    case TREE_CAUSE_SILENT:
        if (failure->position == TREE_FRONT) {
            say(&line, "ncclxrun itself did nothing for more than %g s (was it stopped?), and its daemons have ended",
                (double)options->silence_ns / (double)BASE_NS_PER_S);
            break;
        }
        say(&line, "the daemon ncclxd on %s has been silent for %g s: it was stopped, or the network to it is cut",
            host, (double)options->silence_ns / (double)BASE_NS_PER_S);
        break;
    case TREE_CAUSE_PROTOCOL:
        say(&line, "the daemon ncclxd on %s broke the protocol", host);
        quote(&line, ": ", failure->text);
        break;
    case TREE_CAUSE_REFUSED:
        say(&line, "ncclxd on %s", host);
        quote(&line, ": ", failure->text);
        break;
    case TREE_CAUSE_NONE:
    case TREE_CAUSE_COUNT:
        break;
    }
}
