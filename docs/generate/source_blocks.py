"""Generated parts of pages: code blocks that name a file, and tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BLOCK = re.compile(r"^(?P<fence>```+)(?P<info>[a-z]+ .*?\bfile=(?P<file>\S+).*)\n(?:.*\n)*?(?P=fence)$", re.MULTILINE)
TABLE = re.compile(r"^<!-- (?P<name>(?P<kind>\w+): \S+) -->\n(?:.*\n)*?<!-- /(?P=kind) -->$", re.MULTILINE)


def with_tables(page: str, tables: Mapping[str, str]) -> str:
    """Return the page with each table between its comments: `<!-- names: ext-shell -->` and `<!-- /names -->`.

    Raises:
        KeyError: a comment names an unknown table.
    """
    return TABLE.sub(lambda match: f"<!-- {match['name']} -->\n{tables[match['name']]}<!-- /{match['kind']} -->", page)


def filled(page: str, root: Path) -> str:
    """Return the page with the text of each named file in its block.

    Raises:
        FileNotFoundError: a block names a file that does not exist.
    """

    def block(match: re.Match[str]) -> str:
        text = (root / match["file"]).read_text()
        return f"{match['fence']}{match['info']}\n{text}{match['fence']}"

    return BLOCK.sub(block, page)
