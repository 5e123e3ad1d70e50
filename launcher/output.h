/* output.h - what ranks write, on its way to the user: as it comes, or in whole lines with rank and time, or to a file
 * each. */
#ifndef LAUNCHER_OUTPUT_H
#define LAUNCHER_OUTPUT_H

#include "launcher/options.h"

#include <event2/event.h>

struct output;

struct output_events {
    /* So much waits to be written that no more should be taken in; later: go on. */
    void (*full)(void *arg, bool full);
    /* Nobody reads this descriptor any more, or it cannot be written. reason is null for the former. */
    void (*lost)(void *arg, int descriptor, const char *reason);
    /* Everything taken in is written. */
    void (*empty)(void *arg);
};

int output_open(struct event_base *base, const struct options *options, const struct output_events *events, void *arg,
                struct output **output);
void output_close(struct output *output);
/* The ranks of a job, by their numbers. `label` stands before the rank in prefixes and names of files. Makes the files
 * of
 * --output. */
int output_add(struct output *output, int first, int count, const char *label);
/* All that they wrote has been taken in. */
void output_remove(struct output *output, int first);
/* descriptor is 1 or 2; no bytes: the end of that rank's stream. */
void output_take(struct output *output, int number, int descriptor, const void *data, size_t bytes);
/* Ends lines that were never finished: the ranks are gone. */
void output_finish(struct output *output);
/* Gives up what is not written yet and all that comes: the user does not want to wait. */
void output_discard(struct output *output);
bool output_is_empty(const struct output *output);

#endif
