"""Fixtures of the tests of ext-host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.host_tasks import Tasks

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tasks(tmp_path: Path) -> Tasks:
    """Return a folder for tasks."""
    return Tasks(tmp_path)
