#!/bin/sh
set -eu
kubectl -n autoscaler autoscale deploy web --min 2 --max 5 --cpu-percent 80
