"""The file operations as a host calls them: through the session, which checks arguments and keeps variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import ext_sdk
from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.server.session import Call, Session
from ext_shell.extension import OPERATIONS
from tests.support.rejections import answered, refusal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


SECRET = "correct horse battery staple"


class FileHost:
    """Calls operations in one working directory."""

    def __init__(self, workdir: Path) -> None:
        self.workdir = workdir
        self.more_context: dict[str, object] = {}
        extension = ext_sdk.Extension("files", version="1.0.0")
        for operation in OPERATIONS:
            extension.add(operation)
        self._session = Session(extension, Redactor({"env.API_TOKEN": SECRET}))

    def prepare(self, operation: str, **args: object) -> Call:
        """A call of an operation. Raises RpcError for arguments that don't fit."""
        context = {"workdir": str(self.workdir), "phase": "verify", "timeout": "60s"} | self.more_context
        return self._session.prepare({"operation": operation, "args": args, "context": context}, lambda *_: None)

    def __call__(self, operation: str, **args: object) -> ext_sdk.Result:
        """Call an operation."""
        return self.perform(self.prepare(operation, **args))

    def perform(self, call: Call) -> ext_sdk.Result:
        """Do what was prepared."""
        return self._session.perform(call)

    def ok(self, operation: str, **args: object) -> ext_sdk.Result:
        """Call an operation that must succeed."""
        result = self(operation, **args)
        assert result.success, result
        return result

    def failed(self, operation: str, **args: object) -> ext_sdk.Result:
        """Call an operation that must fail."""
        result = self(operation, **args)
        assert not result.success, result
        assert result.message
        assert result.error
        return result

    def refused(self, operation: str, **args: object) -> str:
        """Call an operation whose arguments must be refused; return the text of the error."""
        return refusal("ext_shell", operation, args, answered(lambda: self(operation, **args)))

    def close(self) -> None:
        """End the session as the server does."""
        for close in self._session.begin_shutdown():
            close()


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    """A working directory beside which there is a secret."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    workdir = tmp_path / "workdir"
    workdir.mkdir()
    return workdir


@pytest.fixture
def host(workdir: Path) -> Iterator[FileHost]:
    """A host with a session."""
    host = FileHost(workdir)
    yield host
    host.close()
