#!/bin/sh
# Runs a job of the right kind by hand, which does not help the next one.
# expect kubernetes.run-job: exitCode: expected to equal 0, got 3
# expect kubernetes.run-job: exitCode: expected to equal 0, got 3
set -eu
kubectl -n fix-cron-job create job by-hand --image busybox:1.36 -- sh -c "echo report sent; exit 0"
