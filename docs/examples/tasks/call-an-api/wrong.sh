#!/bin/sh
# Does not encode the name of the city, and lets errors end the program.
# expect shell.run: exitCode: expected to equal 0, got 1
# expect http.mock-verify: expected exactly 1, got 0: no requests were received
# expect shell.run: stdout: expected to contain "unknown city", got ""
set -eu
cat > "$(dirname "$(echo "$1" | grep -o '/[^ ]*README.md')")/weather.py" <<'END'
import json
import os
import sys
from urllib.request import urlopen

with urlopen(f"{os.environ['WEATHER_URL']}/v1/cities/{sys.argv[1]}/forecast?units=metric") as response:
    print(json.load(response)["celsius"], "°C")
END
