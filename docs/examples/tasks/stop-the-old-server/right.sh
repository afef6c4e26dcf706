#!/bin/sh
set -eu
cd "$(dirname "$(echo "$1" | grep -o '/[^ ;]*README.md')")"
kill "$(cat blue.pid)"
rm blue.pid
