/* ncclxd_describe.c - `ncclxd --describe [DESCRIPTION]`: writes what a node is made of to standard output, as messages
 * for ncclxrun, which itself loads no hwloc. */
#include "config.h"

#include "launcher/daemon.h"
#include "launcher/gpus.h"
#include "runtime/base/base.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DESCRIPTION_BYTES 4096

/* Hands the description to hwloc: a file of XML, a file whose first line is a synthetic description, or that itself. */
static void set_description(const char *description)
{
    char text[DESCRIPTION_BYTES];
    unsetenv("HWLOC_XMLFILE");
    unsetenv("HWLOC_SYNTHETIC");
    unsetenv("HWLOC_FSROOT");
    int fd = open(description, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    text[got > 0 ? got : 0] = 0;
    text[strcspn(text, "\r\n")] = 0;
    if (text[0] == '<')
        setenv("HWLOC_XMLFILE", description, 1);
    else
        setenv("HWLOC_SYNTHETIC", got > 0 ? text : description, 1);
}

static int write_frame(struct frame_writer *writer)
{
    size_t done = 0;
    int code = frame_finish(writer);
    while (!code && done < writer->used) {
        ssize_t wrote = write(STDOUT_FILENO, writer->data + done, writer->used - done);
        if (wrote <= 0)
            code = base_error(NCCLX_ERR_LIMIT, "the description cannot be written");
        else
            done += (size_t)wrote;
    }
    frame_release(writer);
    return code;
}

static int write_description(const struct cpus *cpus)
{
    struct frame_writer writer;
    struct message_node node = {.cpus = cpus->table, .cpu_count = cpus->count};
    node.gpus = gpus_discover(cpus->node, &node.gpu_count);
    message_write_node(&writer, &node);
    base_free(AREA_LAUNCHER, node.gpus);
    return write_frame(&writer);
}

static int describe(const char *description)
{
    static struct cpus cpus;
    int code;
    if (description) set_description(description);
    if ((code = cpus_discover(&cpus)))
        return description ? base_error(NCCLX_ERR_ARG,
                                        "'%.300s' is neither a file that describes a machine nor a "
                                        "description such as 'package:2 core:4 pu:2'",
                                        description)
                           : code;
    if (description && topo_node_is_this(cpus.node)) /* hwloc takes this machine when it cannot read the file */
        return base_error(NCCLX_ERR_ARG, "'%.300s' does not describe a machine, as lstopo --of xml writes it",
                          description);
    return write_description(&cpus);
}

int daemon_describe(const char *description)
{
    struct frame_writer writer;
    if (!describe(description)) return 0;
    frame_begin(&writer, MESSAGE_REFUSED);
    frame_put_u32(&writer, 2);
    frame_put_text(&writer, base_error_detail());
    write_frame(&writer);
    return 2;
}
