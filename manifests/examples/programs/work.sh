#!/bin/bash
# Works while its Pod leads, and asks the sidecar before each step. Reads ELECTOR_GET_URL and ELECTOR_HTTP_TOKEN_FILE.
set -u
token=$(cat "$ELECTOR_HTTP_TOKEN_FILE")
trap 'echo ended; exit 0' TERM INT

# No answer within a second, and every error, is a no.
leads() { [[ $(curl -sf --max-time 1 "${ELECTOR_GET_URL}leader") == *'"is_leader":true'* ]]; }

working=no
while true; do
    if leads; then
        [[ $working == yes ]] || echo started
        working=yes
        echo step # One step of the work, which takes less than the lease leaves after a loss.
    elif [[ $working == yes ]]; then
        working=no
        echo stopped
        # The lease is given away now, and not when the grace period is over; where it was lost, this is refused.
        curl -sf --max-time 1 -o /dev/null -X POST -H "Authorization: Bearer $token" "${ELECTOR_GET_URL}release"
    fi
    sleep 0.2 &
    wait $!
done
