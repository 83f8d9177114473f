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
kubectl --kubeconfig "$kubeconfig" cordon "$node"
