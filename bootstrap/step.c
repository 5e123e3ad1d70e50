/* step.c - under Slurm, ranks that die alone on their node. Nobody there misses them (watch.c), no socket tells of them where
 * there is none yet, or memory is shared, and Slurm's PMIx server lets the others wait. But Slurm knows which nodes of a
 * step still have processes, and answers whoever asks: while such a wait lasts, one rank on each of the first nodes asks
 * now and then. Once all have met in a fence they are about to end.
 *
 * libslurm is asked in a child: it may end its process, print, or take its time. Nothing is asked where libslurm, its
 * configuration or what we expect of either is missing; then the others wait, as Slurm lets them without -K. */
#include "config.h"

#include "bootstrap/client.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ASKING_NODES 3 /* the first of them may be the one that is gone */
#define FIRST_NS (2 * BASE_NS_PER_S)
#define TURN_NS (3 * BASE_NS_PER_S) /* one speaks: each asks later than the one before */
#define LONGEST_NS (60 * BASE_NS_PER_S)
#define AGAIN_NS (BASE_NS_PER_S / 2) /* two answers that agree count */
/* A node that has not been seen with processes of the step may still be getting ready for it (a prolog). */
#define UNSEEN_NS (60 * BASE_NS_PER_S)
#define UNSEEN_AGAIN_NS (10 * BASE_NS_PER_S)
#define CHILD_SECONDS 30
#define CHILD_QUESTIONS 8 /* about single nodes, at a time */

struct bootstrap_step {
    uint32_t job, step;
    const struct bootstrap_nodes *nodes;
    uint64_t next_ns, wait_ns;
    pid_t child; /* that asks; 0: none */
    int answer;  /* where it says what it has learnt: a letter a node, in their order */
    char *letters;
    int letter_count; /* that have come */
    struct node_state {
        bool seen;        /* with processes */
        uint64_t gone_ns; /* since when it is said to have none; 0: it is not */
    } * states;
};

enum { NODE_UNKNOWN = '?', NODE_LIVES = '+', NODE_GONE = '-' };

/* ---- libslurm, in the child ------------------------------------------------------------------------------------- */

/* As its header of Slurm 20.11 to 24.11 (libslurm.so.36 to 42) says. */
#define SLURM_FIRST_SONAME 36
#define SLURM_LAST_SONAME 42
#define SLURM_NO_VALUE 0xfffffffeu
#define SLURM_INVALID_JOB_ID 2017 /* also: this step has no process left on that node */

struct slurm_step_id {
    uint32_t job, component, step;
};

struct slurm_node_pids {
    char *node;
    uint32_t *pids, count;
};

struct slurm_answer {
    void *nodes; /* a list of struct slurm_node_pids */
    struct slurm_step_id step;
};

struct slurm {
    void (*init)(const char *file);
    int (*get_pids)(struct slurm_step_id *step, char *nodes, struct slurm_answer **answer);
    void *(*iterate)(void *list);
    void *(*next)(void *iterator);
};

static bool find_symbols(void *library, struct slurm *slurm)
{
    *(void **)&slurm->init = dlsym(library, "slurm_init");
    *(void **)&slurm->get_pids = dlsym(library, "slurm_job_step_get_pids");
    *(void **)&slurm->iterate = dlsym(library, "slurm_list_iterator_create");
    *(void **)&slurm->next = dlsym(library, "slurm_list_next");
    return slurm->init && slurm->get_pids && slurm->iterate && slurm->next;
}

/* Its plugins take their symbols from it: for all of the process. */
static bool open_library(struct slurm *slurm)
{
    char name[32];
    void *library = NULL;
    for (int version = SLURM_FIRST_SONAME; !library && version <= SLURM_LAST_SONAME; version++) {
        snprintf(name, sizeof name, "libslurm.so.%d", version);
        library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    }
    return library && find_symbols(library, slurm);
}

static bool is_listed(const struct slurm *slurm, const struct slurm_answer *answer, const char *node)
{
    void *iterator = answer && answer->nodes ? slurm->iterate(answer->nodes) : NULL;
    const struct slurm_node_pids *pids;
    while (iterator && (pids = slurm->next(iterator)))
        if (pids->node && !strcmp(pids->node, node)) return true;
    return false;
}

/* A node that says nothing may only be slow: one that is asked by itself says that it has no such step. What it is
 * called must be what PMIx calls it, as can be seen of our own. */
static void look_at_nodes(const struct slurm *slurm, const struct bootstrap *boot)
{
    const struct bootstrap_step *state = boot->step;
    struct slurm_step_id step = {state->job, SLURM_NO_VALUE, state->step};
    struct slurm_answer *all = NULL;
    int questions = 0;
    slurm->get_pids(&step, NULL, &all);
    if (!is_listed(slurm, all, boot->rt->job.node_name)) return;
    for (int i = 0; i < state->nodes->count; i++) {
        struct slurm_answer *one = NULL;
        char *name = state->nodes->node[i].name;
        if (is_listed(slurm, all, name))
            state->letters[i] = NODE_LIVES;
        else if (questions++ < CHILD_QUESTIONS && slurm->get_pids(&step, name, &one) == SLURM_INVALID_JOB_ID)
            state->letters[i] = NODE_GONE;
    }
}

static void run_child(const struct bootstrap *boot, int answer)
{
    struct slurm slurm;
    sigset_t none;
    for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(CHILD_SECONDS);
    dup2(answer, 3); /* first: it may be one of the next three, when the program has closed them */
    int null_fd = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++) dup2(null_fd, fd);
    syscall(SYS_close_range, 4U, ~0U, 0U);
    const struct bootstrap_step *step = boot->step;
    memset(step->letters, NODE_UNKNOWN, (size_t)step->nodes->count);
    if (!open_library(&slurm)) _exit(1);
    slurm.init(NULL);
    look_at_nodes(&slurm, boot);
    for (int sent = 0; sent < step->nodes->count;) {
        ssize_t wrote = write(3, step->letters + sent, (size_t)(step->nodes->count - sent));
        if (wrote <= 0) _exit(1);
        sent += (int)wrote;
    }
    _exit(0);
}

