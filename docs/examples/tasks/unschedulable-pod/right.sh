#!/bin/sh
set -eu
kubectl -n unschedulable-pod get events
kubectl -n unschedulable-pod apply view-last-applied deploy/web | sed '/nodeSelector:/,+1d' | kubectl -n unschedulable-pod apply -f -
