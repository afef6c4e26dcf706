"""Two readers of one table: whatever the quick one accepts, click reads in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from ext_recorder.cli import click_app
from ext_recorder.cli.command_line import read
from ext_recorder.cli.commands import COMMANDS

if TYPE_CHECKING:
    from ext_recorder.cli import Command

OPTIONS = sorted({f"--{option.name}" for command in COMMANDS.values() for option in command.options})
words = st.one_of(
    st.sampled_from(OPTIONS),
    st.builds(
        "{}={}".format, st.sampled_from(OPTIONS), st.sampled_from(["", "any", "ndjson", "raw", "a=b", "-x", "--"])
    ),
    st.sampled_from(["--", "-", "-o", "-x", "--help", "c.yaml", "any", "raw", "ndjson", "a=b", "", "é", "\udcff"]),
    st.text(max_size=5),
)


@given(st.sampled_from(list(COMMANDS.values())), st.lists(words, max_size=8))
def test_the_quick_reader_never_differs_from_click(command: Command, line: list[str]) -> None:
    quick = read(command, line)
    assert quick is None or quick == click_app.parsed(command, line)
