#!/bin/sh
# Sends another key with each attempt, so that the payment could be made twice.
# expect http.mock-verify: expected exactly 2, got 1; the nearest
set -eu
url=$(echo "$1" | grep -o 'http://[^ ,]*')
for attempt in 1 2; do
  curl -sS -H 'Content-Type: application/json' -H "Idempotency-Key: $(cat /proc/sys/kernel/random/uuid)" \
    -d '{"to": "ada", "amount": 25}' "$url"
done
