#!/bin/sh
set -eu
kubectl -n change-the-config patch configmap settings -p '{"data": {"colour": "blue"}}'
kubectl -n change-the-config rollout restart deploy web
