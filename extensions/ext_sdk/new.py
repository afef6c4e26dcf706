"""Command `ext-sdk`: `new` writes a package with an extension, tests and a prepared manifest, which `prepare` updates.

What `new` writes runs and passes its tests without changes: authors replace the sample operation by their own.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ext_sdk.core import __version__, unsupported_system
from ext_sdk.core.stdio import run_program

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")

# Files of the package; NAME is the name of the extension, MODULE that of its Python package.
FILES = {
    "README.md": """# ext-NAME

An extension for evals, with the operation `greet`.

Run one operation, the tests, and the checks of the protocol:

    pip install --editable . pytest
    ext-NAME call greet '{"name": "Ada"}'
    pytest
    ext-recorder conformance -- ext-NAME

Serve the operations to clients of the Model Context Protocol:

    ext-NAME serve --protocol mcp

Update the prepared manifest after each new, renamed or removed operation, and each change of arguments, descriptions,
effects (`read_only=True`), configuration or version. A test finds a stale one.

    ext-sdk prepare MODULE.extension:extension

In an eval, the package is a path: link the program into the folder of the eval, `ln -s "$(command -v ext-NAME)" .`

    extensions:
      NAME:
        package: ./ext-NAME
        config: {greeting: Hello}

In a task:

    setup:
      - NAME.greet: {name: Ada}
""",
    "pyproject.toml": """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "ext-NAME"
version = "0.1.0"
description = "Extension NAME for evals"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["gevals-extensions"]

[project.scripts]
ext-NAME = "MODULE.__main__:main"

[tool.hatch.build.targets.wheel]
packages = ["src/MODULE"]

[tool.pytest.ini_options]
pythonpath = ["src"]
testpaths = ["tests"]
""",
    "src/MODULE/__init__.py": "",
    "src/MODULE/py.typed": "",
    "src/MODULE/__main__.py": '''"""Entry point of the console script `ext-NAME`."""

from ext_sdk.boot import serve


def main() -> int:
    """Serve a host on standard input and output, or handle the command line."""
    return serve("MODULE.extension:extension")


if __name__ == "__main__":
    raise SystemExit(main())
''',
    "src/MODULE/extension.py": '''"""The extension and its operations."""

import ext_sdk


class Config(ext_sdk.Config):
    """Configuration: `config` of the extension in an eval."""

    greeting: str = "Hello"


extension = ext_sdk.Extension("NAME", version="0.1.0", description="Greets people", config=Config)


@extension.operation(example={"name": "Ada"}, read_only=True, open_world=False)
def greet(context: ext_sdk.Context[Config], name: str) -> ext_sdk.Result:
    """Greet a person; fail if the name is empty.

    Args:
        name: Name of the person.
    """
    if not name:
        return ext_sdk.Result.failed("no name to greet", error="name: expected a text, found an empty one")
    return ext_sdk.Result.ok(f"{context.config.greeting}, {name}!", outputs={"letters": len(name)})
''',
    "tests/conftest.py": '''"""The extension under test, for the fixture `ext_host`."""

import pytest

import ext_sdk

from MODULE.extension import extension as tested


@pytest.fixture
def extension() -> ext_sdk.Extension:
    return tested
''',
    "tests/test_extension.py": '''"""Tests of the operations, in process, and of the prepared manifest."""

from pathlib import Path

from ext_sdk.prepare import prepared
from ext_sdk.testing import Host, call

from MODULE.extension import extension as tested


def test_a_person_is_greeted(ext_host: Host) -> None:
    result = ext_host.call("greet", {"name": "Ada"})
    assert result.message == "Hello, Ada!"
    assert result.outputs == {"letters": "3"}


def test_the_greeting_can_be_configured(tmp_path: Path) -> None:
    result = call(tested, "greet", {"name": "Ada"}, workdir=tmp_path, config={"greeting": "Salve"})
    assert result.message == "Salve, Ada!"


def test_an_empty_name_fails_with_the_reason(ext_host: Host) -> None:
    assert "found an empty one" in ext_host.call("greet", {"name": ""}).error


def test_the_prepared_manifest_is_up_to_date() -> None:
    for path, content in prepared("MODULE.extension:extension").items():
        assert path.read_bytes() == content, "run: ext-sdk prepare MODULE.extension:extension"
''',
}


def new(name: str, folder: Path) -> Path:
    """Write the package `ext-NAME` into a folder, and return its path.

    Raises:
        ValueError: the name can't be used, or the package exists.
        OSError: a file can't be written.
    """
    short = name.removeprefix("ext-")
    if not NAME.fullmatch(short):
        raise ValueError(f"expected a name such as git or my-database (a-z, 0-9 and -), found {name!r}")
    module = f"ext_{short.replace('-', '_')}"
    target = folder / f"ext-{short}"
    if target.exists():
        raise ValueError(f"{target} exists; remove it, or choose another name")
    for path, text in FILES.items():
        file = target / path.replace("MODULE", module)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("MODULE", module).replace("NAME", short))
    # In a process of its own, because this one need not be able to import the package.
    environment = os.environ | {"PYTHONPATH": str((target / "src").absolute())}
    command = [sys.executable, "-m", "ext_sdk.prepare", f"{module}.extension:extension"]
    subprocess.run(command, cwd=target, env=environment, check=True, stdout=subprocess.DEVNULL)
    return target


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line `ext-sdk`, and return the exit code."""
    return run_program("ext-sdk", lambda: _main(arguments))


def _main(arguments: Sequence[str] | None) -> int:
    if reason := unsupported_system():
        print(f"ext-sdk: {reason}", file=sys.stderr)
        return 2
    parser = argparse.ArgumentParser(prog="ext-sdk", description="Write and update extensions for evals.")
    parser.add_argument("--version", action="version", version=f"ext-sdk {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    create = commands.add_parser("new", help="write a package with an extension, its tests, manifest and README")
    create.add_argument("name", metavar="NAME", help="name of the extension, such as git; the folder is ext-NAME")
    create.add_argument("--directory", type=Path, default=Path(), help="parent folder (default: the current one)")
    update = commands.add_parser("prepare", help="write the prepared manifest of an extension, or check it")
    update.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file is stale")
    update.add_argument("targets", nargs="+", metavar="PACKAGE.MODULE:NAME")
    chosen = parser.parse_args(arguments)
    if chosen.command == "prepare":
        from . import prepare

        return prepare.main([*chosen.targets, *(["--check"] if chosen.check else [])])
    try:
        target = new(chosen.name, chosen.directory)
    except (ValueError, OSError, subprocess.CalledProcessError) as error:
        print(f"ext-sdk new: {error}", file=sys.stderr)
        return 1
    print(f"wrote {target}; next: cd {target} && pip install --editable . pytest && pytest")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
