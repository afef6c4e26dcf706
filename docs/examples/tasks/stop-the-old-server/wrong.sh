#!/bin/sh
# Stops the server that is in use.
# expect http.wait: failure: expected to be refused, got a response: 200 OK
# expect http.request: Connection refused
set -eu
cd "$(dirname "$(echo "$1" | grep -o '/[^ ;]*README.md')")"
kill "$(cat green.pid)"
rm green.pid
