#!/bin/sh
# Makes the pod start without the migration.
# expect kubernetes.assert: spec.template.spec.initContainers
# expect kubernetes.logs: no container
set -eu
kubectl -n init-container patch deploy web --type json -p '[{"op": "remove", "path": "/spec/template/spec/initContainers"}]'
kubectl -n init-container rollout status deploy web --timeout 60s
