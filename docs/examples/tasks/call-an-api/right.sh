#!/bin/sh
set -eu
cat > "$(dirname "$(echo "$1" | grep -o '/[^ ]*README.md')")/weather.py" <<'END'
import json
import os
import sys
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

url = f"{os.environ['WEATHER_URL']}/v1/cities/{quote(sys.argv[1], safe='')}/forecast?units=metric"
try:
    with urlopen(url) as response:
        print(json.load(response)["celsius"], "°C")
except HTTPError as error:
    if error.code != 404:
        raise
    print("unknown city")
    sys.exit(1)
END
