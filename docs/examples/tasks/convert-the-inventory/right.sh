#!/bin/sh
set -eu
cd "$(dirname "$(echo "$1" | grep -o '/[^ ]*inventory.csv')")"
python3 - <<'END'
import csv
import json
from xml.sax.saxutils import escape, quoteattr

with open("inventory.csv") as file:
    rows = [row | {"price": float(row["price"]), "stock": int(row["stock"])} for row in csv.DictReader(file)]
with open("inventory.jsonl", "w") as file:
    file.writelines(json.dumps(row) + "\n" for row in rows)
with open("inventory.toml", "w") as file:
    for row in rows:
        file.write("[[items]]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in row.items()))
with open("inventory.xml", "w") as file:
    file.write("<inventory>\n")
    for row in rows:
        members = "".join(f"<{name}>{escape(str(row[name]))}</{name}>" for name in ("name", "price", "stock"))
        file.write(f"  <item sku={quoteattr(row['sku'])}>{members}</item>\n")
    file.write("</inventory>\n")
END
