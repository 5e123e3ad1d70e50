/* transports.c - ncclx-info --transports: tries what a job would use on this node. */
#include "config.h"

#include "runtime/info/info.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEGMENT_BYTES ((size_t)2 << 20)

/* ---- Cross-memory attach, between two children: ranks are siblings, and a parent may do what siblings may not ---------- */

static volatile int probe_word = 4711; /* at the same address in both */

/* Holds the word until the pipe closes, which it also does when ncclx-info dies. */
static void be_target(int from_parent, int ready, bool open_to_all)
{
    char byte = 0;
#ifdef PR_SET_PTRACER
    if (open_to_all) prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
#endif
    (void)open_to_all;
    if (write(ready, &byte, 1) == 1) (void)!read(from_parent, &byte, 1);
    _exit(0);
}

/* 0, or an errno. */
static int read_from(pid_t target)
{
    int word = 0;
    struct iovec local = {.iov_base = &word, .iov_len = sizeof word};
    struct iovec remote = {.iov_base = (void *)(uintptr_t)&probe_word, .iov_len = sizeof word};
    ssize_t got = process_vm_readv(target, &local, 1, &remote, 1, 0);
    if (got < 0) return errno;
    return got == (ssize_t)sizeof word && word == 4711 ? 0 : EIO;
}

static int run_reader(pid_t target)
{
    int status;
    pid_t reader = fork();
    if (reader < 0) return errno;
    if (reader == 0) _exit(read_from(target));
    while (waitpid(reader, &status, 0) < 0)
        if (errno != EINTR) return errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EIO; /* errno values fit an exit status */
}

static int try_cma(bool open_to_all)
{
    int hold[2], ready[2], result = EIO;
    char byte;
    if (pipe2(hold, O_CLOEXEC)) return errno;
    if (pipe2(ready, O_CLOEXEC)) {
        result = errno;
        close(hold[0]);
        close(hold[1]);
        return result;
    }
    pid_t target = fork();
    if (target == 0) {
        close(hold[1]);
        be_target(hold[0], ready[1], open_to_all);
    }
    if (target < 0) result = errno;
    close(ready[1]);
    close(hold[0]);
    if (target > 0 && read(ready[0], &byte, 1) == 1) result = run_reader(target);
    close(ready[0]);
    close(hold[1]);
    if (target > 0) waitpid(target, NULL, 0);
    return result;
}

static void print_refusal(int error)
{
    char scope[16] = "";
    int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, scope, sizeof scope - 1) : 0;
    if (fd >= 0) close(fd);
    scope[length > 0 ? length : 0] = 0;
    scope[strcspn(scope, "\n")] = 0;
    printf("refused (%s)", strerror(error));
    if (scope[0] && scope[0] != '0') printf("; kernel.yama.ptrace_scope is %s, 0 allows it", scope);
    else if (error == ENOSYS) printf("; the kernel lacks it");
    else if (error == EPERM) printf("; a container needs the capability SYS_PTRACE or a seccomp profile that allows it");
    printf("\n");
}

static void print_cma(bool wanted)
{
    printf("  cross-memory attach: ");
    int error = try_cma(false);
    if (!error) printf("allowed%s\n", wanted ? "" : ", but NCCLX_SHM_CMA is off");
    else if (error == EPERM && !try_cma(true)) printf("allowed when a rank opens itself to others (PR_SET_PTRACER)\n");
    else print_refusal(error);
}

/* ---- Shared segments ------------------------------------------------------------------------------------------ */

/* 0, or an errno; *step says what failed. */
static int try_segment(const char **step)
{
    int error = 0;
    void *start = MAP_FAILED;
    *step = "memfd_create";
    int fd = memfd_create("ncclx-info", MFD_CLOEXEC);
    if (fd < 0) return errno;
    *step = "fallocate";
    error = posix_fallocate(fd, 0, (off_t)SEGMENT_BYTES);
    if (!error) {
        *step = "mmap";
        start = mmap(NULL, SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (start == MAP_FAILED) error = errno;
    }
    if (start != MAP_FAILED) munmap(start, SEGMENT_BYTES);
    close(fd);
    return error;
}

static void print_segments(bool wanted)
{
    const char *step;
    int error = try_segment(&step);
    printf("  shared segments: ");
    if (error) printf("refused (%s: %s)\n", step, strerror(error));
    else printf("work%s\n", wanted ? "" : ", but NCCLX_SHM_DIRECT is off for users' memory");
}

/* ---- Libraries that are opened when they are there -------------------------------------------------------------- */

static void print_library(const char *purpose, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        void *library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
        if (!library) continue;
        printf("  %s: %s found\n", purpose, names[i]);
        dlclose(library);
        return;
    }
    printf("  %s: %s not found\n", purpose, names[0]);
}

void info_transports(const struct base_config *config)
{
    static const char *const sodium[] = {SODIUM_SONAME};
    static const char *const verbs[] = {"libibverbs.so.1"};
    static const char *const cuda[] = {"libcuda.so.1"};
    /* Slurm changes the number with each release. */
    static const char *const slurm[] = {"libslurm.so", "libslurm.so.43", "libslurm.so.42", "libslurm.so.41",
                                        "libslurm.so.40", "libslurm.so.39", "libslurm.so.38", "libslurm.so.37", "libslurm.so.36"};
    const char *transports = config->value[CONFIG_TRANSPORTS].text;
    printf("transports allowed: %s\n", *transports ? transports : "all");
    printf("shm, between ranks of this node:\n");
    print_segments(config->value[CONFIG_SHM_DIRECT].number);
    print_cma(config->value[CONFIG_SHM_CMA].number);
    printf("tcp, between nodes: sockets\n");
    printf("libraries:\n");
    print_library("sockets between hosts", sodium, sizeof sodium / sizeof sodium[0]);
    print_library("verbs", verbs, sizeof verbs / sizeof verbs[0]);
    print_library("CUDA", cuda, sizeof cuda / sizeof cuda[0]);
    print_library("Slurm", slurm, sizeof slurm / sizeof slurm[0]);
}
