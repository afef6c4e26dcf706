#!/bin/sh
# Scales every Deployment.
# expect kubernetes.assert-changes: deployment/api: expected no change since snapshot 'default'
set -eu
kubectl -n scale-web scale deploy --all --replicas 4
