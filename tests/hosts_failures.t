#!/bin/bash
# hosts_failures.t - what may go wrong between hosts, at the start and later: in bounded time one report says where and why, the status tells,
# and nothing is left on any host.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"
hosts 5

# A tree of three levels: h4 and h5 stand below h2.
five="-H h1:2,h2:2,h3:2,h4:2,h5:2 --tree-radix 2"
reports() { grep -c '^ncclxrun: ' <<<"$err"; }
# fails NAME STATUS PATTERN ARGUMENTS...: a job that does, with one report that matches
fails() {
    local name=$1 want=$2 pattern=$3; shift 3
    job "$name" "$want" $five "$@"
    like "$name: where and why is told" "$pattern" "$err"
    is "$name: once" 1 "$(reports)"
}

# ---- At the start -----------------------------------------------------------------------------------------------------------

unreachable() { local host; for host in h1 h2; do on $host ip route $1 unreachable 10.99.0.4; on $host ip -6 route $1 unreachable fd99::4; done; }
unreachable add
fails "a host without a route to it" 1 "on h4 .*No route to host" true
unreachable del
cut h4
fails "a host that does not answer" 1 "on h4 (did not connect within 8 s|.*No route to host)" --start-timeout 8 true
mend h4
rm $cluster/h4/authorized
fails "a host that does not let us in" 1 "on h4 .*Permission denied" true
cp $cluster/ssh/user.pub $cluster/h4/authorized

for host in h1 h2 h3 h5; do
    on $host sh -c 'printf "#!/bin/sh\nexec sleep 100\n" >/tmp/program; chmod +x /tmp/program; mkdir /tmp/folder'
    files $host >"$cluster/$host/own-files"
done
fails "a program that one host lacks" 127 "cannot run '/tmp/program' on h4: No such file" /tmp/program
fails "a folder that one host lacks" 2 "cannot enter the directory '/tmp/folder' on h4: No such file" --wdir /tmp/folder sleep 100

on h4 mount -t tmpfs -o size=16k none /dev/shm
job "a full /dev/shm does no harm" 0 $five "$mp/exchange" collect 1000
on h4 mount -t tmpfs -o size=16k none /tmp
fails "a full /tmp as well does" 1 "on h4 .*No space left on device" "$mp/exchange" hello
on h4 umount /tmp; on h4 umount /dev/shm

daemon=$top_builddir/launcher/ncclxd
[ ! -x "$top_builddir/launcher/.libs/ncclxd" ] || daemon=$top_builddir/launcher/.libs/ncclxd
version=$(ncclxrun --version | grep -o '[0-9.]*$')
sed "s/${version//./\\.}/${version//[0-9]/9}/g" "$daemon" >"$scratch/ncclxd"; chmod +x "$scratch/ncclxd"
on h4 mount --bind "$scratch/ncclxd" "$daemon"
fails "another version on one host" 1 "on h4 .*version ${version//[0-9]/9}, ncclxrun is $version" true
on h4 umount "$daemon"
on h4 mount --bind /dev/null "$daemon"
fails "an ncclxd that cannot run there" 1 "h4 cannot run .*ncclxd.*Permission denied" true
on h4 umount "$daemon"

# ---- While the job runs -----------------------------------------------------------------------------------------------------

# lives: a job of ten ranks that is there until somebody ends it
lives() {
    start --kill-grace 1 --silence-timeout 3 $five sh -c 'setsid sleep 1000 & echo ready; exec sleep 1000'
    waits 60 says out ready 10 || fail "the job starts" "$(cat "$scratch/err")"
}
daemons() { processes $1 -x ncclxd; }
guard() { local pid; for pid in $(daemons $1); do [ -z "$(pgrep -P $pid -x ncclxd)" ] || echo $pid; done; }
inner() { pgrep -P "$(guard $1)" -x ncclxd; }
# lost HOST NAME PATTERN [SECONDS]: the job that was broken ends, and says why
lost() {
    ends "$2: the job ends" 1 ${4:-10}
    like "$2: where and why is told" "$3" "$err"
    is "$2: once" 1 "$(reports)"
}

