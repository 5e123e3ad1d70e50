#!/bin/bash
# heat.t - the heat equation: the same bits on any number of ranks and by any way between them, heat that balances, pictures.
. "$(dirname "$0")/lib.sh"
heat=$top_builddir/examples/heat
TEST_TIMEOUT=120
cd "$scratch" || exit 1

field() { awk -v name="$1" '$1 == name { print $2 }' <<<"$out"; } # field NAME: its value in the output
at_most() { # at_most NAME LIMIT VALUE
    if awk -v value="$3" -v limit="$2" 'BEGIN { exit !(value != "" && value + 0 <= limit + 0) }'; then pass "$1"
    else fail "$1" "$3 is more than $2"; fi
}
same_as_alone() { # same_as_alone NAME: the last run, and its picture
    is "$1: the same bits as alone" "$alone" "$(field fingerprint)"
    if cmp -s alone.ppm it.ppm; then pass "$1: the same picture"; else fail "$1: the same picture"; fi
}

plate=(--size 90 61 --steps 400)
runs "alone" 0 "$heat" "${plate[@]}" --out alone.ppm
alone=$(field fingerprint)
like "alone: a fingerprint" '^[0-9a-f]{16}$' "$alone"
is "the picture has a header and three bytes a cell" $((3 * 90 * 61 + 13)) "$(stat -c %s alone.ppm)"
if LC_ALL=C grep -aq $'\xff\xf6\xc4' alone.ppm; then pass "the heater is light"; else fail "the heater is light"; fi
for ranks in 1 2 3 4 7; do
    runs "$ranks ranks" 0 ncclxrun -n $ranks "$heat" "${plate[@]}" --out it.ppm
    is "$ranks ranks: the job's size" $ranks "$(field ranks)"
    is "$ranks ranks: the plate" "90" "$(field cells)"
    at_most "$ranks ranks: the heat balances" 1e-12 "$(field imbalance)"
    same_as_alone "$ranks ranks"
done
runs "by kernel copies" 0 env NCCLX_SHM_DIRECT=0 ncclxrun -n 3 "$heat" "${plate[@]}" --out it.ppm
same_as_alone "by kernel copies"
runs "by messages" 0 env NCCLX_SHM_DIRECT=0 NCCLX_SHM_CMA=0 ncclxrun -n 3 "$heat" "${plate[@]}" --out it.ppm
same_as_alone "by messages"
runs "with checked collectives" 0 env NCCLX_CHECK=1 ncclxrun -n 3 "$heat" "${plate[@]}" --out it.ppm
same_as_alone "with checked collectives"

# Until nothing changes: all stop at the same step.
steady=(--size 30 24 --steps 100000 --until 1e-12 --out it.ppm)
runs "until it is steady, alone" 0 "$heat" "${steady[@]}"
steps=$(field steps) fingerprint=$(field fingerprint)
at_most "until it is steady: before the last step allowed" 99999 "${steps%,}"
runs "until it is steady, 4 ranks" 0 ncclxrun -n 4 "$heat" "${steady[@]}"
is "until it is steady: the same step and bits" "$steps $fingerprint" "$(field steps) $(field fingerprint)"

runs "one row a rank" 0 ncclxrun -n 7 "$heat" --size 40 7 --steps 60 --out it.ppm
rows=$(field fingerprint)
runs "one row a rank: alone" 0 "$heat" --size 40 7 --steps 60 --out it.ppm
is "one row a rank: the same bits" "$(field fingerprint)" "$rows"
runs "one cell, no step" 0 "$heat" --size 1 1 --steps 0 --out it.ppm

# The library is optional; what its first lines say works without it, and gives the same picture.
(cd "$top_srcdir/examples" && "$top_builddir/runtime/ncclxcc" -O3 -ffp-contract=off heat.c heat_picture.c heat_plate.c \
    heat_strip.c -lm -Wall -Wextra -Werror -o "$scratch/plain") >compiled 2>&1
is "ncclxcc compiles it, without libpng" 0 $? || diag "$(cat compiled)"
rm -f it.ppm
runs "without libpng" 0 ncclxrun -n 2 ./plain "${plate[@]}" --out it.png
same_as_alone "without libpng"
like "without libpng, and it says so" "built without libpng" "$err"
like "without libpng, and where the picture is" "picture +it.ppm" "$out"
runs "a PNG picture where there is libpng" 0 ncclxrun -n 2 "$heat" "${plate[@]}" --out it.png
if [[ $out == *it.png* ]]; then
    is "a PNG picture, of this size" "89504e470d0a1a0a 0000005a0000003d" \
        "$(head -c 8 it.png | od -An -tx1 | tr -d ' \n') $(tail -c +17 it.png | head -c 8 | od -An -tx1 | tr -d ' \n')"
else
    skip "a PNG picture, of this size" "built without libpng"
fi

runs "--help" 0 ncclxrun -n 2 "$heat" --help
like "--help names the options" "usage: heat .*--size NX NY.*--steps N.*--out FILE" "$out"
for wrong in --frob "--size 10" "--size 0 10" "--size 10 -3" "--size 10 99999999999999999999" "--steps many" "--until -1" \
    "--until nan" "--out" "--out picture.gif" "--out .png"; do
    # shellcheck disable=SC2086 # words
    runs "wrong use: $wrong" 2 "$heat" $wrong
done
runs "more ranks than rows" 2 ncclxrun -n 3 "$heat" --size 10 2
like "more ranks than rows, and it says so" "a row for each rank" "$err"
runs "no such folder" 1 ncclxrun -n 2 "$heat" --size 10 10 --steps 1 --out nowhere/it.ppm
like "no such folder, and it is named" "nowhere/it.ppm: No such file" "$err"
done_testing
