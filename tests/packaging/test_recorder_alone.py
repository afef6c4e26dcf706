"""The distribution ext-recorder in an environment that has its requirements and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
from importlib.metadata import Distribution, distribution
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement

from tests.packaging.artefacts import Installed, Published, environment, run

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# The child that is recorded: the interpreter of the environment, which has nothing else.
CHILD = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    result = {"text": request["method"].upper()}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""
SESSION = "".join(json.dumps({"jsonrpc": "2.0", "id": n, "method": f"m{n}"}) + "\n" for n in (1, 2))
IMPORT_EVERYTHING = """
import importlib, pkgutil, ext_recorder, ext_sdk.core
for package in (ext_recorder, ext_sdk.core):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__") and not module.name.startswith(
            ("ext_recorder.plugin", "ext_recorder.http.inject.")
        ):
            importlib.import_module(module.name)
            print(module.name)
"""


def required(texts: Iterable[str], found: dict[str, Distribution]) -> dict[str, Distribution]:
    """Return distributions of the environment of the tests: those that these requirements need, by name."""
    for text in texts:
        requirement = Requirement(text)
        if requirement.name not in found and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            found[requirement.name] = distribution(requirement.name)
            required(found[requirement.name].requires or [], found)
    return found


def link(requirements: Iterable[str], folder: Path) -> None:
    """Link what these requirements need into a folder of packages."""
    for one in required(requirements, {}).values():
        for name in {file.parts[0] for file in one.files or []} - {"..", "__pycache__"}:
            if not (folder / name).exists():
                (folder / name).symlink_to(str(one.locate_file(name)))


@pytest.fixture(scope="module")
def alone(published: Published, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    created = environment(tmp_path_factory.mktemp("alone"), published.wheels["ext_recorder"])
    (own,) = Distribution.discover(name="ext-recorder", path=[str(created.site_packages)])
    link(own.requires or [], created.site_packages)
    return created


@pytest.fixture
def recorder(alone: Installed, tmp_path: Path) -> list[str | Path]:
    (tmp_path / "child.py").write_text(CHILD)
    return [alone.script("ext-recorder")]


def played(command: list[str | Path], cwd: Path, text: str = "") -> str:
    done = subprocess.run(command, input=text, cwd=cwd, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_of_gevals_extensions_and_of_the_large_packages_is_there(alone: Installed, tmp_path: Path) -> None:
    program = "import importlib.util as u, sys; print([n for n in sys.argv[1:] if u.find_spec(n)])"
    names = ("ext_host", "ext_shell", "ext_sdk.args", "kubernetes", "httpx2", "msgspec", "pydantic", "aiohttp", "yaml")
    assert run(alone.python, "-c", program, *names, cwd=tmp_path) == "['yaml']\n"
    assert sorted(path.name for path in alone.python.parent.glob("ext-*")) == ["ext-recorder"]


def test_every_module_can_be_imported(alone: Installed, tmp_path: Path) -> None:
    names = run(alone.python, "-W", "error", "-c", IMPORT_EVERYTHING, cwd=tmp_path).split()
    assert {"ext_recorder.tools.lint", "ext_recorder.http.proxy.certificates", "ext_sdk.core.text"} <= set(names)


def test_a_session_is_recorded_replayed_verified_checked_and_shown(
    alone: Installed, recorder: list[str | Path], tmp_path: Path
) -> None:
    child: list[str | Path] = ["--", alone.python, "child.py"]
    recorded = played([*recorder, "record", "session.yaml", *child], tmp_path, SESSION)
    assert [json.loads(line)["result"] for line in recorded.splitlines()] == [{"text": "M1"}, {"text": "M2"}]
    assert played([*recorder, "replay", "session.yaml"], tmp_path, SESSION) == recorded
    assert played([*recorder, "verify", "session.yaml", *child], tmp_path).startswith("ok")
    assert played([*recorder, "lint", "session.yaml"], tmp_path).startswith("ok")
    played([*recorder, "view", "-o", "session.html", "session.yaml"], tmp_path)
    assert "M2" in (tmp_path / "session.html").read_text()


def test_a_command_is_recorded_with_its_http_and_replayed(
    alone: Installed, recorder: list[str | Path], tmp_path: Path
) -> None:
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "greeting.txt").write_text("hello from the server")
    with subprocess.Popen(
        [alone.python, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", "served"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout
        port = server.stdout.readline().split("port ")[1].split()[0]
        program = f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{port}/greeting.txt').read())"
        command = ["recording", "--", str(alone.python), "-c", program]
        live = played([*recorder, "run", *command], tmp_path)
        server.terminate()
    assert "hello from the server" in live
    assert played([*recorder, "run", "--mode", "none", *command], tmp_path) == live


def test_pytest_finds_the_plugin(alone: Installed, tmp_path: Path) -> None:
    (tmp_path / "pytest").mkdir()
    link(["pytest"], tmp_path / "pytest")
    text = "def test_it(pytestconfig):\n    assert pytestconfig.pluginmanager.hasplugin('ext-recorder')\n"
    (tmp_path / "test_it.py").write_text(text)
    done = subprocess.run(
        [alone.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "pytest")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr
