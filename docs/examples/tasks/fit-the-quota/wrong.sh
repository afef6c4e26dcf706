#!/bin/sh
# Tries to raise the quota, which it may not, and makes do with two pods.
# expect kubernetes.assert: spec.replicas: expected 3, found 2
set -eu
KUBECONFIG=$(echo "$1" | sed -n 's/^Kubeconfig: //p')
export KUBECONFIG
kubectl -n fit-the-quota patch quota memory -p '{"spec": {"hard": {"requests.memory": "2Gi"}}}' ||
  kubectl -n fit-the-quota scale deploy web --replicas 2
