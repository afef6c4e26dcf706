"""Client of extensions: start, calls, broken extensions, end, and the programs of an eval."""

from __future__ import annotations

import os
import shlex
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ext_host.extension_process import Extension, ExtensionError, Extensions
from ext_host.files import ExtensionSpec, HostError, Requirement
from ext_sdk.polling import Deadline
from ext_sdk.wire import RpcError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.support.host_tasks import Tasks


@pytest.fixture
def start(tasks: Tasks) -> Iterator[Callable[..., Extension]]:
    started: list[Extension] = []

    def start(config: Mapping[str, object] | None = None, **variables: str) -> Extension:
        extension = Extension("x", shlex.split(tasks.command), {**os.environ, **variables})
        started.append(extension)
        extension.initialize(config, Deadline(60))
        return extension

    yield start
    for extension in started:
        extension.close()


def execute(extension: Extension, operation: str, seconds: float = 60, x: str | None = None) -> object:
    args = {} if x is None else {"x": x}
    found = extension.call("execute", {"operation": operation, "args": args}, Deadline(seconds))
    assert isinstance(found, dict)
    return found


def test_an_extension_has_a_manifest_and_responds(start: Callable[..., Extension]) -> None:
    extension = start(GIVEN="hello")
    assert extension.manifest["name"] == "x"
    assert extension.refusal("ok", {"x": "a"}) == ""
    assert extension.refusal("ok", {"x": 1}) == "x: 1 is not of type 'string'"
    extension.operations["bad"] = {"params": {"type": "nonsense"}}
    assert "the manifest has no valid schema of its arguments" in extension.refusal("bad", {})
    found = execute(extension, "ok", x="a" * 300_000)  # more than a pipe holds
    assert isinstance(found, dict)
    assert (found["outputs"]["env"], len(found["outputs"]["args"])) == ("hello", 300_009)
    assert extension.close() == ""


def test_an_error_of_the_protocol_does_not_break_it(start: Callable[..., Extension]) -> None:
    extension = start()
    with pytest.raises(RpcError, match="a fault"):
        execute(extension, "rpc")
    assert execute(extension, "nothing") == {"success": True}


def test_logs_are_passed_on_and_requests_of_the_extension_are_refused(start: Callable[..., Extension]) -> None:
    logs: list[tuple[str, str]] = []
    extension = start()
    found = extension.call("execute", {"operation": "log"}, Deadline(60), lambda *log: logs.append(log))
    assert logs == [("warn", "careful")]
    assert isinstance(found, dict)
    assert "the host has no method 'question'" in found["message"]


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ("crash", "no response to execute: it has ended (exit code 3); standard error ends with:\nlast words"),
        (
            "junk",
            "no response to execute: it wrote a line that is not a message of JSON-RPC: hello; standard output is",
        ),
    ],
)
def test_a_broken_extension_stays_broken(start: Callable[..., Extension], operation: str, reason: str) -> None:
    extension = start()
    for each in (operation, "ok"):
        with pytest.raises(ExtensionError) as error:
            execute(extension, each)
        assert str(error.value).startswith(f"extension x: {reason}")


def test_a_response_after_the_deadline_is_not_that_of_the_next_call(
    start: Callable[..., Extension], tmp_path: Path
) -> None:
    extension = start()
    with pytest.raises(ExtensionError, match=r"no response to execute: waited for 0\."):
        execute(extension, "wait", 0.1, str(tmp_path / "go"))
    (tmp_path / "go").touch()
    assert execute(extension, "nothing") == {"success": True}
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(ExtensionError, match="no response to execute: cancelled"):
        extension.call("execute", {"operation": "silent"}, Deadline(None, stopped))


