"""Mocks in this process, and clients that ask them: polite ones, and ones that send what they like."""

from __future__ import annotations

import copy
import http.client
import os
import socket
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from ext_http.mock.registry import Mocks
from ext_http.operations.mock import (
    MockStart,
    MockStop,
    MockUpdate,
    MockVerify,
    mock_start,
    mock_stop,
    mock_update,
    mock_verify,
)
from ext_sdk import Duration
from ext_sdk.server.validation import validate
from tests.support.http_contexts import context_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from ext_sdk import Result

T = TypeVar("T")

PATIENCE = 60.0  # seconds until a test gives up waiting for something that has to happen


class Got:
    """What a client got."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def text(self) -> str:
        return self.body.decode()

    def __repr__(self) -> str:
        return f"{self.status} {self.headers} {self.body[:500]!r}"


class Started:
    """A mock that stands."""

    def __init__(self, mocks: MockMaker, result: Result, host: str) -> None:
        self._mocks = mocks
        self.name = result.outputs["name"]
        self.url = result.outputs["url"]
        self.host = host
        self.port = int(result.outputs["port"])
        self.outputs = result.outputs

    def client(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)

    def ask(
        self,
        target: str,
        method: str = "GET",
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Got:
        """Ask once, on a connection of its own."""
        connection = self.client()
        try:
            connection.request(method, target, body, dict(headers or {}))
            return Got(connection.getresponse())
        finally:
            connection.close()

    @contextmanager
    def socket(self) -> Iterator[socket.socket]:
        with socket.create_connection((self.host, self.port), timeout=PATIENCE) as one:
            yield one

    def raw(self, data: bytes) -> bytes:
        """Send these bytes, and read to the end of the connection."""
        with self.socket() as one:
            one.sendall(data)
            return read_all(one)

    def verify(self, **args: object) -> Result:
        wanted = validate(MockVerify, {"name": self.name} | args)
        context = copy.copy(self._mocks.context)
        if isinstance(wanted.timeout, Duration):
            context.deadline = context.deadline.limit(wanted.timeout)  # as a session does
        return mock_verify(wanted, context)

    def update(self, **args: object) -> Result:
        return mock_update(validate(MockUpdate, {"name": self.name} | args), self._mocks.context)

    def stop(self) -> Result:
        return mock_stop(validate(MockStop, {"name": self.name}), self._mocks.context)


def read_all(connection: socket.socket) -> bytes:
    """Everything until the connection ends, by whatever means."""
    data = b""
    try:
        while piece := connection.recv(65536):
            data += piece
    except ConnectionResetError:
        pass
    return data


def wait_for(found: Callable[[], T | None]) -> T:
    """What is found, once it is something."""
    until = time.monotonic() + PATIENCE
    while not (value := found()):
        assert time.monotonic() < until, "it did not happen"
        os.sched_yield()
    return value


class MockMaker:
    """Makes mocks in one workdir: `mocks(route, …)`, or with other arguments of mock-start."""

    def __init__(self, workdir: Path, secrets: Mapping[str, str] | None = None) -> None:
        self.workdir = workdir
        self.context = context_in(workdir, secrets)

    def __call__(self, *routes: Mapping[str, object], **args: object) -> Started:
        arguments = {"routes": list(routes)} | args
        result = mock_start(validate(MockStart, arguments), self.context)
        assert result.success, result
        return Started(self, result, str(args.get("host", "127.0.0.1")))

    def close(self) -> None:
        self.context.state(Mocks).close()
