"""The messages that are sent, and cassettes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.cassette.events import mark_line, text_line
from ext_recorder.cassette.header import Header
from ext_recorder.cassette.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MESSAGE_BYTES = 300  # about: ids and folders have lengths of their own
RECORDED_WORKDIR = "/tmp/workdir"  # as cassettes spell it
LIVE_WORKDIR = "/tmp/evaluation/task-1"  # as a host spells it: every message has to be translated
LATER_IDS = 1_000_000  # a host's ids are not those of the recording
INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"0.0.1"}}\n'
MANIFEST = b'{"jsonrpc":"2.0","id":1,"result":{"name":"shell",'  # how the answer begins
HTTP_MANIFEST = MANIFEST.replace(b"shell", b"http")
KUBERNETES_MANIFEST = MANIFEST.replace(b"shell", b"kubernetes")
# With what hosts send as a configuration.
CONFIGURED = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"0.0.1","config":%b}}\n'
_REQUEST = """\
{"jsonrpc":"2.0","id":%d,"method":"execute","params":{"operation":"nothing","args":{"text":"%s"},\
"context":{"workdir":"%s","phase":"setup"}}}"""
_ANSWER = """\
{"jsonrpc":"2.0","id":%d,"result":{"success":true,"message":"%s","outputs":{"path":"%s/output.txt"}}}"""
_TOOL_CALL = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"nothing","arguments":{"text":"%s"}}}'
MCP_INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":'
    b'{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}\n'
)
PI_REGISTER = b'{"id":"register","version":"1.0","type":"register","payload":{"name":"shell",'
MCP_INITIALIZED = b'{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25",'
_WORDS = "what an operation is told, and what it has to say about it afterwards; " * 10
_BATCH = 1000  # lines


def request(number: int, id: int, workdir: str) -> bytes:
    """A call that no other one is like."""
    return (_REQUEST % (id, _text(number, _REQUEST), workdir)).encode()


def answer(number: int, id: int, workdir: str) -> bytes:
    """Its answer, which names the folder too."""
    return (_ANSWER % (id, _text(number, _ANSWER), workdir)).encode()


def tool_call(number: int, id: int, _: str) -> bytes:
    """The same call over MCP."""
    return (_TOOL_CALL % (id, _text(number, _REQUEST))).encode()


def _text(number: int, around: str) -> str:
    words = f"{number} {_WORDS}"
    return words[: MESSAGE_BYTES - len(around) - len(LIVE_WORKDIR)]


def write_requests(path: Path, count: int, first_id: int = 1, say: Callable[[int, int, str], bytes] = request) -> Path:
    """A file of so many messages of a host; or of a child, where `say` is `answer`."""
    with path.open("wb") as file:
        for number in range(count):
            file.write(say(number, first_id + number, LIVE_WORKDIR) + b"\n")
    return path


def write_cassette(path: Path, count: int) -> Path:
    """A cassette of so many calls, one after the other."""
    header = Header("gevals", "ndjson", command=("nothing",), bindings={"workdir": RECORDED_WORKDIR})
    with Writer(path, header) as writer:
        lines: list[bytes] = []
        for number in range(count):
            at = number / 1000
            for kind, say in (("in", request), ("out", answer)):
                line = text_line(kind, at, say(number, 1 + number, RECORDED_WORKDIR))  # type: ignore[arg-type]
                assert line is not None
                lines.append(line)
            if len(lines) > _BATCH:
                writer.append(lines)
                lines = []
        at = count / 1000
        writer.append([*lines, mark_line("eof", at, "in"), mark_line("eof", at, "out"), mark_line("exit", at, 0)])
        writer.finish()
    return path
