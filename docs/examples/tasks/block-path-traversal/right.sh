#!/bin/sh
set -eu
server=$(echo "$1" | grep -o '/[^ ]*server.py')
python3 - "$server" <<'END'
import sys
from pathlib import Path

server = Path(sys.argv[1])
text = server.read_text()
old = '            with open("public" + unquote(self.path), "rb") as file:\n'
new = """            path = os.path.realpath("public" + unquote(self.path))
            if not path.startswith(os.path.realpath("public") + os.sep):
                raise FileNotFoundError(path)
            with open(path, "rb") as file:
"""
assert old in text
server.write_text(text.replace(old, new))
END
