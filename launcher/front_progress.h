/* front_progress.h - tells the user how far a start is: progress.h with ncclxrun's clock, timer and hosts. */
#ifndef LAUNCHER_FRONT_PROGRESS_H
#define LAUNCHER_FRONT_PROGRESS_H

struct front;
struct front_progress;

/* Null when nothing is to be told, or memory is short: all others take that, too. */
struct front_progress *front_progress_open(struct front *front);
/* A host of the list is here: its daemon has spoken. */
void front_progress_host(struct front_progress *progress, int host);
/* So many ranks have been started, of how many. */
void front_progress_ranks(struct front_progress *progress, int started, int of);
/* Tells now, for somebody who asks why nothing happens. */
void front_progress_tell(struct front_progress *progress);
void front_progress_close(struct front_progress *progress);

#endif
