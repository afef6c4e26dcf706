"""`gevals-extensions`: which program it runs, and the response to a host or a person without a choice."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ext_sdk.core import CHOICE, PROGRAMS, __version__, own_name, own_program
from gevals_extensions.__main__ import EXTENSIONS, HELP
from tests.support.host import PATIENCE_S, ExtensionHost

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PROGRAM = (sys.executable, "-P", "-m", "gevals_extensions")
INITIALIZE = b'{"jsonrpc":"2.0","id":"first","method":"initialize","params":{"protocolVersion":"0.0.1"}}\n'


def run(*words: str, input: bytes = b"", env: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    environ = {name: value for name, value in os.environ.items() if name != CHOICE} | dict(env or {})
    command = [*PROGRAM, *words]
    done = subprocess.run(command, input=input, capture_output=True, check=False, env=environ, timeout=PATIENCE_S)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize("name", EXTENSIONS)
def test_a_host_chooses_the_extension_by_the_variable(name: str) -> None:
    with ExtensionHost(PROGRAM, {CHOICE: name}) as host:
        manifest = host.initialize()["result"]
    assert isinstance(manifest, dict)
    assert manifest["name"] == name


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_first_argument_names_a_program(name: str) -> None:
    code, out, err = run(name, "--version", env={CHOICE: "http"})
    assert (code, err) == (0, "")
    assert out.startswith(f"ext-{name}")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    script = tmp_path / "gevals-extensions"
    program = "import sys\nfrom gevals_extensions.__main__ import main\nsys.exit(main())"
    script.write_text(f"#!{sys.executable}\n{program}\n")
    script.chmod(0o755)
    return script


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_link_names_a_program(name: str, tmp_path: Path, script: Path) -> None:
    link = tmp_path / f"ext-{name}"
    link.symlink_to(script)
    environ = os.environ | {CHOICE: "http"}
    out = subprocess.run([link, "--version"], capture_output=True, check=True, timeout=PATIENCE_S, env=environ).stdout
    assert out.decode().startswith(f"ext-{name}")


def test_the_variable_is_not_for_commands_of_the_extension() -> None:
    with ExtensionHost(PROGRAM, {CHOICE: "shell"}) as host:
        host.initialize({"passEnv": [CHOICE]})
        result = host.result("run", {"script": "env"})
    assert result["success"]
    assert CHOICE not in str(result)


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
    code, out, err = run(input=INITIALIZE, env={CHOICE: value})
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


OWN = [
    (["ext-shell", "call", "run"], ["ext-shell", "call", "run"]),
    (["/usr/bin/python3.12", "-P", "-m", "ext_shell", "call"], ["ext-shell", "call"]),
    (["python", "-Im", "ext_shell"], ["python", "-Im", "ext_shell"]),
    (["python", "-X", "dev", "-m", "ext_shell"], ["python", "-X", "dev", "-m", "ext_shell"]),
    (["python", "-m"], ["python", "-m"]),
    (["python", "-m", "ext_shell_too"], ["python", "-m", "ext_shell_too"]),
    (["pythonic", "-m", "ext_shell"], ["pythonic", "-m", "ext_shell"]),
    (["python3", "-m", "gevals_extensions", "http", "mcp"], ["ext-http", "mcp"]),
    (["pypy3", "-m", "ext_sdk.new", "new"], ["ext-sdk", "new"]),
    (["/cache/bin/gevals-extensions", "-I", "-S", "-m", "ext_recorder", "show"], ["ext-recorder", "show"]),
    (["./gevals-extensions", "shell", "shell"], ["ext-shell", "shell"]),
    (["gevals-extensions-linux-amd64", "kubernetes"], ["ext-kubernetes"]),
    (["gevals-extensions-tools", "kubernetes"], ["gevals-extensions-tools", "kubernetes"]),
    (["gevals-extensions"], ["gevals-extensions"]),
    (["gevals-extensions", "--version"], ["gevals-extensions", "--version"]),
    (
        ["python3", "-P", "-m", "ext_host", "run", "a.yaml", "--programs=/tmp/x", "-q"],
        ["ext-host", "run", "a.yaml", "-q"],
    ),
    (["ext-http", "run", "--programs=x"], ["ext-http", "run", "--programs=x"]),
    ([], []),
]


@pytest.mark.parametrize(("command", "name"), OWN)
def test_a_program_has_one_name_however_it_is_installed(command: list[str], name: list[str]) -> None:
    assert own_name(command) == tuple(name)
    assert own_name(own_name(command)) == tuple(name)


def test_the_variable_names_the_program_of_the_executable() -> None:
    assert own_name(["/opt/gevals-extensions", "call"], "shell") == ("ext-shell", "call")
    assert own_name(["gevals-extensions", "http"], "shell") == ("ext-http",)
    assert own_name(["ext-http"], "shell") == ("ext-http",)
    assert own_name(["gevals-extensions"], "other") == ("gevals-extensions",)


TASK = {
    "apiVersion": "mcpchecker/v1alpha2",
    "kind": "Task",
    "metadata": {"name": "t"},
    "spec": {
        "requires": [{"extension": "shell"}],
        "prompt": {"inline": "none"},
        "verify": [{"shell.run": {"command": ["echo", "hi"]}}],
    },
}


def test_an_option_for_an_extension_chooses_it_in_the_executable(tmp_path: Path, script: Path) -> None:
    (tmp_path / "t.yaml").write_text(json.dumps(TASK))
    command = [
        sys.executable,
        "-P",
        "-m",
        "ext_host",
        "run",
        "t.yaml",
        "--agent=none",
        f"--extension=shell=./{script.name}",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout


def test_a_recording_of_one_installation_is_replayed_with_another(tmp_path: Path) -> None:
    temporary = tmp_path / ("long" * 30)  # longer than the path of a socket may be
    temporary.mkdir()
    (tmp_path / "t.yaml").write_text(json.dumps(TASK))
    module = [sys.executable, "-P", "-m"]
    ways = (([*module, "ext_host"], [*module, "ext_shell"]), ([*PROGRAM, "host"], [*PROGRAM, "shell"]))

    def run_task(way: tuple[list[str], list[str]], option: str) -> str:
        host, shell = way
        words = ["run", "t.yaml", "--agent=none", f"--extension=shell={shlex.join(shell)}", option]
        environ = os.environ | {"TMPDIR": str(temporary)}
        done = subprocess.run(
            [*host, *words], cwd=tmp_path, env=environ, capture_output=True, timeout=PATIENCE_S, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    for way, other in (ways, ways[::-1]):
        run_task(way, "--record=rec")
        command = "command: [ext-host, run, t.yaml, --agent=none, --extension=shell=ext-shell]"
        recording = (tmp_path / "rec" / "recording.yaml").read_text().splitlines()
        assert command in recording
        assert "  command: [ext-shell]" in recording
        assert "not performed: 1 of 1 step" in run_task(other, "--replay=rec")
    assert list(temporary.iterdir()) == []
