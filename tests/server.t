#!/bin/bash
# server.t - what ranks ask of their PMIx server, on one host and on four in a chain. All of these are this machine: the agent runs what it is
# told right here, the daemons and what they say to each other are real.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/launcher.sh"

# asks NAME STATUS ACTION: by ranks of one host, and of four
asks() {
    job "$1, one host" "$2" -n 4 "$mp/upcalls" "$3"
    job "$1, four hosts" "$2" --rsh-agent "$top_srcdir/tests/agent" -H a,b,c,d --tree-radix 1 --map-by node -n 8 "$mp/upcalls" "$3"
}

asks "connect and disconnect wait for all" 0 meet
asks "a name is waited for, and found" 0 names
asks "a key is waited for, but not for ever" 0 late
asks "an event reaches another rank" 0 event
asks "a signal that one rank asks for reaches another" 0 signal
asks "a fence has a time limit" 0 limit
like "and the user is told who has not come" "ranks on d have not come" "$err"
asks "a rank ends the job for another's sake" 5 abort
like "and says whose" "rank 7 on d .*code 5: enough \(asked for the end of rank 0\)" "$err"

# What is one kernel to them is one node's memory to ranks of several hosts; elsewhere they meet at the daemons, which is enough to begin and end.
four="--rsh-agent $top_srcdir/tests/agent -H a,b,c,d --tree-radix 2 --map-by node"
job "ranks of hosts under one kernel exchange messages" 0 $four -n 8 "$mp/life"
job "keys, nodes and memory of six ranks on four hosts" 0 $four -n 6 "$mp/keys"
far=$scratch/far
printf '#!/bin/sh\nshift\nexec unshare --pid --fork --mount-proc --kill-child sh -c "$*"\n' >"$far"
chmod +x "$far"
if unshare --pid --fork --mount-proc true 2>/dev/null; then
    job "ranks of hosts that see nothing of each other begin and end" 0 --rsh-agent "$far" -H a,b --map-by node -n 4 "$top_builddir/examples/hello"
    is "all of them" 4 "$(grep -c hello <<<"$out")"
else
    skip "ranks of hosts that see nothing of each other begin and end" "no namespaces of processes can be made here"
fi

done_testing
