#!/bin/sh
# Sends the password as a bearer token.
# expect http.mock-verify: number of calls that no route matched: expected to equal 0, got 1
set -eu
url=$(echo "$1" | grep -o 'http://[^ ]*')
curl -sS -H 'Authorization: Bearer lovelace' -d '{"item": "lamp", "quantity": 1}' "$url"
