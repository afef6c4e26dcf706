#!/bin/sh
# Links to an absolute path, and removes the old release.
# expect shell.assert-file: target of app/current: expected to equal "releases/2"
# expect shell.assert-file: number of paths that match app/releases/*/version: expected to equal 2, got 1
# expect shell.assert-changes: releases/1/version: expected no change since snapshot 'default', got a removal
set -eu
cd "$(dirname "$(echo "$1" | grep -o '/.*/deploy.log')")"
ln -sfn "$PWD/releases/2" current
rm -r releases/1
echo "deployed 2" >> deploy.log
