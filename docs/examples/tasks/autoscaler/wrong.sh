#!/bin/sh
# Takes the default of one replica for the minimum.
# expect kubernetes.assert: spec.minReplicas: expected 2, found 1
# expect kubernetes.wait: last found 1
set -eu
kubectl -n autoscaler autoscale deploy web --max 5 --cpu-percent 80
