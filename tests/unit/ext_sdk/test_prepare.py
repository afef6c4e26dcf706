"""Prepared manifests: written, checked, and never another than the extension would say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.host import PATIENCE_S, ExtensionHost
from tests.support.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path

SAMPLE = ROOT / "tests" / "support" / "samples" / "probe.py"
TARGET = "packaged.extension:extension"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    package = tmp_path / "packaged"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "extension.py").write_bytes(SAMPLE.read_bytes())
    return package


def prepare(package: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ext_sdk.prepare", *arguments],
        cwd=package.parent,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},  # an edit within the same second counts
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_what_is_written_is_what_the_extension_says(package: Path) -> None:
    ran = prepare(package, TARGET)
    path, schema = package / "manifest.json", package / "config-schema.json"
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"{path}: written\n{schema}: written\n", "")
    content = path.read_bytes()
    assert content.count(b"\n") == 1
    assert content.endswith(b"}\n")
    with ExtensionHost([sys.executable, str(SAMPLE)]) as peer:
        assert json.loads(content) == peer.initialize()["result"]
    assert json.loads(schema.read_bytes())["properties"].keys() >= {"maxOperationTime", "greeting"}


def test_what_is_there_already_is_not_written_again(package: Path) -> None:
    prepare(package, TARGET)
    ran = prepare(package, TARGET)
    assert (ran.returncode, ran.stdout) == (0, "")


def test_a_check_writes_nothing_and_tells_by_its_exit_code(package: Path) -> None:
    path, schema = package / "manifest.json", package / "config-schema.json"
    ran = prepare(package, "--check", TARGET)
    assert (ran.returncode, ran.stdout) == (
        1,
        "".join(f"{one}: is missing: run `python -m ext_sdk.prepare {TARGET}`\n" for one in (path, schema)),
    )
    assert not path.exists()
    assert not schema.exists()
    prepare(package, TARGET)
    assert prepare(package, "--check", TARGET).returncode == 0
    source = package / "extension.py"
    source.write_text(source.read_text().replace("Give the text back.", "Give it back."))
    assert prepare(package, TARGET, "--check").returncode == 1
    assert "Give the text back." in path.read_text()


@pytest.mark.parametrize("arguments", [[], ["--check"], ["packaged.extension"]])
def test_without_a_target_the_usage_is_told(package: Path, arguments: list[str]) -> None:
    ran = prepare(package, *arguments)
    assert ran.returncode == 1
    assert ran.stderr == "usage: python -m ext_sdk.prepare [--check] PACKAGE.MODULE:NAME ...\n"


def test_a_target_of_another_type_is_told(package: Path) -> None:
    ran = prepare(package, "packaged.extension:echo")
    assert ran.returncode == 1
    assert ran.stderr == "packaged.extension:echo: expected an ext_sdk.Extension, found function\n"
