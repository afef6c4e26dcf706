#!/bin/sh
# Takes it for a taint.
# expect kubernetes.assert: spec.template.spec.nodeSelector: expected nothing
# expect kubernetes.rollout: nodes are available
set -eu
kubectl -n unschedulable-pod patch deploy web -p '{"spec": {"template": {"spec": {"tolerations": [{"operator": "Exists"}]}}}}'
