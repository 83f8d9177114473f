#!/bin/sh
# Moves everything but daemons off this machine's node. Succeeds when nothing is left, or when the machine is in no cluster.
# Variables: timeout (seconds, 300), node (the node's name, if it is not the host's), kubeconfig (a file on the machine;
# the kubelet's by default, which some clusters do not let drain)
set -eu

kubeconfig="${kubeconfig:-/etc/kubernetes/kubelet.conf}"
if [ ! -e "$kubeconfig" ]; then
  echo "no cluster member: nothing to drain"
  exit 0
fi
node="${node:-$(hostname)}"
unschedulable="$(kubectl --kubeconfig "$kubeconfig" get node "$node" -o 'jsonpath={.spec.unschedulable}')"
if [ "$unschedulable" != "true" ]; then
  # A drain cordons too, but leaves no mark by which leaving maintenance knows that it is ours to take back.
  kubectl --kubeconfig "$kubeconfig" patch node "$node" --type merge --patch '{"metadata":{"annotations":{"millwright.io/cordoned":"true","millwright.io/maintenance":null}},"spec":{"unschedulable":true}}'
fi
kubectl --kubeconfig "$kubeconfig" drain "$node" --ignore-daemonsets --delete-emptydir-data "--timeout=${timeout:-300}s"
