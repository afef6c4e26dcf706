#!/bin/sh
set -eu
url=$(echo "$1" | grep -o 'http://[^ ]*')
curl -sS -u ada:lovelace -H 'Content-Type: application/json' -d '{"item": "lamp", "quantity": 1}' "$url"
