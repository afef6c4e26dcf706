from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.support.fake_kubernetes import FakeApi
from tests.support.host import Peer
from tests.support.rejections import refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

COMMAND = [sys.executable, "-m", "ext_kubernetes"]
Message = dict[str, object]


class Extension:
    """A running ext-kubernetes with a working directory, and the API server it talks to."""

    def __init__(self, peer: Peer, workdir: Path) -> None:
        self.peer = peer
        self.workdir = workdir

    def result(self, operation: str, args: object = None, **context: object) -> Message:
        return self.peer.result(operation, args, **({"workdir": str(self.workdir)} | context))

    def ok(self, operation: str, args: object = None, **context: object) -> dict[str, str]:
        """The outputs of an operation that succeeds, with its message as `message`."""
        result = self.result(operation, args, **context)
        assert result["success"] is True, result
        outputs = result.get("outputs") or {}
        assert isinstance(outputs, dict)
        return {**outputs, "message": str(result.get("message", ""))}

    def failed(self, operation: str, args: object = None, **context: object) -> str:
        """What an operation says that fails, with a result."""
        result = self.result(operation, args, **context)
        assert result["success"] is False, result
        return f"{result.get('message', '')}\n{result.get('error', '')}"

    def refused(self, operation: str, args: object = None) -> str:
        """What an operation says that refuses its arguments."""
        return refusal("ext_kubernetes", operation, args, self.peer.execute(operation, args, workdir=str(self.workdir)))


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as server:
        yield server


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    """Starts ext-kubernetes: `start(kubeconfig, env, config)`."""
    with ExitStack() as stack:
        yield Starter(stack, tmp_path)


class Starter:
    """See `start`."""

    def __init__(self, stack: ExitStack, directory: Path) -> None:
        self._stack = stack
        self._directory = directory

    def __call__(
        self, kubeconfig: Path | None, env: Mapping[str, str] | None = None, config: object = None
    ) -> Extension:
        home = self._directory / "home"
        home.mkdir(exist_ok=True)
        given = {"HOME": str(home), "KUBECONFIG": str(kubeconfig or ""), "KUBERNETES_SERVICE_HOST": ""}
        peer = self._stack.enter_context(Peer(COMMAND, given | dict(env or {})))
        if config is not None:
            answer = peer.initialize(config)
            assert "result" in answer, answer
        workdir = self._directory / "work"
        workdir.mkdir(exist_ok=True)
        return Extension(peer, workdir)


@pytest.fixture
def kube(api: FakeApi, start: Starter, tmp_path: Path) -> Extension:
    """An ext-kubernetes that talks to `api`."""
    return start(api.kubeconfig(tmp_path / "kubeconfig"))
