"""`gevals-extensions`: which program it runs, and the response to a host or a person without a choice."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ext_sdk.core import __version__, own_program
from gevals_extensions.__main__ import EXTENSIONS, HELP, PROGRAMS, VARIABLE
from tests.support.host import PATIENCE_S, ExtensionHost

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PROGRAM = (sys.executable, "-P", "-m", "gevals_extensions")
INITIALIZE = b'{"jsonrpc":"2.0","id":"first","method":"initialize","params":{"protocolVersion":"0.0.1"}}\n'


def run(*words: str, input: bytes = b"", env: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    environ = {name: value for name, value in os.environ.items() if name != VARIABLE} | dict(env or {})
    command = [*PROGRAM, *words]
    done = subprocess.run(command, input=input, capture_output=True, check=False, env=environ, timeout=PATIENCE_S)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize("name", EXTENSIONS)
def test_a_host_chooses_the_extension_by_the_variable(name: str) -> None:
    with ExtensionHost(PROGRAM, {VARIABLE: name}) as host:
        manifest = host.initialize()["result"]
    assert isinstance(manifest, dict)
    assert manifest["name"] == name


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_first_argument_names_a_program(name: str) -> None:
    code, out, err = run(name, "--version", env={VARIABLE: "http"})
    assert (code, err) == (0, "")
    assert out.startswith(f"ext-{name}")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_link_names_a_program(name: str, tmp_path: Path) -> None:
    script = tmp_path / "gevals-extensions"
    program = "import sys\nfrom gevals_extensions.__main__ import main\nsys.exit(main())"
    script.write_text(f"#!{sys.executable}\n{program}\n")
    script.chmod(0o755)
    link = tmp_path / f"ext-{name}"
    link.symlink_to(script)
    environ = os.environ | {VARIABLE: "http"}
    out = subprocess.run([link, "--version"], capture_output=True, check=True, timeout=PATIENCE_S, env=environ).stdout
    assert out.decode().startswith(f"ext-{name}")


def test_the_variable_is_not_for_commands_of_the_extension() -> None:
    with ExtensionHost(PROGRAM, {VARIABLE: "shell"}) as host:
        host.initialize({"passEnv": [VARIABLE]})
        result = host.result("run", {"script": "env"})
    assert result["success"]
    assert VARIABLE not in str(result)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            "",
            "no extension is chosen; set GEVALS_EXTENSION to one of shell, kubernetes, http in `env` of the extension",
        ),
        ("recorder", "GEVALS_EXTENSION: expected one of shell, kubernetes, http, found 'recorder'"),
    ],
)
def test_a_host_without_a_choice_gets_an_error_response(value: str, message: str) -> None:
    code, out, err = run(input=INITIALIZE, env={VARIABLE: value})
    assert json.loads(out) == {"jsonrpc": "2.0", "id": "first", "error": {"code": -32600, "message": message}}
    assert (code, err) == (2, f"gevals-extensions: {message}\n")


@pytest.mark.parametrize("input", [b"", b"hello\n", b'{"jsonrpc":"2.0","method":"shutdown"}\n'])
def test_other_input_without_a_choice_has_no_response(input: bytes) -> None:
    code, out, err = run(input=input)
    assert (code, out) == (2, "")
    assert "set GEVALS_EXTENSION to one of" in err


def test_a_person_gets_the_help() -> None:
    assert run("--help") == run("-h") == (0, HELP, "")
    assert run("--version") == (0, f"gevals-extensions {__version__}\n", "")
    ours, theirs = pty.openpty()
    done = subprocess.run(PROGRAM, stdin=theirs, capture_output=True, check=True, timeout=PATIENCE_S)
    os.close(ours)
    os.close(theirs)
    assert done.stdout.decode() == HELP


def test_an_unknown_program_is_named() -> None:
    code, out, err = run("shel", "call")
    assert (code, out) == (2, "")
    expected = "shell, kubernetes, http, host, recorder, sdk, found 'shel'; see gevals-extensions --help\n"
    assert err == f"gevals-extensions: expected one of {expected}"


def test_configurations_of_clients_name_the_program_and_its_argument(tmp_path: Path) -> None:
    code, _, err = run("shell", "export", "--protocol", "gassist", str(tmp_path / "shell"))
    assert code == 0, err
    written = "".join(path.read_text() for path in (tmp_path / "shell").iterdir())
    assert "gevals_extensions shell" in written


def test_modules_of_the_project_run_in_the_interpreter_of_the_process() -> None:
    assert own_program("ext_shell") == [sys.executable, "-P", "-m", "ext_shell"]
    program = "import sys; sys.path[:0] = sys.argv[1:]; from ext_sdk.core import own_program; print(own_program('a'))"
    command = [sys.executable, "-I", "-S", "-c", program, *sys.path]
    out = subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE_S, text=True).stdout
    assert out == f"{[sys.executable, '-I', '-S', '-m', 'a']}\n"
