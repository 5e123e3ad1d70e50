/* launcher_sweep.c - sweeps for what a job has left, over real processes: each case in a child that is their subreaper,
 * as ncclxd is. */
#include "config.h"

#include "launcher/dying.h"
#include "launcher/sweep.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SWEEP_MS 10000
#define SKIPPED 77

static void *sleep_on(void *arg)
{
    for (;;) pause();
    return arg;
}

/* In a session of its own, deaf to everything that can be ignored. Tells its pid. */
static void be_a_grandchild(int tell)
{
    pid_t own = getpid();
    for (int number = 1; number < NSIG; number++) signal(number, SIG_IGN);
    setsid();
    if (write(tell, &own, sizeof own) != sizeof own) _exit(1);
    sleep_on(NULL);
}

static void be_a_child(int tell, bool first_thread_ends)
{
    pthread_t thread;
    pid_t own = getpid();
    if (fork() == 0) be_a_grandchild(tell);
    if (write(tell, &own, sizeof own) != sizeof own) _exit(1);
    if (!first_thread_ends) _exit(0); /* the grandchild is an orphan */
    if (pthread_create(&thread, NULL, sleep_on, NULL)) _exit(1);
    pthread_exit(NULL);
}

static char state_of(pid_t pid)
{
    char path[64], state = '?';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file) return 'X';
    if (fscanf(file, "%*d %*s %c", &state) != 1) state = '?';
    fclose(file);
    return state;
}

static bool gone(pid_t pid)
{
    return kill(pid, 0) && errno == ESRCH;
}

static int sweep_both(pid_t child, pid_t grandchild, bool child_lives)
{
    while (state_of(child) != 'Z') usleep(1000); /* its first thread, or all of it */
    const struct sweep_spare nobody = {0}, one = {.one_session = true, .session = getsid(grandchild)};
    if (sweep_descendants(0, &nobody) != 1 + child_lives) return 3;
    if (sweep_descendants(0, &one) != child_lives) return 4;
    sweep_kill(&nobody, SWEEP_MS);
    return gone(child) && gone(grandchild) ? 0 : 5;
}

/* 0: all is well. */
static int sweep_in_child(bool first_thread_ends)
{
    int ends[2];
    pid_t told[2];
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (pipe(ends)) return 1;
    pid_t child = fork();
    if (child == 0) be_a_child(ends[1], first_thread_ends);
    for (int i = 0; i < 2; i++)
        if (read(ends[0], &told[i], sizeof told[i]) != sizeof told[i]) return 2;
    pid_t grandchild = told[0] == child ? told[1] : told[0];
    int failed = sweep_both(child, grandchild, first_thread_ends);
    if (!failed) return 0;
    kill(child, SIGKILL);
    kill(grandchild, SIGKILL);
    return failed;
}

static void run(bool first_thread_ends)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) _exit(sweep_in_child(first_thread_ends));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void test_orphan(void **state)
{
    (void)state;
    run(false);
}

/* A process whose first thread has ended looks dead, but runs and has children. */
static void test_first_thread_ended(void **state)
{
    (void)state;
    run(true);
}

/* As under the first process of a container, whose session's leader is outside: the session's number is 0 to all. */
static int sweep_in_container(void)
{
    if (unshare(CLONE_NEWPID | CLONE_NEWNS)) return SKIPPED;
    pid_t first = fork();
    int status = 0;
    if (first == 0) {
        /* "/" would do, but is no mount of its own in a chroot. */
        if (mount("none", "/proc", NULL, MS_REC | MS_PRIVATE, NULL) || mount("proc", "/proc", "proc", 0, NULL)) _exit(SKIPPED);
        if (getsid(0) != 0) _exit(6);
        _exit(sweep_in_child(true));
    }
    return waitpid(first, &status, 0) == first && WIFEXITED(status) ? WEXITSTATUS(status) : 7;
}

static void test_no_session(void **state)
{
    (void)state;
    int status;
    pid_t pid = fork();
    if (pid == 0) _exit(sweep_in_container());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status == SKIPPED << 8) skip(); /* only root may make namespaces here */
    assert_int_equal(status, 0);
}

/* All threads count: the first one may end alone. */
static void test_dying(void **state)
{
    (void)state;
    int status;
    pid_t lives = fork();
    if (lives == 0) sleep_on(NULL);
    pid_t dies = fork();
    if (dies == 0) _exit(0);
    pid_t half = fork();
    if (half == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, sleep_on, NULL)) _exit(1);
        pthread_exit(NULL);
    }
    while (state_of(dies) != 'Z' || state_of(half) != 'Z') usleep(1000);
    assert_false(process_is_dying(lives));
    assert_true(process_is_dying(dies));
    assert_false(process_is_dying(half));
    kill(lives, SIGKILL);
    kill(half, SIGKILL);
    for (int i = 0; i < 3; i++) assert_true(wait(&status) > 0);
    assert_false(process_is_dying(dies)); /* over and done with */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dying),
        cmocka_unit_test(test_orphan),
        cmocka_unit_test(test_first_thread_ended),
        cmocka_unit_test(test_no_session),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
