/* options.c - the table of options and its parser. An option's value follows it or is joined with "="; names begin with
 * one or two dashes as listed. */
#include "launcher/options.h"

#include "bootstrap/oob/oob.h"
#include "launcher/words.h"
#include "runtime/base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS_MAX_SECONDS 1e9
#define OPTIONS_MAX_APPS 1024
#define OPTIONS_MAX_RADIX 256

struct parse {
    struct options *options;
    struct options_app *app;
    const char *name; /* the option as the user wrote it */
};

/* Returns a code; value is null for options without one. */
typedef int (*option_fn)(struct parse *parse, const char *value);

struct option {
    const char *names; /* separated by blanks, the first is the one the manual sorts by */
    const char *value; /* what it takes, for the help; null: nothing */
    option_fn apply;
    const char *help;
};

static int bad_value(const struct parse *parse, const char *value, const char *wanted)
{
    return base_error(NCCLX_ERR_ARG, "%s: '%.100s' is not %s", parse->name, value, wanted);
}

static bool read_integer(const char *text, long low, long high, long *number)
{
    char *end;
    errno = 0;
    if (*text < '0' || *text > '9') return false;
    *number = strtol(text, &end, 10);
    return !errno && *end == 0 && *number >= low && *number <= high;
}

static int apply_ranks(struct parse *parse, const char *value)
{
    long ranks;
    char wanted[64];
    snprintf(wanted, sizeof wanted, "a number of ranks from 1 to %d", MAP_MAX_RANKS);
    if (!read_integer(value, 1, MAP_MAX_RANKS, &ranks)) return bad_value(parse, value, wanted);
    parse->app->ranks = (int)ranks;
    return NCCLX_SUCCESS;
}

static int apply_hosts(struct parse *parse, const char *value)
{
    if (!*value) return bad_value(parse, value, "a list of hosts, NAME[:SLOTS][,...]");
    parse->options->hosts = value;
    return NCCLX_SUCCESS;
}

static int apply_hostfile(struct parse *parse, const char *value)
{
    if (!*value) return bad_value(parse, value, "the name of a file");
    parse->options->hostfile = value;
    return NCCLX_SUCCESS;
}

static int apply_setting(struct parse *parse, const char *value)
{
    struct options_app *app = parse->app;
    if (!*value || *value == '=') return bad_value(parse, value, "NAME or NAME=value");
    const char **settings =
        base_realloc(AREA_LAUNCHER, app->settings, (size_t)(app->setting_count + 1) * sizeof *settings);
    if (!settings) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the options");
    app->settings = settings;
    app->settings[app->setting_count++] = value;
    return NCCLX_SUCCESS;
}

static int apply_directory(struct parse *parse, const char *value)
{
    if (!*value) return bad_value(parse, value, "a directory");
    parse->app->directory = value;
    return NCCLX_SUCCESS;
}

#define PLACE_NAMES "slot, node, gpu, hwthread, core, l2cache, l3cache, numa, package, socket"

static bool read_place(struct options *options, const char *value)
{
    int level = map_level_find(value);
    if (!strcmp(value, "slot")) {
        options->by = MAP_BY_SLOT;
    } else if (!strcmp(value, "node")) {
        options->by = MAP_BY_NODE;
    } else if (!strcmp(value, "gpu")) {
        options->by = MAP_BY_GPU;
    } else if (level >= 0) {
        options->by = MAP_BY_OBJECT;
        options->by_level = (enum map_level)level;
    } else {
        return false;
    }
    return true;
}

/* PLACE, or ppr:N:PLACE as mpirun has it: processes per resource. */
static int apply_map_by(struct parse *parse, const char *value)
{
    const char *place = value;
    char number[16];
    long per = 0;
    if (!strncmp(value, "ppr:", 4)) {
        size_t digits = strcspn(value + 4, ":");
        if (digits >= sizeof number || value[4 + digits] != ':')
            return bad_value(parse, value, "ppr:N:PLACE, such as ppr:2:node");
        memcpy(number, value + 4, digits);
        number[digits] = 0;
        place = value + 4 + digits + 1;
        if (!read_integer(number, 1, MAP_MAX_RANKS, &per) || !strcmp(place, "slot"))
            return bad_value(parse, value, "ppr:N:PLACE, such as ppr:2:node");
    }
    parse->options->per = (int)per;
    if (!read_place(parse->options, place)) return bad_value(parse, value, "one of " PLACE_NAMES ", or ppr:N:PLACE");
    return NCCLX_SUCCESS;
}