def test_calls_of_several_tasks_are_made_one_after_the_other(start: Callable[..., Extension]) -> None:
    extension = start()
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(execute(extension, "ok"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = [int(each["outputs"]["count"]) for each in found if isinstance(each, dict)]
    assert sorted(counts) == list(range(2, 10))


def test_an_extension_that_refuses_its_configuration_or_has_no_manifest(start: Callable[..., Extension]) -> None:
    with pytest.raises(ExtensionError, match=r"extension x: initialize failed: config: wrong \(-32602\)"):
        start({"error": 1})
    with pytest.raises(ExtensionError, match=r"expected a manifest with `operations`, found \{\}"):
        start({"refuse": 1})
    with pytest.raises(ExtensionError, match="extension x: command not found: 'no-such-program'"):
        Extension("x", ["no-such-program"], dict(os.environ))


def test_an_exit_code_is_reported_at_the_end(start: Callable[..., Extension]) -> None:
    assert start(EXIT="5").close() == "extension x: exit code 5"


# --- Extensions of an eval -------------------------------------------------------------------------------------------


def test_the_program_of_an_extension_is_its_package_an_option_or_in_path(tasks: Tasks) -> None:
    program = tasks.folder / "my ext"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tasks.folder / "plain").touch()
    spec = tasks.eval("extensions: {}\ntaskSets: []")
    extensions = Extensions(spec, {"b": f"'{program}' --verbose", "c": "none"}, {"PATH": str(tasks.folder)})
    for package in ("./my ext", str(program), f"file://{program}", "./sub/../my ext"):
        assert [Path(word).resolve() for word in extensions.argv(ExtensionSpec("a", package))] == [program]
    assert extensions.argv(ExtensionSpec("b", "./other")) == [str(program), "--verbose"]
    program.rename(tasks.folder / "ext-d")
    assert extensions.argv(ExtensionSpec("d")) == [str(tasks.folder / "ext-d")]
    for extension, problem in (
        (ExtensionSpec("c"), "extension c: cannot find its program 'none'"),
        (ExtensionSpec("e"), "cannot find the program ext-e in PATH; install it, name it with `--extension e=COMMAND`"),
        (
            ExtensionSpec("f", "./none"),
            f"cannot run its package {tasks.folder}/none: no such file; install it there, or",
        ),
        (ExtensionSpec("f", "./plain"), "it is not executable"),
        (ExtensionSpec("f", "github.com/o/r@v1"), "is a release on GitHub, which ext-host does not download"),
        (ExtensionSpec("f", "name"), "package 'name' is not a path"),
    ):
        with pytest.raises(HostError) as error:
            extensions.argv(extension)
        assert problem in str(error.value)


def test_an_extension_gets_the_variables_and_the_configuration_of_the_eval(tasks: Tasks) -> None:
    spec = tasks.eval("""
        extensions:
          x: {package: ./x, env: {GIVEN: "${A}{env.B}"}}
          y: {package: ./x, config: {deep: [{text: "{env.NONE}"}]}}
          z: {package: ./x, config: {error: "${A}"}}
        mcpConfigFile: mcp.json
    """)
    (tasks.folder / "mcp.json").write_text('{"mcpServers": {"m": {"command": "x"}}}')
    programs = dict.fromkeys("xyz", tasks.command)
    extensions = Extensions(spec, programs, {**os.environ, "A": "1", "B": "2"})
    deadline = Deadline(60)
    running = extensions.get("x", deadline)
    assert extensions.get("x", deadline) is running
    found = execute(running, "ok")
    assert isinstance(found, dict)
    assert found["outputs"]["env"] == "12"
    with pytest.raises(HostError, match="extension y: the environment variable NONE is not set; set it, or"):
        extensions.get("y", deadline)
    with pytest.raises(ExtensionError, match="config: wrong"):
        extensions.get("z", deadline)
    with pytest.raises(HostError, match="extension 'w' is not in the eval; it has x, y, z"):
        extensions.get("w", deadline)
    missing = {
        f"{kind} {name}": extensions.missing(Requirement(kind, name, name, ()))
        for kind, name in (("extension", "x"), ("extension", "xx"), ("mcpServer", "m"), ("mcpServer", "x"))
    }
    assert missing == {
        "extension x": "",
        "extension xx": "the eval has no extension 'xx'; did you mean 'x'?",
        "mcpServer m": "",
        "mcpServer x": "the eval has no mcpServer 'x'; known are m",
    }
    assert extensions.close() == []
