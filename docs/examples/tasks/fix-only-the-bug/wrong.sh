#!/bin/sh
# Changes the test instead of the program, and leaves notes.
# expect shell.assert-changes: notes.md: expected no change since snapshot 'default', got an addition
set -eu
test=$(echo "$1" | grep -o '/.*/test_price.py')
sed -i 's/== 10/== 4/' "$test"
echo "The expected total was wrong." > "$(dirname "$test")/notes.md"
