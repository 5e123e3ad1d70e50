/* surroundings.c - what a rank finds around itself: one line each, for the tests of the launcher. No ncclx in it. */
#include "config.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void print_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    printf("descriptors:");
    for (int fd = 0; fd < 4096; fd++) {
        struct stat status;
        if (fd != dirfd(directory) && !fstat(fd, &status)) printf(" %d", fd);
    }
    printf("\n");
    closedir(directory);
}

static void print_signals(void)
{
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    printf("blocked:");
    for (int number = 1; number < NSIG; number++)
        if (sigismember(&blocked, number) == 1) printf(" %d", number);
    printf("\nnot default:");
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (!sigaction(number, NULL, &action) && action.sa_handler != SIG_DFL) printf(" %d", number);
    }
    printf("\n");
}

static void print_limit(const char *name, int resource)
{
    struct rlimit limit;
    getrlimit(resource, &limit);
    printf("%s: %lld %lld\n", name, (long long)limit.rlim_cur, (long long)limit.rlim_max);
}

int main(int argc, char **argv)
{
    cpu_set_t cpus;
    char directory[4096];
    mode_t mask = umask(0);
    print_descriptors();
    print_signals();
    print_limit("nofile", RLIMIT_NOFILE);
    print_limit("core", RLIMIT_CORE);
    print_limit("stack", RLIMIT_STACK);
    printf("umask: %03o\n", (unsigned)mask);
    if (getcwd(directory, sizeof directory)) printf("directory: %s\n", directory);
    sched_getaffinity(0, sizeof cpus, &cpus);
    printf("cpus:");
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &cpus)) printf(" %u", cpu);
    printf("\narguments: %d\n", argc - 1);
    for (int i = 1; i < argc; i++) printf("argument: <%s>\n", argv[i]);
    return 0;
}
