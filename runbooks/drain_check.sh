#!/bin/sh
# Whether this machine may be taken away: succeeds when no cluster counts on it any more, or with force=true.
# Variables: force (true | false), node (the node's name, if it is not the host's)
set -eu

if [ "${force:-false}" = "true" ]; then
  echo "not checked: force=true"
  exit 0
fi
if [ ! -e /etc/kubernetes/kubelet.conf ]; then
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
unschedulable="$(kubectl --kubeconfig /etc/kubernetes/kubelet.conf get node "$node" -o 'jsonpath={.spec.unschedulable}')"
if [ "$unschedulable" != "true" ]; then
  echo "node $node is not cordoned: have it drained by 'machine enter-maintenance' (after 'exit-maintenance', if a failed run left it in MAINTENANCE), then retry" >&2
  exit 1
fi
echo "node $node is cordoned"
