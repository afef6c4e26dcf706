"""The figures and limits of docs/performance.md are those of the bench and of the code."""

from __future__ import annotations

import re

from ext_recorder.cassette.events import MESSAGE_LIMIT_BYTES
from ext_shell.config import DEFAULT_KEPT
from tests.bench.figures import FIGURES
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "performance.md").read_text()


def test_each_figure_can_be_measured() -> None:
    shown = set(re.findall(r"^\| `([a-z.-]+\.[a-z0-9-]+)` \|", PAGE, re.MULTILINE))
    named = {name for line in re.findall(r"--only (.*)\"", PAGE) for name in line.split()}
    assert len(shown) > 10
    assert shown | named <= {figure.name for figure in FIGURES}


def test_limits_are_those_of_the_code() -> None:
    assert f"64 MiB ({MESSAGE_LIMIT_BYTES:,} bytes)" in PAGE
    assert f"{DEFAULT_KEPT >> 20} MiB (`outputLimit`)" in PAGE
