"""The summary of a run, and the end of its command."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from ext_recorder.errors import UsageError
from ext_recorder.run.session import RunOptions, run

if TYPE_CHECKING:
    from pathlib import Path


def test_a_recording_is_neither_invented_nor_overwritten(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the recording does not exist, and `--mode none` makes none"):
        run(str(tmp_path / "new"), [sys.executable], RunOptions(mode="none"))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").touch()
    with pytest.raises(UsageError, match="expected the folder of a recording"):
        run(str(tmp_path / "notes"), [sys.executable], RunOptions())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes"]
