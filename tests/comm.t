#!/bin/bash
# Communicators, requests, errors, threads, start and end: the public interface over ranks 1, 2, 3, 4, 5, 7, 8, 16.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
mp=$top_builddir/tests/mp
export TEST_TIMEOUT=120

for n in 1 2 3 4 5 7 8 16; do
    for program in comm requests errors; do
        runs "$program on $n" 0 ncclxrun -n $n "$mp/$program"
        is "$program on $n says nothing" "" "$out$err"
    done
done
for n in 1 2 5; do runs "four threads on each of $n" 0 ncclxrun -n $n "$mp/threads"; done
runs "an agent thread drives progress, too" 0 env NCCLX_PROGRESS=thread ncclxrun -n 3 "$mp/requests"

for n in 1 2 3; do
    name="one of $n ranks runs out of memory while communicators are made"
    if "$mp/no_memory" none 2>/dev/null; [ $? = 77 ]; then skip "$name" "sanitizers have a malloc of their own"
    else runs "$name" 0 env NCCLX_TIMEOUT=60 ncclxrun -n $n "$mp/no_memory"; fi
done

runs "start and end without a launcher" 0 "$mp/lifecycle"
for n in 1 2 7; do runs "start and end on $n" 0 ncclxrun -n $n "$mp/lifecycle"; done
runs "every test without a launcher: communicators" 0 "$mp/comm"
runs "every test without a launcher: errors" 0 "$mp/errors"

runs "an error is fatal by default" 1 ncclxrun -n 3 "$mp/lifecycle" fatal
like "it names rank, host, function, code and reason" \
    'ncclx: rank 2 on [^ ]+: ncclx_send: NCCLX_ERR_BUFFER: the buffer of 1 elements of int32 is a null pointer' "$err"
runs "an error is fatal without a launcher" 1 "$mp/lifecycle" fatal
like "and says so" 'ncclx: rank 0 on [^ ]+: ncclx_send: NCCLX_ERR_BUFFER' "$err"
runs "NCCLX_ERRORS=return" 0 env NCCLX_ERRORS=return ncclxrun -n 2 "$mp/lifecycle" return
runs "a second init is an error" 1 ncclxrun -n 2 "$mp/lifecycle" twice
like "and is called one" 'ncclx_init: NCCLX_ERR_INITIALIZED' "$err"
runs "ncclx_abort(7)" 7 ncclxrun -n 3 "$mp/lifecycle" abort
runs "ncclx_abort(0) is no success" 1 ncclxrun -n 3 "$mp/lifecycle" abort-0
runs "ncclx_abort(7) without a launcher" 7 "$mp/lifecycle" abort
runs "NCCLX_TIMEOUT ends a receive that nobody serves" 1 env NCCLX_TIMEOUT=1 ncclxrun -n 2 "$mp/lifecycle" timeout
like "and says what was waited for" 'NCCLX_ERR_TIMEOUT: .*(ncclx_recv|ncclx_coll_barrier)' "$err"

deadlines=(env NCCLX_TIMEOUT=0.2 NCCLX_ERRORS=return)
runs "NCCLX_TIMEOUT ends every call that waits" 42 "${deadlines[@]}" ncclxrun -n 2 "$mp/deadline"
runs "and those on windows reached by messages" 42 "${deadlines[@]}" NCCLX_SHM_CMA=0 NCCLX_SHM_DIRECT=0 \
    ncclxrun -n 2 "$mp/deadline" messages

# What ten communicators cost; and windows. The simulator says how many messages as many ranks need, and far more ranks.
for transports in shm,self mix tcp; do
    NCCLX_TRANSPORTS=$transports runs "ten communicators over $transports" 0 ncclxrun -n 7 "$mp/ten"
    like "cost some KiB, no connection and no word to PMIx" 'peers 6, bytes each [1-7][0-9]{3}, left' "$out"
done
model=$("$top_builddir/tests/sim/coll_scale" 7)
for call in comm_dup comm_split comm_create_group win_create; do
    [[ $model =~ $call,\ 7\ ranks:\ a\ chain\ of\ [0-9]+\ messages,\ ([0-9]+)\ messages ]] && most=${BASH_REMATCH[1]} || most=0
    [[ $out =~ $call:\ ([0-9]+)\ messages ]] && real=${BASH_REMATCH[1]} || real=-1
    if [ "$real" -gt 0 ] && [ "$real" -le "$most" ]; then pass "$call takes no more messages than in the simulator"
    else fail "$call takes no more messages than in the simulator" "$real, in the simulator $most" "$out"; fi
done
if command -v nm >/dev/null; then
    is "that test counts every call to PMIx but those of start and end, and of values" \
        "PMIx_Abort PMIx_Error_string PMIx_Finalize PMIx_Info_load PMIx_Init PMIx_Register_event_handler PMIx_Value_destruct PMIx_Value_xfer" \
        "$(nm -u "$mp/ten" | awk '$NF ~ /^PMIx_/ { print $NF }' | sort | paste -sd' ')"
else skip "that test counts every call to PMIx but those of start and end, and of values" "nm is missing"; fi

runs "a bad value in the environment ends the start" 1 env NCCLX_EAGER_LIMIT=lots "$mp/lifecycle" return
like "and is named" 'NCCLX_ERR_CONFIG: .*NCCLX_EAGER_LIMIT' "$err"
runs "a rank that cannot start ends the job" 1 ncclxrun -n 3 sh -c \
    '[ $PMIX_RANK != 1 ] || export NCCLX_SPIN=often; exec "$0" normal' "$mp/lifecycle"
like "and says why" 'ncclx: ncclx_init: NCCLX_ERR_CONFIG: .*NCCLX_SPIN' "$err"
runs "the profiling twins" 0 ncclxrun -n 2 "$mp/profile"
done_testing
