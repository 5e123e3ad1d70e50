/* main.c - ncclx-info: says what this ncclx is and can do here. */
#include "runtime/info/info.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_USAGE 2

extern char **environ;

static const char help[] = "Usage: ncclx-info [option]...\n"
                           "Says what this ncclx is and can do here. Without an option: --version and --transports.\n"
                           "\n"
                           "  --config        every variable: its value, where that comes from, what is valid\n"
                           "  --topo          the cores, caches and memories of this node\n"
                           "  --transports    what moves data on this node, and what is missing or refused\n"
                           "  --version       the version\n"
                           "  --help          this text\n";

enum question {
    ASK_CONFIG = 1 << 0,
    ASK_CONFIG_TABLE = 1 << 1,
    ASK_TOPOLOGY = 1 << 2,
    ASK_TRANSPORTS = 1 << 3,
    ASK_VERSION = 1 << 4,
    ASK_HELP = 1 << 5
};
#define ASK_CONFIGURED (ASK_CONFIG | ASK_TOPOLOGY | ASK_TRANSPORTS) /* these need the configuration */

/* Returns -1. */
static int usage_error(const char *what, const char *text)
{
    fprintf(stderr, "ncclx-info: %s%s; see ncclx-info --help\n", what, text);
    return -1;
}

/* The questions asked, or -1 after an error message. */
static int parse_options(int argc, char **argv)
{
    static const struct option options[] = {{"config", optional_argument, NULL, 'c'},
                                            {"topo", no_argument, NULL, 'T'},
                                            {"transports", no_argument, NULL, 't'},
                                            {"version", no_argument, NULL, 'V'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    int asked = 0, option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        switch (option) {
        case 'c':
            if (optarg && strcmp(optarg, "table")) return usage_error("--config takes nothing or =table, not =", optarg);
            asked |= optarg ? ASK_CONFIG_TABLE : ASK_CONFIG;
            break;
        case 'T': asked |= ASK_TOPOLOGY; break;
        case 't': asked |= ASK_TRANSPORTS; break;
        case 'V': asked |= ASK_VERSION; break;
        case 'h': asked |= ASK_HELP; break;
        default: fprintf(stderr, "ncclx-info: see ncclx-info --help\n"); return -1; /* getopt has named it */
        }
    }
    if (optind < argc) return usage_error("takes options only, not ", argv[optind]);
    return asked ? asked : ASK_VERSION | ASK_TRANSPORTS;
}

static int answer_configured(int asked, const struct base_config *config)
{
    int error = NCCLX_SUCCESS;
    if (asked & ASK_CONFIG) info_config(config);
    if (asked & ASK_TOPOLOGY) error = info_topology();
    fflush(stdout); /* the children that try transports must not inherit text */
    if (asked & ASK_TRANSPORTS) info_transports(config);
    return error;
}

static int answer(int asked)
{
    struct base_config config;
    if (asked & ASK_HELP) fputs(help, stdout);
    if (asked & ASK_VERSION) printf("ncclx %d.%d.%d\n", NCCLX_VERSION_MAJOR, NCCLX_VERSION_MINOR, NCCLX_VERSION_PATCH);
    if (asked & ASK_CONFIG_TABLE) info_config_table();
    if (!(asked & ASK_CONFIGURED)) return EXIT_SUCCESS;
    int error = base_config_load(&config, environ);
    if (!error) {
        error = answer_configured(asked, &config);
        base_config_release(&config);
    }
    if (!error) return EXIT_SUCCESS;
    fprintf(stderr, "ncclx-info: %s\n", base_error_detail());
    return error == NCCLX_ERR_CONFIG ? EXIT_USAGE : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    int asked = parse_options(argc, argv);
    if (asked < 0) return EXIT_USAGE;
    int status = answer(asked);
    if (fflush(stdout) || ferror(stdout)) {
        perror("ncclx-info: standard output");
        return EXIT_FAILURE;
    }
    return status;
}
