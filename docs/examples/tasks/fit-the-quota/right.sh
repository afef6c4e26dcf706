#!/bin/sh
set -eu
KUBECONFIG=$(echo "$1" | sed -n 's/^Kubeconfig: //p')
export KUBECONFIG
kubectl -n fit-the-quota scale deploy web --replicas 0 # a rolling update has no memory for the first new pod
kubectl -n fit-the-quota set resources deploy web --requests memory=256Mi
kubectl -n fit-the-quota scale deploy web --replicas 3