static int apply_bind_to(struct parse *parse, const char *value)
{
    int level = map_level_find(value);
    if (!strcmp(value, "none")) {
        parse->options->bind = MAP_BIND_NONE;
    } else if (level >= 0) {
        parse->options->bind = MAP_BIND_OBJECT;
        parse->options->bind_level = (enum map_level)level;
    } else {
        return bad_value(parse, value, "one of none, hwthread, core, l2cache, l3cache, numa, package, socket");
    }
    return NCCLX_SUCCESS;
}

int options_place(struct options *options, const char *map_by, const char *bind_to)
{
    struct parse parse = {.options = options, .name = "PMIX_MAPBY"};
    int code = map_by ? apply_map_by(&parse, map_by) : NCCLX_SUCCESS;
    parse.name = "PMIX_BINDTO";
    return !code && bind_to ? apply_bind_to(&parse, bind_to) : code;
}

static int apply_report_bindings(struct parse *parse, const char *value)
{
    (void)value;
    parse->options->display |= OPTIONS_BINDINGS;
    return NCCLX_SUCCESS;
}

static int apply_display(struct parse *parse, const char *value)
{
    static const char *const names[] = {"allocation", "map", "bindings", "pids"};
    for (const char *at = value;; at++) {
        size_t length = strcspn(at, ","), i = 0;
        while (i < 4 && (strlen(names[i]) != length || memcmp(at, names[i], length))) i++;
        if (i == 4) return bad_value(parse, value, "a list of things to display: allocation, map, bindings, pids");
        parse->options->display |= 1U << i;
        at += length;
        if (!*at) return NCCLX_SUCCESS;
    }
}

static int apply_dry_run(struct parse *parse, const char *value)
{
    (void)value;
    parse->options->dry_run = true;
    return NCCLX_SUCCESS;
}

static int apply_topology(struct parse *parse, const char *value)
{
    if (!*value) return bad_value(parse, value, "a file of hwloc or a description such as 'package:2 core:4 pu:2'");
    parse->options->topology = value;
    return NCCLX_SUCCESS;
}

static int apply_show_progress(struct parse *parse, const char *value)
{
    (void)value;
    parse->options->show_progress = true;
    return NCCLX_SUCCESS;
}

static int apply_oversubscribe(struct parse *parse, const char *value)
{
    (void)value;
    parse->options->oversubscribe = true;
    return NCCLX_SUCCESS;
}

static int apply_no_oversubscribe(struct parse *parse, const char *value)
{
    (void)value;
    parse->options->oversubscribe = false;
    return NCCLX_SUCCESS;
}

static int apply_tag_output(struct parse *parse, const char *value)
{
    (void)value;
    parse->options->tag_output = true;
    return NCCLX_SUCCESS;
}

static int apply_timestamp(struct parse *parse, const char *value)
{
    (void)value;
    parse->options->timestamp = true;
    return NCCLX_SUCCESS;
}

static int apply_output(struct parse *parse, const char *value)
{
    if (!*value) return bad_value(parse, value, "a directory");
    parse->options->output_directory = value;
    return NCCLX_SUCCESS;
}

static int apply_stdin(struct parse *parse, const char *value)
{
    long rank;
    if (!strcmp(value, "all")) {
        parse->options->input = OPTIONS_STDIN_ALL;
    } else if (!strcmp(value, "none")) {
        parse->options->input = OPTIONS_STDIN_NONE;
    } else if (read_integer(value, 0, MAP_MAX_RANKS - 1, &rank)) {
        parse->options->input = OPTIONS_STDIN_RANK;
        parse->options->input_rank = (int)rank;
    } else {
        return bad_value(parse, value, "a rank, all or none");
    }
    return NCCLX_SUCCESS;
}

static int read_seconds(const struct parse *parse, const char *value, double least, uint64_t *ns)
{
    char *end;
    errno = 0;
    double seconds = strtod(value, &end);
    bool number = (*value >= '0' && *value <= '9') || *value == '.';
    if (!number || errno || *end || !(seconds >= least && seconds <= OPTIONS_MAX_SECONDS))
        return bad_value(parse, value, least > 0 ? "a number of seconds above 0" : "a number of seconds");
    *ns = (uint64_t)(seconds * (double)BASE_NS_PER_S);
    return NCCLX_SUCCESS;
}

