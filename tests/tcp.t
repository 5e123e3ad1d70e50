#!/bin/bash
# tcp.t - connections by sockets, between ranks of one host, and a peer behind one that dies. mixed.t has what they are used for.
. "$(dirname "$0")/lib.sh"
mp=$top_builddir/tests/mp
TEST_TIMEOUT=120
export NCCLX_TRANSPORTS=tcp

runs "peers are connected" 0 env NCCLX_LOG=info ncclxrun -n 2 "$mp/p2p"
like "by sockets" 'tcp: .*connected to rank [01]' "$err"
for ranks in 3 5 8; do runs "collectives of $ranks ranks" 0 ncclxrun -n $ranks "$mp/coll"; done

# A peer that dies is named, by the launcher and by the rank that waits.
cat >"$scratch/wait.c" <<'END'
#include <ncclx.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int rank, word = 0, got;
    signal(SIGTERM, SIG_IGN); /* the launcher ends the job, too */
    ncclx_init(&argc, &argv);
    ncclx_comm_rank(NCCLX_COMM_WORLD, &rank);
    ncclx_comm_set_errhandler(NCCLX_COMM_WORLD, NCCLX_ERRORS_RETURN);
    ncclx_sendrecv(&rank, 1, &got, 1, NCCLX_INT32, 1 - rank, 0, 1 - rank, 0, NCCLX_COMM_WORLD, NULL);
    if (rank == 1) raise(SIGKILL);
    int code = ncclx_recv(&word, 1, NCCLX_INT32, 1, 1, NCCLX_COMM_WORLD, NULL);
    fprintf(stderr, "code %s: %s\n", ncclx_error_string(code), ncclx_error_detail());
    sleep(60);
    return 3;
}
END
runs "a program whose peer dies is built" 0 "$top_builddir/runtime/ncclxcc" -o "$scratch/wait" "$scratch/wait.c"
runs "its job ends as killed" 137 ncclxrun -n 2 --kill-grace 3 "$scratch/wait"
like "the launcher names the rank" 'rank 1 .*(killed|signal)' "$err"
like "so does the call that waits" 'code NCCLX_ERR_PROC_FAILED.*rank 1 is lost' "$err"

# A receiver that makes no call for longer than it may take to open a lane is waited for.
runs "a receiver that is stopped for 12 s" 0 env NCCLX_LOG=warn,pml:info ncclxrun -n 2 "$mp/absent" 12 receiving
like "lanes to it wait" 'rank 1 takes no lane, and may be busy: waiting' "$err"
like "and open" 'lane [0-9] to rank 1 is open' "$err"
done_testing
