#!/bin/sh
set -eu
cd "$(dirname "$(echo "$1" | grep -o '/.*/deploy.log')")"
ln -sfn releases/2 current
echo "deployed 2" >> deploy.log
