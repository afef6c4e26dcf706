"""`.ci/make-venv` on the machines that people have: the real interpreter, with a part of it hidden."""

from __future__ import annotations

import ensurepip
import functools
import hashlib
import http.server
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("sh", "chmod", "dirname", "env", "mkdir", "rm")
# ensurepip's wheel of pip: in the package, or, as distributions have it, elsewhere
WHEELS = (Path(ensurepip.__file__).parent / "_bundled", Path(sysconfig.get_config_var("WHEEL_PKG_DIR") or "/nowhere"))
BUNDLED = next((wheel for place in WHEELS for wheel in place.glob("pip-*.whl")), None)
BASE = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"

# New enough, and makes an environment whose pip is as short.
NEW_PYTHON = """#!/bin/sh
case $1 in
-c) exit 0 ;;
--version) echo "Python 3.12.9" ;;
-m) mkdir -p "$4/bin" && printf '#!/bin/sh\\necho %s/pip\\n' "$4" >"$4/bin/pip" && chmod +x "$4/bin/pip" ;;
esac
"""

pytestmark = pytest.mark.skipif(
    BUNDLED is None or not BASE.exists(), reason="needs an interpreter that carries ensurepip's own pip wheel"
)


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A directory to be the whole PATH: the tools that the script may count on, and no Python."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found, name
        (directory / name).symlink_to(found)
    return directory


def python_without(tmp_path: Path, *modules: str) -> Path:
    """An interpreter that lacks some modules, as the packages of distributions do."""
    hidden = tmp_path / "hidden"
    hidden.mkdir(exist_ok=True)
    for module in modules:
        (hidden / f"{module}.py").write_text(f"raise ImportError('no {module} here')\n")
    python = tmp_path / "a python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{hidden}" exec "{BASE}" "$@"\n')
    python.chmod(0o755)
    return python


def make_venv(tmp_path: Path, tools: Path, python: Path | None, **environment: str) -> subprocess.CompletedProcess[str]:
    chosen = {"PYTHON": str(python)} if python else {}
    return subprocess.run(
        [ROOT / ".ci" / "make-venv", "venv"],
        cwd=tmp_path,
        env={"PATH": str(tools), "HOME": str(tmp_path), "TMPDIR": str(tmp_path)} | chosen | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def pip_of(tmp_path: Path) -> str:
    command = [str(tmp_path / "venv" / "bin" / "pip"), "--version"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


@contextmanager
def index(directory: Path, *, digest: str | None = None) -> Iterator[str]:
    """A package index on loopback that has pip alone; its address."""
    assert BUNDLED
    page = directory / "simple" / "pip"
    page.mkdir(parents=True)
    shutil.copy(BUNDLED, page)
    digest = digest or hashlib.sha256(BUNDLED.read_bytes()).hexdigest()
    older = '<a href="pip-1.0-py3-none-any.whl#sha256=0">older</a><a href="pip-99.0b1-py3-none-any.whl">beta</a>'
    (page / "index.html").write_text(f'{older}<a href="{BUNDLED.name}#sha256={digest}">pip</a>')

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=directory))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/simple"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_complete_python_makes_an_environment_that_is_kept_and_made_again_elsewhere(
    tmp_path: Path, tools: Path
) -> None:
    first = make_venv(tmp_path, tools, BASE)
    assert (first.returncode, first.stdout) == (0, ""), first.stderr
    assert str(tmp_path / "venv") in pip_of(tmp_path)
    mark = tmp_path / "venv" / "mark"
    mark.touch()

    assert make_venv(tmp_path, tools, BASE).returncode == 0
    assert mark.exists()

    moved = tmp_path / "elsewhere"
    moved.mkdir()
    (tmp_path / "venv").rename(moved / "venv")

    assert make_venv(moved, tools, BASE).returncode == 0
    assert str(moved / "venv") in pip_of(moved)


def test_without_ensurepip_the_pip_beside_the_interpreter_serves(tmp_path: Path, tools: Path) -> None:
    assert BUNDLED
    python = python_without(tmp_path, "ensurepip")
    (tmp_path / "hidden" / "pip").symlink_to(Path(sysconfig.get_path("purelib")) / "pip")

    done = make_venv(tmp_path, tools, python, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(BUNDLED.parent))

    assert done.returncode == 0, (tmp_path / "venv.log").read_text()
    assert str(tmp_path / "venv") in pip_of(tmp_path)


def test_without_ensurepip_and_pip_the_package_index_serves(tmp_path: Path, tools: Path) -> None:
    python = python_without(tmp_path, "ensurepip", "pip", "virtualenv")
    with index(tmp_path / "index") as address:
        done = make_venv(tmp_path, tools, python, PIP_INDEX_URL=address)
    assert done.returncode == 0, (tmp_path / "venv.log").read_text()
    assert str(tmp_path / "venv") in pip_of(tmp_path)


def test_a_pip_that_is_not_what_the_index_says_is_not_run(tmp_path: Path, tools: Path) -> None:
    python = python_without(tmp_path, "ensurepip", "pip", "virtualenv")
    with index(tmp_path / "index", digest="0" * 64) as address:
        done = make_venv(tmp_path, tools, python, PIP_INDEX_URL=address)
    assert done.returncode == 1
    assert "expected sha256=0000" in (tmp_path / "venv.log").read_text()
    assert not (tmp_path / "venv" / "bin" / "pip").exists()


def test_where_nothing_helps_the_message_says_what_to_install(tmp_path: Path, tools: Path) -> None:
    python = python_without(tmp_path, "ensurepip", "pip", "virtualenv")
    done = make_venv(tmp_path, tools, python, PIP_INDEX_URL="http://127.0.0.1:9/simple")
    assert done.returncode == 1
    assert "apt install python3-venv" in done.stderr
    assert "venv.log" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_older_python_is_passed_over_for_a_newer_one_beside_it(tmp_path: Path, tools: Path) -> None:
    old = tools / "python3"
    old.write_text('#!/bin/sh\necho "Python 3.9.2"\nexit 1\n')
    old.chmod(0o755)
    (tools / "python3.12").write_text(NEW_PYTHON)
    (tools / "python3.12").chmod(0o755)
    done = make_venv(tmp_path, tools, None)
    assert (done.returncode, done.stderr) == (0, "made venv with Python 3.12.9\n")


def test_an_older_python_alone_is_named_with_what_is_expected(tmp_path: Path, tools: Path) -> None:
    old = tools / "python3"
    old.write_text('#!/bin/sh\necho "Python 3.9.2"\nexit 1\n')
    old.chmod(0o755)
    done = make_venv(tmp_path, tools, None)
    assert done.returncode == 1
    assert "expected Python 3.11 or newer, found Python 3.9.2" in done.stderr


def test_the_script_is_there_to_be_run() -> None:
    assert os.access(ROOT / ".ci" / "make-venv", os.X_OK)
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
