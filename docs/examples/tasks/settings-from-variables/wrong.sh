#!/bin/sh
# Reads the variables as texts, so any DEBUG is true and any PORT is accepted.
# expect shell.run: $.port
# expect shell.run: exitCode: expected to equal 2, got 0
set -eu
cat > "$(echo "$1" | grep -o '/.*/settings.py')" <<'END'
import json
import os

get = os.environ.get
print(json.dumps({"port": get("PORT", 80), "debug": bool(get("DEBUG")), "rate": float(get("RATE", 1))}))
END
