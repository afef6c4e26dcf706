#!/bin/sh
# Checks the path before it is decoded.
# expect http.request: status: expected to be 4xx, got 200
set -eu
server=$(echo "$1" | grep -o '/[^ ]*server.py')
python3 - "$server" <<'END'
import sys
from pathlib import Path

server = Path(sys.argv[1])
text = server.read_text()
old = "        try:\n"
new = """        if ".." in self.path:
            self.send_error(404)
            return
        try:
"""
assert old in text
server.write_text(text.replace(old, new))
END
