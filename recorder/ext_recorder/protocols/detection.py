"""Detection of framing and protocol from the first bytes of a session.

The framing follows from the first message of either side; lines of a log before it are skipped. The protocol follows
from the first message of the host, or of the child if that is first; if sessions of two protocols begin with the same
message, from the first response that differs. Detection does not change or consume the bytes.
"""

from __future__ import annotations

from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS, UINT32_LIMIT_BYTES
from ext_sdk.core.wire.json_codec import loads
from ext_sdk.core.wire.json_pointer import MISSING, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    from ext_sdk.core.wire.framing import Decoder

    Side = Literal["in", "out"]  # messages of the host, messages of the child

# A stream without a message in its first bytes has none of these protocols.
LOOK_BYTES = 1_048_576
_PRESENT = ...  # in a signature: any value
_WAZA = ("eval.run", "eval.list", "eval.get", "eval.validate", "task.list", "task.get", "run.status", "run.cancel")
_KAIAK = ("kaiak/configure", "kaiak/generate_fix", "kaiak/delete_session")

_PI = (
    "register", "tool_call", "tool_result", "slash_command", "slash_result", "event_hook", "host_call", "host_result",
    "log", "error",
)  # fmt: skip


class Signature:
    """Signature of a protocol: members of a message that only this protocol has.

    Args:
        members: {JSON pointer: value, tuple of values, type, or ... for any}; all of them are required.
        framing: the required framing; "" for any.
    """

    __slots__ = ("framing", "members", "protocol", "side")

    def __init__(self, protocol: str, side: Side, members: Mapping[str, object], framing: str = "") -> None:
        self.protocol = protocol
        self.side = side
        self.members = members
        self.framing = framing

    def fits(self, side: Side, framing: str, message: object) -> bool:
        """Return True if a message has this signature."""
        if side != self.side or self.framing not in {"", framing}:
            return False
        for pointer, expected in self.members.items():
            value = resolve(message, pointer)
            if isinstance(expected, type):
                matches = type(value) is expected
            elif isinstance(expected, tuple):
                matches = value in expected
            else:
                matches = value is not MISSING if expected is _PRESENT else value == expected
            if not matches:
                return False
        return True


# If a message has the signatures of several protocols, the first one in this table is detected, except for protocols in
# TURNS, which the responses of the child distinguish.
SIGNS = (
    Signature("gevals", "in", {"/method": "initialize", "/params/protocolVersion": "0.0.1"}),
    Signature("gevals", "in", {"/method": "execute", "/params/operation": str}),
    Signature("gevals", "in", {"/method": "execute", "/params/context/workdir": str}),
    Signature("pi", "in", {"/version": "1.0", "/type": _PI, "/payload": dict}),
    Signature("pi", "out", {"/version": "1.0", "/type": _PI, "/payload": dict}),
    Signature("gassist", "in", {"/method": "initialize", "/params/protocol_version": _PRESENT}),
    Signature("gassist", "in", {"/method": ("ping", "execute", "input", "shutdown")}, "uint32"),
    Signature("kaiak", "in", {"/method": "workspace/executeCommand", "/params/command": _KAIAK}),
    Signature("kaiak-head", "in", {"/method": (*_KAIAK, "kaiak/client/user_message")}),
    Signature("waza-go", "in", {"/method": _WAZA, "/params/dir": _PRESENT}),
    Signature("waza-go", "in", {"/method": _WAZA, "/params/task_id": _PRESENT}),
    Signature("waza-go", "in", {"/method": _WAZA, "/params/run_id": _PRESENT}),
    Signature("waza", "in", {"/method": _WAZA}),
    Signature("mcp", "in", {"/method": "initialize", "/params/protocolVersion": str, "/params/capabilities": dict}),
    Signature("mcp", "in", {"/method": "server/discover"}),
    Signature("mcp", "in", {"/method": str, "/params/_meta/io.modelcontextprotocol~1protocolVersion": str}),
    Signature("acp", "in", {"/method": "initialize", "/params/protocolVersion": int}),
    Signature("lsp", "in", {"/method": "initialize", "/params/capabilities": dict}, "content-length"),
    Signature("dap", "in", {"/type": "request", "/command": str, "/seq": int}),
    Signature("dap", "out", {"/type": "event", "/event": str, "/seq": int}),
)

