#!/bin/sh
set -eu
cat > "$(echo "$1" | grep -o '/.*/settings.py')" <<'END'
import json
import os
import sys

try:
    port = int(os.environ.get("PORT", "80"))
except ValueError:
    sys.stderr.write("PORT is not a number\n")
    sys.exit(2)
debug = os.environ.get("DEBUG", "false") == "true"
print(json.dumps({"port": port, "debug": debug, "rate": float(os.environ.get("RATE", "1"))}))
END
