"""Whatever a page shows can be typed, and does what the page says."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest
import yaml

from tests.docs.pages import KINDS, ROOT, Block, agrees, blocks, commands
from tests.docs.running import run

if TYPE_CHECKING:
    from collections.abc import Iterator

ALL = list(blocks())
COPIED = ("README.md", "pyproject.toml", "cassettes", "docs", "tests")
LIMIT_SECONDS = 120


def of_kind(*kinds: str) -> pytest.MarkDecorator:
    chosen = [block for block in ALL if block.kind in kinds]
    return pytest.mark.parametrize("block", chosen, ids=str)


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Path]:
    """Return a copy of the files that examples use, because they write to it; stop servers of a failed example."""
    directory = tmp_path / "checkout"
    directory.mkdir()
    for name in COPIED:
        source = ROOT / name
        ignored = shutil.ignore_patterns("__pycache__")
        if source.is_dir():
            shutil.copytree(source, directory / name, ignore=ignored)
        else:
            shutil.copy(source, directory / name)
    yield directory
    for file in directory.glob("*.pid"):
        with suppress(OSError):  # it has ended
            if Path(f"/proc/{file.read_text().strip()}/cwd").readlink() == directory:
                os.kill(int(file.read_text()), signal.SIGTERM)


@pytest.mark.parametrize("block", ALL, ids=str)
def test_a_block_says_what_it_is(block: Block) -> None:
    assert block.kind in KINDS, block.info
    assert all(flag == "not-run" or flag.startswith("file=") for flag in block.flags), block.info


# README's commands are run in an empty folder: tests/packaging/test_first_hour.py.
@pytest.mark.parametrize("page", sorted({block.page for block in ALL if block.kind == "console"} - {"README.md"}))
def test_commands_can_be_typed_one_after_the_other(page: str, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(checkout.parent))  # cassettes name it
    folder = (checkout / page).parent if page.startswith("docs/examples/") else checkout
    for block in ALL:
        if block.page == page and block.kind == "console" and "not-run" not in block.flags:
            assert block.text.startswith("$ "), f"{block}: a console block begins with `$ ` and a command"
            for command in commands(block):
                if target := re.match(r"make ([a-z-]+)", command.text):
                    assert f"\n{target[1]}:" in (ROOT / "Makefile").read_text(), f"{block}: {command.text}"
                    continue
                done = run(["bash", "-o", "pipefail", "-c", command.text], folder, LIMIT_SECONDS)
                assert done.returncode == 0, f"{block}: {command.text}\n{done.stdout}"
                if command.output:
                    assert agrees(command.output, done.stdout), f"{block}: {command.text}\n{done.stdout}"


@of_kind("python")
def test_python_runs(block: Block, checkout: Path) -> None:
    done = run([sys.executable, "-W", "error", "-c", block.text], checkout, LIMIT_SECONDS)
    assert done.returncode == 0, done.stdout


@of_kind("json")
def test_json_is_json(block: Block) -> None:
    json.loads(block.text)


@of_kind("toml")
def test_toml_is_toml(block: Block) -> None:
    tomllib.loads(block.text)


@of_kind("yaml")
def test_steps_fit_the_manifest(block: Block, manifests: dict[str, dict[str, object]]) -> None:
    for document in yaml.safe_load_all(block.text):
        for alias, operation, args in steps(document):
            if alias in manifests:
                operations = manifests[alias]["operations"]
                assert isinstance(operations, dict)
                assert operation in operations, f"{alias}.{operation}"
                jsonschema.validate(args, operations[operation]["params"])


@pytest.fixture(scope="module")
def manifests() -> dict[str, dict[str, object]]:
    """Return the manifests of the project's extensions, by the alias that the pages use."""
    found = {}
    for path in (ROOT / "extensions").glob("*/manifest.json"):
        manifest = json.loads(path.read_text())
        found[manifest["name"]] = manifest
    return found


def steps(value: object) -> Iterator[tuple[str, str, object]]:
    """Everything of the form `ALIAS.OPERATION: args` in a document."""
    if isinstance(value, list):
        for item in value:
            yield from steps(item)
    if isinstance(value, dict):
        for key, item in value.items():
            alias, dot, operation = str(key).partition(".")
            if dot and not isinstance(item, str):
                yield alias, operation, item
            else:
                yield from steps(item)