# Protocols whose hosts may begin with the same message: the first guess, and the signature of a response that decides.
# After a response without such a signature, the next one may decide.
TURNS = (
    ("waza", Signature("waza-go", "out", {"/result/run_id": _PRESENT})),
    ("waza", Signature("waza-go", "out", {"/result/graders": _PRESENT, "/result/config": dict})),
    ("waza", Signature("waza-go", "out", {"/error/data": str})),
    ("waza", Signature("waza", "out", {"/result/runId": _PRESENT})),
    ("waza", Signature("waza", "out", {"/result/path": str})),
    ("waza", Signature("waza", "out", {"/result/valid": True, "/result/name": str})),
    ("waza", Signature("waza", "out", {"/result/tasks/0/file": str})),
    ("waza", Signature("waza", "out", {"/error/data": dict})),
    # Kaiak's server may expect the handshake of LSP.
    ("lsp", Signature("kaiak", "out", {"/result/capabilities/executeCommandProvider/commands/0": _KAIAK})),
    ("lsp", Signature("lsp", "out", {"/result": _PRESENT})),
    ("lsp", Signature("lsp", "out", {"/error": _PRESENT})),
)


class Detector:
    """Detector of the protocol of a session, from the bytes of both sides.

    Args:
        framing: the framing, if it is known; else "".

    Attributes:
        found: (protocol, framing); None until they are detected.
    """

    def __init__(self, framing: str = "") -> None:
        self.found: tuple[str, str] | None = None
        self._framing = framing
        self._seen: dict[Side, bytes] = {"in": b"", "out": b""}
        self._decoders: dict[Side, Decoder] = {}
        self._seems = ""
        self._rpc = False
        if framing:
            self._decoders = _decoders(framing)

    def receive(self, side: Side, data: bytes) -> None:
        """Add bytes of one side."""
        if self.found:
            return
        if not self._decoders:
            self._seen[side] += data
            self._framing = framing_of(self._seen[side])
            if not self._framing:
                # A host writes no log to its child: its first line is a message or a header.
                lines = [line for line in self._seen["in"].split(b"\n")[:-1] if line.strip()] if side == "in" else []
                if len(self._seen[side]) > LOOK_BYTES or (lines and b":" not in lines[0]):
                    self.settle()
                return
            self._decoders = _decoders(self._framing)
            for sender, seen in self._seen.items():
                self._decoders[sender].receive_data(seen)
                self._inspect(sender)
            return
        self._seen[side] = self._seen[side][:0]
        self._decoders[side].receive_data(data)
        self._inspect(side)

    def settle(self) -> tuple[str, str]:
        """Return the most likely protocol and framing, if no further bytes are waited for."""
        if not self.found:
            protocol = self._seems or ("jsonrpc" if self._rpc else "raw")
            self.found = (protocol, self._framing or "ndjson")
        return self.found

    def _inspect(self, side: Side) -> None:
        """Detect the protocol from the messages of one side."""
        while not self.found and (item := self._decoders[side].next_event()):
            message = _json(item.payload) if isinstance(item, Frame) else MISSING
            if not isinstance(message, dict):
                continue
            if self._seems and side == "out":
                signs = [sign for seems, sign in TURNS if seems == self._seems and sign.fits(side, "", message)]
                if signs:
                    self.found = (signs[0].protocol, self._framing)
                continue
            self._rpc = self._rpc or "jsonrpc" in message or isinstance(message.get("method"), str)
            signs = [sign for sign in SIGNS if sign.fits(side, self._framing, message)]
            if signs and signs[0].protocol in {seems for seems, _ in TURNS}:
                self._seems = signs[0].protocol
            elif signs:
                self.found = (signs[0].protocol, self._framing)
            elif side == "in" and not self._seems:
                self.settle()


def _decoders(framing: str) -> dict[Side, Decoder]:
    return {"in": FRAMINGS[framing].decoder(), "out": FRAMINGS[framing].decoder()}


def framing_of(data: bytes) -> str:
    """Return the framing of a stream by its first message; "" if it is not clear yet.

    Args:
        data: the stream from its beginning.
    """
    if data[:1] == b"\0":  # a length below 16 MiB, and never the first byte of a text
        length = int.from_bytes(data[:4], "big")
        return "uint32" if len(data) >= 5 and 0 < length <= UINT32_LIMIT_BYTES else ""
    for line in data.split(b"\n")[:-1]:
        if line[:15].lower() == b"content-length:":
            return "content-length"
        if line.lstrip()[:1] in {b"{", b"["} and _json(line) is not MISSING:
            return "ndjson"
    return ""


def _json(payload: bytes) -> object:
    """Return the JSON value; MISSING if the payload is not JSON."""
    try:
        return loads(payload.decode("utf-8", "surrogateescape"))
    except MessageError:
        return MISSING


_NETWORKS = ("unix", "tcp")


def redirected_address(payload: bytes) -> str:
    """Return the address that a session moves to, as "unix:/tmp/plugin123"; "" for any other line.

    Args:
        payload: output of a child that begins with a line.
    """
    fields = payload.partition(b"\n")[0].decode("utf-8", "replace").strip().split("|")
    if len(fields) < 4 or not fields[0].isdigit() or not fields[1].isdigit() or fields[2] not in _NETWORKS:
        return ""
    return f"{fields[2]}:{fields[3]}" if fields[3] else ""
