"""Files that appear with all their bytes or not at all."""

from __future__ import annotations

import os
from errno import ENOSPC
from typing import TYPE_CHECKING

import pytest

from ext_sdk.core.atomic import atomic_write

if TYPE_CHECKING:
    from pathlib import Path


def test_the_file_appears_when_the_block_succeeds(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    with atomic_write(str(target)) as file:
        file.write(b"new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert os.listdir(tmp_path) == ["file"]  # noqa: PTH208


def test_a_block_that_fails_leaves_the_old_file_and_no_temporary_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")

    def fail() -> None:
        with atomic_write(str(tmp_path / "file")) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert (tmp_path / "file").read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]  # noqa: PTH208


def test_an_error_of_a_write_names_the_file(tmp_path: Path) -> None:
    target = str(tmp_path / "file")

    def fill() -> None:
        with atomic_write(target) as file:
            file.write(b"x")
            raise OSError(ENOSPC, os.strerror(ENOSPC))  # as write(2) on a full disk

    with pytest.raises(OSError, match="No space left on device") as raised:
        fill()
    assert raised.value.filename == target
    assert os.listdir(tmp_path) == []  # noqa: PTH208


def test_a_name_is_relative_to_the_directory_and_permissions_do_not_depend_on_the_umask(tmp_path: Path) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        with atomic_write("file", directory, 0o640) as file:
            file.write(b"x")
    finally:
        os.close(directory)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
