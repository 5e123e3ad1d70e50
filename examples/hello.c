/* hello.c - every rank says who it is.
 *
 * Shows: start and end, ranks and the size of the job, the node's name.
 *
 *     ncclxcc hello.c -o hello        (or: cc hello.c -o hello $(pkg-config --cflags --libs ncclx))
 *     ncclxrun -n 4 ./hello
 *
 * No result is checked: by default an error is printed and ends the job.
 */
#include <ncclx.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    char host[NCCLX_MAX_HOST_NAME];
    int rank, size;

    ncclx_init(&argc, &argv);
    ncclx_comm_rank(NCCLX_COMM_WORLD, &rank);
    ncclx_comm_size(NCCLX_COMM_WORLD, &size);
    ncclx_host_name(host, sizeof host);
    printf("hello from rank %d of %d on %s\n", rank, size, host);
    ncclx_finalize();
    return 0;
}
