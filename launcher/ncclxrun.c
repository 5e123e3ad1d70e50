/* ncclxrun.c - starts a job of several ranks. */
#include "config.h"

#include "launcher/front.h"

#include "runtime/base/base.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Descriptors 0, 1 and 2 must exist: the first pipe would take their places. */
static void hold_standard_descriptors(void)
{
    int fd;
    do fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) close(fd);
}

/* Unique among jobs that start at the same time on hosts that may have one name; also the name of files. */
static void name_job(char *job, size_t bytes)
{
    uint64_t noise = 0;
    if (getrandom(&noise, sizeof noise, GRND_NONBLOCK) < 0) noise = base_clock_ns();
    snprintf(job, bytes, "ncclx-%d-%012llx", (int)getpid(), (unsigned long long)noise & 0xffffffffffffULL);
}

int main(int argc, char **argv)
{
    static struct front front;
    hold_standard_descriptors();
    if (options_parse(argc, argv, &front.options)) {
        fprintf(stderr, "ncclxrun: %s\n", base_error_detail());
        return FRONT_EXIT_USAGE;
    }
    if (front.options.action == OPTIONS_HELP) options_help(stdout);
    if (front.options.action == OPTIONS_VERSION) printf("ncclxrun (ncclx) %s\n", PACKAGE_VERSION);
    if (front.options.action != OPTIONS_RUN) {
        if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
        perror("ncclxrun: standard output");
        return 1;
    }
    name_job(front.job, sizeof front.job);
    return front_run(&front);
}
