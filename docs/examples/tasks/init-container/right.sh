#!/bin/sh
set -eu
kubectl -n init-container patch deploy web -p '{"spec": {"template": {"spec": {"initContainers": [{
  "name": "migrate", "command": ["sh", "-c", "echo migrated"]
}]}}}}'
kubectl -n init-container rollout status deploy web --timeout 60s
