"""`ext-sdk new`: the package that it writes runs, and passes its tests."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import ext_sdk
from ext_sdk.new import main

if TYPE_CHECKING:
    from pathlib import Path


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )


def test_the_tests_of_a_new_package_pass_until_its_manifest_is_stale(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", "my-lamp", "--directory", str(tmp_path)]) == 0
    package = tmp_path / "ext-my-lamp"
    assert f"wrote {package}" in capsys.readouterr().out
    assert json.loads((package / "src" / "ext_my_lamp" / "manifest.json").read_text())["name"] == "my-lamp"
    tested = run(package, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert tested.returncode == 0, tested.stdout
    assert "4 passed" in tested.stdout
    called = run(package / "src", "-m", "ext_my_lamp", "call", "greet", '{"name": "Ada"}')
    assert called.stdout == "ok: Hello, Ada!\n  letters: 3\n"

    source = package / "src" / "ext_my_lamp" / "extension.py"
    source.write_text(source.read_text().replace("Name of the person.", "Any name."))
    stale = run(package, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "run: ext-sdk prepare ext_my_lamp.extension:extension" in stale.stdout
    checked = run(package / "src", "-P", "-m", "ext_sdk.new", "prepare", "--check", "ext_my_lamp.extension:extension")
    assert checked.returncode == 1
    assert "is stale: run `ext-sdk prepare ext_my_lamp.extension:extension`" in checked.stdout


def test_the_version_is_that_of_the_sdk(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"ext-sdk {ext_sdk.__version__}\n"


@pytest.mark.parametrize("name", ["Bad", "a b", "../x", "1st", "ext-", "a_b"])
def test_a_name_that_no_package_can_have_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", name, "--directory", str(tmp_path)]) == 1
    assert "expected a name such as git or my-database" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_package_that_exists_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ext-lamp").mkdir()
    assert main(["new", "ext-lamp", "--directory", str(tmp_path)]) == 1
    assert "exists; remove it, or choose another name" in capsys.readouterr().err
