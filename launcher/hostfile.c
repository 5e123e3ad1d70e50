/* hostfile.c - see hostfile.h. */
#include "config.h"

#include "launcher/hostfile.h"

#include "runtime/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_BYTES 4096
#define FIRST_READ ((size_t)64 << 10)

/* What stands beside a name. */
struct words {
    const char *where;
    int slots, gpus;
    char topology[LINE_BYTES];
    char item[LINE_BYTES];
};

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

static const char *skip_blanks(const char *at)
{
    while (is_blank(*at)) at++;
    return at;
}

static int bad_word(const struct words *words, const char *word, size_t length, const char *why)
{
    return base_error(NCCLX_ERR_ARG, "%s: '%.*s' %s", words->where, (int)(length < 100 ? length : 100), word, why);
}

/* A number from low to high, up to a blank or the end. */
static int read_number(const struct words *words, const char *word, size_t name, int low, int high, int *number)
{
    const char *at = word + name;
    size_t length = strcspn(word, " \t");
    bool negative = *at == '-';
    if (negative) at++;
    if (!at[0] || is_blank(*at)) return bad_word(words, word, length, "has no number");
    long value = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        if (value <= high) value = value * 10 + (*at - '0');
    if (*at && !is_blank(*at)) return bad_word(words, word, length, "is not a number");
    if (negative) return bad_word(words, word, length, "is negative");
    if (value < low) return bad_word(words, word, length, "is too small");
    if (value > high) return bad_word(words, word, length, "is too large");
    *number = (int)value;
    return NCCLX_SUCCESS;
}

/* One of slots=N, gpus=N and topology=..., which takes the rest of the line. Moves behind it. */
static int read_word(struct words *words, const char **line)
{
    const char *word = *line;
    size_t length = strcspn(word, " \t");
    int code;
    if (!strncmp(word, "slots=", 6)) {
        if (words->slots) return bad_word(words, word, length, "is given twice");
        code = read_number(words, word, 6, 1, HOSTS_MAX_SLOTS, &words->slots);
    } else if (!strncmp(word, "gpus=", 5)) {
        if (words->gpus >= 0) return bad_word(words, word, length, "is given twice");
        code = read_number(words, word, 5, 0, HOSTS_MAX_GPUS, &words->gpus);
    } else if (!strncmp(word, "topology=", 9)) {
        length = strlen(word);
        memcpy(words->topology, word + 9, length - 8);
        code = length > 9 ? NCCLX_SUCCESS : bad_word(words, word, length, "has no description");
    } else {
        return bad_word(words, word, length, "is not one of slots=N, gpus=N and topology=DESCRIPTION");
    }
    *line = word + length;
    return code;
}

/* Blanks around "=" are taken out, so that "slots = 4" will do. */
static void join_equals(char *line)
{
    for (char *sign = strchr(line, '='); sign; sign = strchr(sign + 1, '=')) {
        char *from = sign, *to = sign + 1;
        while (from > line && is_blank(from[-1])) from--;
        while (is_blank(*to)) to++;
        *from = '=';
        memmove(from + 1, to, strlen(to) + 1);
        sign = from;
        if (!strncmp(from - (from - line < 8 ? from - line : 8), "topology", 8)) return;
    }
}

/* One line without its comment, its end and blanks at its ends; at least one byte. */
static int parse_line(struct hosts *hosts, const char *where, char *line)
{
    struct words words = {.where = where, .gpus = -1};
    size_t length = strcspn(line, " \t");
    memcpy(words.item, line, length);
    words.item[length] = 0;
    join_equals(line + length);
    const char *at = skip_blanks(line + length);
    while (*at) {
        int code = read_word(&words, &at);
        if (code) return code;
        at = skip_blanks(at);
    }
    bool list = strchr(words.item, ',') && !strchr(words.item, '[');
    if (list) return bad_word(&words, words.item, length, "is a list; write one host a line");
    if (words.item[0] == '^' && (words.slots || words.gpus >= 0 || words.topology[0]))
        return bad_word(&words, words.item, length, "excludes a host; nothing may stand beside it");
    return hosts_add(hosts, where, words.item, length, words.slots, words.gpus,
                     words.topology[0] ? words.topology : NULL);
}

