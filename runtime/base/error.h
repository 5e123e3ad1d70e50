/* error.h - one detail sentence a thread. Whoever finds an error records it with base_error(); the layers above pass the
 * code up and may add where it happened; the API boundary hands it to the error handler. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

/* Records the sentence (what happened, to whom, what to do) and returns `code`, so that `return base_error(...)` reads. */
int base_error(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Puts context in front of the recorded sentence: "while splitting COMM_WORLD: ...". Returns `code`. */
int base_error_context(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *base_error_detail(void);
void base_error_clear(void);
/* Name and meaning of a code: "NCCLX_ERR_RANK: a rank outside the communicator". Never null. */
const char *base_error_string(int code);

#endif
