/* config.h - the configuration table: every NCCLX_* variable has one entry in config.c, which defines, parses and documents it. */
#ifndef BASE_CONFIG_H
#define BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order of the table in config.c. */
enum base_config_id {
    CONFIG_ERRORS,
    CONFIG_LOG,
    CONFIG_TIMEOUT,
    CONFIG_CHECK,
    CONFIG_DEBUG_WAIT,
    CONFIG_HOSTFILE,
    CONFIG_THREAD_LEVEL,
    CONFIG_PROGRESS,
    CONFIG_SPIN,
    CONFIG_TRANSPORTS,
    CONFIG_PORT_RANGE,
    CONFIG_PROTOCOL,
    CONFIG_COPY_SLOTS,
    CONFIG_COPY_CHUNK,
    CONFIG_EAGER_LIMIT,
    CONFIG_UNEXPECTED_LIMIT,
    CONFIG_SHM_CMA,
    CONFIG_SHM_DIRECT,
    CONFIG_SHM_RING,
    CONFIG_DQPLB_NODE,
    CONFIG_DQPLB_RACK,
    CONFIG_DQPLB_ZONE,
    CONFIG_DQPLB_BUILDING,
    CONFIG_DQPLB_CAMPUS,
    CONFIG_DQPLB_ADAPT,
    CONFIG_DQPLB_BUDGET,
    CONFIG_LANE_TROUBLE,
    CONFIG_COLL_BARRIER,
    CONFIG_COLL_BCAST,
    CONFIG_COLL_REDUCE,
    CONFIG_COLL_ALLREDUCE,
    CONFIG_COLL_ALLGATHER,
    CONFIG_COLL_ALLTOALL,
    CONFIG_COLL_REDUCE_SCATTER,
    CONFIG_COLL_REDUCE_SCATTER_BLOCK,
    CONFIG_COLL_ALLGATHERV,
    CONFIG_COLL_GATHER,
    CONFIG_COLL_GATHERV,
    CONFIG_COLL_SCATTER,
    CONFIG_COLL_SCATTERV,
    CONFIG_COLL_ALLTOALLV,
    CONFIG_COLL_SCAN,
    CONFIG_COLL_EXSCAN,
    CONFIG_COUNT
};

enum base_config_type { CONFIG_BOOL, CONFIG_INT, CONFIG_SIZE, CONFIG_SECONDS, CONFIG_ENUM, CONFIG_STRING };
enum base_config_source { CONFIG_FROM_DEFAULT, CONFIG_FROM_SYSTEM_FILE, CONFIG_FROM_USER_FILE, CONFIG_FROM_ENVIRONMENT };

struct base_config_entry {
    const char *name;    /* "NCCLX_TIMEOUT" */
    enum base_config_type type;
    const char *initial; /* default, as text */
    double low, high;    /* range of numbers, in the unit of the type: bytes, seconds, 1 */
    const char *choices; /* CONFIG_ENUM: "fatal|return" */
    const char *doc;     /* one line */
};

struct base_config_value {
    int64_t number;  /* BOOL 0/1, INT, SIZE in bytes, ENUM index of the choice, SECONDS in nanoseconds */
    char *text;      /* as given, or the default */
    enum base_config_source source;
};

struct base_config {
    struct base_config_value value[CONFIG_COUNT];
};

const struct base_config_entry *base_config_table(void);
const char *base_config_source_name(enum base_config_source source);
/* Reads files and environment, and puts NCCLX_LOG in force. On a bad value: ERR_CONFIG, with name, value and what would be valid. Unknown
 * NCCLX_* names are warned about once, with the nearest known name. Null: the defaults alone. */
int base_config_load(struct base_config *config, char **environment);
void base_config_release(struct base_config *config);

/* What the entry takes, in words: "seconds from 0 to 1e+09, such as 2 or 0.5". */
void base_config_describe_valid(const struct base_config_entry *entry, char *text, size_t bytes);

/* The steps of base_config_load, for tests and fuzzers. */

/* Reads one value; ERR_CONFIG says why not. `where` is put before the name in that text: "" or "/etc/ncclx.conf:3: ". */
int base_config_parse(const struct base_config_entry *entry, const char *where, const char *text, int64_t *number);
/* Takes the lines of a configuration file into `config`, over what is there. */
int base_config_parse_file(struct base_config *config, const char *path, const char *text, size_t bytes, enum base_config_source source);
/* Stores a value under the entry, over what is there. */
int base_config_set(struct base_config *config, enum base_config_id id, const char *where, const char *text, enum base_config_source source);
/* The entry of that name, or CONFIG_COUNT. */
enum base_config_id base_config_find(const char *name);
/* The known name that `name` is most likely a slip of, or null. */
const char *base_config_nearest(const char *name);

#endif
