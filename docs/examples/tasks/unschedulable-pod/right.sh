#!/bin/sh
set -eu
kubectl -n unschedulable-pod get events
kubectl -n unschedulable-pod patch deploy web --type json -p '[{"op": "remove", "path": "/spec/template/spec/nodeSelector"}]'
