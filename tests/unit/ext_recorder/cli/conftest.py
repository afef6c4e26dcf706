"""Fixtures of the command line tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return the root of a repository, so that no project file above it is read."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "cassettes").mkdir()
    return tmp_path
