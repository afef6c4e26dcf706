"""What is said where a name is not known."""

from __future__ import annotations

import pytest

from ext_sdk.core.text import counted, suggest

KNOWN = ["write-file", "read-file", "run"]


@pytest.mark.parametrize(
    ("name", "known", "said"),
    [
        ("write_file", KNOWN, "did you mean 'write-file'?"),
        ("rnu", KNOWN, "did you mean 'run'?"),
        ("fetch", KNOWN, "known are write-file, read-file, run"),
        ("", KNOWN, "known are write-file, read-file, run"),
        ("x", [], "none is known"),
        ("x", {"a-name": 1, "b-name": 2}, "known are a-name, b-name"),
        ("?", [str(at) for at in range(100, 200)], f"known are {', '.join(map(str, range(100, 120)))}, …"),
        ("x" * 50_000_000, KNOWN, "known are write-file, read-file, run"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_the_nearest_name_is_told_or_what_there_is(name: str, known: list[str], said: str) -> None:
    assert suggest(name, known) == said


def test_what_is_said_where_there_is_nothing_is_the_callers() -> None:
    assert suggest("web", [], none="none was started") == "none was started"
    assert suggest("web", ["job"], none="none was started") == "known are job"


def test_numbers_have_their_noun() -> None:
    assert [counted(number, "file") for number in (0, 1, 2000)] == ["0 files", "1 file", "2,000 files"]
    assert counted(2, "entry", "entries") == "2 entries"
