"""What commands on many cassettes take, and how their values are read."""

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


SHARD = Option("shard", "work on a part of the cassettes only: 2/3 is the second of three", "I/N", key=False)
SEVERAL = (SHARD, at_once("cassettes"))
REPORTS = (lines_of_json("cassette"), JUNIT)
DIFFERING = ignore("a place in messages that may differ, as /result/message")
NAME = Option(
    "name",
    "where the child hands out a value that the host sends back, as /result/token, or 'METHOD POINTER'; repeatable",
    "POINTER",
    many=True,
    check=placed("name"),
)
# For the text of a command.
NAMING = """\
A cassette is named by its file, by a folder that it is in, by a pattern such as 'cassettes/**/*.yaml', or by an address
of another file system that fsspec knows, such as s3://bucket/cassettes (pip install 'gevals-extensions[remote]').
Several are worked on in parallel. --shard 2/3 takes every third of them in the order of their names, beginning with the
second, so that the jobs of a CI matrix share the work.
"""
