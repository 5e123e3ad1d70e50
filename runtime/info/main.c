/* main.c - ncclx-info: says what this ncclx is and can do here. */
#include "runtime/info/info.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_USAGE 2
#define USUAL_RANKS 8
#define MAX_RANKS 100000000

extern char **environ;

static const char help[] = "Usage: ncclx-info [option]...\n"
                           "Says what this ncclx is and can do here. Without an option: --version and --transports.\n"
                           "\n"
                           "  --coll          the algorithm of each collective, by size and number of ranks\n"
                           "  --config        every variable: its value, where that comes from, what is valid\n"
                           "  --memory        the memory that a rank holds, by part of the library\n"
                           "  --ranks N       for so many ranks (--coll; default 8)\n"
                           "  --topo          the cores, caches and memories of this node\n"
                           "  --transports    what moves data on this node, and what is missing or refused\n"
                           "  --version       the version\n"
                           "  --help          this text\n";

enum question {
    ASK_COLL = 1 << 0,
    ASK_CONFIG = 1 << 1,
    ASK_CONFIG_TABLE = 1 << 2,
    ASK_MEMORY = 1 << 3,
    ASK_TOPOLOGY = 1 << 4,
    ASK_TRANSPORTS = 1 << 5,
    ASK_VERSION = 1 << 6,
    ASK_HELP = 1 << 7
};
#define ASK_CONFIGURED (ASK_COLL | ASK_CONFIG | ASK_MEMORY | ASK_TOPOLOGY | ASK_TRANSPORTS) /* these need the configuration */

struct request {
    int asked; /* enum question, added up */
    int ranks;
};

/* Returns -1. */
static int usage_error(const char *what, const char *text)
{
    fprintf(stderr, "ncclx-info: %s%s; see ncclx-info --help\n", what, text);
    return -1;
}

static int parse_ranks(const char *text, int *ranks)
{
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (end == text || *end || errno || number < 1 || number > MAX_RANKS)
        return usage_error("--ranks takes a number from 1 to 100000000, not ", text);
    *ranks = (int)number;
    return 0;
}

static int parse_config(const char *form, int *asked)
{
    if (form && strcmp(form, "table")) return usage_error("--config takes nothing or =table, not =", form);
    *asked |= form ? ASK_CONFIG_TABLE : ASK_CONFIG;
    return 0;
}

/* 0, or -1 after an error message. */
static int parse_options(int argc, char **argv, struct request *request)
{
    static const struct option options[] = {{"coll", no_argument, NULL, ASK_COLL},
                                            {"config", optional_argument, NULL, ASK_CONFIG},
                                            {"memory", no_argument, NULL, ASK_MEMORY},
                                            {"ranks", required_argument, NULL, 'r'},
                                            {"topo", no_argument, NULL, ASK_TOPOLOGY},
                                            {"transports", no_argument, NULL, ASK_TRANSPORTS},
                                            {"version", no_argument, NULL, ASK_VERSION},
                                            {"help", no_argument, NULL, ASK_HELP},
                                            {NULL, 0, NULL, 0}};
    int option, error = 0;
    while (!error && (option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (option == '?') error = usage_error("nothing is answered", ""); /* getopt has named the option */
        else if (option == 'r') error = parse_ranks(optarg, &request->ranks);
        else if (option == ASK_CONFIG) error = parse_config(optarg, &request->asked);
        else request->asked |= option;
    }
    if (error) return error;
    if (optind < argc) return usage_error("takes options only, not ", argv[optind]);
    if (!request->asked) request->asked = ASK_VERSION | ASK_TRANSPORTS;
    return 0;
}

static int answer_configured(const struct request *request, const struct base_config *config)
{
    int error = NCCLX_SUCCESS, asked = request->asked;
    if (asked & ASK_CONFIG) info_config(config);
    if (asked & ASK_COLL) error = info_algorithms(config, request->ranks);
    if (!error && asked & ASK_TOPOLOGY) error = info_topology();
    fflush(stdout); /* the children that try transports must not inherit text */
    if (!error && asked & ASK_TRANSPORTS) info_transports(config);
    if (!error && asked & ASK_MEMORY) error = info_memory();
    return error;
}

static int answer(const struct request *request)
{
    struct base_config config;
    int asked = request->asked;
    if (asked & ASK_HELP) fputs(help, stdout);
    if (asked & ASK_VERSION) printf("ncclx %d.%d.%d\n", NCCLX_VERSION_MAJOR, NCCLX_VERSION_MINOR, NCCLX_VERSION_PATCH);
    if (asked & ASK_CONFIG_TABLE) info_config_table();
    if (!(asked & ASK_CONFIGURED)) return EXIT_SUCCESS;
    int error = base_config_load(&config, environ);
    if (!error) {
        error = answer_configured(request, &config);
        base_config_release(&config);
    }
    if (!error) return EXIT_SUCCESS;
    fprintf(stderr, "ncclx-info: %s\n", base_error_detail());
    return error == NCCLX_ERR_CONFIG ? EXIT_USAGE : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct request request = {.ranks = USUAL_RANKS};
    if (parse_options(argc, argv, &request)) return EXIT_USAGE;
    int status = answer(&request);
    if (fflush(stdout) || ferror(stdout)) {
        perror("ncclx-info: standard output");
        return EXIT_FAILURE;
    }
    return status;
}
