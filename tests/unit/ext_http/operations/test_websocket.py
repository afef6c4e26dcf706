"""Operation `websocket` against another implementation, and against servers that break the protocol."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from websockets.sync.server import ServerConnection, serve

from tests.support.raw_server import RawServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tests.support.ext_http import Extension
    from tests.support.http_stub import Stub

    Talk = Callable[[ServerConnection], None]


@contextmanager
def server(talk: Talk, **options: object) -> Iterator[str]:
    """A WebSocket server on loopback that calls a function for each connection."""
    with serve(talk, "127.0.0.1", 0, **options) as running:  # type: ignore[arg-type]  # its many options
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"ws://127.0.0.1:{running.socket.getsockname()[1]}/chat?room=7"
        finally:
            running.shutdown()
            thread.join()


def chat(connection: ServerConnection) -> None:
    """Greet, ping, and echo, in several frames; the text `close` closes the connection."""
    connection.send("welcome")
    connection.send(b"\xff\x00binary")
    connection.ping("are you there")
    for message in connection:
        if message == "close":
            connection.close(4003, "that was the last")
        connection.send(iter([message[:1], message[1:]]) if len(message) > 1 else message)


def turns(*given: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Return turns after the greeting of `chat`."""
    return [{"expect": "welcome"}, {"expect": {"size": 8}, "type": "binary"}, *given]


def test_a_conversation_in_both_directions(http: Extension) -> None:
    with server(chat) as url:
        (http.workdir / "data.bin").write_bytes(b"\x00" * 70_000)
        result = http.ok(
            "websocket",
            url=url,
            messages=turns(
                {"send": "ä"},
                {"expect": "ä", "type": "text"},
                {"send": {"json": {"op": "add", "items": [1, 2]}}},
                {"expect": {"jsonContains": {"items": [1, 2]}, "jsonSchema": {"type": "object"}}},
                {"ping": "still there?"},
                {"send": {"file": "data.bin"}},
                {"expect": {"sameAsFile": "data.bin"}, "type": "binary"},
                {"send": {"base64": base64.b64encode(b"abc").decode()}},
                {"receive": 1, "within": "60s"},
                {"silence": "1ms"},
                {"send": "close"},
            ),
            expect={"close": {"code": 4003, "reason": {"endsWith": "last"}}, "headers": {"Upgrade": "websocket"}},
            capture={
                "first": {"message": 1},
                "item": {"message": 4, "json": "$.items[1]"},
                "all": {"from": "messages", "json": "$[3]"},
                "via": {"from": "header", "header": "Connection"},
            },
        )
    outputs = result.outputs
    assert (outputs["status"], outputs["sent"], outputs["received"]) == ("101", "5", "6")
    assert (outputs["first"], outputs["item"], outputs["via"]) == ("welcome", "2", "Upgrade")
    assert json.loads(outputs["all"]) == {"op": "add", "items": [1, 2]}
    assert (outputs["closeCode"], outputs["closeReason"]) == ("4003", "that was the last")
    assert outputs["url"].startswith("ws://127.0.0.1:")
    assert outputs["url"].endswith("/chat?room=7")


@pytest.mark.parametrize(
    ("given", "expect", "errors"),
    [
        ([{"expect": "hello"}], {}, ['messages[0]: expected to equal "hello", got "welcome"', '#1 "welcome"']),
        ([{"expect": "welcome", "type": "binary"}], {}, ["expected to be a binary message, got a text one"]),
        (
            [{"expect": {"contains": "price"}, "skipOthers": True, "within": "50ms"}],
            {},
            ["messages[0]: expected to get a message, got 2 that do not match, then none within 0.05 s"],
        ),
        (turns({"receive": 2, "within": "50ms"}), {}, ["expected to get 2 messages, got 0, then none within 0.05 s"]),
        ([{"silence": "60s"}], {}, ['expected no message for 1m0s, got a text message, "welcome"']),
        (
            turns({"send": "close"}, {"expect": "x"}),
            {},
            [
                'got none: the server closed the connection with code 4003: "that was the last"',
                "sent 1 message, received 2:",
            ],
        ),
        (turns({"send": "close"}), {"close": 1000}, ["close code: expected to equal 1000, got 4003"]),
        ([], {"subprotocol": "chat.v2"}, ['subprotocol: expected to be "chat.v2", got ""']),
        ([], {"headers": {"X-Missing": "1"}}, ["X-Missing"]),
        ([], {"status": 401}, ["status: expected to be 401, got 101"]),
        ([], {"failure": "refused"}, ["failure: expected to be refused, got a response: 101"]),
    ],
)
def test_what_is_not_as_expected(
    http: Extension, given: Sequence[object], expect: Mapping[str, object], errors: Sequence[str]
) -> None:
    with server(chat) as url:
        result = http.failed("websocket", url=url, messages=given, **({"expect": expect} if expect else {}))
    for error in errors:
        assert error in result.error
    assert f"WebSocket: {url}" in result.error or "failure" in expect


