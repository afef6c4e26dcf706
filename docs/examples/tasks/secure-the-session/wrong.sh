#!/bin/sh
# Forgets how long the cookie is valid.
# expect http.request: lifetime of cookie sid: expected to be limited
# expect http.request: ${login.since} was not set
set -eu
sed -i 's|"sid=" + cookie|"sid=" + cookie + "; Path=/; HttpOnly; SameSite=Lax"|' "$(echo "$1" | grep -o '/[^ ]*server.py')"
