/* progress.c - see progress.h. */
#include "launcher/progress.h"

#include <stdio.h>
#include <string.h>

#define NAMES_SHOWN 4
#define LONGEST_PAUSE_NS UINT64_C(16000000000)

void progress_begin(struct progress *progress, bool *here, int host_count, bool asked, bool terminal, uint64_t now)
{
    *progress = (struct progress){
        .started_ns = now, .pause_ns = PROGRESS_PATIENCE_NS, .asked = asked, .here = here, .host_count = host_count};
    if (asked)
        progress->next_ns = now;
    else if (terminal)
        progress->next_ns = now + PROGRESS_PATIENCE_NS;
}

static bool all_here(const struct progress *progress)
{
    return progress->hosts_here == progress->host_count;
}

static bool all_run(const struct progress *progress)
{
    return progress->rank_count > 0 && progress->ranks_running == progress->rank_count;
}

void progress_host(struct progress *progress, int host)
{
    if (progress->here[host]) return;
    progress->here[host] = true;
    progress->hosts_here++;
}

void progress_ranks(struct progress *progress, int running, int of)
{
    progress->ranks_running = running;
    progress->rank_count = of;
}

uint64_t progress_wait(const struct progress *progress, uint64_t now)
{
    if (!progress->next_ns) return 0;
    if (all_run(progress)) return 1;
    return progress->next_ns > now ? progress->next_ns - now : 1;
}

static size_t append(char *line, size_t bytes, size_t used, const char *text)
{
    int written = snprintf(line + used, bytes - used, "%s", text);
    return written < 0 || (size_t)written >= bytes - used ? bytes - 1 : used + (size_t)written;
}

/* "n3, n7 and 12 more" */
static void list_missing(const struct progress *progress, const char *const *names, char *line, size_t bytes)
{
    int missing = progress->host_count - progress->hosts_here, shown = 0;
    size_t used = strlen(line);
    char more[40];
    for (int i = 0; i < progress->host_count && shown < NAMES_SHOWN && shown < missing; i++) {
        if (progress->here[i]) continue;
        bool last = shown + 1 == missing;
        used = append(line, bytes, used, shown == 0 ? "" : last ? " and " : ", ");
        used = append(line, bytes, used, names[i]);
        shown++;
    }
    if (missing == shown) return;
    snprintf(more, sizeof more, " and %d more", missing - shown);
    append(line, bytes, used, more);
}

void progress_state(const struct progress *progress, const char *const *names, uint64_t now, char *line, size_t bytes)
{
    double seconds = (double)(now - progress->started_ns) / 1e9;
    const char *hosts = progress->host_count == 1 ? "host" : "hosts";
    if (all_run(progress)) {
        snprintf(line, bytes, "%d rank%s on %d %s after %.1f s", progress->rank_count,
                 progress->rank_count == 1 ? " runs" : "s run", progress->host_count, hosts, seconds);
    } else if (!all_here(progress)) {
        snprintf(line, bytes, "%d of %d %s %s here after %.1f s; waiting for ", progress->hosts_here,
                 progress->host_count, hosts, progress->hosts_here == 1 || progress->host_count == 1 ? "is" : "are",
                 seconds);
        list_missing(progress, names, line, bytes);
    } else {
        snprintf(line, bytes, "%s %d %s %s here; %d of %d ranks run after %.1f s",
                 progress->host_count == 1 ? "the" : "all", progress->host_count, hosts,
                 progress->host_count == 1 ? "is" : "are", progress->ranks_running, progress->rank_count, seconds);
    }
}

bool progress_line(struct progress *progress, const char *const *names, uint64_t now, char *line, size_t bytes)
{
    if (!progress->next_ns || (now < progress->next_ns && !all_run(progress))) return false;
    progress_state(progress, names, now, line, bytes);
    if (all_run(progress)) {
        progress->next_ns = 0;
        return progress->asked || progress->spoken;
    }
    progress->spoken = true;
    progress->next_ns = now + progress->pause_ns; /* the longer it takes, the less often */
    if (progress->pause_ns < LONGEST_PAUSE_NS) progress->pause_ns *= 2;
    return true;
}
