"""The tests of hosts in other languages in docs/testing.md pass, if their compilers and interpreters are installed."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import ROOT, blocks
from tests.docs.running import run

if TYPE_CHECKING:
    from pathlib import Path

LIMIT_SECONDS = 300  # Go compiles a part of its library first
EXAMPLES = "docs/examples"
COMMANDS = {
    "go": (("go", "test", "-count=1", "host_test.go"),),
    "javascript": (("node", "--test", "host.test.mjs"),),
    "rust": (("rustc", "--edition", "2021", "--test", "host.rs", "-o", "host"), ("./host",)),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the examples, because compilers write to it."""
    return shutil.copytree(ROOT / EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))


def steps(language: str) -> tuple[tuple[str, ...], ...]:
    if not shutil.which(COMMANDS[language][0][0]):
        pytest.skip(f"no {COMMANDS[language][0][0]} in PATH")
    return COMMANDS[language]


@pytest.mark.parametrize("language", COMMANDS)
def test_a_host_in_another_language_is_tested_with_a_recording(language: str, folder: Path) -> None:
    for command in steps(language):
        done = run(command, folder, LIMIT_SECONDS)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("language", COMMANDS)
def test_such_a_test_fails_when_the_recording_says_otherwise(language: str, folder: Path) -> None:
    cassette = folder / "greeting.yaml"
    cassette.write_text(cassette.read_text().replace("Hello, Ada!", "Hi, Ada!"))
    codes = [run(command, folder, LIMIT_SECONDS).returncode for command in steps(language)]
    assert codes[-1] != 0


def test_every_block_in_another_language_is_one_of_these_files() -> None:
    shown = {block.kind: block.flags for block in blocks() if block.kind in COMMANDS}
    assert shown == {
        language: [f"file={EXAMPLES}/{name}"]
        for language, name in {"go": "host_test.go", "javascript": "host.test.mjs", "rust": "host.rs"}.items()
    }


def test_the_configurations_of_mcp_clients_start_a_server_with_the_operations_that_they_allow(tmp_path: Path) -> None:
    shown = [block.text for block in blocks() if block.page == "docs/serving.md"]
    found = [json.loads(text) for text in shown if re.search(r'"(mcpServers|servers)"', text)]
    entries = [next(iter(config.values()))["shell"] for config in found]
    lines = [" ".join(re.sub("^/.*/", "", word) for word in (entry["command"], *entry["args"])) for entry in entries]
    lines += [text.partition(" -- ")[2].strip() for text in shown if text.startswith("$ claude mcp add ")]
    assert len(lines) == 3
    requests: tuple[tuple[str, object], ...] = (
        ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}}),
        ("tools/list", {}),
    )
    sent = [
        {"jsonrpc": "2.0", "id": id, "method": name, "params": params} for id, (name, params) in enumerate(requests)
    ]
    (tmp_path / "input").write_text("".join(json.dumps(message) + "\n" for message in sent))
    for line in lines:
        command = re.sub(r"--workdir \S+", f"--workdir {tmp_path}", line)
        assert command != line
        done = run(["bash", "-c", f"{command} <input"], tmp_path, LIMIT_SECONDS)
        *notices, _, listed = done.stdout.splitlines()
        names = {tool["name"] for tool in json.loads(listed)["result"]["tools"]}
        assert {"run", "write-file"} <= names
        assert names.isdisjoint({"start", "remove"})
        assert "start, copy, remove" in notices[0]
