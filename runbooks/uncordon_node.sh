#!/bin/sh
# Gives this machine's node back to scheduling, unless somebody else cordoned it, or a maintenance did. Succeeds when it is, or is not to be, or when the machine is in no cluster.
# Variables: node (the node's name, if it is not the host's), kubeconfig (a file on the machine; the kubelet's by default)
set -eu

kubeconfig="${kubeconfig:-/etc/kubernetes/kubelet.conf}"
if [ ! -e "$kubeconfig" ]; then
  echo "no cluster member: nothing to uncordon"
  exit 0
fi
node="${node:-$(hostname)}"
seen="$(kubectl --kubeconfig "$kubeconfig" get node "$node" -o 'jsonpath={.spec.unschedulable}:{.metadata.annotations.millwright\.io/cordoned}:{.metadata.annotations.millwright\.io/maintenance}')"
if [ "$seen" = "true:true:true" ]; then
  echo "node $node stays cordoned: the machine is in maintenance, and whoever ends that gives it back"
  exit 0
fi
if [ "$seen" = "true::" ] || [ "$seen" = "true::true" ]; then
  echo "node $node stays cordoned: Millwright did not do it (kubectl uncordon $node)"
  exit 0
fi
# The mark of our own cordon goes with it: else the next one, which may be somebody else's, would be taken for ours.
kubectl --kubeconfig "$kubeconfig" patch node "$node" --type merge --patch '{"metadata":{"annotations":{"millwright.io/cordoned":null,"millwright.io/maintenance":null}},"spec":{"unschedulable":null}}'
echo "node $node is uncordoned"
