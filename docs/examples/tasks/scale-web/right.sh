#!/bin/sh
set -eu
kubectl -n scale-web scale deploy web --replicas 4
