from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.support.host import ExtensionHost
from tests.support.http_stub import Stub
from tests.support.mocks import MockMaker
from tests.support.rejections import refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

COMMAND = [sys.executable, "-m", "ext_http"]
Message = dict[str, object]


class Result:
    """What an operation answered."""

    def __init__(self, result: Message) -> None:
        self.raw = result
        self.success = result["success"] is True
        self.message = str(result.get("message", ""))
        self.error = str(result.get("error", ""))
        outputs = result.get("outputs", {})
        assert isinstance(outputs, dict)
        self.outputs: dict[str, str] = outputs

    def json(self) -> dict[str, object]:
        """The body."""
        value = json.loads(self.outputs["body"])
        assert isinstance(value, dict)
        return value

    def __repr__(self) -> str:
        return repr(self.raw)


class Extension:
    """A running ext-http with a working directory."""

    def __init__(self, peer: ExtensionHost, workdir: Path) -> None:
        self.peer = peer
        self.workdir = workdir

    def call(self, operation: str, args: object, **context: object) -> Result:
        return Result(self.peer.result(operation, args, **({"workdir": str(self.workdir)} | context)))

    def ok(self, operation: str, **args: object) -> Result:
        """Call an operation that must succeed."""
        result = self.call(operation, args)
        assert result.success, result
        return result

    def failed(self, operation: str, **args: object) -> Result:
        """Call an operation that must fail, with a result."""
        result = self.call(operation, args)
        assert not result.success, result
        assert result.error, result
        return result

    def refused(self, operation: str, **args: object) -> str:
        """Call an operation whose arguments must be refused; return the text of the error."""
        return refusal("ext_http", operation, args, self.peer.execute(operation, args, workdir=str(self.workdir)))

    def get(self, url: str, **args: object) -> Result:
        """A request that must succeed."""
        return self.ok("request", url=url, **args)


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as server:
        yield server


@pytest.fixture(scope="session")
def _shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExtensionHost]:
    with ExtensionHost(COMMAND, {"TMPDIR": str(tmp_path_factory.mktemp("temporary"))}) as peer:
        yield peer
        peer.eof()
        assert peer.exit_code() == 0


@pytest.fixture
def http(_shared: ExtensionHost, tmp_path: Path) -> Extension:
    """An ext-http that tests share; the working directory is the test's own."""
    return Extension(_shared, tmp_path)


@pytest.fixture
def fresh(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Extension]]:
    """Makes an ext-http for one test: `fresh(config, env)`."""
    temporary = str(tmp_path_factory.mktemp("temporary"))
    with ExitStack() as stack:

        def make(config: object = None, env: Mapping[str, str] | None = None) -> Extension:
            peer = stack.enter_context(ExtensionHost(COMMAND, {"TMPDIR": temporary, **(env or {})}))
            if config is not None:
                answer = peer.initialize(config)
                assert "result" in answer, answer
            return Extension(peer, tmp_path)

        yield make


@pytest.fixture
def mocks(tmp_path: Path) -> Iterator[MockMaker]:
    """Makes mocks in this process, see mocking."""
    maker = MockMaker(tmp_path)
    yield maker
    maker.close()
