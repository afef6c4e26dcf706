"""Which file is the cassette of a test."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

FOLDER = "cassettes"
SUFFIX = ".yaml"
# What a file name may hold on every system; anything else in a parameter becomes "-".
_ODD = re.compile(r"[^\w.,=+@\[\]-]+")
_LONGEST = 200  # of a name, in characters; most file systems take 255 bytes


def cassette_dir(module: Path) -> Path:
    """The folder for the cassettes of a test module."""
    return module.parent / FOLDER / module.stem


def cassette_name(item: pytest.Item, given: str | None) -> str:
    """The name of a test's cassette within its folder.

    Args:
        item: the test.
        given: what its marker says: a name, with or without `.yaml`; None for the test's own.
    """
    if given is not None:
        return given if given.endswith(SUFFIX) else given + SUFFIX
    cls = getattr(item, "cls", None)
    name = f"{cls.__name__}.{item.name}" if cls else item.name
    return _ODD.sub("-", name)[:_LONGEST].rstrip(".") + SUFFIX
