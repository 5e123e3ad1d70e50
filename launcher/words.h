/* words.h - a command line as a user writes it, and as a shell of another host takes it. Pure. */
#ifndef LAUNCHER_WORDS_H
#define LAUNCHER_WORDS_H

/* Splits text into words without a shell: blanks separate; '...', "..." and \ take them into a word, as in a shell, and
 * nothing else is special. The array ends with null and is to be freed with base_free(AREA_LAUNCHER, ...), words
 * included. NCCLX_ERR_ARG: a quote that does not end, or no word at all. */
int words_split(const char *text, char ***words);
/* One word for any shell, in quotes; to be freed with base_free(AREA_LAUNCHER, ...). Null when memory is short. */
char *words_quote(const char *word);

#endif
