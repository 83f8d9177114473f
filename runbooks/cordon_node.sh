#!/bin/sh
# Takes this machine's node out of scheduling. Succeeds when it is, or when the machine is in no cluster.
# Variables: node (the node's name, if it is not the host's), kubeconfig (a file on the machine; the kubelet's by default)
set -eu

kubeconfig="${kubeconfig:-/etc/kubernetes/kubelet.conf}"
if [ ! -e "$kubeconfig" ]; then
  echo "no cluster member: nothing to cordon"
  exit 0
fi
node="${node:-$(hostname)}"
unschedulable="$(kubectl --kubeconfig "$kubeconfig" get node "$node" -o 'jsonpath={.spec.unschedulable}')"
if [ "$unschedulable" = "true" ]; then
  echo "node $node is cordoned already"
  exit 0
fi
# In one write with the cordon, the mark by which it is told from somebody else's: leaving maintenance takes back what bears it.
kubectl --kubeconfig "$kubeconfig" patch node "$node" --type merge --patch '{"metadata":{"annotations":{"millwright.io/cordoned":"true","millwright.io/maintenance":null}},"spec":{"unschedulable":true}}'
echo "node $node is cordoned"
