"""Options of commands that accept many cassettes, and the functions that read their values."""

from __future__ import annotations

from ext_recorder.options import Option

from .shared import JUNIT, at_once, ignore, lines_of_json, one, placed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.many.names import Cassette
    from ext_recorder.options import Values


def chosen(values: Values) -> list[Cassette]:
    """Return the cassettes of `CASSETTE…`, or of the project file, and of `--shard`. Raises UsageError if none."""
    from ext_recorder.many.names import named
    from ext_recorder.many.shards import shard

    if not values["CASSETTE"]:
        from ext_recorder.errors import UsageError

        raise UsageError("expected CASSETTE…: a file, folder or pattern; or set `cassettes` in the project file")

    return shard(named(values["CASSETTE"]), one(values, "shard"))


SHARD = Option("shard", "Process one part of the cassettes only: 2/3 is the second of three.", "I/N", key=False)
SEVERAL = (SHARD, at_once("cassettes"))
REPORTS = (lines_of_json("cassette"), JUNIT)
DIFFERING = ignore("JSON pointer to a value that may differ, such as /result/message")
NAME = Option(
    "name",
    "JSON pointer to a value that the child generates and the host sends back, such as /result/token; or 'METHOD "
    "POINTER'. Repeatable.",
    "POINTER",
    many=True,
    check=placed("name"),
)
# Paragraph for the help of these commands.
NAMING = """\
CASSETTE is a file, a folder, a pattern such as 'cassettes/**/*.yaml', or an address in another file system that fsspec
supports, such as s3://bucket/cassettes (pip install 'gevals-extensions[remote]'). Several cassettes are processed in
parallel. --shard 2/3 selects every third cassette in the order of their names, starting with the second, so that the
jobs of a CI matrix share the work.
"""
