# The elector as it is shipped, in a root folder that holds nothing else, beside a real kube-apiserver that KUBECONFIG names.
# `cargo xtask release` runs it as root: sh trial.sh PROGRAM KUBECTL MANIFESTS FOLDER HEALTH METRICS
set -eu
program=$1 kubectl=$2 manifests=$3 folder=$4 health=$5 metrics=$6
leases=100 most_kib=15000 most_millis=100
user=65532 pod=elector-in-an-empty-root namespace=elector-system
root=$folder/root account=$folder/root/var/run/secrets/kubernetes.io/serviceaccount

fail() { echo "$*; it said:" >&2; tail -n 20 "$folder/log" >&2; exit 1; }
millis() { echo $(($(date +%s%N) / 1000000)); }
get() { curl --silent --fail --max-time 10 "http://$1"; }
of_deployment() { "$kubectl" get deployment elector --namespace=$namespace --output=jsonpath="$1"; }
of_kubeconfig() { "$kubectl" config view --raw --output=jsonpath="{.clusters[0].cluster.$1}"; }

# What a Pod of the Deployment would have. No node runs it: it is there for its token, which is bound to it.
"$kubectl" apply -f "$manifests" >"$folder/applied"
template=$(of_deployment '{.spec.template.spec}') labels=$(of_deployment '{.spec.template.metadata.labels}')
echo '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "'$pod'", "namespace": "'$namespace'", "labels": '"$labels"'},
    "spec": '"$template"'}' >"$folder/pod"
# The controller of quotas, which is not there, would say how many Pods there are; until it has, none gets in.
"$kubectl" patch resourcequota elector --namespace=$namespace --subresource=status --type=merge \
    --patch='{"status": {"hard": {"pods": "100"}, "used": {"pods": "0"}}}' >"$folder/counted"
tries=0
until "$kubectl" create -f "$folder/pod" >"$folder/log" 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 50 ] || fail "its Pod is not admitted"
    sleep 0.1
done
mkdir -p "$account" "$root/usr/local/bin"
install -m 0555 "$program" "$root/usr/local/bin/elector"
"$kubectl" create token "$(of_deployment '{.spec.template.spec.serviceAccountName}')" --namespace=$namespace \
    --bound-object-kind=Pod --bound-object-name=$pod >"$account/token"
cat "$(of_kubeconfig certificate-authority)" >"$account/ca.crt"
printf %s $namespace >"$account/namespace"
chmod 0755 "$folder"
server=$(of_kubeconfig server) server=${server#https://}
command=$(of_deployment '{.spec.template.spec.containers[0].command[*]} {.spec.template.spec.containers[0].args[*]}' |
    sed "s/\(--health-probe-bind-address=\)[^ ]*/\1$health/; s/\(--metrics-bind-address=\)[^ ]*/\1$metrics/")

# A read-only mount of the folder in a mount namespace of its own. No step forks: the process that is started is the one
# that the program becomes.
enter='set -e
root=$1 user=$2
shift 2
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
exec chroot --userspec="$user:$user" "$root" "$@"'

# Starts it, and sets `id` and `took`.
start() {
    began=$(millis)
    # shellcheck disable=SC2086 # the words of the command
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin POD_NAME=$pod POD_NAMESPACE=$namespace \
        KUBERNETES_SERVICE_HOST="${server%:*}" KUBERNETES_SERVICE_PORT="${server##*:}" \
        unshare --mount -- /bin/sh -c "$enter" enter "$root" $user $command >"$folder/log" 2>&1 &
    id=$!
    until get "$health/readyz" >"$folder/ready"; do
        if ! kill -0 $id || [ $(($(millis) - began)) -gt 90000 ]; then fail "it does not become ready"; fi
    done
    took=$(($(millis) - began))
}
end() { kill $id && wait $id || fail "it ended with $?"; }

candidates=
# shellcheck disable=SC2086 # numbers
trap 'kill $candidates' EXIT
for lease in $(seq $leases); do
    "$program" candidate --mode=elected --binary-version=1.0.0 --lease="lease-$lease" --kubeconfig="$KUBECONFIG" \
        >"$folder/candidates" 2>&1 &
    candidates="$candidates $!"
done
start
wanted="elector_leases{namespace=\"default\",state=\"led\"} $leases"
until get "$metrics/metrics" | grep --quiet --line-regexp --fixed-strings "$wanted"; do
    [ $(($(millis) - began)) -lt 90000 ] || fail "it does not elect"
    sleep 0.1
done
grep --quiet "^Uid:	$user	$user	$user	$user$" /proc/$id/status || fail "it has other users"
awk '$5 == "/" { options = $6 } END { exit options !~ /(^|,)ro(,|$)/ }' /proc/$id/mountinfo || fail "it may write"
kib=$(awk '/^VmRSS:/ { print $2 }' /proc/$id/status)
echo "in an empty, read-only root folder as user $user: $leases leases led, $kib KiB resident"
# The plugin lies beside the program.
shown=$(PATH=$(dirname "$program"):$PATH "$kubectl" elector status --namespace=default --no-headers | grep --count lease-)
echo "kubectl elector status: $shown leases"
[ "$shown" = $leases ] || fail "kubectl elector shows $shown leases"
end

times=
for _ in 1 2 3 4 5; do start; end; times="$times $took"; done
echo "ready after (ms):$times"
# shellcheck disable=SC2086 # five numbers
median=$(printf '%s\n' $times | sort -n | sed -n 3p)
[ "$kib" -le $most_kib ] || fail "it has $kib KiB resident, and $most_kib are allowed"
[ "$median" -le $most_millis ] || fail "it was ready after $median ms, and $most_millis are allowed"
