from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ext_recorder.conformance.raw_host import Host, json_object, text
from tests.support.process_tracker import ProcessTracker
from tests.support.rejections import refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ext_recorder.conformance.raw_host import Line

# What a host has in its environment: a command gets PATH and HOME of it, and nothing else.
TOKEN = "sesame-opens-42"
HOST_ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "API_TOKEN": TOKEN,
    "PLAIN": "visible",
    "PLAIN_2": "too",
}
PATIENCE_SECONDS = 60.0  # until something that has to happen counts as a hang


class Answer:
    """What an operation answered."""

    def __init__(self, message: dict[str, object], logs: list[dict[str, object]]) -> None:
        self.raw = message
        self.logs = logs
        self.code = json_object(message["error"], "error")["code"] if "error" in message else None
        result = json_object(message.get("result", message.get("error")), "result")
        self.success = result.get("success") is True
        self.message = text(result.get("message", ""), "message")
        self.error = text(result.get("error", ""), "error")
        self.outputs = {name: text(value, name) for name, value in json_object(result.get("outputs", {}), "o").items()}

    @property
    def log_messages(self) -> list[str]:
        return [text(log["message"], "message") for log in self.logs]

    def __repr__(self) -> str:
        return repr(self.raw)


class Extension:
    """A running ext-shell and a working directory."""

    def __init__(self, host: Host, workdir: Path) -> None:
        self.host = host
        self.workdir = workdir

    def send(self, operation: str, args: Mapping[str, object], **context: object) -> object:
        """Send a request; return its id."""
        params = {"operation": operation, "args": args, "context": {"workdir": str(self.workdir), **context}}
        return self.host.request("execute", params)

    def answer(self, id: object, since: int = 0) -> Answer:
        response = self.host.response(id)
        return Answer(response, [_params(line) for line in self.host.lines[since:] if "method" in line.message])

    def logged(self, text: str) -> None:
        """Wait until an operation has logged this."""
        while (line := self.host.next_line()) is not None:
            if "method" in line.message and _params(line)["message"] == text:
                return
        raise AssertionError(f"it ended without having logged {text!r}")

    def call(self, operation: str, args: Mapping[str, object], **context: object) -> Answer:
        since = len(self.host.lines)
        return self.answer(self.send(operation, args, **context), since)

    def run(self, script: str, **args: object) -> Answer:
        return self.call("run", {"script": script, **args})

    def run_argv(self, *argv: str, **args: object) -> Answer:
        return self.call("run", {"command": argv, **args})

    def ok(self, operation: str, **args: object) -> Answer:
        """Call an operation that must succeed."""
        answer = self.call(operation, args)
        assert answer.success, answer
        return answer

    def failed(self, operation: str, **args: object) -> Answer:
        """Call an operation that must fail, with a result."""
        answer = self.call(operation, args)
        assert answer.code is None, answer
        assert not answer.success, answer
        return answer

    def refused(self, operation: str, **args: object) -> str:
        """Call an operation whose arguments must be refused; return the text of the error."""
        return refusal("ext_shell", operation, args, self.call(operation, args).raw)


def _params(line: Line) -> dict[str, object]:
    return json_object(line.message["params"], "params")


def _host(cwd: Path, env: Mapping[str, str]) -> Host:
    passed = {name: value for name, value in os.environ.items() if name.startswith("COV")}
    return Host([str(Path(sys.executable).parent / "ext-shell")], cwd, {**passed, **env}, timeout=PATIENCE_SECONDS)


@pytest.fixture(scope="session")
def _shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with _host(tmp_path_factory.mktemp("host"), HOST_ENV) as host:
        yield host
        host.call("shutdown", {})
        assert host.exit_code() == 0


@pytest.fixture
def shell(_shared: Host, tmp_path: Path) -> Extension:
    """An ext-shell that tests share; the working directory is the test's own."""
    del _shared.lines[:]
    _shared._taken = 0
    return Extension(_shared, tmp_path)


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Callable[..., Extension]]:
    """Makes an ext-shell for one test: `fresh(env, config)`."""
    with ExitStack() as stack:

        def make(env: Mapping[str, str] | None = None, config: object = None) -> Extension:
            extension = Extension(stack.enter_context(_host(tmp_path, {**HOST_ENV, **(env or {})})), tmp_path)
            if config is not None:
                answer = extension.host.call("initialize", {"protocolVersion": "0.0.1", "config": config})
                assert "result" in answer, answer
            return extension

        yield make


@pytest.fixture
def tracker(tmp_path: Path) -> Iterator[ProcessTracker]:
    tracker = ProcessTracker(tmp_path / "tracker")
    yield tracker
    tracker.close()
