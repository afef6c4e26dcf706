#!/bin/sh
set -eu
url=$(echo "$1" | grep -o 'http://[^ ,]*')
key=$(cat /proc/sys/kernel/random/uuid)
for attempt in 1 2 3; do
  status=$(curl -sS -o /dev/null -w '%{http_code}' -H 'Content-Type: application/json' -H "Idempotency-Key: $key" \
    -d '{"to": "ada", "amount": 25}' "$url")
  test "$status" = 503 || break
done
echo "paid in attempt $attempt with status $status"