/* ---- In the rank ------------------------------------------------------------------------------------------------ */

static bool environment_number(const char *name, uint32_t *number)
{
    const char *text = getenv(name);
    char *end;
    errno = 0;
    unsigned long value = text && *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : UINT32_MAX;
    *number = (uint32_t)value;
    return value < SLURM_NO_VALUE && !errno && !*end;
}

/* Without one slurm_init looks for a server for a minute. */
static bool has_configuration(void)
{
    const char *file = getenv("SLURM_CONF");
    return access(file ? file : "/etc/slurm/slurm.conf", R_OK) == 0;
}

bool bootstrap_step_start(struct bootstrap *boot)
{
    uint32_t job, step;
    if (boot->rt->job.local_rank || boot->joined || boot->rt->job.local_size == boot->rt->job.size) return false;
    if (!environment_number("SLURM_JOB_ID", &job) || !environment_number("SLURM_STEP_ID", &step)) return false;
    if (!has_configuration()) return false;
    boot->step = base_calloc(AREA_BOOTSTRAP, 1, sizeof *boot->step);
    if (!boot->step) return false;
    *boot->step = (struct bootstrap_step){.job = job, .step = step, .answer = -1, .wait_ns = FIRST_NS};
    return true;
}

static void end_job(struct bootstrap *boot, const struct bootstrap_node *node)
{
    char text[600];
    snprintf(text, sizeof text, "rank %d on %.255s%s died without leaving the job, as Slurm says; rank %d ends the job",
             node->count ? node->ranks[0] : -1, node->name, node->count > 1 ? " and the others there" : "",
             boot->rt->job.rank);
    dprintf(STDERR_FILENO, "ncclx: %s\n", text);
    bootstrap_abort(boot->rt, 1, text);
}

/* Returns when to ask again. */
static uint64_t take_answer(struct bootstrap *boot, uint64_t now)
{
    struct bootstrap_step *step = boot->step;
    uint64_t again = step->wait_ns;
    for (int i = 0; i < step->nodes->count; i++) {
        struct node_state *state = &step->states[i];
        if (step->letters[i] != NODE_GONE) {
            state->seen |= step->letters[i] == NODE_LIVES;
            state->gone_ns = 0;
        } else if (!state->gone_ns) {
            state->gone_ns = now;
            again = state->seen ? AGAIN_NS : UNSEEN_AGAIN_NS;
        } else if (state->seen || now - state->gone_ns >= UNSEEN_NS) {
            end_job(boot, &step->nodes->node[i]);
        } else {
            again = UNSEEN_AGAIN_NS;
        }
    }
    return now + again;
}

static void end_child(struct bootstrap_step *step, int number)
{
    if (step->child > 0) {
        if (number) kill(step->child, number);
        waitpid(step->child, NULL, 0);
    }
    if (step->answer >= 0) close(step->answer);
    step->child = 0;
    step->answer = -1;
}

static void ask(struct bootstrap *boot)
{
    struct bootstrap_step *step = boot->step;
    int ends[2];
    step->next_ns = UINT64_MAX;
    if (pipe2(ends, O_CLOEXEC)) return;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    step->answer = ends[0];
    step->letter_count = 0;
    step->child = fork();
    if (step->child == 0) run_child(boot, ends[1]);
    close(ends[1]);
    if (step->child < 0) end_child(step, 0);
}

static void read_answer(struct bootstrap *boot, uint64_t now)
{
    struct bootstrap_step *step = boot->step;
    ssize_t got =
        read(step->answer, step->letters + step->letter_count, (size_t)(step->nodes->count - step->letter_count));
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got > 0) step->letter_count += (int)got;
    if (got > 0 && step->letter_count < step->nodes->count) return;
    end_child(step, SIGKILL);
    if (step->wait_ns < LONGEST_NS) step->wait_ns *= 2;
    step->next_ns = got > 0 ? take_answer(boot, now) : now + step->wait_ns;
}

/* The first look: which nodes there are, and whether this rank is one of those that ask. */
static bool begin(struct bootstrap *boot, uint64_t now)
{
    struct bootstrap_step *step = boot->step;
    if (bootstrap_nodes_get(boot, &step->nodes)) return false;
    int own = step->nodes->of[boot->rt->job.rank];
    step->letters = base_calloc(AREA_BOOTSTRAP, (size_t)step->nodes->count, 1);
    step->states = base_calloc(AREA_BOOTSTRAP, (size_t)step->nodes->count, sizeof *step->states);
    step->next_ns = now + FIRST_NS + (uint64_t)own * TURN_NS;
    return own < ASKING_NODES && step->letters && step->states;
}

bool bootstrap_step_look(struct bootstrap *boot, uint64_t now)
{
    struct bootstrap_step *step = boot->step;
    if (!step) return false;
    if (boot->joined || (!step->nodes && !begin(boot, now))) {
        bootstrap_step_release(boot);
        return false;
    }
    if (step->child)
        read_answer(boot, now);
    else if (now >= step->next_ns)
        ask(boot);
    return true;
}

void bootstrap_step_release(struct bootstrap *boot)
{
    if (!boot->step) return;
    end_child(boot->step, SIGKILL);
    base_free(AREA_BOOTSTRAP, boot->step->letters);
    base_free(AREA_BOOTSTRAP, boot->step->states);
    base_free(AREA_BOOTSTRAP, boot->step);
    boot->step = NULL;
}
