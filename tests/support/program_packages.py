"""Packages of others that tests run through ext-recorder, installed once into the user's cache, by a list of versions.

They are not dependencies of this project: only these tests use them, and they are larger than all of it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

LISTS = Path(__file__).with_name("programs")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gevals-extensions"
SHOWN = 500  # characters of an installer's message


@cache
def python_packages() -> Path:
    """Return a folder for PYTHONPATH. Skip the test if the packages can't be installed."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    requirements = LISTS / "requirements.txt"
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
    return _installed(f"programs-python-{version}", requirements, *pip, "--requirement", str(requirements), "--target")


@cache
def node_packages() -> Path:
    """Return a folder with `node_modules`. Skip the test if there is no Node, or the packages can't be installed."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("no node and npm in PATH")
    npm = ("npm", "ci", "--no-audit", "--no-fund", "--loglevel=error", "--prefix")
    return _installed("programs-node", LISTS / "package-lock.json", *npm)


def _installed(name: str, versions: Path | None, *command: str, key: str = "") -> Path:
    """Return the folder of a list of versions, or of a key. The last argument of the command is that folder."""
    key = hashlib.sha256(versions.read_bytes()).hexdigest()[:12] if versions else key
    folder = CACHE / f"{name}-{key}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other test processes wait
        if not folder.exists():
            part = folder.with_name(f"{folder.name}.part")
            shutil.rmtree(part, ignore_errors=True)
            shutil.copytree(LISTS, part) if versions else part.mkdir()
            done = subprocess.run([*command, str(part)], capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"{' '.join(command[:4])}: {done.stderr.strip()[-SHOWN:]}")
            part.rename(folder)
    return folder


# Programs with their dependencies, by exact versions, without a list of all their packages.
CODING_AGENT = "@mariozechner/pi-coding-agent"
CODING_AGENT_VERSION = "0.73.1"
INSPECTOR = "@modelcontextprotocol/inspector-cli"
INSPECTOR_VERSION = "0.15.0"


@cache
def coding_agent() -> Path:
    """Return the program of Pi, a coding agent. Skip the test if there is no Node, or it can't be installed."""
    folder = _node_program("pi-coding-agent", CODING_AGENT, CODING_AGENT_VERSION)
    return folder / "node_modules" / CODING_AGENT / "dist" / "cli.js"


@cache
def inspector() -> Path:
    """Return the command line of the MCP Inspector. Skip the test if there is no Node, or it can't be installed."""
    folder = _node_program("mcp-inspector", INSPECTOR, INSPECTOR_VERSION)
    return folder / "node_modules" / INSPECTOR / "build" / "cli.js"


def npm_package(package: str, version: str) -> Path:
    """Return the folder of an installed package. Skip the test if there is no Node, or it can't be installed."""
    name = package.rpartition("/")[2]
    return _node_program(name, package, version) / "node_modules" / package


def _node_program(name: str, package: str, version: str) -> Path:
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("no node and npm in PATH")
    npm = ("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--no-save")
    return _installed(name, None, *npm, f"{package}@{version}", "--prefix", key=version)
