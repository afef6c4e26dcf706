"""Building and running what is shipped."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNTRACKED = {"__pycache__", ".git", ".venv", "build", "dist", "PKG-INFO"}


def tracked_files() -> set[str]:
    """Paths of the project's files, relative to its root; in an unpacked sdist, of all files but caches."""
    if not (ROOT / ".git").exists():
        return {str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file() and _is_tracked(path.parts)}
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()}


def _is_tracked(parts: tuple[str, ...]) -> bool:
    return not any(part in UNTRACKED or part.startswith(".venv-") or part.endswith("_cache") for part in parts)


@dataclass(frozen=True)
class Shipped:
    """A wheel and an sdist, and the tree that they were built from."""

    source: Path
    wheel: Path
    sdist: Path
    files: frozenset[str]


@dataclass(frozen=True)
class Published:
    """Files for the package index: for each distribution a wheel and an sdist, by its name."""

    wheels: dict[str, Path]
    sdists: dict[str, Path]


@dataclass(frozen=True)
class Installed:
    """An environment that has wheels of this tree, and of the source tree nothing."""

    python: Path
    site_packages: Path

    def script(self, name: str) -> Path:
        """A console script of a wheel."""
        return self.python.parent / name


def run(*command: str | Path, cwd: Path) -> str:
    """The output of a command that must succeed."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(source: Path, target: str, into: Path) -> Path:
    """Build without isolation, so without network."""
    run(sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", into, cwd=source)
    pattern = "*.whl" if target == "wheel" else "*.tar.gz"
    return next(into.glob(pattern))


def publish(source: Path) -> Published:
    """Build the files of `make dist` in a copy of the tree."""
    run(sys.executable, source / ".ci" / "release.py", "dist", cwd=source)
    names = ("ext_recorder", "gevals_extensions")
    found = {name: sorted((source / "dist").glob(f"{name}-*")) for name in names}
    assert all(len(files) == 2 for files in found.values()), found
    return Published(
        {name: next(path for path in files if path.suffix == ".whl") for name, files in found.items()},
        {name: next(path for path in files if path.suffix == ".gz") for name, files in found.items()},
    )


def environment(base: Path, *wheels: Path) -> Installed:
    """Create an environment with these wheels, without their dependencies."""
    run(sys.executable, "-m", "venv", "--without-pip", "venv", cwd=base)
    python = base / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    run(*pip, "--no-deps", "--no-index", *wheels, cwd=base)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return Installed(python, base / "venv" / "lib" / version / "site-packages")