static int apply_timeout(struct parse *parse, const char *value)
{
    return read_seconds(parse, value, 1e-3, &parse->options->timeout_ns);
}

static int apply_kill_grace(struct parse *parse, const char *value)
{
    return read_seconds(parse, value, 0, &parse->options->kill_grace_ns);
}

static int apply_agent(struct parse *parse, const char *value)
{
    char **words;
    if (words_split(value, &words)) return bad_value(parse, value, "a command, or a quote in it does not end");
    base_free(AREA_LAUNCHER, parse->options->agent);
    parse->options->agent = words;
    return NCCLX_SUCCESS;
}

static int apply_prefix(struct parse *parse, const char *value)
{
    if (*value != '/') return bad_value(parse, value, "a directory, from the root on");
    parse->options->prefix = value;
    return NCCLX_SUCCESS;
}

static int apply_no_tree_spawn(struct parse *parse, const char *value)
{
    (void)value;
    parse->options->no_tree_spawn = true;
    return NCCLX_SUCCESS;
}

static int apply_tree_radix(struct parse *parse, const char *value)
{
    long radix;
    if (!read_integer(value, 1, OPTIONS_MAX_RADIX, &radix)) return bad_value(parse, value, "a number from 1 to 256");
    parse->options->radix = (int)radix;
    return NCCLX_SUCCESS;
}

static int apply_start_timeout(struct parse *parse, const char *value)
{
    return read_seconds(parse, value, 1e-3, &parse->options->start_ns);
}

static int apply_silence_timeout(struct parse *parse, const char *value)
{
    return read_seconds(parse, value, 0, &parse->options->silence_ns);
}

/* Ranks use it, too, unless they are told another. */
static int apply_port_range(struct parse *parse, const char *value)
{
    if (oob_ports_parse(value, &parse->options->port_low, &parse->options->port_high))
        return bad_value(parse, value, "a range of ports, LOW-HIGH");
    parse->options->port_range = value;
    return NCCLX_SUCCESS;
}

static int apply_networks(struct parse *parse, const char *value)
{
    if (!*value) return bad_value(parse, value, "networks, such as 10.1.0.0/16, or names of interfaces");
    parse->options->networks = value;
    return NCCLX_SUCCESS;
}

static int apply_quiet(struct parse *parse, const char *value)
{
    (void)value;
    parse->options->quiet = true;
    return NCCLX_SUCCESS;
}

static int apply_verbose(struct parse *parse, const char *value)
{
    (void)value;
    parse->options->verbose = true;
    return NCCLX_SUCCESS;
}

static int apply_version(struct parse *parse, const char *value)
{
    (void)value;
    parse->options->action = OPTIONS_VERSION;
    return NCCLX_SUCCESS;
}

static int apply_help(struct parse *parse, const char *value)
{
    (void)value;
    parse->options->action = OPTIONS_HELP;
    return NCCLX_SUCCESS;
}

