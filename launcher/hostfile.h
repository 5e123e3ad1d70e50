/* hostfile.h - a file that lists hosts, one a line: NAME[:SLOTS] [slots=N] [gpus=N] [topology=...], as ncclxrun(1)
 * says.
 */
#ifndef LAUNCHER_HOSTFILE_H
#define LAUNCHER_HOSTFILE_H

#include "launcher/hosts.h"

#define HOSTFILE_MAX_BYTES ((size_t)16 << 20)

/* Appends the hosts of a file's text. NCCLX_ERR_ARG names the file and the line. Pure. */
int hostfile_parse(struct hosts *hosts, const char *name, const char *text, size_t bytes);
/* Reads a file, a pipe, or standard input ("-"). NCCLX_ERR_ARG says what is wrong with it. */
int hostfile_read(struct hosts *hosts, const char *path);

#endif
