#!/bin/bash
# bootstrap.t - keys, nodes and the shared memory of a job under our launcher, and jobs without one. slurm.t does the same under Slurm.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/launcher.sh"

for ranks in 2 3 8; do
    job "keys, nodes and memory of $ranks ranks" 0 -n $ranks "$mp/keys"
    is "of each" $ranks "$(sort -u <<<"$out" | grep -c "of $ranks on ")"
done

# Programs that use PMIx themselves.
for ranks in 1 4; do job "names of $ranks ranks are published, found and taken back" 0 -n $ranks "$mp/names"; done

for variable in PMIX_NAMESPACE=x PMIX_RANK=0 PMIX_SERVER_URI41='x.0;tcp4://127.0.0.1:9'; do
    runs "a server that is named only by ${variable%%=*} is an error" 98 env "$variable" "$mp/keys"
    like "not a job of one" "cannot be reached" "$out"
done
runs "a program alone is a job of one" 0 "$mp/life"
is "of rank 0" "rank 0 of 1" "$out"
runs "also with settings for PMIx" 0 env PMIX_MCA_gds=hash "$mp/life"

# Many jobs at the same time do not get into each other's way.
new_mark
for ((i = 0; i < 12; i++)); do
    { TMPDIR=$mark timeout 60 ncclxrun -n 3 "$mp/life" >"$scratch/side.$i" 2>&1 </dev/null; echo "status $?" >>"$scratch/side.$i"; } &
done
wait
is "twelve jobs side by side" "12 12 12 12" "$(cat "$scratch"/side.* | sort | uniq -c | awk '{ print $1 }' | paste -sd' ')"
nothing_left "they leave nothing"

if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
    new_mark
    out=$(TMPDIR=$mark timeout 60 unshare -m sh -c 'mount -t tmpfs -o size=16k none /dev/shm && exec ncclxrun -n 4 "$0"' "$mp/life" 2>&1 </dev/null); status=$?
    is "a /dev/shm that is nearly full does no harm" 0 $status
    [ $status = 0 ] || diag "$out"
    new_mark
    out=$(TMPDIR=$mark timeout 60 unshare -m sh -c 'mount -t tmpfs -o ro none /dev/shm && exec ncclxrun -n 4 "$0"' "$mp/life" 2>&1 </dev/null); status=$?
    is "nor does one that cannot be written" 0 $status
    [ $status = 0 ] || diag "$out"
else
    skip "a /dev/shm that is nearly full does no harm" "mounts need root"
    skip "nor does one that cannot be written" "mounts need root"
fi

done_testing
