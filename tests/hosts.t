#!/bin/bash
# hosts.t - that the hosts other tests use are what those tests take them for (tests/hosts-cluster), and that they go.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"
cluster_of=$top_srcdir/tests/hosts-cluster

hosts 3

connects() { timeout 3 on "$1" bash -c "exec 5<>/dev/tcp/$2/22 && read -r -t 2 <&5 && echo \$REPLY" 2>/dev/null; }
like "hosts reach each other by name" SSH "$(connects h1 h3)"
like "by address" SSH "$(connects h2 10.99.0.1)"
like "of either version" SSH "$(connects h3 fd99::2)"
is "ssh works without a question from any to any" "h1 h2 h3" "$(for i in 1 2 3; do on h$((i % 3 + 1)) ssh h$i uname -n; done | paste -sd' ')"
is "an address that all have leads nowhere" "h2" "$(on h2 ssh 172.17.0.1 uname -n)"
cut h3
is "a host that is cut off is silent" "" "$(connects h1 h3)"
mend h3
like "until that is mended" SSH "$(connects h1 h3)"
nothing_left_on_hosts "at first there is nothing on any host"
on h2 sh -c 'sleep 100 & echo >/tmp/file; echo >/dev/shm/memory'
is "what a job leaves is found" 3 "$(left_on_hosts | grep -c '^h2: \(process .* sleep 100\|file tmp/file\|file dev/shm/memory\)')"
is "where it is" 3 "$(left_on_hosts | wc -l)"
clean_hosts
nothing_left_on_hosts "and can be taken away"
is "files of the script are seen on every host" 3 "$(for host in "${names[@]}"; do on $host ls -d "$scratch"; done | wc -l)"

# ---- Clusters, of which this one may hold others ---------------------------------------------------------------------------

interfaces=$(ip -br link | wc -l) mounts=$(wc -l </proc/mounts)
runs "a command runs on the first host, and its status is the cluster's" 7 "$cluster_of" 3 sh -c 'uname -n; exit 7'
is "which has its name" h1 "$out"
is "its input is the caller's" words "$(echo words | "$cluster_of" --agent -4 1 cat)"
runs "there is another shell than ssh" 3 "$cluster_of" --agent 2 bash -c '"$HOSTS_AGENT" h2 "uname -n; exit 3"'
is "which is that of the other host" h2 "$out"
runs "with addresses of the sixth version only" 0 "$cluster_of" -6 2 bash -c 'for host in h1 h2; do ssh $host ip -4 -br address show dev net0; done'
is "there are no others" "" "$out"
for victim in script child; do # whoever is killed, the rest goes
    exec 3< <(TEST_MARK=$scratch/$victim exec "$cluster_of" 2 sh -c 'echo up; exec sleep 1000' 2>/dev/null)
    read -r <&3
    if [ $victim = child ]; then kill -9 "$(pgrep -P $!)"; else kill -9 $!; fi
    wait $! 2>/dev/null
    for ((i = 0; i < 50; i++)); do
        left=$(grep -lzsxF "TEST_MARK=$scratch/$victim" /proc/[0-9]*/environ)
        [ -z "$left" ] && break
        sleep 0.1
    done
    is "nothing is left of a cluster whose $victim is killed" "" "$left"
done
is "and nothing of all these in the network of who calls" "$interfaces" "$(ip -br link | wc -l)"
is "or in its file systems" "$mounts" "$(wc -l </proc/mounts)"

done_testing
