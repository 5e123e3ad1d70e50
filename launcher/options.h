/* options.h - the command line of ncclxrun: one table defines, parses and documents every option. Pure, except that
 * help goes to a stream. */
#ifndef LAUNCHER_OPTIONS_H
#define LAUNCHER_OPTIONS_H

#include "launcher/map.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum options_action { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION };
/* What --display prints, as bits; places are printed when a dump or --timeout asks where ranks are. */
enum options_display { OPTIONS_ALLOCATION = 1, OPTIONS_MAP = 2, OPTIONS_BINDINGS = 4, OPTIONS_PIDS = 8, OPTIONS_PLACES = 16 };
enum options_stdin { OPTIONS_STDIN_RANK, OPTIONS_STDIN_ALL, OPTIONS_STDIN_NONE };

/* One program of the job; several are separated by ":". All texts point into argv. */
struct options_app {
    int ranks; /* 0: not given */
    const char *directory;
    const char **settings; /* NAME=value, or NAME to pass the launcher's own value on */
    int setting_count;
    char **argv; /* argc entries, not terminated */
    int argc;
};

struct options {
    enum options_action action;
    struct options_app *apps;
    int app_count;
    const char *hosts, *hostfile;
    const char *topology; /* of hosts that are only described */
    enum map_by by;
    enum map_level by_level;
    int per; /* ranks for each node, object or GPU; 0: not given */
    enum map_bind bind;
    enum map_level bind_level;
    bool oversubscribe, dry_run, show_progress;
    unsigned display; /* enum options_display */
    bool tag_output, timestamp, quiet, verbose;
    const char *output_directory;
    enum options_stdin input;
    int input_rank;
    uint64_t timeout_ns; /* 0: none */
    uint64_t kill_grace_ns;
    char **agent;       /* words of the command, ends with null; null: ssh */
    const char *prefix; /* where ncclx is installed on the hosts; null: where this one is */
    bool no_tree_spawn;
    int radix;
    uint64_t start_ns;   /* for one daemon to start */
    uint64_t silence_ns; /* until a silent one is lost; 0: never */
    uint16_t port_low, port_high;
    const char *port_range; /* the same as text; null: any */
    const char *networks;
};

/* NCCLX_ERR_ARG with one sentence that names the option and what it takes. */
int options_parse(int argc, char **argv, struct options *options);
/* Changes what --map-by and --bind-to say, for the ranks that another rank starts; null: as it is. */
int options_place(struct options *options, const char *map_by, const char *bind_to);
void options_release(struct options *options);
void options_help(FILE *stream);

#endif
