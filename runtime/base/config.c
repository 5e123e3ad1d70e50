/* config.c - the configuration table, and the order of its sources. */
#include "runtime/base/config.h"

#include "runtime/base/area.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/ncclx.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define PREFIX "NCCLX_"
#define PREFIX_BYTES (sizeof PREFIX - 1)
#define MAX_NAME 128
/* A configuration file larger than this is not one of ours. */
#define MAX_FILE_BYTES ((size_t)1 << 20)

#define GIB 1073741824.0

static const struct base_config_entry table[CONFIG_COUNT] = {
    [CONFIG_ERRORS] = {"NCCLX_ERRORS", CONFIG_ENUM, "fatal", 0, 0, "fatal|return",
                       "error handler that COMM_WORLD starts with: print and end the job, or return the code"},
    [CONFIG_LOG] = {"NCCLX_LOG", CONFIG_STRING, "warn", 0, 0, NULL,
                    "what is logged to stderr: level[,area:level]..., level one of none, error, warn, info, debug"},
    [CONFIG_TIMEOUT] = {"NCCLX_TIMEOUT", CONFIG_SECONDS, "0", 0, 1e9, NULL, "deadline of every blocking call, in seconds; 0 for none"},
    [CONFIG_CHECK] = {"NCCLX_CHECK", CONFIG_BOOL, "off", 0, 1, NULL,
                      "ranks compare what they call before each collective; what differs is an error instead of a hang"},
    [CONFIG_DEBUG_WAIT] = {"NCCLX_DEBUG_WAIT", CONFIG_STRING, "", 0, 0, NULL,
                           "ranks that wait in ncclx_init until a debugger attaches: all, or a list such as 0,3-5; empty for none"},
    [CONFIG_HOSTFILE] = {"NCCLX_HOSTFILE", CONFIG_STRING, "", 0, 0, NULL,
                         "file of hosts that ncclxrun uses when neither --hostfile nor an allocation says which; empty for none"},
    [CONFIG_THREAD_LEVEL] = {"NCCLX_THREAD_LEVEL", CONFIG_ENUM, "single", 0, 0, "single|funneled|serialized|multiple",
                             "thread level that ncclx_init asks for"},
    [CONFIG_PROGRESS] = {"NCCLX_PROGRESS", CONFIG_ENUM, "caller", 0, 0, "caller|thread",
                         "who moves data while the program computes: only its own calls, or a thread of the library"},
    [CONFIG_SPIN] = {"NCCLX_SPIN", CONFIG_INT, "-1", -1, 1e9, NULL,
                     "polls that find nothing before a waiting rank yields its core; -1 chooses by free cores"},
    [CONFIG_TRANSPORTS] = {"NCCLX_TRANSPORTS", CONFIG_STRING, "", 0, 0, NULL,
                           "transports that may be used, separated by commas; empty for all that work; mix, for tests: no shm between half of the pairs"},
    [CONFIG_PORT_RANGE] = {"NCCLX_PORT_RANGE", CONFIG_STRING, "", 0, 0, NULL,
                           "low-high: ports on which ranks listen for each other, one a rank; empty for any"},
    [CONFIG_PROTOCOL] = {"NCCLX_PROTOCOL", CONFIG_ENUM, "zero-copy", 0, 0, "zero-copy|copy",
                         "how large messages and puts travel: straight to their place, or in chunks through buffers of the library"},
    [CONFIG_COPY_SLOTS] = {"NCCLX_COPY_SLOTS", CONFIG_INT, "8", 1, 64, NULL,
                           "with NCCLX_PROTOCOL=copy: chunks under way to a peer at most"},
    [CONFIG_COPY_CHUNK] = {"NCCLX_COPY_CHUNK", CONFIG_SIZE, "512K", 1024, GIB / 64, NULL, "with NCCLX_PROTOCOL=copy: bytes of a chunk"},
    [CONFIG_EAGER_LIMIT] = {"NCCLX_EAGER_LIMIT", CONFIG_SIZE, "0", 0, GIB, NULL,
                            "largest message in bytes that is sent without waiting for its receive; 0 for the transport's choice"},
    [CONFIG_UNEXPECTED_LIMIT] = {"NCCLX_UNEXPECTED_LIMIT", CONFIG_SIZE, "16M", 0, 1024 * GIB, NULL,
                                 "bytes of messages without a receive that a rank holds before senders wait for theirs"},
    [CONFIG_SHM_CMA] = {"NCCLX_SHM_CMA", CONFIG_BOOL, "on", 0, 1, NULL,
                        "single copies between processes of a node by cross-memory attach, where the system allows it"},
    [CONFIG_SHM_DIRECT] = {"NCCLX_SHM_DIRECT", CONFIG_BOOL, "on", 0, 1, NULL,
                           "direct loads and stores in memory that peers of the node made shareable"},
    [CONFIG_SHM_RING] = {"NCCLX_SHM_RING", CONFIG_SIZE, "1M", 4096, GIB, NULL,
                         "bytes of the queue from one rank of a node to another; less where there are many"},
    [CONFIG_DQPLB_NODE] = {"NCCLX_DQPLB_NODE", CONFIG_STRING, "2:4:512K", 0, 0, NULL,
                           "lanes:segments in flight on each:bytes of a segment, to peers of this node"},
    [CONFIG_DQPLB_RACK] = {"NCCLX_DQPLB_RACK", CONFIG_STRING, "2:4:512K", 0, 0, NULL,
                           "lanes:segments in flight on each:bytes of a segment, to peers of this rack"},
    [CONFIG_DQPLB_ZONE] = {"NCCLX_DQPLB_ZONE", CONFIG_STRING, "8:8:512K", 0, 0, NULL,
                           "lanes:segments in flight on each:bytes of a segment, to peers of another rack, or of a place that is not known"},
    [CONFIG_DQPLB_BUILDING] = {"NCCLX_DQPLB_BUILDING", CONFIG_STRING, "8:16:512K", 0, 0, NULL,
                           "lanes:segments in flight on each:bytes of a segment, to peers of another zone"},
    [CONFIG_DQPLB_CAMPUS] = {"NCCLX_DQPLB_CAMPUS", CONFIG_STRING, "16:16:512K", 0, 0, NULL,
                           "lanes:segments in flight on each:bytes of a segment, to peers of another building"},
    [CONFIG_DQPLB_ADAPT] = {"NCCLX_DQPLB_ADAPT", CONFIG_BOOL, "on", 0, 1, NULL,
                            "what a connection has in flight follows its path, between two segments a lane and the limits of its class"},
    [CONFIG_DQPLB_BUDGET] = {"NCCLX_DQPLB_BUDGET", CONFIG_SIZE, "128M", 0, 1024 * GIB, NULL,
                             "bytes that all ranks of a node have in flight together, among themselves and to others each; 0 for no bound"},
    [CONFIG_LANE_TROUBLE] = {"NCCLX_LANE_TROUBLE", CONFIG_STRING, "", 0, 0, NULL,
                             "for tests: lanes over sockets delay what comes and break at random; seed:microseconds:looks"},
    [CONFIG_COLL_BARRIER] = {"NCCLX_COLL_BARRIER", CONFIG_ENUM, "auto", 0, 0, "auto|shared|dissemination|tree|shared_tree", "algorithm of barrier"},
    [CONFIG_COLL_BCAST] = {"NCCLX_COLL_BCAST", CONFIG_ENUM, "auto", 0, 0, "auto|shared|measured|binomial|scatter_allgather|pipeline|kary|shared_tree",
                           "algorithm of bcast"},
    [CONFIG_COLL_REDUCE] = {"NCCLX_COLL_REDUCE", CONFIG_ENUM, "auto", 0, 0, "auto|shared|measured|single_copy|binomial|rabenseifner", "algorithm of reduce"},
    [CONFIG_COLL_ALLREDUCE] = {"NCCLX_COLL_ALLREDUCE", CONFIG_ENUM, "auto", 0, 0,
                               "auto|shared|measured|single_copy|recursive_doubling|rabenseifner|ring|reduce_bcast", "algorithm of allreduce"},
    [CONFIG_COLL_ALLGATHER] = {"NCCLX_COLL_ALLGATHER", CONFIG_ENUM, "auto", 0, 0, "auto|shared|measured|single_copy|ring|bruck|recursive_doubling|bidirectional_ring",
                               "algorithm of allgather"},
    [CONFIG_COLL_ALLTOALL] = {"NCCLX_COLL_ALLTOALL", CONFIG_ENUM, "auto", 0, 0, "auto|shared|measured|single_copy|pairwise|bruck|direct", "algorithm of alltoall"},
    [CONFIG_COLL_REDUCE_SCATTER] = {"NCCLX_COLL_REDUCE_SCATTER", CONFIG_ENUM, "auto", 0, 0, "auto|shared|measured|single_copy|halving|direct|ring",
                        "algorithm of reduce_scatter"},
    [CONFIG_COLL_REDUCE_SCATTER_BLOCK] = {"NCCLX_COLL_REDUCE_SCATTER_BLOCK", CONFIG_ENUM, "auto", 0, 0, "auto|shared|measured|single_copy|halving|direct|ring",
                        "algorithm of reduce_scatter_block"},
    [CONFIG_COLL_ALLGATHERV] = {"NCCLX_COLL_ALLGATHERV", CONFIG_ENUM, "auto", 0, 0, "auto|shared|bruck|recursive_doubling|ring|bidirectional_ring",
                        "algorithm of allgatherv"},
    [CONFIG_COLL_GATHER] = {"NCCLX_COLL_GATHER", CONFIG_ENUM, "auto", 0, 0, "auto|shared|measured|binomial|linear",
                        "algorithm of gather"},
    [CONFIG_COLL_GATHERV] = {"NCCLX_COLL_GATHERV", CONFIG_ENUM, "auto", 0, 0, "auto|shared|linear",
                        "algorithm of gatherv"},
    [CONFIG_COLL_SCATTER] = {"NCCLX_COLL_SCATTER", CONFIG_ENUM, "auto", 0, 0, "auto|shared|measured|binomial|linear",
                        "algorithm of scatter"},
    [CONFIG_COLL_SCATTERV] = {"NCCLX_COLL_SCATTERV", CONFIG_ENUM, "auto", 0, 0, "auto|shared|linear",
                        "algorithm of scatterv"},
    [CONFIG_COLL_ALLTOALLV] = {"NCCLX_COLL_ALLTOALLV", CONFIG_ENUM, "auto", 0, 0, "auto|shared|direct|pairwise",
                        "algorithm of alltoallv"},
    [CONFIG_COLL_SCAN] = {"NCCLX_COLL_SCAN", CONFIG_ENUM, "auto", 0, 0, "auto|shared|recursive_doubling|pipeline",
                        "algorithm of scan"},
    [CONFIG_COLL_EXSCAN] = {"NCCLX_COLL_EXSCAN", CONFIG_ENUM, "auto", 0, 0, "auto|shared|recursive_doubling|pipeline",
                        "algorithm of exscan"},
};

