#!/bin/sh
set -eu
kubectl -n fix-image set image deploy/web web=busybox:1.36
kubectl -n fix-image rollout status deploy web --timeout 60s
