#!/bin/sh
# Whether this machine may be taken away: succeeds when no cluster counts on it any more, or with force=true.
# Variables: force (true | false), node (the node's name, if it is not the host's), kubeconfig (a file on the machine; the kubelet's by default)
set -eu

if [ "${force:-false}" = "true" ]; then
  echo "not checked: force=true"
  exit 0
fi
kubeconfig="${kubeconfig:-/etc/kubernetes/kubelet.conf}"
if [ ! -e "$kubeconfig" ]; then
  echo "no cluster member: nothing to drain"
  exit 0
fi
if ! command -v kubectl >/dev/null 2>&1; then
  if systemctl is-active --quiet kubelet; then
    echo "the kubelet runs, and without kubectl it cannot be told whether the node is drained; drain it, or give force=true" >&2
    exit 1
  fi
  echo "the kubelet is stopped"
  exit 0
fi
node="${node:-$(hostname)}"
unschedulable="$(kubectl --kubeconfig "$kubeconfig" get node "$node" -o 'jsonpath={.spec.unschedulable}')"
if [ "$unschedulable" != "true" ]; then
  echo "node $node is not cordoned: have it drained by 'machine enter-maintenance' (after 'exit-maintenance', if a failed run left it in MAINTENANCE), then retry" >&2
  exit 1
fi
# A line each: its name, what marks it as a static one, and what owns it. Those that are over hold nobody up.
pods="$(kubectl --kubeconfig "$kubeconfig" get pods --all-namespaces --field-selector "spec.nodeName=$node,status.phase!=Succeeded,status.phase!=Failed" -o 'jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}:{.metadata.annotations.kubernetes\.io/config\.mirror}:{.metadata.ownerReferences[*].kind}{"\n"}{end}')"
names=""
for pod in $(printf '%s\n' "$pods" | grep '::' | grep -v DaemonSet | cut -d : -f 1); do names="$names $pod"; done
if [ -n "$names" ]; then
  echo "node $node is cordoned, but these pods remain on it:$names: wait until 'machine show' says that it is Drained, or move them away, then retry" >&2
  exit 1
fi
echo "node $node is cordoned, and nothing is left on it but daemons and static pods"
