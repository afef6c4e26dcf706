"""Every clause, asked of every extension of this project."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_recorder.conformance.raw_host import NotApplicable
from ext_recorder.conformance.target import Profile, Target

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ext_recorder.conformance.target import CheckedClause


def test_clause(
    clause: CheckedClause,
    command: tuple[str, ...],
    profile: Path | None,
    environment: Mapping[str, str],
    tmp_path: Path,
) -> None:
    known = Profile.load(profile) if profile else Profile({}, "no profile")
    try:
        clause.check(Target(command, known, tmp_path, environment=environment))
    except NotApplicable as reason:
        pytest.skip(str(reason))
