/* log.c - messages to stderr. */
#include "runtime/base/log.h"

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/process.h"
#include "runtime/ncclx.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define TEXT_BYTES 1024
/* Texts remembered for counting: enough for a few messages that alternate. */
#define RECENT 8
#define REPEAT_NS BASE_NS_PER_S

unsigned char base_log_levels[AREA_COUNT] = {[0 ... AREA_COUNT - 1] = LOG_WARN};

static const char *const level_name[] = {"none", "error", "warn", "info", "debug"};
#define LEVELS (sizeof level_name / sizeof level_name[0])

static struct recent {
    char text[TEXT_BYTES];
    uint64_t printed_ns;
    unsigned held; /* the same again since then */
    enum base_area area;
    enum base_log_level level;
} recent[RECENT];
static unsigned next_recent;
static char prefix[640] = "ncclx: ";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- What is printed ------------------------------------------------------------------------------------------ */

static int find_word(const char *text, size_t length, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(words[i]) == length && !strncasecmp(words[i], text, length)) return (int)i;
    return -1;
}

static int bad_part(const char *part, size_t length, const char *why)
{
    char areas[256] = "";
    size_t used = 0;
    for (int i = 0; i < AREA_COUNT && used < sizeof areas; i++)
        used += (size_t)snprintf(areas + used, sizeof areas - used, "%s%s", i ? ", " : "", base_area_name((enum base_area)i));
    return base_error(NCCLX_ERR_CONFIG,
                      "NCCLX_LOG: \"%.*s\" %s; valid is level[,area:level]..., levels none, error, warn, info, debug, areas %s",
                      length > 80 ? 80 : (int)length, part, why, areas);
}

/* "warn" sets every area, "shm:debug" one. */
static int parse_part(const char *part, size_t length, unsigned char *levels)
{
    const char *areas[AREA_COUNT];
    const char *colon = memchr(part, ':', length);
    const char *level = colon ? colon + 1 : part;
    int found = find_word(level, length - (size_t)(level - part), level_name, LEVELS);
    if (found < 0) return bad_part(part, length, "has no such level");
    if (!colon) {
        memset(levels, found, AREA_COUNT);
        return NCCLX_SUCCESS;
    }
    for (int i = 0; i < AREA_COUNT; i++) areas[i] = base_area_name((enum base_area)i);
    int area = find_word(part, (size_t)(colon - part), areas, AREA_COUNT);
    if (area < 0) return bad_part(part, length, "names no area");
    levels[area] = (unsigned char)found;
    return NCCLX_SUCCESS;
}

int base_log_configure(const char *text)
{
    unsigned char levels[AREA_COUNT];
    memset(levels, LOG_WARN, sizeof levels);
    while (text && *text) {
        size_t length = strcspn(text, ",");
        int error = parse_part(text, length, levels);
        if (error) return error;
        text += length;
        if (!*text) break;
        text++;
        if (!*text) return bad_part(",", 1, "ends the list");
    }
    memcpy(base_log_levels, levels, sizeof levels);
    return NCCLX_SUCCESS;
}

void base_log_identity(const char *host, const char *job, int rank)
{
    pthread_mutex_lock(&lock);
    if (job)
        snprintf(prefix, sizeof prefix, "ncclx: rank %d of %s on %s: ", rank, job, host);
    else
        snprintf(prefix, sizeof prefix, "ncclx: rank %d on %s: ", rank, host);
    pthread_mutex_unlock(&lock);
}

/* ---- Printing ------------------------------------------------------------------------------------------------- */

/* A peer's text must not steer the terminal. */
static void disarm(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f) *text = *text == '\n' || *text == '\t' ? ' ' : '?';
}

static void write_line(enum base_area area, enum base_log_level level, const char *text, const char *suffix)
{
    char line[sizeof prefix + TEXT_BYTES + 128];
    int saved = errno;
    int length = snprintf(line, sizeof line, "%s%s: %s: %s%s\n", prefix, base_area_name(area),
                          level == LOG_WARN ? "warning" : level_name[level], text, suffix);
    if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0) errno = saved; /* nowhere to complain */
    errno = saved;
}

static void tell_held(struct recent *r)
{
    char suffix[64];
    if (!r->held) return;
    snprintf(suffix, sizeof suffix, " (%u more time%s)", r->held, r->held == 1 ? "" : "s");
    write_line(r->area, r->level, r->text, suffix);
    r->held = 0;
}

/* True when the text was printed less than a second ago: it is counted. */
static bool hold_back(enum base_area area, enum base_log_level level, const char *text)
{
    uint64_t now = base_clock_ns();
    struct recent *slot = NULL;
    for (int i = 0; i < RECENT && !slot; i++)
        if (recent[i].printed_ns && recent[i].area == area && recent[i].level == level && !strcmp(recent[i].text, text)) slot = &recent[i];
    if (slot && now - slot->printed_ns < REPEAT_NS) {
        slot->held++;
        return true;
    }
    if (!slot) slot = &recent[next_recent++ % RECENT];
    tell_held(slot);
    memcpy(slot->text, text, strlen(text) + 1);
    slot->area = area;
    slot->level = level;
    slot->printed_ns = now;
    return false;
}

void base_log(enum base_area area, enum base_log_level level, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list args;
    if (!base_log_on(area, level)) return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    disarm(text);
    if (atomic_load_explicit(&ncclx_process.forked, memory_order_relaxed)) { /* a thread of the parent may have held the lock */
        write_line(area, level, text, "");
        return;
    }
    pthread_mutex_lock(&lock);
    if (!hold_back(area, level, text)) write_line(area, level, text, "");
    pthread_mutex_unlock(&lock);
}

void base_log_flush(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < RECENT; i++) tell_held(&recent[i]);
    pthread_mutex_unlock(&lock);
}