/* Names that other programs of the package read. */
static const char *const read_elsewhere[] = {"NCCLX_CC", "NCCLX_CXX"};

const struct base_config_entry *base_config_table(void)
{
    return table;
}

const char *base_config_source_name(enum base_config_source source)
{
    static const char *const name[] = {"default", "system file", "user file", "environment"};
    return (unsigned)source < sizeof name / sizeof name[0] ? name[source] : "?";
}

enum base_config_id base_config_find(const char *name)
{
    for (int id = 0; id < CONFIG_COUNT; id++)
        if (!strcmp(table[id].name, name)) return (enum base_config_id)id;
    return CONFIG_COUNT;
}

/* Levenshtein's distance of two names without regard to case; the names are at most MAX_NAME long. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[MAX_NAME + 1];
    size_t width = strlen(b);
    for (size_t j = 0; j <= width; j++) row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= width; j++) {
            size_t change = diagonal + (strncasecmp(&a[i - 1], &b[j - 1], 1) != 0);
            size_t step = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
            diagonal = row[j];
            row[j] = change < step ? change : step;
        }
    }
    return row[width];
}

const char *base_config_nearest(const char *name)
{
    const char *nearest = NULL;
    size_t least = strlen(name) / 3 + 1; /* further off than a third of it, a name is no slip of another */
    if (strlen(name) > MAX_NAME) return NULL;
    for (int id = 0; id < CONFIG_COUNT; id++) {
        size_t distance = edit_distance(name + (strncmp(name, PREFIX, PREFIX_BYTES) ? 0 : PREFIX_BYTES), table[id].name + PREFIX_BYTES);
        if (distance >= least) continue;
        least = distance;
        nearest = table[id].name;
    }
    return nearest;
}

