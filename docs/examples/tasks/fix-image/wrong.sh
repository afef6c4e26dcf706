#!/bin/sh
# Changes the version, but not the registry.
# expect kubernetes.rollout: ImagePullBackOff
# expect kubernetes.assert: registry.invalid/busybox:1.36.1
set -eu
kubectl -n fix-image set image deploy/web web=registry.invalid/busybox:1.36.1
