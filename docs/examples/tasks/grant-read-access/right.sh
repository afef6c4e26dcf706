#!/bin/sh
set -eu
namespace=$(echo "$1" | grep -o 'reports-[a-z0-9]*')
kubectl -n "$namespace" create role configmap-reader --verb get,list --resource configmaps
kubectl -n "$namespace" create rolebinding reporter --role configmap-reader --serviceaccount "$namespace:reporter"
