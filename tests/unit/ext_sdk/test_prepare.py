"""Prepared manifests: written, checked, and never another than the extension would say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from ext_sdk.prepare import stale_warning
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
    path, schema, tools = (package / name for name in ("manifest.json", "config-schema.json", "tools.ndjson"))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == f"{path}: written\n{schema}: written\n{tools}: written\n"
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
    path, schema, tools = (package / name for name in ("manifest.json", "config-schema.json", "tools.ndjson"))
    ran = prepare(package, "--check", TARGET)
    assert (ran.returncode, ran.stdout) == (
        1,
        "".join(f"{one}: is missing: run `ext-sdk prepare {TARGET}`\n" for one in (path, schema, tools)),
    )
    assert not path.exists()
    assert not schema.exists()
    prepare(package, TARGET)
    assert prepare(package, "--check", TARGET).returncode == 0
    source = package / "extension.py"
    source.write_text(source.read_text().replace("Give the text back.", "Give it back."))
    assert prepare(package, TARGET, "--check").returncode == 1
    assert "Give the text back." in path.read_text()


def test_declared_outputs_are_written_without_those_of_operations_that_declare_none(package: Path) -> None:
    source = GREETER + GREETER.partition("\n\n\n")[2].replace("greet(", "meet(").replace(
        "operation()", "operation(outputs={'text?': 'the greeting'})"
    )
    (package / "extension.py").write_text(source)
    assert f"{package / 'operations.json'}: written" in prepare(package, TARGET).stdout
    assert json.loads((package / "operations.json").read_bytes()) == {"meet": {"outputs": {"text?": "the greeting"}}}


GREETER = """
import ext_sdk

extension = ext_sdk.Extension("greeter", version="1.0.0")


@extension.operation()
def greet(name: str) -> ext_sdk.Result:
    'Greet a person.'
    return ext_sdk.Result.ok(name)
"""


@pytest.fixture
def source(package: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The source of an extension whose manifest was prepared an hour ago, and that can be imported here, once."""
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in [name for name in sys.modules if name.partition(".")[0] == "packaged"]:
        monkeypatch.delitem(sys.modules, name)
    source = package / "extension.py"
    source.write_text(GREETER)
    assert prepare(package, TARGET).returncode == 0
    hour_ago = time.time() - 3600
    for path in package.iterdir():
        if path.is_file():
            os.utime(path, (hour_ago, hour_ago))
    return source


def change(source: Path, old: str, new: str, *, seconds: float) -> None:
    """Change a source so many seconds after the manifest was prepared."""
    source.write_text(source.read_text().replace(old, new))
    changed = source.with_name("manifest.json").stat().st_mtime + seconds
    os.utime(source, (changed, changed))


def test_a_stale_manifest_is_found_if_a_source_is_newer(source: Path) -> None:
    manifest = source.with_name("manifest.json")
    change(source, "Greet a person", "Greet", seconds=60)
    assert (
        stale_warning(TARGET)
        == f"{manifest} and {source.with_name('tools.ndjson')} are stale, and hosts get what was prepared before: "
        f"run `ext-sdk prepare {TARGET}`"
    )
    assert prepare(source.parent, TARGET).returncode == 0
    assert stale_warning(TARGET) == ""


def test_without_a_newer_source_nothing_is_imported(source: Path) -> None:
    change(source, "import ext_sdk", "raise SystemExit", seconds=1)
    assert stale_warning(TARGET) == ""


@pytest.mark.parametrize(("seconds", "compared_again"), [(60, False), (3599, True)])
def test_a_change_of_anything_else_is_compared_once(source: Path, seconds: int, compared_again: bool) -> None:
    """A source that has just changed may have changed again since it was imported."""
    change(source, "import ext_sdk", "import ext_sdk  # a comment", seconds=seconds)
    assert stale_warning(TARGET) == ""
    assert (source.stat().st_mtime > source.with_name("manifest.json").stat().st_mtime) is compared_again


def test_a_manifest_that_can_not_be_prepared_again_has_the_reason(source: Path) -> None:
    change(source, "@extension.operation()", "", seconds=60)
    warning = stale_warning(TARGET)
    assert warning.startswith(f"{source.with_name('manifest.json')} is stale: a source is newer, and it cannot be")
    assert warning.endswith(": extension 'greeter' has no operations; add one with @extension.operation()")


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("", "expected PACKAGE.MODULE:NAME, such as ext_git.extension:extension, found ''"),
        ("packaged.extension", "found 'packaged.extension'"),
        ("packaged.extension:echo", "packaged.extension:echo: expected an ext_sdk.Extension, found function"),
        ("packaged.extension:extensions", "expected an ext_sdk.Extension, found no such name"),
        ("packed.extension:extension", "found no module packed; install the package (`pip install --editable .`)"),
        ("packaged.extensions:extension", "found no module packaged.extensions; install the package"),
        ("single:extension", "expected a module in a package, which has the prepared files, found single.py"),
        ("packaged.broken:extension", "ModuleNotFoundError: No module named 'missing_library'"),
    ],
)
def test_another_target_is_refused_with_the_reason(package: Path, target: str, told: str) -> None:
    package.with_name("single.py").write_bytes(SAMPLE.read_bytes())
    (package / "broken.py").write_text("import missing_library\n")
    ran = prepare(package, *filter(None, [target]))
    assert ran.returncode == 1
    assert told in ran.stderr
    assert ("Traceback" in ran.stderr) is (target == "packaged.broken:extension")
    assert not (package / "manifest.json").exists()
