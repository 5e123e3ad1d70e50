/* copy.c - copies past the caches. */
#include "runtime/base/copy.h"

#include <stdint.h>

#if defined(__SSE2__)
#include <emmintrin.h>

#define LINE 64

void base_copy_streaming(void *to, const void *from, size_t bytes)
{
    char *out = to;
    const char *in = from;
    size_t head = (size_t)(-(uintptr_t)out % LINE);
    if (bytes < 2 * LINE) head = bytes;
    memcpy(out, in, head);
    size_t lines = (bytes - head) / LINE;
    out += head;
    in += head;
    for (size_t i = 0; i < lines; i++, out += LINE, in += LINE) {
        __m128i a = _mm_loadu_si128((const __m128i *)(const void *)in);
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(in + 16));
        __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(in + 32));
        __m128i d = _mm_loadu_si128((const __m128i *)(const void *)(in + 48));
        _mm_stream_si128((__m128i *)(void *)out, a);
        _mm_stream_si128((__m128i *)(void *)(out + 16), b);
        _mm_stream_si128((__m128i *)(void *)(out + 32), c);
        _mm_stream_si128((__m128i *)(void *)(out + 48), d);
    }
    _mm_sfence(); /* before whatever tells others that it is there */
    memcpy(out, in, bytes - head - lines * LINE);
}

#else

void base_copy_streaming(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

#endif
