/* tcp_pipe.c - pages that go into a socket through a pipe: all of them, and no signal when the peer is gone. */
#include "pml/tcp/pipe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
/* after the headers it needs */
#include <cmocka.h>

static volatile sig_atomic_t signals;

static void count(int signal)
{
    (void)signal;
    signals++;
}

static void pair(int end[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_return_code(bind(listener, (struct sockaddr *)&address, size), errno);
    assert_return_code(listen(listener, 1), errno);
    assert_return_code(getsockname(listener, (struct sockaddr *)&address, &size), errno);
    end[0] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    (void)!connect(end[0], (struct sockaddr *)&address, size);
    end[1] = accept(listener, NULL, NULL);
    assert_return_code(end[1], errno);
    close(listener);
}

/* It has read all there was: the first packet of a splice is answered by a reset, and the next ones find that the peer is gone. */
static void no_signal_when_the_peer_is_gone(void **state)
{
    (void)state;
    struct tcp_pipes pipes;
    struct sigaction counts = {.sa_handler = count}, before;
    char *data = aligned_alloc(4096, TCP_PIPE_MOST);
    int end[2];
    unsigned partial = 0;
    assert_non_null(data);
    memset(data, 1, TCP_PIPE_MOST);
    sigaction(SIGPIPE, &counts, &before);
    tcp_pipes_init(&pipes);
    for (int round = 0; round < 20; round++) {
        pair(end);
        close(end[1]);
        struct tcp_pipe *pipe = tcp_pipe_take(&pipes);
        assert_non_null(pipe);
        ssize_t moved;
        do {
            if (!pipe->held) assert_true(tcp_pipe_fill(&pipes, pipe, NULL, 0, data, TCP_PIPE_MOST));
            size_t held = pipe->held;
            moved = tcp_pipe_drain(pipe, end[0]);
            partial += moved > 0 && (size_t)moved < held;
        } while (moved > 0);
        assert_true(errno == EPIPE || errno == ECONNRESET);
        tcp_pipe_give(pipe);
        close(end[0]);
    }
    tcp_pipes_release(&pipes);
    sigaction(SIGPIPE, &before, NULL);
    free(data);
    assert_true(partial > 0);
    assert_int_equal(signals, 0);
}

/* One that was pending, as its owner blocks it, is still pending. */
static void a_signal_of_others_stays(void **state)
{
    (void)state;
    struct tcp_pipes pipes;
    char data[64] = "";
    int end[2];
    sigset_t broken, before, pending;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken, &before);
    pair(end);
    struct linger at_once = {.l_onoff = 1};
    setsockopt(end[1], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(end[1]);
    (void)!recv(end[0], data, 1, MSG_DONTWAIT);
    tcp_pipes_init(&pipes);
    for (int others = 1; others >= 0; others--) {
        struct tcp_pipe *pipe = tcp_pipe_take(&pipes);
        assert_true(tcp_pipe_fill(&pipes, pipe, data, sizeof data, data, sizeof data));
        if (others) raise(SIGPIPE);
        assert_int_equal(tcp_pipe_drain(pipe, end[0]), -1);
        assert_int_equal(errno, EPIPE);
        sigpending(&pending);
        assert_int_equal(sigismember(&pending, SIGPIPE), others);
        if (others) assert_int_equal(sigwaitinfo(&broken, NULL), SIGPIPE);
        tcp_pipe_give(pipe);
    }
    close(end[0]);
    tcp_pipes_release(&pipes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void all_of_it_arrives(void **state)
{
    (void)state;
    struct tcp_pipes pipes;
    size_t bytes = TCP_PIPE_MOST, got = 0;
    char *data = aligned_alloc(4096, bytes), *copy = malloc(bytes + 16);
    int end[2];
    assert_true(data && copy);
    for (size_t i = 0; i < bytes; i++) data[i] = (char)(i * 31 >> 5);
    pair(end);
    tcp_pipes_init(&pipes);
    struct tcp_pipe *pipe = tcp_pipe_take(&pipes);
    assert_true(tcp_pipe_fill(&pipes, pipe, "sixteen of head.", 16, data, bytes));
    size_t held = pipe->held;
    assert_true(held > 16 && held <= bytes + 16);
    while (got < held) {
        if (pipe->held) (void)!tcp_pipe_drain(pipe, end[0]);
        ssize_t read_now = recv(end[1], copy + got, held - got, MSG_DONTWAIT);
        if (read_now > 0) got += (size_t)read_now;
        else assert_true(read_now < 0 && errno == EAGAIN);
    }
    assert_memory_equal(copy, "sixteen of head.", 16);
    assert_memory_equal(copy + 16, data, held - 16);
    tcp_pipe_give(pipe);
    tcp_pipes_release(&pipes);
    close(end[0]);
    close(end[1]);
    free(data);
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_it_arrives),
        cmocka_unit_test(no_signal_when_the_peer_is_gone),
        cmocka_unit_test(a_signal_of_others_stays),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
