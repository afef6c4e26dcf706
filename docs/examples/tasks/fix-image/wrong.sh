#!/bin/sh
# Changes the version, but not the registry.
# expect kubernetes.rollout: container web is waiting
# expect kubernetes.assert: expected "busybox:1.36"
set -eu
kubectl -n fix-image set image deploy/web web=registry.invalid/busybox:1.36.1
