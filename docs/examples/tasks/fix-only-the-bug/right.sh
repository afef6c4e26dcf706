#!/bin/sh
set -eu
test=$(echo "$1" | grep -o '/.*/test_price.py')
sed -i 's/item\["price"\] for/item["price"] * item["quantity"] for/' "$(dirname "$test")/price.py"
echo "I fixed price.py."
