"""The tests of hosts in other languages in docs/testing.md pass, if their compilers and interpreters are installed."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import ROOT, blocks
from tests.docs.running import run

if TYPE_CHECKING:
    from pathlib import Path

LIMIT_SECONDS = 300  # Go compiles a part of its library first
EXAMPLES = "docs/examples"
COMMANDS = {
    "go": (("go", "test", "-count=1", "host_test.go"),),
    "javascript": (("node", "--test", "host.test.mjs"),),
    "rust": (("rustc", "--edition", "2021", "--test", "host.rs", "-o", "host"), ("./host",)),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the examples, because compilers write to it."""
    return shutil.copytree(ROOT / EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))


def steps(language: str) -> tuple[tuple[str, ...], ...]:
    if not shutil.which(COMMANDS[language][0][0]):
        pytest.skip(f"no {COMMANDS[language][0][0]} in PATH")
    return COMMANDS[language]


@pytest.mark.parametrize("language", COMMANDS)
def test_a_host_in_another_language_is_tested_with_a_recording(language: str, folder: Path) -> None:
    for command in steps(language):
        done = run(command, folder, LIMIT_SECONDS)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("language", COMMANDS)
def test_such_a_test_fails_when_the_recording_says_otherwise(language: str, folder: Path) -> None:
    cassette = folder / "greeting.yaml"
    cassette.write_text(cassette.read_text().replace("Hello, Ada!", "Hi, Ada!"))
    codes = [run(command, folder, LIMIT_SECONDS).returncode for command in steps(language)]
    assert codes[-1] != 0


def test_every_block_in_another_language_is_one_of_these_files() -> None:
    shown = {block.kind: block.flags for block in blocks() if block.kind in COMMANDS}
    assert shown == {
        language: [f"file={EXAMPLES}/{name}"]
        for language, name in {"go": "host_test.go", "javascript": "host.test.mjs", "rust": "host.rs"}.items()
    }