/* Copies a line without comment, carriage return and blanks at its ends. */
static int clean_line(const char *where, const char *text, size_t length, char *line)
{
    if (length && text[length - 1] == '\r') length--;
    for (size_t i = 0; i < length; i++) /* a comment begins at a word's beginning */
        if (text[i] == '#' && (i == 0 || is_blank(text[i - 1]))) length = i;
    if (length >= LINE_BYTES)
        return base_error(NCCLX_ERR_ARG, "%s: the line is longer than %d bytes", where, LINE_BYTES - 1);
    for (size_t i = 0; i < length; i++)
        if ((text[i] > 0 && text[i] < ' ' && text[i] != '\t') || text[i] == 0 || text[i] == 0x7f || text[i] < 0)
            return base_error(NCCLX_ERR_ARG, "%s: byte 0x%02x does not belong into a list of hosts", where,
                              (unsigned char)text[i]);
    size_t start = 0;
    while (start < length && is_blank(text[start])) start++;
    while (length > start && is_blank(text[length - 1])) length--;
    memcpy(line, text + start, length - start);
    line[length - start] = 0;
    return NCCLX_SUCCESS;
}

int hostfile_parse(struct hosts *hosts, const char *name, const char *text, size_t bytes)
{
    char line[LINE_BYTES], where[256];
    const char *end = text + bytes;
    int code;
    if (bytes >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) text += 3; /* some editors begin UTF-8 with it */
    for (int number = 1; text < end; number++) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        if (!stop) stop = end;
        snprintf(where, sizeof where, "%.200s:%d", name, number);
        if ((code = clean_line(where, text, (size_t)(stop - text), line))) return code;
        if (line[0] && (code = parse_line(hosts, where, line))) return code;
        text = stop + 1;
    }
    return NCCLX_SUCCESS;
}

static int bad_file(const char *name, const char *why)
{
    return base_error(NCCLX_ERR_ARG, "--hostfile: %.300s: %s", name, why);
}

/* All that can be read, in a buffer to be freed. */
static int read_all(int fd, const char *name, char **text, size_t *bytes)
{
    size_t room = FIRST_READ;
    *bytes = 0;
    *text = base_alloc(AREA_LAUNCHER, room);
    while (*text) {
        ssize_t count = read(fd, *text + *bytes, room - *bytes);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return bad_file(name, strerror(errno));
        if (count == 0) return NCCLX_SUCCESS;
        *bytes += (size_t)count;
        if (*bytes > HOSTFILE_MAX_BYTES) return bad_file(name, "it is larger than 16 MiB, so it is no list of hosts");
        if (*bytes < room) continue;
        char *grown = base_realloc(AREA_LAUNCHER, *text, 2 * room);
        if (!grown) break;
        *text = grown;
        room *= 2;
    }
    return base_error(NCCLX_ERR_NO_MEM, "memory is short for the hosts in %.300s", name);
}

int hostfile_read(struct hosts *hosts, const char *path)
{
    bool input = !strcmp(path, "-");
    const char *name = input ? "standard input" : path;
    struct stat status;
    char *text = NULL;
    size_t bytes;
    int fd = input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return bad_file(name, strerror(errno));
    int code = NCCLX_SUCCESS;
    if (!fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_size > (off_t)HOSTFILE_MAX_BYTES)
        code = bad_file(name, "it is larger than 16 MiB, so it is no list of hosts");
    if (!code) code = read_all(fd, name, &text, &bytes);
    if (!code) code = hostfile_parse(hosts, name, text, bytes);
    base_free(AREA_LAUNCHER, text);
    if (!input) close(fd);
    return code;
}
