#!/bin/sh
# Keeps new pods away, but leaves those that run.
# expect kubernetes.assert: to be absent
set -eu
node=$(echo "$1" | sed -n 's/.*The node \([^ ]*\) .*/\1/p')
kubectl cordon "$node"
