from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.fake_kubernetes import FakeApi
from tests.support.host import ExtensionHost
from tests.support.rejections import refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

COMMAND = [sys.executable, "-m", "ext_kubernetes"]
Message = dict[str, object]


class Extension:
    """A running ext-kubernetes with a working directory, and the API server it talks to.

    Args:
        peer: the process.
        workdir: of all calls.
        env: variables of all calls.
    """

    def __init__(self, peer: ExtensionHost, workdir: Path, env: Mapping[str, str] | None = None) -> None:
        self.peer = peer
        self.workdir = workdir
        self._env = env or {}

    def context(self, env: Mapping[str, str] | None = None, **members: object) -> Message:
        """Return the context of a call, with further variables and members."""
        return {"workdir": str(self.workdir), "env": {**self._env, **(env or {})}} | members

    def result(self, operation: str, args: object = None, **context: Any) -> Message:
        return self.peer.result(operation, args, **self.context(**context))

    def ok(self, operation: str, args: object = None, **context: Any) -> dict[str, str]:
        """The outputs of an operation that succeeds, with its message as `message`."""
        result = self.result(operation, args, **context)
        assert result["success"] is True, result
        outputs = result.get("outputs") or {}
        assert isinstance(outputs, dict)
        return {**outputs, "message": str(result.get("message", ""))}

    def failed(self, operation: str, args: object = None, **context: Any) -> str:
        """What an operation says that fails, with a result."""
        result = self.result(operation, args, **context)
        assert result["success"] is False, result
        return f"{result.get('message', '')}\n{result.get('error', '')}"

    def refused(self, operation: str, args: object = None) -> str:
        """What an operation says that refuses its arguments."""
        return refusal("ext_kubernetes", operation, args, self.peer.execute(operation, args, **self.context()))


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
        peer = self._stack.enter_context(ExtensionHost(COMMAND, given | dict(env or {})))
        if config is not None:
            answer = peer.initialize(config)
            assert "result" in answer, answer
        workdir = self._directory / "work"
        workdir.mkdir(exist_ok=True)
        return Extension(peer, workdir)


@pytest.fixture(scope="session")
def _shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExtensionHost]:
    home = tmp_path_factory.mktemp("home")
    with ExtensionHost(COMMAND, {"HOME": str(home), "KUBECONFIG": "", "KUBERNETES_SERVICE_HOST": ""}) as peer:
        yield peer
        peer.eof()
        assert peer.exit_code() == 0


@pytest.fixture
def kube(api: FakeApi, _shared: ExtensionHost, tmp_path: Path) -> Extension:
    """An ext-kubernetes that tests share; its calls go to `api`, with a working directory of the test's own."""
    workdir = tmp_path / "work"
    workdir.mkdir()
    return Extension(_shared, workdir, {"KUBECONFIG": str(api.kubeconfig(tmp_path / "kubeconfig"))})


@pytest.fixture
def own_kube(api: FakeApi, start: Starter, tmp_path: Path) -> Extension:
    """An ext-kubernetes for one test: it has learned no secret before, and may be stopped."""
    return start(api.kubeconfig(tmp_path / "kubeconfig"))