static void warn_unknown(const char *where, const char *name)
{
    const char *nearest = base_config_nearest(name);
    if (nearest) base_log(AREA_BASE, LOG_WARN, "%sunknown variable %.128s is ignored; did you mean %s?", where, name, nearest);
    else base_log(AREA_BASE, LOG_WARN, "%sunknown variable %.128s is ignored; ncclx-info --config lists all", where, name);
}

int base_config_set(struct base_config *config, enum base_config_id id, const char *where, const char *text, enum base_config_source source)
{
    struct base_config_value *value = &config->value[id];
    int64_t number = 0;
    int error = base_config_parse(&table[id], where, text, &number);
    if (error) return error;
    char *copy = base_strdup(AREA_BASE, text);
    if (!copy) return base_error(NCCLX_ERR_NO_MEM, "no memory for the configuration");
    base_free(AREA_BASE, value->text);
    *value = (struct base_config_value){.number = number, .text = copy, .source = source};
    return NCCLX_SUCCESS;
}

/* ---- Files ---------------------------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Cuts blanks off both ends, in place. */
static char *trim(char *text)
{
    while (is_blank(*text)) text++;
    size_t length = strlen(text);
    while (length && is_blank(text[length - 1])) length--;
    text[length] = 0;
    return text;
}

/* One line, which is changed. */
static int parse_line(struct base_config *config, const char *where, char *line, enum base_config_source source)
{
    char name[MAX_NAME + PREFIX_BYTES + 1];
    char *comment = strchr(line, '#');
    if (comment) *comment = 0;
    line = trim(line);
    if (!*line) return NCCLX_SUCCESS;
    char *equals = strchr(line, '=');
    if (!equals) return base_error(NCCLX_ERR_CONFIG, "%snot a line of the form NAME = value: \"%.80s\"", where, line);
    *equals = 0;
    char *given = trim(line);
    const char *text = trim(equals + 1);
    if (!*given) return base_error(NCCLX_ERR_CONFIG, "%sno name before the '='", where);
    if (strlen(given) > MAX_NAME) return base_error(NCCLX_ERR_CONFIG, "%sthe name is longer than %d characters", where, MAX_NAME);
    bool prefixed = !strncmp(given, PREFIX, PREFIX_BYTES);
    snprintf(name, sizeof name, "%s%s", prefixed ? "" : PREFIX, given);
    enum base_config_id id = base_config_find(name);
    if (id == CONFIG_COUNT) {
        warn_unknown(where, name);
        return NCCLX_SUCCESS;
    }
    return base_config_set(config, id, where, text, source);
}

