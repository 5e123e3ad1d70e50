/* message_gpus.h - the GPUs of a node as part of a message. Pure. */
#ifndef LAUNCHER_MESSAGE_GPUS_H
#define LAUNCHER_MESSAGE_GPUS_H

#include "launcher/frame.h"
#include "launcher/map.h"

#define MESSAGE_MAX_GPUS 4096

void message_put_gpus(struct frame_writer *writer, const struct map_gpu *gpus, int count);
/* Null and 0 when there are none; otherwise to be freed with base_free(AREA_LAUNCHER, ...). What is malformed fails the
 * reader. */
struct map_gpu *message_get_gpus(struct frame_reader *reader, int *count);

#endif
