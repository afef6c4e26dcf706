#!/bin/sh
set -eu
kubectl -n mount-a-secret patch deploy app -p '{"spec": {"template": {"spec": {
  "volumes": [{"name": "login", "secret": {"secretName": "login", "items": [{"key": "password", "path": "password"}]}}],
  "containers": [{"name": "app", "volumeMounts": [{"name": "login", "mountPath": "/etc/login", "readOnly": true}]}]
}}}}'
