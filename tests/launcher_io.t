#!/bin/bash
# launcher_io.t - what goes in comes out: input of any size to the right ranks, output complete and in whole lines.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/launcher.sh"

# io NAME STATUS SCRIPT: for redirections; the script's ncclxrun is marked
io() {
    local status
    new_mark
    TMPDIR=$mark timeout -k 5 60 bash -c "$3" >"$scratch/out" 2>"$scratch/err" </dev/null; status=$?
    out=$(head -c 100000 "$scratch/out" | tr -d '\0'); err=$(head -c 100000 "$scratch/err" | tr -d '\0')
    if [ $status = "$2" ]; then pass "$1"; else fail "$1" "status $status, expected $2: $3" "${err:0:2000}" "${out:0:2000}"; fi
    nothing_left "$1: nothing is left"
}
export scratch

# ---- Input ---------------------------------------------------------------------------------------------------------

head -c 50000000 /dev/urandom >"$scratch/big"
io "50 MB of a file arrive intact" 0 'ncclxrun -n 1 cat <"$scratch/big" | cmp - "$scratch/big"'
io "50 MB through a pipe arrive intact" 0 'cat "$scratch/big" | ncclxrun -n 2 cat | cmp - "$scratch/big"'
io "input for all ranks" 0 'echo x | ncclxrun -n 2 --stdin all cat'
is "reaches both, and ends" $'x\nx' "$out"
io "5 MB for all of three ranks" 0 'head -c 5000000 "$scratch/big" | ncclxrun -n 3 --stdin all sh -c "cksum" | sort -u'
is "is the same for each" "$(head -c 5000000 "$scratch/big" | cksum)" "$out"
io "input for many, which comes before the last is started" 0 'echo x | ncclxrun -n 300 --stdin all cat | grep -c x'
is "reaches each" 300 "$out"
io "input for one rank" 0 'echo x | ncclxrun -n 3 --stdin 2 sh -c "read a; echo \$PMIX_RANK\$a" | sort'
is "reaches that one only" $'0\n1\n2x' "$out"
io "input for rank 0 is the default" 0 'echo x | ncclxrun -n 2 sh -c "read a; echo \$PMIX_RANK\$a" | sort'
is "the others read an empty one" $'0x\n1' "$out"
io "input for nobody" 0 'echo x | ncclxrun -n 2 --stdin none cat'
is "reaches nobody" "" "$out"
io "a rank that reads a little of much" 0 'ncclxrun -n 1 head -c 10 <"$scratch/big" | wc -c'
is "gets that" 10 "$out"
io "a rank that reads nothing of much" 0 'cat "$scratch/big" | { ncclxrun -n 1 true; cat >/dev/null; }'
io "input that is closed" 0 'ncclxrun -n 1 sh -c "cat; echo end" <&-'
like "is empty" "end" "$out"
io "a loop around ncclxrun keeps its input when no rank reads" 0 'seq 1 5 | while read -r line; do ncclxrun -n 2 true; echo $line; done'
is "line by line" "1,2,3,4,5" "$(paste -sd, <<<"$out")"
io "a loop that says nobody reads" 0 'seq 1 5 | while read -r line; do ncclxrun --stdin none -n 1 cat; echo $line; done'
is "line by line" "1,2,3,4,5" "$(paste -sd, <<<"$out")"
io "slow input" 0 '(echo a; sleep 0.5; echo b) | ncclxrun -n 1 cat'
is "arrives" $'a\nb' "$out"

# ---- Output --------------------------------------------------------------------------------------------------------

io "bytes of any value come out intact" 0 'ncclxrun -n 1 head -c 3000000 "$scratch/big" | cmp -n 3000000 - "$scratch/big"'
io "standard error is another stream" 0 'ncclxrun -n 2 sh -c "echo out; echo err >&2"'
is "output" $'out\nout' "$out"
is "errors" $'err\nerr' "$err"
io "four ranks through a slow reader" 0 'ncclxrun -n 4 seq 1 200000 | { sleep 1; wc -c; }'
is "lose nothing" $((4 * $(seq 1 200000 | wc -c))) "$out"
io "tagged, too" 0 'ncclxrun -n 4 --tag-output seq 1 50000 | { sleep 1; cat; }'
is "each rank's lines are whole and in order" "50000 50000 50000 50000" "$(
    sed -n 's/^\[\([0-3]\)\]<stdout> \([0-9]*\)$/\1 \2/p' "$scratch/out" | awk '$2 == ++last[$1] { good[$1]++ } END { print good[0], good[1], good[2], good[3] }')"
io "a line without an end is ended" 0 'ncclxrun -n 3 --tag-output printf abc | sort'
is "and stays one rank's" $'[0]<stdout> abc\n[1]<stdout> abc\n[2]<stdout> abc' "$out"
io "without tags the bytes are the ranks'" 0 'ncclxrun -n 1 printf abc | od -c'
like "none is added" '^0000000 +a +b +c$' "$(head -1 <<<"$out")"
io "a tagged line of 1 MB" 0 'ncclxrun -n 2 --tag-output sh -c "head -c 1000000 /dev/zero | tr \"\\\\0\" x; echo" | awk "{ print (length(\$0) > 1000000), NF }" | sort | uniq -c | wc -l'
is "stays whole" 1 "$out"
io "both streams are tagged" 0 'ncclxrun -n 1 --tag-output sh -c "echo a; echo b >&2"'
like "output" '^\[0\]<stdout> a$' "$out"
like "errors" '^\[0\]<stderr> b$' "$err"
io "lines with their time" 0 'ncclxrun -n 1 --timestamp echo a'
like "carry it in front" '[0-9]+:[0-9]+:[0-9]+.*a$' "$out"
io "output into a folder" 0 'cd "$scratch" && ncclxrun -n 2 --output results sh -c "echo \$PMIX_RANK; echo e\$PMIX_RANK >&2"'
is "nothing is printed" "" "$out$err"
is "a file for each stream" "0 1 e0 e1" "$(cat "$scratch"/results/rank.{0,1}.out "$scratch"/results/rank.{0,1}.err | paste -sd' ')"
io "a folder that cannot be made" 2 'ncclxrun -n 2 --output /proc/none true'
like "is named" "/proc/none" "$err"
io "a reader that goes away ends the job" 0 'ncclxrun -n 2 yes | head -n 1'
is "after its line" y "$out"
io "output that cannot be written is an error" 1 'ncclxrun -n 1 echo x >/dev/full'
like "which is said" "space" "$err"
io "output at the very end is not lost" 0 'for i in $(seq 20); do ncclxrun -n 2 sh -c "head -c 100000 /dev/zero" | wc -c; done | sort -u'
is "20 times" 200000 "$out"
io "output of a failing rank is not lost" 0 'for i in $(seq 20); do ncclxrun -n 1 sh -c "head -c 100000 /dev/zero; exit 3" | wc -c; done | sort -u'
is "20 times" 100000 "$out"
io "closed outputs do no harm" 0 'ncclxrun -n 2 true >&- 2>&-'

done_testing