static const struct option option_table[] = {
    {"-n -np --np", "N", apply_ranks, "ranks of this program; one a slot if not given"},
    {"-x", "NAME[=VALUE]", apply_setting, "set a variable for the ranks of this program; repeatable"},
    {"--wdir", "DIR", apply_directory, "start the ranks of this program in DIR"},
    {"--host -H", "NAME[:SLOTS],...", apply_hosts,
     "hosts to use, also node[01-16]:4; of a hostfile these only, or all but ^NAME"},
    {"--hostfile --machinefile", "FILE", apply_hostfile,
     "hosts to use, one a line: NAME slots=N; - for standard input"},
    {"--map-by", "PLACE", apply_map_by,
     "slot (default), node, gpu, hwthread, core, l2cache, l3cache, numa, package or socket; ppr:N:PLACE for N each"},
    {"--bind-to", "PLACE", apply_bind_to,
     "none, hwthread, core, l2cache, l3cache, numa, package or socket; default: numa, none when oversubscribed"},
    {"--report-bindings", NULL, apply_report_bindings, "print the cpus each rank is bound to"},
    {"--display", "WHAT,...", apply_display,
     "print allocation, map (which rank runs where), bindings, or pids once ranks run"},
    {"--dry-run", NULL, apply_dry_run, "print the map, or what --display says, and start nothing"},
    {"--topology", "DESCRIPTION", apply_topology,
     "with --dry-run: what hosts are made of, a file of hwloc or 'package:2 core:4 pu:2'"},
    {"--oversubscribe", NULL, apply_oversubscribe, "allow more ranks than slots (default)"},
    {"--no-oversubscribe", NULL, apply_no_oversubscribe, "more ranks than slots are an error"},
    {"--tag-output", NULL, apply_tag_output, "begin each line with [RANK]<stdout> or [RANK]<stderr>"},
    {"--timestamp", NULL, apply_timestamp, "begin each line with the time it arrived"},
    {"--output", "DIR", apply_output, "write to DIR/rank.N.out and DIR/rank.N.err instead"},
    {"--stdin", "RANK", apply_stdin, "who reads standard input: a rank (default 0), all or none"},
    {"--timeout", "SECONDS", apply_timeout, "end the job after this time, exit status 124"},
    {"--kill-grace", "SECONDS", apply_kill_grace, "time between TERM and KILL when the job is ended (default 5)"},
    {"--show-progress", NULL, apply_show_progress,
     "say how far a start is, also when it is fast or no terminal looks on"},
    {"--rsh-agent", "COMMAND", apply_agent,
     "what starts a daemon on another host: COMMAND HOST COMMAND-THERE (default ssh)"},
    {"--prefix", "DIR", apply_prefix, "where ncclx is installed on the hosts; default: where it is here"},
    {"--no-tree-spawn", NULL, apply_no_tree_spawn, "start all daemons from here, not one from the other"},
    {"--tree-radix", "N", apply_tree_radix, "how many daemons stand below each in their tree (default 32)"},
    {"--port-range", "LOW-HIGH", apply_port_range, "ports on which daemons and ranks listen; default: any"},
    {"--networks", "LIST", apply_networks,
     "listen there only: networks such as 10.1.0.0/16, or names of interfaces, with commas between; default: any"},
    {"--start-timeout", "SECONDS", apply_start_timeout, "how long the daemon of a host may take to start (default 60)"},
    {"--silence-timeout", "SECONDS", apply_silence_timeout,
     "a daemon that is silent for so long is lost (default 30, 0: never)"},
    {"--quiet -q", NULL, apply_quiet, "no messages about ranks; the exit status tells"},
    {"--verbose -v", NULL, apply_verbose, "say each step"},
    {"--version -V", NULL, apply_version, "print the version and exit"},
    {"--help -h", NULL, apply_help, "print this text and exit"},
};

#define OPTION_COUNT (sizeof option_table / sizeof option_table[0])

/* True when `length` bytes at name are one of the option's names. */
static bool has_name(const struct option *option, const char *name, size_t length)
{
    for (const char *at = option->names; *at;) {
        size_t bytes = strcspn(at, " ");
        if (bytes == length && !memcmp(at, name, length)) return true;
        at += bytes + (at[bytes] == ' ');
    }
    return false;
}

/* Long options may have one dash, as fingers that know mpirun type them: -wdir. */
static const struct option *find_option(const char *name, size_t length)
{
    char doubled[64] = "-";
    bool single = length > 2 && name[1] != '-' && length < sizeof doubled - 1;
    if (single) memcpy(doubled + 1, name, length);
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (has_name(&option_table[i], name, length) || (single && has_name(&option_table[i], doubled, length + 1)))
            return &option_table[i];
    return NULL;
}

/* Applies argv[*at] and moves past it and its value. */
static int parse_option(struct parse *parse, int argc, char **argv, int *at)
{
    const char *text = argv[*at], *value = NULL;
    size_t length = strcspn(text, "=");
    const struct option *option = find_option(text, length);
    if (!option)
        return base_error(NCCLX_ERR_ARG, "unknown option '%.*s'; ncclxrun --help lists them",
                          (int)(length < 100 ? length : 100), text);
    (*at)++;
    if (text[length] == '=') value = text + length + 1;
    parse->name = text[length] == '=' ? option->names : text;
    if (option->value && !value) {
        if (*at == argc) return base_error(NCCLX_ERR_ARG, "%s needs a value: %s %s", text, text, option->value);
        value = argv[(*at)++];
    }
    if (!option->value && value) return base_error(NCCLX_ERR_ARG, "%.*s takes no value", (int)length, text);
    return option->apply(parse, value);
}

