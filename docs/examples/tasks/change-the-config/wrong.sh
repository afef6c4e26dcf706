#!/bin/sh
# Changes the ConfigMap only; variables of running containers do not change with it.
# expect kubernetes.exec: expected to equal "blue"
set -eu
kubectl -n change-the-config patch configmap settings -p '{"data": {"colour": "blue"}}'