def test_a_connection_that_stays_open_fails_at_the_deadline(http: Extension) -> None:
    with server(chat) as url:
        result = http.failed("websocket", url=url, expect={"close": 1000}, timeout="100ms")
        assert (
            "connection: expected to be closed by the server, got an open one at the end of `timeout`" in result.error
        )
        result = http.failed("websocket", url=url, messages=turns({"expect": "x"}), timeout="100ms")
        assert "messages[2]: expected to get a message, got none before the end of `timeout`" in result.error


def test_subprotocols_and_credentials_belong_to_the_handshake(http: Extension) -> None:
    seen = []

    def talk(connection: ServerConnection) -> None:
        assert connection.request is not None
        seen.append(connection.request.headers["Authorization"])

    basic = {"basic": {"username": "ada", "password": "horse-7"}}
    with server(talk, subprotocols=["chat.v1"], compression=None) as url:
        result = http.ok(
            "websocket",
            url=url.replace("ws://", "http://"),
            subprotocols=["chat.v2", "chat.v1"],
            auth=basic,
            expect={"subprotocol": "chat.v1", "close": 1000},
        )
    assert result.outputs["subprotocol"] == "chat.v1"
    assert seen == [f"Basic {base64.b64encode(b'ada:horse-7').decode()}"]


def test_a_refused_handshake(http: Extension, stub: Stub) -> None:
    url = stub.says("/chat", "log in first", 401).replace("http", "ws", 1)
    assert http.ok("websocket", url=url, expect={"status": 401, "body": "log in first"}).outputs["status"] == "401"
    result = http.failed("websocket", url=url, messages=[{"expect": "x"}])
    assert "status: expected to be 101, got 401" in result.error
    assert "body: log in first" in result.error
    both = http.failed("websocket", url=url, messages=[{"expect": "x"}], expect={"status": [101, 401]})
    assert "WebSocket: expected to be opened, got status 401" in both.error
    closed = http.ok("websocket", url="ws://127.0.0.1:1/", expect={"failure": "refused"})
    assert (closed.outputs["failure"], closed.outputs["url"]) == ("refused", "ws://127.0.0.1:1/")
    hint = http.failed("request", url=url)
    assert "found ws://; the operation websocket opens it" in hint.error


def test_a_host_from_a_variable_is_guarded_as_that_of_a_request(http: Extension, stub: Stub) -> None:
    capture = {"host": {"regex": "(.*)"}, "path": {"default": "chat", "regex": "missing"}}
    http.ok("request", url=stub.says("/where", stub.address), capture=capture, **{"as": "told"})
    refused = http.failed("websocket", url="ws://${told.host}/chat")
    assert f'"allowHosts": ["{stub.address}"]' in refused.error
    http.ok("websocket", url="ws://${told.host}/chat", allowHosts=[stub.address], expect={"status": 404})
    http.ok("websocket", url=f"ws://{stub.address}/${{told.path}}", expect={"status": 404})


