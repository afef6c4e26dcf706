"""What commands on many cassettes take, and how their values are read."""

from __future__ import annotations

from ext_recorder.options import Option

from .shared import one

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.many.names import Cassette
    from ext_recorder.options import Values


def chosen(values: Values) -> list[Cassette]:
    """The cassettes that `CASSETTE…` and `--shard` mean. Raises UsageError where there are none."""
    from ext_recorder.many.names import named
    from ext_recorder.many.shards import shard

    return shard(named(values["CASSETTE"]), one(values, "shard"))


def jobs(values: Values) -> int:
    """The number of processes; 0: one for each core. Raises UsageError."""
    text = one(values, "jobs") or "0"
    if text.isascii() and text.isdigit() and len(text) < 5:
        return int(text)
    from ext_recorder.errors import UsageError

    raise UsageError(f"--jobs {text}: expected a number, as 4; by default one for each core")


SHARD = Option("shard", "work on a part of the cassettes only: 2/3 is the second of three", "I/N")
JOBS = Option("jobs", "how many cassettes at once; by default one for each core", "NUMBER")
SEVERAL = (SHARD, JOBS)
IGNORE = Option("ignore", "a place in messages that may differ, as /result/message; repeatable", "POINTER", many=True)
MASK = Option("mask", "a regular expression: what it matches in texts may differ; repeatable", "PATTERN", many=True)
JSON = Option("json", "a line of JSON for each cassette, for programs")
JUNIT = Option("junit", "write a report as JUnit XML", "FILE")
# For the text of a command.
NAMING = """\
A cassette is named by its file, by a folder that it is in, by a pattern such as 'cassettes/**/*.yaml', or by an address
of another file system that fsspec knows, such as s3://bucket/cassettes (pip install 'gevals-extensions[remote]').
Several are worked on in parallel. --shard 2/3 takes every third of them in the order of their names, beginning with the
second, so that the jobs of a CI matrix share the work.
"""
