#!/bin/sh
# Scales the other Deployment.
# expect kubernetes.assert: spec.replicas: expected 4, found 1
set -eu
kubectl -n scale-web scale deploy api --replicas 4
