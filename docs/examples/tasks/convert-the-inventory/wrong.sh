#!/bin/sh
# Splits lines at each comma, writes all values as texts, and writes no XML.
# expect shell.assert-file: shop/inventory.jsonl at $[0].price: expected to equal 12.5 (number), got "12.50" (string)
# expect shell.assert-file: shop/inventory.toml at $.items[0].price
# expect shell.assert-file: shop/inventory.xml: expected to exist
set -eu
cd "$(dirname "$(echo "$1" | grep -o '/[^ ]*inventory.csv')")"
python3 - <<'END'
import json

header, *lines = open("inventory.csv").read().splitlines()
rows = [dict(zip(header.split(","), line.split(","))) for line in lines]
with open("inventory.jsonl", "w") as file:
    file.writelines(json.dumps(row) + "\n" for row in rows)
with open("inventory.toml", "w") as file:
    for row in rows:
        file.write("[[items]]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in row.items()))
END
