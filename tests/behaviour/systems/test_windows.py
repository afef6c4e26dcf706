"""Systems without POSIX processes: each program says so in one message, and a host gets it as a JSON-RPC error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

WINDOWS = ROOT / "tests" / "support" / "systems" / "windows"
EXTENSIONS = ("ext-http", "ext-kubernetes", "ext-shell")
PROGRAMS = (*EXTENSIONS, "ext-host", "ext-recorder", "ext-sdk")
INITIALIZE = b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"0.0.1"}}\n'
REASON = "cannot run on win32: it has no POSIX processes, signals and file locks; install it in WSL (wsl --install)"
AUTHORS = """
import ext_sdk

class Greet(ext_sdk.Args):
    name: str

extension = ext_sdk.Extension("greeter", version="1.0.0", description="Says hello")

@extension.operation()
def greet(args: Greet, context: ext_sdk.Context) -> ext_sdk.Result:
    '''Say hello.'''
    return ext_sdk.Result.ok(f"Hello, {args.name}!")

raise SystemExit(extension.run())
"""


def run(*command: str | Path, given: bytes = b"") -> tuple[int, bytes, str]:
    """Run a command on a system like Windows. Return its exit code, output and errors."""
    environ = {**os.environ, "PYTHONPATH": str(WINDOWS)}
    done = subprocess.run(command, input=given, env=environ, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr.decode()


def script(name: str) -> Path:
    return Path(sys.executable).with_name(name)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("arguments", [("--help",), ("run", "x"), ("serve", "--protocol", "pi")])
def test_a_person_gets_one_message_and_exit_code_2(name: str, arguments: tuple[str, ...]) -> None:
    assert run(script(name), *arguments) == (2, b"", f"{name}: {REASON}\n")


@pytest.mark.parametrize("name", EXTENSIONS)
@pytest.mark.parametrize("arguments", [(), ("serve", "--protocol", "mcp")])
def test_a_host_gets_the_message_as_the_error_of_its_first_request(name: str, arguments: tuple[str, ...]) -> None:
    code, out, err = run(script(name), *arguments, given=INITIALIZE)
    error = {"code": -32603, "message": f"{name}: {REASON}"}
    assert json.loads(out) == {"jsonrpc": "2.0", "id": 7, "error": error}
    assert (code, err) == (2, f"{name}: {REASON}\n")


def test_the_extension_of_an_author_does_the_same(tmp_path: Path) -> None:
    program = tmp_path / "greeter.py"
    program.write_text(AUTHORS)
    code, out, err = run(sys.executable, program, given=INITIALIZE)
    assert json.loads(out)["error"]["message"] == f"greeter.py: {REASON}"
    assert (code, err) == (2, f"greeter.py: {REASON}\n")


def test_a_host_that_sends_nothing_gets_no_error() -> None:
    assert run(script("ext-shell")) == (2, b"", f"ext-shell: {REASON}\n")


def test_pytest_imports_the_plugins_of_this_distribution() -> None:
    """Every run of pytest imports them, in any project of the same environment."""
    program = "import ext_recorder.plugin, ext_sdk.testing, sys; print(sys.platform)"
    assert run(sys.executable, "-c", program)[:2] == (0, b"win32\n")


def test_another_system_without_processes_has_another_remedy() -> None:
    program = "import os, sys; del os.fork; sys.platform = 'wasi'\nfrom ext_shell.__main__ import main\nmain()"
    done = subprocess.run([sys.executable, "-c", program, "--help"], capture_output=True, text=True, check=False)
    assert done.stderr.endswith("use Linux or macOS\n")
    assert "cannot run on wasi" in done.stderr
