"""Finding out what is spoken: by the first messages, however they are cut, and never wrong for good reason."""

from __future__ import annotations

import json

import pytest

from ext_recorder.protocols.detection import Detector, framing_of, redirected_address
from ext_sdk.core.wire.framing import FRAMINGS


def rpc(method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


LSP = rpc("initialize", processId=1, rootUri=None, capabilities={})
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
BEGINNINGS = [
    ("gevals", "ndjson", rpc("initialize", protocolVersion="0.0.1")),
    ("gevals", "ndjson", rpc("execute", operation="run", args={}, context={})),
    ("pi", "ndjson", {"id": "1", "version": "1.0", "type": "event_hook", "payload": {"event": "x"}}),
    ("gassist", "uint32", rpc("initialize", protocol_version="2.0")),
    ("gassist", "uint32", rpc("ping", timestamp=1)),
    ("kaiak", "content-length", rpc("workspace/executeCommand", command="kaiak/configure", arguments=[])),
    ("kaiak-head", "content-length", rpc("kaiak/generate_fix", incidents=[])),
    ("waza-go", "ndjson", rpc("eval.list", dir="evals")),
    ("mcp", "ndjson", rpc("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={})),
    ("mcp", "ndjson", rpc("server/discover", _meta=META)),
    ("mcp", "ndjson", rpc("tools/list", _meta=META)),
    ("acp", "ndjson", rpc("initialize", protocolVersion=1, clientCapabilities={})),
    ("dap", "content-length", {"seq": 1, "type": "request", "command": "initialize", "arguments": {}}),
    ("jsonrpc", "ndjson", rpc("ping")),
    ("jsonrpc", "content-length", rpc("eval", code="1")),
    ("jsonrpc", "ndjson", LSP),
    ("raw", "ndjson", {"hello": "there"}),
]
EACH = pytest.mark.parametrize(("protocol", "framing", "message"), BEGINNINGS)


def encoded(framing: str, message: object) -> bytes:
    return FRAMINGS[framing].encode(json.dumps(message).encode())


@EACH
def test_the_first_message_of_the_host_tells(protocol: str, framing: str, message: dict[str, object]) -> None:
    detector = Detector()

    detector.receive("in", encoded(framing, message))

    assert detector.found == (protocol, framing)


@EACH
def test_it_tells_the_same_byte_by_byte_and_behind_what_the_child_logs(
    protocol: str, framing: str, message: dict[str, object]
) -> None:
    detector = Detector()
    detector.receive("out", b"\x1b[32mINFO\x1b[0m: starting\nContent of the config: {}\n")

    data = encoded(framing, message)
    for at in range(len(data)):
        assert detector.found is None
        detector.receive("in", data[at : at + 1])

    assert detector.found == (protocol, framing)


RUN, GET, CHECK = (rpc(method, path="eval.yaml") for method in ("eval.run", "eval.get", "eval.validate"))
COMMANDS = {"capabilities": {"executeCommandProvider": {"commands": ["kaiak/configure"]}}}
ALIKE = [
    ("ndjson", RUN, {"result": {"run_id": "run-1"}}, "waza-go"),
    ("ndjson", RUN, {"result": {"runId": "a", "status": "running"}}, "waza"),
    ("ndjson", RUN, {"error": {"code": -32000, "message": "Eval not found", "data": "eval.yaml"}}, "waza-go"),
    ("ndjson", RUN, {"error": {"code": -32000, "message": "Eval not found", "data": {"path": "eval.yaml"}}}, "waza"),
    ("ndjson", GET, {"result": {"name": "a", "config": {}, "tasks": None, "graders": None}}, "waza-go"),
    ("ndjson", GET, {"result": {"path": "eval.yaml", "name": "a", "config": {}}}, "waza"),
    ("ndjson", CHECK, {"result": {"valid": True, "name": "a", "skill": "b"}}, "waza"),
    ("content-length", LSP, {"result": {"capabilities": {}}}, "lsp"),
    ("content-length", LSP, {"error": {"code": -32603, "message": "no"}}, "lsp"),
    ("content-length", LSP, {"result": COMMANDS}, "kaiak"),
]


@pytest.mark.parametrize(("framing", "begin", "answer", "protocol"), ALIKE)
def test_where_two_begin_alike_the_answer_tells(
    framing: str, begin: dict[str, object], answer: dict[str, object], protocol: str
) -> None:
    detector = Detector()
    detector.receive("in", encoded(framing, begin))
    detector.receive("out", encoded(framing, {"jsonrpc": "2.0", "method": "window/logMessage", "params": {}}))
    assert detector.found is None

    detector.receive("out", encoded(framing, {"jsonrpc": "2.0", "id": 1} | answer))

    assert detector.found == (protocol, framing)


def test_where_an_answer_tells_nothing_what_is_said_next_does() -> None:
    detector = Detector()
    detector.receive("in", encoded("ndjson", CHECK))
    detector.receive("out", encoded("ndjson", {"jsonrpc": "2.0", "id": 1, "result": {"valid": False, "errors": ["x"]}}))
    assert detector.found is None

    detector.receive("in", encoded("ndjson", rpc("task.get", path="eval.yaml", task_id="a")))

    assert detector.found == ("waza-go", "ndjson")


@pytest.mark.parametrize(("begin", "framing", "protocol"), [(LSP, "content-length", "lsp"), (RUN, "ndjson", "waza")])
def test_what_is_never_answered_is_what_it_seems(begin: dict[str, object], framing: str, protocol: str) -> None:
    detector = Detector()
    detector.receive("in", encoded(framing, begin))
    assert detector.settle() == (protocol, framing)


def test_a_child_that_speaks_first_may_tell() -> None:
    register = {"id": "1", "version": "1.0", "type": "register", "payload": {}}
    detector = Detector()

    detector.receive("out", encoded("ndjson", register))

    assert detector.found == ("pi", "ndjson")


def test_what_a_child_says_first_does_not_tell_what_is_no_sign() -> None:
    detector = Detector()
    detector.receive("out", encoded("ndjson", {"jsonrpc": "2.0", "method": "ready"}))
    assert detector.found is None

    detector.receive("in", encoded("ndjson", rpc("initialize", protocolVersion="0.0.1")))

    assert detector.found == ("gevals", "ndjson")


@pytest.mark.parametrize("host", [b"hello\n", b"\nhello\n", b"\xff\xfe\n"])
def test_lines_of_a_host_that_are_no_messages_are_lines(host: bytes) -> None:
    detector = Detector()

    detector.receive("in", host)

    assert detector.found == ("raw", "ndjson")


def test_a_session_that_says_nothing_is_lines() -> None:
    assert Detector().settle() == ("raw", "ndjson")


def test_a_flood_without_any_message_is_given_up() -> None:
    detector = Detector()

    for _ in range(32):
        detector.receive("out", b"x" * 65_536)

    assert detector.found == ("raw", "ndjson")


def test_a_framing_that_is_known_is_kept() -> None:
    detector = Detector("content-length")

    detector.receive("in", encoded("content-length", rpc("initialize", protocolVersion="0.0.1")))

    assert detector.found == ("gevals", "content-length")


@pytest.mark.parametrize(
    ("data", "framing"),
    [
        (b"", ""),
        (b"{}", ""),
        (b"{}\n", "ndjson"),
        (b"[1]\n", "ndjson"),
        (b"{broken\n", ""),
        (b"Content-Length: 2\r\n", "content-length"),
        (b"content-length:2\n\n{}", "content-length"),
        (b"Content-Type: x\r\nContent-Length: 2\r\n\r\n{}", "content-length"),
        (b"\0\0\0\x02{}", "uint32"),
        (b"\0\0\0", ""),
        (b"\0\0\0\0{}", ""),
        (b"\0\xff\xff\xff{", ""),
        (b'{"text":"Content-Length: 2"}\n', "ndjson"),
    ],
)
def test_the_framing_shows_in_the_first_bytes(data: bytes, framing: str) -> None:
    assert framing_of(data) == framing


@pytest.mark.parametrize(
    ("line", "place"),
    [
        (b"1|1|unix|/tmp/plugin123|netrpc|\n", "unix:/tmp/plugin123"),
        (b"1|5|tcp|127.0.0.1:1234|grpc|cert", "tcp:127.0.0.1:1234"),
        (b"1|1|unix|", ""),
        (b"1|1|pigeon|/tmp/x|netrpc", ""),
        (b"a|1|unix|/tmp/x", ""),
        (b'{"jsonrpc":"2.0"}', ""),
        (b"", ""),
    ],
)
def test_a_handshake_says_where_the_rest_goes(line: bytes, place: str) -> None:
    assert redirected_address(line) == place
