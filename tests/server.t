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

done_testing
