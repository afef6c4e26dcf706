#!/bin/sh
set -eu
code=$(kubectl -n read-logs-and-files logs app | grep -o 'E[0-9]*' | tail -n 1)
release=$(kubectl -n read-logs-and-files exec app -- cat release.txt | cut -d ' ' -f 2)
printf 'I found both:\n\n```json\n{"error": "%s", "release": "%s"}\n```\n\nThe disk is full.\n' "$code" "$release"
