#!/bin/sh
# Leaves the old pod.
# expect kubernetes.assert: to be absent
set -eu
space=$(echo "$1" | sed -n 's/.*namespace \(from-chainsaw-[a-z0-9]*\).*/\1/p')
kubectl -n "$space" create configmap settings --from-literal color=blue
kubectl -n "$space" create deployment web --image busybox:1.36 --replicas 2 -- sleep 100000
