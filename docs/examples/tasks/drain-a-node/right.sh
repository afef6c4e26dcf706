#!/bin/sh
set -eu
node=$(echo "$1" | sed -n 's/.*The node \([^ ]*\) .*/\1/p')
kubectl drain "$node" --ignore-daemonsets --delete-emptydir-data --timeout 60s
