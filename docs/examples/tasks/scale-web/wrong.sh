#!/bin/sh
# Scales every Deployment.
# expect kubernetes.assert: metadata.generation: expected 1, found 2
set -eu
kubectl -n scale-web scale deploy --all --replicas 4