static struct options_app *add_app(struct options *options)
{
    struct options_app *apps = NULL;
    if (options->app_count < OPTIONS_MAX_APPS)
        apps = base_realloc(AREA_LAUNCHER, options->apps, (size_t)(options->app_count + 1) * sizeof *apps);
    if (!apps) return NULL;
    options->apps = apps;
    memset(&apps[options->app_count], 0, sizeof *apps);
    return &apps[options->app_count++];
}

/* One program: its options, its name and its arguments, up to ":" or the end. */
static int parse_app(struct options *options, int argc, char **argv, int *at)
{
    struct parse parse = {.options = options, .app = add_app(options)};
    int code;
    if (!parse.app) return base_error(NCCLX_ERR_LIMIT, "more than %d programs in one job", OPTIONS_MAX_APPS);
    while (*at < argc && argv[*at][0] == '-' && argv[*at][1]) {
        if (!strcmp(argv[*at], "--")) {
            (*at)++;
            break;
        }
        if ((code = parse_option(&parse, argc, argv, at))) return code;
        if (options->action != OPTIONS_RUN) return NCCLX_SUCCESS;
    }
    parse.app->argv = argv + *at;
    while (*at < argc && strcmp(argv[*at], ":")) (*at)++;
    parse.app->argc = (int)(argv + *at - parse.app->argv);
    if (parse.app->argc == 0 || !parse.app->argv[0][0])
        return base_error(NCCLX_ERR_ARG, "%s; usage: ncclxrun [-n N] [options] program [arguments] [: ...]",
                          options->app_count > 1 ? "no program after ':'" : "no program to run");
    return NCCLX_SUCCESS;
}

/* Options that need others: with several programs each says how many ranks it wants. */
static int check_apps(const struct options *options)
{
    if (options->topology && !options->dry_run)
        return base_error(NCCLX_ERR_ARG, "--topology describes hosts for --dry-run; real ones are what they are");
    for (int i = 0; options->app_count > 1 && i < options->app_count; i++)
        if (options->apps[i].ranks == 0)
            return base_error(NCCLX_ERR_ARG, "program %d (%.100s) needs its own -n", i + 1, options->apps[i].argv[0]);
    return NCCLX_SUCCESS;
}

int options_parse(int argc, char **argv, struct options *options)
{
    int at = 1, code;
    memset(options, 0, sizeof *options);
    options->oversubscribe = true;
    options->kill_grace_ns = 5 * BASE_NS_PER_S;
    options->radix = 32;
    options->start_ns = 60 * BASE_NS_PER_S;
    options->silence_ns = 30 * BASE_NS_PER_S;
    do {
        if ((code = parse_app(options, argc, argv, &at))) break;
        if (options->action != OPTIONS_RUN) return NCCLX_SUCCESS;
    } while (at++ < argc); /* past the ":" */
    if (!code) code = check_apps(options);
    if (code) options_release(options);
    return code;
}

void options_release(struct options *options)
{
    for (int i = 0; i < options->app_count; i++) base_free(AREA_LAUNCHER, options->apps[i].settings);
    base_free(AREA_LAUNCHER, options->apps);
    base_free(AREA_LAUNCHER, options->agent);
    memset(options, 0, sizeof *options);
}

void options_help(FILE *stream)
{
    fputs("Usage: ncclxrun [-n N] [options] program [arguments] [: -n M [options] program2 [arguments]]...\n"
          "Starts a job of N ranks. -n, -x and --wdir belong to the program they stand before.\n\n",
          stream);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        char names[80];
        size_t length = 0;
        for (const char *at = option_table[i].names; *at && length + 3 < sizeof names; at++) {
            if (*at == ' ') names[length++] = ',';
            names[length++] = *at;
        }
        names[length] = 0;
        fprintf(stream, "  %s%s%s\n        %s\n", names, option_table[i].value ? " " : "",
                option_table[i].value ? option_table[i].value : "", option_table[i].help);
    }
    fputs("\nStandard input, signals, the environment and the exit status are described in ncclxrun(1).\n", stream);
}
