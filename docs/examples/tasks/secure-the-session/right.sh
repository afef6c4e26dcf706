#!/bin/sh
set -eu
sed -i 's|"sid=" + cookie|"sid=" + cookie + "; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax"|' "$(echo "$1" | grep -o '/[^ ]*server.py')"
