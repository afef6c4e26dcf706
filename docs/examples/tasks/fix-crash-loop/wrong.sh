#!/bin/sh
# Removes the pods that crash, and with them all others.
# expect kubernetes.assert: spec.replicas: expected 2, found 0
# expect kubernetes.stable: last found NotFound
# expect kubernetes.logs: found none
set -eu
kubectl -n fix-crash-loop scale deploy worker --replicas 0
