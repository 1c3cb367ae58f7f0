# An elector and its candidates as processes on a real cluster, which KUBECONFIG names, and what happens to them. Nothing is
# made up: the lines are what the elector logs and what the candidates print with `--events`.
# `cargo xtask demo --real` runs it: sh real.sh ELECTOR FOLDER
set -eu
elector=$1 folder=$2 began=$(date +%s%N)
# Short, so that the crash does not bore: 6 s instead of 15 s.
duration=6
# The lines of the events that were awaited.
seen=0
processes=
# shellcheck disable=SC2086 # numbers
trap 'kill $processes 2>"$folder/kill" || true; wait' EXIT

say() { awk -v began="$began" -v now="$(date +%s%N)" -v text="$*" 'BEGIN { printf "%6.1fs  %s\n", (now - began) / 1e9, text }'; }
add() { echo "         $*"; }
fail() { echo "error: $*" >&2; exit 1; }
field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }

# Starts a candidate for the lease default/demo that leads by sleeping.
candidate() {
    "$elector" candidate --events --kubeconfig="$KUBECONFIG" --namespace=default --lease=demo --name="$1" \
        --binary-version="$2" --emulation-version="$2" --lease-duration=${duration}s --renew-deadline=4s --retry-period=1s \
        -- sleep infinity >>"$folder/events" 2>"$folder/log-$1" &
    processes="$processes $!"
    eval "id_$1=$!"
}

# Waits for an event of one of these candidates (a pattern), and leaves it in `event`.
await() {
    deadline=$(($(date +%s) + 30))
    until event=$(grep --line-number "\"event\":\"$1\"" "$folder/events" | awk -F: -v seen=$seen '$1 > seen' |
        grep --max-count=1 "\"name\":\"\($2\)\""); do
        [ "$(date +%s)" -lt $deadline ] || fail "it did not happen within 30 s: $1"
        sleep 0.05
    done
    seen=${event%%:*}
}

# Waits until one of these candidates leads, and says which one, and why.
leads() {
    await leading "$1"
    leader=$(echo "$event" | field name) term=$(echo "$event" | field term)
    say "$leader leads, term $term"
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        # The elector's log may come a moment after the candidate's event.
        why=$(grep "\"holder\":\"$leader\"" "$folder/elector" | grep "\"term\":$term[,}]" |
            sed -n 's/.*"reason":"\([^"]*\)".*/\1/p' | tail -n 1)
        [ -z "$why" ] || { add "why: $why"; break; }
        sleep 0.1
    done
}

: >"$folder/events"
# The store was empty a second ago, so an absent Lease proves that there is no leader.
"$elector" run --logging-format=json --absent-lease-grace=0s --kubeconfig="$KUBECONFIG" 2>"$folder/elector" &
processes=$!
until grep --quiet 'leases and candidates are listed' "$folder/elector"; do
    kill -0 $processes || fail "the elector did not come up"
    sleep 0.05
done
echo
say "the elector is up; look on with: kubectl --kubeconfig $KUBECONFIG get leases -w"
for name in green:1.33.0 blue:1.32.0 red:1.34.0; do
    candidate "${name%:*}" "${name#*:}"
    say "${name%:*} registers for lease default/demo, version ${name#*:}"
done
# The oldest version, even if another one led first.
until [ "${leader-}" = blue ]; do leads '.*'; done
sleep 2
killed=$(date +%s%N)
kill -KILL "$id_blue"
say "blue is killed (SIGKILL); its lease of $duration s has to run out"
leads 'green\|red'
add "$((($(date +%s%N) - killed) / 1000000)) ms after the kill, and never two leaders at once"
sleep 2
old=$leader
candidate violet 1.31.0
say "violet arrives with a better version, 1.31.0"
await work-stopped "$old"
stopped=$(date --date="$(echo "$event" | field time)" +%s%N)
say "$old stops its work and hands over"
leads violet
gap=$((($(date --date="$(echo "$event" | field time)" +%s%N) - stopped) / 1000))
add "hand-over in $gap µs"
[ $gap -ge 0 ] || fail "two led at once"
say "that is all; cleaning up"
