/* input.h - standard input on its way to ranks, when it cannot simply be handed to one of them. Read only when every
 * target has taken what came before; a terminal only while the launcher is in its foreground. */
#ifndef LAUNCHER_INPUT_H
#define LAUNCHER_INPUT_H

#include <event2/event.h>
#include <stddef.h>

struct input;

/* data is called with no bytes at the end of input. */
int input_open(struct event_base *base, void (*data)(void *arg, const void *bytes, size_t count), void *arg,
               struct input **input);
void input_close(struct input *input);
/* The targets want more. */
void input_want(struct input *input);

#endif
