"""Generated files are up to date."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from docs.generate import source_blocks
from tests.docs.pages import ROOT, Block, agrees, commands

if TYPE_CHECKING:
    from pathlib import Path


def test_manifests_and_reference_pages_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "docs.generate", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_a_block_that_names_a_file_is_filled_with_its_text(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("new\n\nlines\n")
    page = "before\n\n```python file=a.py\nold\n```\n\n```python\nkept\n```\n"
    filled = "before\n\n```python file=a.py\nnew\n\nlines\n```\n\n```python\nkept\n```\n"
    assert source_blocks.filled(page, tmp_path) == filled
    assert source_blocks.filled(filled, tmp_path) == filled


def test_a_table_of_operations_stands_between_its_comments() -> None:
    page = "before\n<!-- operations: ext-a -->\nold\n<!-- /operations -->\nafter\n"
    filled = source_blocks.with_tables(page, {"operations: ext-a": "| new |\n"})
    assert filled == "before\n<!-- operations: ext-a -->\n| new |\n<!-- /operations -->\nafter\n"
    assert source_blocks.with_tables(filled, {"operations: ext-a": "| new |\n"}) == filled


def test_commands_are_told_from_their_output() -> None:
    block = Block("page", 1, "console", "$ first \\\n    goes on\nits output\n$ second\n")
    found = [(command.text, command.output) for command in commands(block)]
    assert found == [("first \\\n    goes on", "its output\n"), ("second", "")]


def test_an_ellipsis_stands_for_any_text() -> None:
    assert agrees("took … s\n…\nend\n", "took 1.5 s\na\nb\nend")
    assert not agrees("took … s\n", "took 1.5 m\n")