int base_config_parse_file(struct base_config *config, const char *path, const char *text, size_t bytes, enum base_config_source source)
{
    char line[4096], where[512];
    unsigned number = 0;
    for (size_t at = 0; at < bytes;) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t length = end ? (size_t)(end - (text + at)) : bytes - at;
        snprintf(where, sizeof where, "%s:%u: ", path, ++number);
        if (length >= sizeof line) return base_error(NCCLX_ERR_CONFIG, "%sthe line is longer than %zu bytes", where, sizeof line - 1);
        if (memchr(text + at, 0, length)) return base_error(NCCLX_ERR_CONFIG, "%sa zero byte: not a text file", where);
        memcpy(line, text + at, length);
        line[length] = 0;
        int error = parse_line(config, where, line, source);
        if (error) return error;
        at += length + 1;
    }
    return NCCLX_SUCCESS;
}

/* Bytes read, or -1 with errno. Never blocks, even on a FIFO somebody put there. */
static ssize_t read_file(const char *path, char *text, size_t capacity)
{
    size_t length = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return -1;
    while (length < capacity) {
        ssize_t got = read(fd, text + length, capacity - length);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            int saved = errno;
            close(fd);
            errno = saved;
            return -1;
        }
        if (got == 0) break;
        length += (size_t)got;
    }
    close(fd);
    return (ssize_t)length;
}

