"""Which way of opening is taken, and what openat2(2) answers is passed on."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from ext_sdk import safe_open

if TYPE_CHECKING:
    from pathlib import Path


def test_on_linux_the_kernel_does_it_and_the_walk_where_the_call_is_not_to_be_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    best = safe_open.safe_opener.__wrapped__
    if os.uname().sysname == "Linux":
        assert best() is not safe_open.open_by_walk
    monkeypatch.setattr(safe_open, "SYS_OPENAT2", 100_000)  # no such system call, as on an older kernel
    assert best() is safe_open.open_by_walk
    monkeypatch.setitem(sys.modules, "ctypes", None)  # a Python that was built without
    assert best() is safe_open.open_by_walk


@pytest.mark.parametrize("way", ["best", "walk"])
def test_a_chain_of_links_has_an_end(tmp_path: Path, way: str) -> None:
    opener = safe_open.safe_opener() if way == "best" else safe_open.open_by_walk
    (tmp_path / "0").touch()
    for number in range(1, 60):
        (tmp_path / str(number)).symlink_to(str(number - 1))
    root = os.open(tmp_path, os.O_RDONLY)
    try:
        os.close(opener(root, "40", os.O_RDONLY, 0))
        with pytest.raises(OSError, match="Too many levels of symbolic links"):
            opener(root, "59", os.O_RDONLY, 0)
    finally:
        os.close(root)


@pytest.mark.parametrize("way", ["best", "walk"])
def test_what_is_opened_is_closed_on_exec(tmp_path: Path, way: str) -> None:
    opener = safe_open.safe_opener() if way == "best" else safe_open.open_by_walk
    root = os.open(tmp_path, os.O_RDONLY)
    for path, flags in (("new", os.O_CREAT | os.O_WRONLY), (".", os.O_RDONLY)):
        descriptor = opener(root, path, flags, 0o600)
        assert not os.get_inheritable(descriptor)
        os.close(descriptor)
    os.close(root)
