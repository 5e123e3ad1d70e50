#!/bin/bash
# The README's first program compiles and runs by the lines printed below it.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
readme=$top_srcdir/README.md
block() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$readme" | sed '/^```/d'; }
ln -s "$top_builddir" "$scratch/build"
cd "$scratch" || exit 1
block c >count.c
lines=$(wc -l <count.c)
if [ "$lines" -ge 8 ] && [ "$lines" -le 12 ]; then pass "it has ten lines"; else fail "it has ten lines" "$lines"; fi
block sh >commands
is "two lines compile and run it" 2 "$(wc -l <commands)"
runs "they work" 0 bash -e commands
is "with one line from each rank" "4 ranks are here
4 ranks are here
4 ranks are here
4 ranks are here" "$out"
runs "alone it is a job of one" 0 ./count
is "which says so" "1 ranks are here" "$out"
lacking=$(grep -oE '\b(tests|man|examples|runtime|launcher)/[a-z_./-]+[a-z0-9]' "$readme" | sort -u | while read -r path; do
    [ -e "$top_srcdir/$path" ] || [ -e "$top_builddir/$path" ] || echo "$path"; done)
is "what it points to exists" "" "$lacking"
done_testing
