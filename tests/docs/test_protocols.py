"""The table of protocols agrees with the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.protocols.dialect import DIALECTS
from tests.docs.pages import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ext_recorder.protocols.dialect import Dialect


def table() -> list[list[str]]:
    page = (ROOT / "docs" / "protocols.md").read_text()
    text = page.partition("<!-- protocols -->\n")[2].partition("<!-- /protocols -->")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:]]


def quoted(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in dict.fromkeys(words))


def row(dialect: Dialect) -> list[str]:
    start = [f"`{dialect.name}`", dialect.title, f"`{dialect.framing}`"]
    if not dialect.calls:
        return [*start, "", "", ""]
    ids = [form.id[1:].replace("/", ".") for form in dialect.forms.values() if form.id]
    told = quoted(ids if dialect.tag != "method" else ["id", *ids])
    pieces = [
        f'`"{pointer.rpartition("/")[2]}": {str(value).lower()}`' for pointer, value in dialect.unfinished.items()
    ]
    ends = [f"the response without {pieces[0]}" if pieces else "the response"]
    ends += [f"`{name}`" for name in dialect.forms if dialect.tag == "method"]
    own = [name for places in dialect.bound.values() for name in places]
    made = [
        pointer.rpartition("/")[2]
        for table in (dialect.names, dialect.client_generated)
        for each in table.values()
        for pointer in each
    ]
    made += [pointer.rpartition("/")[2] for places in dialect.echoes.values() for pointer in places]
    return [*start, told, ", ".join(ends), "; ".join(filter(None, (quoted(own), quoted(made))))]


def test_the_table_of_protocols_is_what_the_dialects_are() -> None:
    assert table() == [row(dialect) for dialect in DIALECTS.values()]
