"""Steps of a release that `.ci/release.py` does without the package index."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ext_sdk.core import __version__
from tests.packaging.artefacts import ROOT

if TYPE_CHECKING:
    from pathlib import Path

CHANGELOG = """# Changelog

## [Unreleased]

## [VERSION] - 2026-12-01

### Added

- A program.

## [0.0.1] - 2026-11-01

- The first one.

[0.0.1]: https://example.com/compare
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (".ci/release.py", "extensions/ext_sdk/core/__init__.py", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG.replace("VERSION", __version__))
    (tmp_path / "dist").mkdir()
    return tmp_path


def release(tree: Path, *arguments: str, repository: str = "") -> tuple[int, str]:
    command: list[str | Path] = [sys.executable, tree / ".ci" / "release.py", *arguments]
    environ = os.environ | {"GITHUB_REPOSITORY": repository}
    done = subprocess.run(command, cwd=tree, env=environ, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_the_notes_of_a_version_are_its_section_of_the_changelog(tree: Path) -> None:
    assert release(tree, "notes", __version__) == (0, "### Added\n\n- A program.\n")
    assert release(tree, "notes", "0.0.1") == (0, "- The first one.\n")


@pytest.mark.parametrize("number", ["0.0.2", "0.0", "Unreleased"])
def test_a_version_without_a_section_has_no_notes(tree: Path, number: str) -> None:
    code, output = release(tree, "notes", number)
    assert code == 1
    assert output == (
        f"release: CHANGELOG.md: no section `## [{number}] - YYYY-MM-DD` with text; add it before the tag\n"
    )


def test_an_empty_section_is_no_release(tree: Path) -> None:
    text = (tree / "CHANGELOG.md").read_text().replace("- The first one.\n", "")
    (tree / "CHANGELOG.md").write_text(text)
    assert release(tree, "notes", "0.0.1")[0] == 1


def test_a_tag_of_another_version_is_refused(tree: Path) -> None:
    path = "extensions/ext_sdk/core/__init__.py"
    assert release(tree, "check", "v9.9.9") == (
        1,
        f"release: tag v9.9.9: the version of {path} is {__version__}; tag v{__version__}\n",
    )


def test_the_right_tag_needs_a_section_and_the_wheels(tree: Path) -> None:
    wheel = f"dist/ext_recorder-{__version__}-py3-none-any.whl"
    missing = (1, f"release: {wheel}: no such file; build it with: make dist\n")
    assert release(tree, "check", f"v{__version__}") == missing
    (tree / "CHANGELOG.md").write_text("# Changelog\n")
    assert "CHANGELOG.md: no section" in release(tree, "check", f"v{__version__}")[1]


def test_the_release_of_another_repository_than_that_of_pyproject_is_refused(tree: Path) -> None:
    tag = f"v{__version__}"
    address = "https://github.com/OWNER/gevals-extensions"
    code, output = release(tree, "check", tag, repository="fork-owner/gevals-extensions")
    assert code == 1
    assert f"[project.urls] has {address}, but the release is of fork-owner/gevals-extensions" in output
    text = (tree / "pyproject.toml").read_text()
    assert text.count(address) == 2
    (tree / "pyproject.toml").write_text(text.replace(address, "https://github.com/fork-owner/gevals-extensions"))
    assert "no such file" in release(tree, "check", tag, repository="fork-owner/gevals-extensions")[1]


def test_the_checksums_are_those_that_sha256sum_checks(tree: Path) -> None:
    (tree / "dist" / "a.zip").write_text("a")
    (tree / "dist" / "b.zip.bundle").write_text("b")
    for _ in range(2):  # the file of the first time is not one of the second
        assert release(tree, "checksums") == (0, "")
    checked = subprocess.run(
        ["sha256sum", "--check", "SHA256SUMS"], cwd=tree / "dist", capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout) == (0, "a.zip: OK\nb.zip.bundle: OK\n")


def test_an_unknown_step_prints_the_steps() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / ".ci" / "release.py", "publish"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "release.py notes VERSION" in done.stderr
