"""Two readers of one table: whatever the quick one accepts, click reads in the same way."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ext_recorder import cli
from ext_recorder.commands import COMMANDS
from ext_recorder.options import Command, read

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
    assert quick is None or quick == cli.parsed(command, line)
