"""Readiness conditions: local URLs, ports, and their failures. Waits for processes are in operations/test_start.py."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest
from msgspec import convert

from ext_sdk import InvalidArgs
from ext_sdk.expect import Searcher
from ext_shell.args import Ready
from ext_shell.readiness import FileExists, HttpResponds, PortOpen, await_ready, conditions_of, connect, local_url
from tests.support.shell_contexts import shell_call
from tests.unit.ext_shell.test_background import process, started

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.ports import NewPort


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("/up?a=1", "http://127.0.0.1:80/up?a=1"),
        ("http://localhost:8080/", "http://localhost:8080/"),
        ("http://[::1]/", "http://[::1]/"),
    ],
)
def test_urls_of_this_machine(text: str, url: str) -> None:
    assert local_url(text, 80) == url


@pytest.mark.parametrize(
    "text",
    [
        "http://example.org/",
        "https://localhost/",
        "http://localhost:0/",
        "http://localhost:x/",
        "http://127.0.0.1/ü",
        "x",
    ],
)
def test_other_urls_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgs, match=r"ready\.http: expected a path, or http://"):
        local_url(text, 80)


def test_a_path_requires_a_port() -> None:
    with pytest.raises(InvalidArgs, match="the path '/' requires `port`"):
        local_url("/", None)


def test_a_port_is_open_while_a_server_listens(new_port: NewPort) -> None:
    port = new_port()
    with socket.create_server(("127.0.0.1", port)):
        condition = PortOpen(port)
        assert condition.taken() == f"port {port}"
    assert not condition.holds()
    assert condition.last == "Connection refused"
    with pytest.raises(ConnectionRefusedError):
        connect("127.0.0.1", port)


@pytest.mark.parametrize(
    ("line", "holds", "last"),
    [
        (b"HTTP/1.1 204 No Content\r\n", True, "status 204"),
        (b"HTTP/1.1 503 Busy\r\n", False, "status 503"),
        (b"SSH-2.0\r\n", False, "not an HTTP response: it begins with b'SSH-2.0\\r\\n'"),
    ],
)
def test_an_http_response_has_one_of_the_statuses(line: bytes, holds: bool, last: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def respond() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(line)

        thread = threading.Thread(target=respond)
        thread.start()
        condition = HttpResponds(f"http://localhost:{server.getsockname()[1]}/", range(200, 400))
        assert condition.holds() is holds
        assert condition.last == last
        thread.join()


def test_a_file_that_exists_is_taken(tmp_path: Path) -> None:
    with shell_call(tmp_path) as call:
        condition = FileExists("up", call.context)
        assert (condition.holds(), condition.taken(), condition.last) == (False, "", "it does not exist")
        (tmp_path / "up").touch()
        assert (condition.holds(), condition.taken()) == (True, "the file 'up'")


def test_each_member_of_ready_is_a_condition(tmp_path: Path) -> None:
    with shell_call(tmp_path) as call, Searcher() as searcher:
        web = process(call, "true", port=20_001)
        ready = convert({"port": True, "logLine": "up", "file": "a", "http": "/", "exit": [0, 1]}, Ready)
        assert [condition.what for condition in conditions_of(ready, web, call.context, searcher)] == [
            "port 20001 to accept connections",
            "a line of its output that matches 'up'",
            "the file 'a'",
            "a response from http://127.0.0.1:20001/",
            "its exit",
        ]
        with pytest.raises(InvalidArgs, match="true means the `port` of the process, which is not given"):
            conditions_of(convert({"port": True}, Ready), process(call, "true"), call.context, searcher)


def test_a_line_is_waited_for_and_logged(tmp_path: Path) -> None:
    with shell_call(tmp_path) as call, Searcher() as searcher:
        web = started(call, "echo starting; echo up; sleep 3600")
        conditions = conditions_of(convert({"logLine": "^up$"}, Ready), web, call.context, searcher)
        await_ready(web, conditions, call.context, log=True)
        assert call.messages == ["starting", "up"]