def accepting(
    data: bytes, *, accept: bytes = b"", upgrade: bytes = b"websocket"
) -> Callable[[socket.socket, bytes], None]:
    """Accept a handshake, send bytes and close the connection."""

    def talk(connection: socket.socket, head: bytes) -> None:
        key = re.search(rb"Sec-WebSocket-Key: (\S+)", head)
        assert key
        digest = hashlib.sha1(key[1] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
        headers = b"Connection: keep-alive, Upgrade\r\nUpgrade: %b\r\nSec-WebSocket-Accept: " % upgrade
        accepted = accept or base64.b64encode(digest)
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\n" + headers + accepted + b"\r\n\r\n" + data)
        connection.shutdown(socket.SHUT_WR)

    return talk


TEXT = b"\x81\x02hi"
BROKEN = {
    "masked": (b"\x81\x82abcdhi", "a frame that is not valid"),
    "not UTF-8": (b"\x81\x02\xff\xff", "a frame that is not valid"),
    "unknown": (b"\x83\x02hi", "a frame that is not valid"),
    "cut": (b"\x81\x05hi", "closed the connection without a close frame"),
    "too large": (b"\x82\x7f" + (1 << 40).to_bytes(8, "big") + b"\0" * 2000, "larger than maxMessage, 1,000 bytes"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_server_that_breaks_the_protocol(http: Extension, name: str) -> None:
    data, error = BROKEN[name]
    with RawServer(accepting(TEXT + data)) as raw:
        messages = [{"expect": "hi"}, {"expect": "more"}]
        result = http.failed("websocket", url=raw.url, messages=messages, maxMessage=1000)
        assert error in result.error
        assert '#1 "hi"' in result.error
        lost = http.ok("websocket", url=raw.url, messages=messages[:1], expect={"close": 1006}, maxMessage=1000)
        assert lost.outputs["closeCode"] == "1006"


def test_a_server_that_does_not_know_the_key(http: Extension) -> None:
    with RawServer(accepting(TEXT, accept=b"AAAA")) as raw:
        result = http.failed("websocket", url=raw.url, messages=[{"expect": "hi"}])
        assert 'Sec-WebSocket-Accept: expected to be the hash of the key sent, got "AAAA"' in result.error
    with RawServer(accepting(TEXT, upgrade=b"h2c")) as raw:
        assert 'Upgrade: expected to be websocket, got "h2c"' in http.failed("websocket", url=raw.url).error


def test_many_messages_are_written_to_a_file_and_secrets_are_not(http: Extension) -> None:
    def talk(connection: ServerConnection) -> None:
        connection.send("token: battery-staple-7")
        connection.send("x" * 100_000)

    with server(talk) as url:
        result = http.ok(
            "websocket",
            url=url,
            messages=[{"receive": 2}],
            capture={"token": {"message": 1, "regex": "token: (.*)", "secret": True}},
        )
    assert "token" not in result.outputs
    assert "battery-staple-7" not in result.outputs["messages"]
    messages = json.loads(Path(result.outputs["messagesFile"]).read_text("utf-8"))
    assert len(messages[1]) == 100_000
    assert "battery-staple-7" not in messages[0]


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({"httpVersion": "2"}, "httpVersion: expected 1.1"),
        ({"url": "ftp://127.0.0.1/"}, "url: expected a URL with ws:// or wss://, found ftp://"),
        ({"headers": {"Sec-WebSocket-Protocol": "x"}}, "this header is computed; set `subprotocols` instead"),
        ({"messages": [{"expect": "x"}], "expect": {"status": 401}}, "messages: `expect` expects that no WebSocket"),
        ({"expect": {"status": 401, "close": 1000}}, "expect.close: `expect` expects that no WebSocket"),
        ({"messages": [{"send": "x", "type": "text"}]}, "type and skipOthers require `expect`"),
        ({"messages": [{"send": "x", "within": "1s"}]}, "within requires `expect`, `receive` or `ping`"),
        ({"messages": [{"send": {"base64": "?"}}]}, "messages[0].send.base64: expected Base64"),
        ({"capture": {"x": {"from": "header"}}}, "header and `from: header` require each other"),
        ({"capture": {"messages": {}}}, "another output has this name"),
    ],
)
def test_wrong_arguments(http: Extension, args: Mapping[str, object], error: str) -> None:
    assert error in http.failed("websocket", **{"url": "ws://127.0.0.1:1/", **args}).error
