"""What is shipped is what works: the wheel alone, in an environment of its own, far from the source tree."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ext_sdk.core import __version__
from tests.packaging.artefacts import ROOT, Installed, run

if TYPE_CHECKING:
    from pathlib import Path

IMPORT_EVERYTHING = """
import importlib, json, pkgutil, sys
found = {}
for name in ("ext_sdk", "ext_http", "ext_kubernetes", "ext_shell", "ext_recorder"):
    package = importlib.import_module(name)
    found[name] = package.__file__
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        # pytest has the plugin; what is injected runs in other programs, under other names
        if not module.name.endswith("__main__") and not module.name.startswith(
            ("ext_recorder.plugin", "ext_recorder.http.inject.")
        ):
            found[module.name] = importlib.import_module(module.name).__file__
json.dump(found, sys.stdout)
"""


def test_every_module_can_be_imported_from_the_wheel(installed: Installed, tmp_path: Path) -> None:
    found = json.loads(run(installed.python, "-W", "error", "-c", IMPORT_EVERYTHING, cwd=tmp_path))
    assert {"ext_sdk.core.wire.framing", "ext_shell", "ext_recorder"} <= found.keys()
    assert all(path.startswith(str(installed.site_packages)) for path in found.values()), found


def test_the_one_shot_example_of_the_spec_works_from_the_wheel(installed: Installed, tmp_path: Path) -> None:
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "execute",
        "params": {
            "operation": "run",
            "args": {"command": ["echo", "hi"]},
            "context": {"workdir": ".", "phase": "setup"},
        },
    }
    done = subprocess.run(
        [installed.script("ext-shell")],
        input=json.dumps(request) + "\n",
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])["result"]
    assert result["success"] is True
    assert result["outputs"]["stdout"] == "hi\n"


@pytest.mark.parametrize("script", ["ext-http", "ext-kubernetes", "ext-shell", "ext-recorder"])
def test_a_console_script_tells_its_version_and_its_use(installed: Installed, tmp_path: Path, script: str) -> None:
    assert __version__ in run(installed.script(script), "--version", cwd=tmp_path)
    assert script in run(installed.script(script), "--help", cwd=tmp_path)


def test_an_extension_recorded_by_the_installed_recorder_plays_without_it(installed: Installed, tmp_path: Path) -> None:
    session = "".join(
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"
        for number, (method, params) in enumerate(
            [("initialize", {"protocolVersion": "0.0.1"}), ("shutdown", {})], start=1
        )
    )

    def play(*command: str | Path) -> str:
        done = subprocess.run(
            [installed.script("ext-recorder"), *command],
            input=session,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    recorded = play("record", "session.yaml", "--", installed.script("ext-shell"))
    assert json.loads(recorded.splitlines()[0])["result"]["name"] == "shell"
    assert play("replay", "session.yaml") == recorded


@pytest.mark.parametrize("name", ["recorder", "extensions"])
def test_the_source_roots_are_not_importable_from_the_wheel(installed: Installed, tmp_path: Path, name: str) -> None:
    done = subprocess.run(
        [installed.python, "-c", f"import {name}"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert f"No module named '{name}'" in done.stderr


@pytest.mark.parametrize("line", ["import recorder", "from extensions import ext_sdk", "import recorder.ext_recorder"])
def test_importing_a_source_root_as_a_package_is_refused_by_the_linter(line: str) -> None:
    # At the root of the checkout Python takes any folder for a namespace package: there it would even work.
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--stdin-filename", "extensions/ext_sdk/some.py", "-"],
        input=f"{line}\n",
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "TID251" in done.stdout


def test_the_packages_are_the_same_ones_at_the_root_of_the_checkout() -> None:
    out = run(sys.executable, "-c", "import ext_sdk, sys; print(ext_sdk.__spec__.origin)", cwd=ROOT)
    assert out.strip() == str(ROOT / "extensions" / "ext_sdk" / "__init__.py")
