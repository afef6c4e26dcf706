"""Sharing cassettes out: `--shard 2/3` is the second of three parts.

The cassettes are sorted by name and dealt out like cards: the first to part 1, the second to part 2, and so on. All
machines that see the same cassettes agree, all parts are of one size, give or take one, and each cassette is in one
part. A part is empty where there are more parts than cassettes.

A Kubernetes Indexed Job counts from 0: `--shard $((JOB_COMPLETION_INDEX + 1))/3`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ext_recorder.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


def shard(items: Sequence[T], text: str) -> list[T]:
    """This machine's part.

    Args:
        items: all of them, sorted.
        text: "2/3"; "" for all.

    Raises:
        UsageError: it is something else.
    """
    if not text:
        return list(items)
    first, slash, second = text.partition("/")
    if slash and _is_number(first) and _is_number(second) and 1 <= int(first) <= int(second):
        return list(items[int(first) - 1 :: int(second)])
    raise UsageError(f"--shard {text}: expected NUMBER/COUNT, from 1/COUNT to COUNT/COUNT, as in --shard 2/3")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10