static int load_file(struct base_config *config, const char *path, enum base_config_source source)
{
    if (access(path, F_OK)) return NCCLX_SUCCESS; /* the usual case, without the buffer */
    char *text = base_alloc(AREA_BASE, MAX_FILE_BYTES + 1);
    if (!text) return base_error(NCCLX_ERR_NO_MEM, "no memory to read %s", path);
    int error = NCCLX_SUCCESS;
    ssize_t bytes = read_file(path, text, MAX_FILE_BYTES + 1);
    if (bytes < 0) base_log(AREA_BASE, LOG_WARN, "%s cannot be read and is ignored: %s", path, strerror(errno));
    else if ((size_t)bytes > MAX_FILE_BYTES) error = base_error(NCCLX_ERR_CONFIG, "%s is larger than %zu bytes", path, MAX_FILE_BYTES);
    else error = base_config_parse_file(config, path, text, (size_t)bytes, source);
    base_free(AREA_BASE, text);
    return error;
}

/* ---- All sources in turn -------------------------------------------------------------------------------------- */

static const char *lookup(char **environment, const char *name)
{
    size_t length = strlen(name);
    for (char **at = environment; *at; at++)
        if (!strncmp(*at, name, length) && (*at)[length] == '=') return *at + length + 1;
    return NULL;
}

static int load_user_file(struct base_config *config, char **environment)
{
    char path[4096];
    const char *folder = lookup(environment, "XDG_CONFIG_HOME");
    const char *home = lookup(environment, "HOME");
    int length;
    if (folder && folder[0] == '/') length = snprintf(path, sizeof path, "%s/ncclx.conf", folder);
    else if (home && home[0] == '/') length = snprintf(path, sizeof path, "%s/.config/ncclx.conf", home);
    else return NCCLX_SUCCESS;
    if (length < 0 || (size_t)length >= sizeof path) return NCCLX_SUCCESS; /* longer than any path can be */
    return load_file(config, path, CONFIG_FROM_USER_FILE);
}

static int load_environment(struct base_config *config, char **environment)
{
    for (int id = 0; id < CONFIG_COUNT; id++) {
        const char *text = lookup(environment, table[id].name);
        int error = text ? base_config_set(config, (enum base_config_id)id, "", text, CONFIG_FROM_ENVIRONMENT) : NCCLX_SUCCESS;
        if (error) return error;
    }
    return NCCLX_SUCCESS;
}

static bool is_read_elsewhere(const char *name)
{
    for (size_t i = 0; i < sizeof read_elsewhere / sizeof read_elsewhere[0]; i++)
        if (!strcmp(name, read_elsewhere[i])) return true;
    return false;
}

/* Once a job is enough: rank 0 speaks, and a process that is no rank. */
static void warn_unknown_environment(char **environment)
{
    const char *rank = lookup(environment, "PMIX_RANK");
    if (rank && strcmp(rank, "0")) return;
    for (char **at = environment; *at; at++) {
        char name[MAX_NAME + 1];
        if (strncmp(*at, PREFIX, PREFIX_BYTES)) continue;
        size_t length = strcspn(*at, "=");
        snprintf(name, sizeof name, "%.*s", length > MAX_NAME ? MAX_NAME : (int)length, *at);
        if (base_config_find(name) == CONFIG_COUNT && !is_read_elsewhere(name)) warn_unknown("", name);
    }
}

static int load(struct base_config *config, char **environment)
{
    int error = NCCLX_SUCCESS;
    for (int id = 0; id < CONFIG_COUNT && !error; id++)
        error = base_config_set(config, (enum base_config_id)id, "", table[id].initial, CONFIG_FROM_DEFAULT);
    if (error || !environment) return error;
    error = load_file(config, NCCLX_SYSTEM_CONFIG, CONFIG_FROM_SYSTEM_FILE);
    if (!error) error = load_user_file(config, environment);
    if (!error) error = load_environment(config, environment);
    if (!error) error = base_log_configure(config->value[CONFIG_LOG].text);
    if (!error) warn_unknown_environment(environment);
    return error;
}

int base_config_load(struct base_config *config, char **environment)
{
    memset(config, 0, sizeof *config);
    int error = load(config, environment);
    if (error) base_config_release(config);
    return error;
}

void base_config_release(struct base_config *config)
{
    for (int id = 0; id < CONFIG_COUNT; id++) base_free(AREA_BASE, config->value[id].text);
    memset(config, 0, sizeof *config);
}
