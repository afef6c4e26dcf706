#!/bin/sh
# Guesses the version.
# expect shell.assert-agent: $.release
set -eu
code=$(kubectl -n read-logs-and-files logs app | grep -o 'E[0-9]*' | tail -n 1)
printf 'I found both:\n\n```json\n{"error": "%s", "release": "latest"}\n```\n' "$code"
