from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def cassette(tmp_path: Path) -> Path:
    """Where a session is to be recorded; there is no such file yet."""
    return tmp_path / "session.yaml"