for host in h4 ${NCCLX_TEST_LONG:+h2}; do # at the end of the tree, and in its middle
    lives; kill -KILL $(inner $host)
    lost $host "the daemon of $host is killed" "ncclxd on $host .*(killed|died)"
    nothing_left_on_hosts "and nothing is left"
    lives; kill -STOP $(daemons $host)
    lost $host "the daemon of $host is stopped" "ncclxd on $host has been silent for 3 s"
    is "the other hosts are clean" "" "$(left_on_hosts | grep -v "^$host: ")"
    # shellcheck disable=SC2046 # it may have been swept away
    [ -z "$(daemons $host)" ] || kill -CONT $(daemons $host)
    nothing_left_on_hosts "and so is this one when it wakes"
    lives; cut $host
    lost $host "$host is cut off" "ncclxd on $host has been silent for 3 s"
    but_ssh() { left_on_hosts | grep -v ' sshd: '; } # which waits for its lost peer as long as the system's limits say
    waits 10 eval '[ -z "$(but_ssh)" ]'
    is "the job is gone everywhere" "" "$(but_ssh)"
    mend $host
    waits 10 eval '[ -z "$(left_on_hosts)" ]'
    clean_hosts
done
# Ranks whose fence fails because of it abort the job, and may not be blamed.
fences() {
    start --kill-grace 1 $five "$mp/exchange" wait 7
    waits 60 eval '[ "$(for host in "${names[@]}"; do processes $host -x exchange; done | wc -l)" = 10 ]' ||
        fail "the job starts" "$(cat "$scratch/err")"
    sleep 0.5
}
for host in h2 h4; do
    fences; kill -KILL $(inner $host)
    lost $host "the daemon of $host is killed while ranks wait for each other" "ncclxd on $host was killed by signal 9"
    nothing_left_on_hosts "and nothing is left"
    fences; kill -KILL $(daemons $host)
    lost $host "it is killed with its guard" "ncclxd on $host .*(killed|died)"
    nothing_left_on_hosts "and nothing is left"
done
fences; kill -KILL $(processes h4 -x exchange | tail -n 1)
ends "a rank is killed while ranks wait for each other" 137 10
like "it is named" "^ncclxrun: rank [67] on h4 .*SIGKILL" "$(grep ^ncclxrun <<<"$err")"
nothing_left_on_hosts "and nothing is left"
lives; kill -KILL $(guard h4)
lost h4 "the daemon's guard is killed" "ncclxd.* killed"
nothing_left_on_hosts "and nothing is left"
lives; unplug h3
lost h3 "a cable is pulled" "ncclxd on h3 has been silent for 3 s"
mend h3
waits 10 eval '[ -z "$(left_on_hosts)" ]'
clean_hosts
lives; kill -KILL $(processes h1 -x ncclxrun)
ends "the launcher is killed" 137 5
nothing_left_on_hosts "and nothing is left on any host"
lives; kill -KILL $(processes h1 -x ssh) $(processes h2 -x ssh)
sleep 0.5
is "shells that started daemons are not needed later" "" "$(cat "$scratch/err")"
kill -TERM $(processes h1 -x ncclxrun)
ends "the job ends when it is told to" 143 10
nothing_left_on_hosts "and nothing is left"

for when in before-init before inside after; do
    job "a rank killed at a fence ($when)" 137 $five "$mp/exchange" die $when 7
    like "is named with its host" "^ncclxrun: rank 7 on h4 .*SIGKILL" "$(grep ^ncclxrun <<<"$err")"
    is "alone" 1 "$(reports)"
done

kill $(processes h4 -x sshd)
waits 5 eval '[ -z "$(processes h4 -x sshd)" ]'
processes h4 >"$cluster/h4/own-processes"
fails "a host without an sshd" 1 "on h4 .*Connection refused" true

done_testing
