"""Mocks of a running extension: they stand between operations, take many clients, and are gone with the extension."""

from __future__ import annotations

import http.client
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.support.mocks import read_all

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.ext_http import Extension
    from tests.support.mocks import MockMaker
    from tests.support.ports import NewPort

ROUTES = [
    {"name": "echo", "path": "/echo", "answer": {"text": "${request.body}"}},
    {"name": "late", "path": "/late", "answer": {"text": "x", "delay": "1h"}},
    {"name": "drip", "path": "/drip", "answer": {"text": "xyz", "drip": "1h"}},
]
CLIENTS, ASKED_EACH = 50, 10


def start(extension: Extension, **args: object) -> int:
    return int(extension.ok("mock-start", routes=ROUTES, **args).outputs["port"])


def busy_clients(port: int) -> list[socket.socket]:
    """One that says nothing, one that does not end, one that waits for its answer, one that reads it slowly."""
    clients = []
    for data in (b"", b"GET /echo", b"GET /late HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /drip HTTP/1.1\r\nHost: a\r\n\r\n"):
        one = socket.create_connection(("127.0.0.1", port), timeout=20)
        one.sendall(data)
        clients.append(one)
    return clients


def test_a_task_waits_for_a_mock_asks_it_and_verifies_what_was_asked(http: Extension) -> None:
    started = http.ok("mock-start", name="shop", routes=ROUTES, **{"as": "shop"})
    try:
        asked = http.ok("request", url=f"{started.outputs['url']}/echo", method="POST", body={"json": {"id": 7}})
        assert asked.outputs["body"].replace(" ", "") == '{"id":7}'
        call = {"route": "echo", "method": "POST", "body": {"json": [{"path": "$.id", "equals": 7}]}, "exactly": 1}
        verified = http.ok("mock-verify", name="shop", calls=[call], unmatched=0, timeout="10s")
        assert verified.message == "mock 'shop': 2 checks passed"
    finally:
        stopped = http.ok("mock-stop", name="shop")
    assert stopped.message == "stopped mock 'shop' after 1 request"
    assert "mock 'shop' is not running" in http.failed("mock-stop", name="shop").message
    assert http.ok("mock-stop", name="shop", ignoreMissing=True).success


def test_a_mock_leaves_no_file_behind_but_a_journal_with_requests(
    fresh: Callable[..., Extension], tmp_path: Path
) -> None:
    extension = fresh(env={"TMPDIR": str(tmp_path)})
    extension.ok("mock-start", name="idle", routes=ROUTES, tls=True)
    extension.ok("mock-start", name="stopped", routes=ROUTES, tls=True)
    extension.ok("mock-stop", name="stopped")
    assert list(tmp_path.glob("ext-http-*/*"))
    extension.peer.eof()
    assert extension.peer.exit_code() == 0
    assert not list(tmp_path.glob("ext-http-*"))
    extension = fresh(env={"TMPDIR": str(tmp_path)})
    started = extension.ok("mock-start", routes=ROUTES)
    extension.ok("request", url=f"{started.outputs['url']}/echo", method="POST", body={"raw": "hello"})
    extension.peer.eof()
    assert extension.peer.exit_code() == 0
    assert [str(path) for path in tmp_path.glob("ext-http-*/*")] == [started.outputs["journalFile"]]


def test_mocks_of_another_workdir_are_not_seen(fresh: Callable[[], Extension]) -> None:
    extension = fresh()
    start(extension)
    other = extension.call("mock-verify", {"unmatched": 0}, workdir=str(extension.workdir / "other"))
    assert "none was started" in other.error


def test_mocks_of_one_name_in_two_scopes_are_two(fresh: Callable[[], Extension]) -> None:
    extension = fresh()
    first, second = start(extension, scope="first"), start(extension, scope="second")
    assert first != second
    connection = http.client.HTTPConnection("127.0.0.1", first, timeout=20)
    connection.request("GET", "/echo")
    assert connection.getresponse().status == 200
    connection.close()
    for scope, asked in (("first", "1"), ("second", "0")):
        verified = extension.ok("mock-verify", calls=[{"route": "echo", "atMost": 1}], scope=scope)
        assert verified.outputs["calls"] == asked
        extension.ok("mock-stop", scope=scope)
    assert "in this workdir and scope" in extension.failed("mock-stop").error


def test_fifty_clients_at_once_are_answered_and_counted(mocks: MockMaker) -> None:
    mock = mocks(*ROUTES)

    def client(number: int) -> list[bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", mock.port, timeout=60)
        answers = []
        for turn in range(ASKED_EACH):
            connection.request("POST", "/echo", f"{number}.{turn}")
            answers.append(connection.getresponse().read())
        connection.close()
        return answers

    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = list(pool.map(client, range(CLIENTS)))
    assert answers == [[f"{number}.{turn}".encode() for turn in range(ASKED_EACH)] for number in range(CLIENTS)]
    assert mock.verify(calls=[{"route": "echo", "exactly": CLIENTS * ASKED_EACH}], unmatched=0).success


@pytest.mark.parametrize("how", ["shutdown", "eof", "SIGTERM", "SIGKILL"])
def test_nothing_listens_and_nobody_waits_once_the_extension_ended(
    fresh: Callable[[], Extension], how: str, new_port: NewPort
) -> None:
    extension = fresh()
    ports = [start(extension, name=name, port=new_port()) for name in ("one", "two")]
    clients = [client for port in ports for client in busy_clients(port)]
    called = extension.ok("mock-verify", name="one", calls=[{"route": "late"}, {"route": "drip"}], timeout="20s")
    assert called.success
    peer = extension.peer
    if how == "shutdown":
        assert peer.call("shutdown", {})["result"] == {}
    elif how == "eof":
        peer.eof()
    else:
        peer.process.send_signal(signal.Signals[how])
    assert peer.exit_code() == (-signal.SIGKILL if how == "SIGKILL" else 0)
    for client in clients:
        assert b"xyz" not in read_all(client)
        client.close()
    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=20).close()
