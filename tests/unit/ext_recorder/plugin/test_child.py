"""The child of the pytest plugin, by itself."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from ext_recorder.plugin.child import ChildError, RecordedChild

if TYPE_CHECKING:
    from pathlib import Path

SILENT = (sys.executable, "-c", "import sys; sys.stdin.read()")


def test_a_child_that_does_not_answer_may_have_been_spoken_to_in_another_framing(tmp_path: Path) -> None:
    with RecordedChild(SILENT, "content-length", stderr=tmp_path / "stderr") as child:
        with pytest.raises(ChildError) as told:
            child.receive(timeout=0.01, what="the answer to initialize")
        assert str(told.value).startswith(
            "expected the answer to initialize within 0.01 s, found nothing; messages were sent in"
            ' content-length framing; for another one, use protocol="jsonrpc" in the marker'
        )
