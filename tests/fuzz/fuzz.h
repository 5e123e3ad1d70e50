/* fuzz.h - what a fuzzer defines: its name, which is also the folder of its corpus, and the function that takes one input. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

extern const char fuzz_name[];
/* libFuzzer's name for it. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#endif
