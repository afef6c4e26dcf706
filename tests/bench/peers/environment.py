"""Where other recorders are installed: an environment in the user's cache, made once for its requirements."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.errors import NotHere

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
NEWEST = ("3.14", "3.13", "3.12")  # some need 3.12 at least
_COMPLAINT = 500  # characters


def installed(tell: Callable[[str], None]) -> Path:
    """The folder with the programs of the peers, installed for the first that asks. Raises NotHere."""
    python = next(_pythons(), sys.executable)
    version = _said(python, "import sys; print('%d.%d' % sys.version_info[:2])")
    key = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    made = cache / "gevals-extensions" / f"bench-peers-{version}-{key}"
    if not made.exists():
        tell(f"installing other recorders into {made}, once")
        part = made.with_name(f"{made.name}.part")
        _run(python, "-m", "venv", "--clear", str(part))
        _run(str(part / "bin" / "python"), "-m", "pip", "install", "--quiet", "--requirement", str(REQUIREMENTS))
        # Scripts name the interpreter that they were made for: a link keeps its name alive.
        made.symlink_to(part.name, target_is_directory=True)
    return made / "bin"


def _pythons() -> Iterator[str]:
    """Interpreters that all peers can be installed for: in PATH, or known to pyenv. The newest first."""
    for version in NEWEST:
        found = shutil.which(f"python{version}")
        if found and _said(found, "import venv; print('ok')") == "ok":
            yield found
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for version in NEWEST:
        yield from (str(each) for each in sorted(versions.glob(f"{version}.*/bin/python"), reverse=True))


def _said(python: str, code: str) -> str:
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotHere(f"other recorders can't be installed: {done.stderr.strip()[-_COMPLAINT:]}")
