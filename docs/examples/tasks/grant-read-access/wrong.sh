#!/bin/sh
# Binds a role that allows the reading of ConfigMaps, and much else.
# expect kubernetes.get: failure: expected to be forbidden, got success
# expect kubernetes.auth-can-i: can delete configmaps
set -eu
namespace=$(echo "$1" | grep -o 'reports-[a-z0-9]*')
kubectl -n "$namespace" create rolebinding reporter --clusterrole edit --serviceaccount "$namespace:reporter"
