#!/bin/sh
# Brings kubeadm, kubelet and kubectl of this machine to a version. Succeeds at once when they have it.
# Variables: version (such as 1.33.0; required)
set -eu

version="${version:?version is required, such as 1.33.0}"
if ! command -v apt-get >/dev/null 2>&1; then
  echo "only systems with apt-get are upgraded by this script" >&2
  exit 1
fi
installed="$(kubelet --version 2>/dev/null || true)"
if [ "$installed" = "Kubernetes v$version" ]; then
  echo "the kubelet is $version already"
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-mark unhold kubeadm kubelet kubectl
apt-get update
apt-get install -y --allow-change-held-packages "kubeadm=$version-*" "kubelet=$version-*" "kubectl=$version-*"
apt-mark hold kubeadm kubelet kubectl
if [ -e /etc/kubernetes/kubelet.conf ]; then kubeadm upgrade node; fi
systemctl daemon-reload
systemctl restart kubelet
if [ "$(kubelet --version)" != "Kubernetes v$version" ]; then
  echo "the kubelet is $(kubelet --version) after all" >&2
  exit 1
fi
echo "upgraded from ${installed:-nothing} to $version"
