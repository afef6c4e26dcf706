#!/bin/sh
# Mounts all of the Secret.
# expect kubernetes.exec: stdout
set -eu
kubectl -n mount-a-secret patch deploy app -p '{"spec": {"template": {"spec": {
  "volumes": [{"name": "login", "secret": {"secretName": "login"}}],
  "containers": [{"name": "app", "volumeMounts": [{"name": "login", "mountPath": "/etc/login", "readOnly": true}]}]
}}}}'
