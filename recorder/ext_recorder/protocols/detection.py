"""Detection of framing and protocol from the first bytes of a session.

The framing shows in the first message of either side, whatever is logged before it. The protocol shows in what the host
says first, or the child where it speaks first; where two dialects begin alike, in the first answer that differs.
Nothing is changed or consumed: bytes are only looked at.
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

    Side = Literal["in", "out"]  # what the host says, what the child says

# So many bytes of one side without any message: it is none of these protocols.
LOOK_BYTES = 1_048_576
_PRESENT = ...  # in a sign: any value
_WAZA = ("eval.run", "eval.list", "eval.get", "eval.validate", "task.list", "task.get", "run.status", "run.cancel")
_KAIAK = ("kaiak/configure", "kaiak/generate_fix", "kaiak/delete_session")

_PI = (
    "register", "tool_call", "tool_result", "slash_command", "slash_result", "event_hook", "host_call", "host_result",
    "log", "error",
)  # fmt: skip


class Signature:
    """Signature of a protocol: members of a message that only this protocol has.

    Args:
        protocol: the name of the dialect.
        side: who says it.
        members: {JSON pointer: value, tuple of values, type, or ... for any}; all of them have to be there.
        framing: where only one will do.
    """

    __slots__ = ("framing", "members", "protocol", "side")

    def __init__(self, protocol: str, side: Side, members: Mapping[str, object], framing: str = "") -> None:
        self.protocol = protocol
        self.side = side
        self.members = members
        self.framing = framing

    def fits(self, side: Side, framing: str, message: object) -> bool:
        """Is it shown by this message?"""
        if side != self.side or self.framing not in {"", framing}:
            return False
        return all(_fits(resolve(message, pointer), wanted) for pointer, wanted in self.members.items())


def _fits(value: object, wanted: object) -> bool:
    if value is MISSING:
        return False
    if isinstance(wanted, type):
        return type(value) is wanted
    return wanted is _PRESENT or (value in wanted if isinstance(wanted, tuple) else value == wanted)


# All signs of a protocol are tried; the first protocols of the table win where a message shows several, but for those
# that begin alike: of them the child's answers decide.
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

# Dialects whose hosts may begin with the same words: as it seems, and what the child shows it to be. What shows nothing
# leaves it open: the next message may tell.
TURNS = (
    ("waza", Signature("waza-go", "out", {"/result/run_id": _PRESENT})),
    ("waza", Signature("waza-go", "out", {"/result/graders": _PRESENT, "/result/config": dict})),
    ("waza", Signature("waza-go", "out", {"/error/data": str})),
    ("waza", Signature("waza", "out", {"/result/runId": _PRESENT})),
    ("waza", Signature("waza", "out", {"/result/path": str})),
    ("waza", Signature("waza", "out", {"/result/valid": True, "/result/name": str})),
    ("waza", Signature("waza", "out", {"/result/tasks/0/file": str})),
    ("waza", Signature("waza", "out", {"/error/data": dict})),
    # Kaiak's server may want to be greeted as those of LSP are.
    ("lsp", Signature("kaiak", "out", {"/result/capabilities/executeCommandProvider/commands/0": _KAIAK})),
    ("lsp", Signature("lsp", "out", {"/result": _PRESENT})),
    ("lsp", Signature("lsp", "out", {"/error": _PRESENT})),
)


class Detector:
    """Detector of the protocol of a session, from the bytes of both sides.

    Args:
        framing: where it is known.

    Attributes:
        found: (protocol, framing), once it is clear.
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
                if len(self._seen[side]) > LOOK_BYTES or (side == "in" and _is_text(self._seen["in"])):
                    self.settle()
                return
            self._decoders = _decoders(self._framing)
            for each, seen in self._seen.items():
                self._decoders[each].receive_data(seen)
                self._look(each)
            return
        self._seen[side] = self._seen[side][:0]
        self._decoders[side].receive_data(data)
        self._look(side)

    def settle(self) -> tuple[str, str]:
        """No more will come, or no more is to be waited for: what it most likely is."""
        if not self.found:
            protocol = self._seems or ("jsonrpc" if self._rpc else "raw")
            self.found = (protocol, self._framing or "ndjson")
        return self.found

    def _look(self, side: Side) -> None:
        while not self.found and (item := self._decoders[side].next_event()):
            if isinstance(item, Frame):
                self._hear(side, item.payload)

    def _hear(self, side: Side, payload: bytes) -> None:
        try:
            message = loads(payload.decode("utf-8", "surrogateescape"))
        except MessageError:
            return  # a line that is no message
        if not isinstance(message, dict):
            return
        if self._seems and side == "out":
            turned = [sign.protocol for seems, sign in TURNS if seems == self._seems and sign.fits(side, "", message)]
            if turned:
                self._find(turned[0])
            return
        self._rpc = self._rpc or "jsonrpc" in message or isinstance(message.get("method"), str)
        shown = [sign.protocol for sign in SIGNS if sign.fits(side, self._framing, message)]
        if shown and shown[0] in {seems for seems, _ in TURNS}:
            self._seems = shown[0]
        elif shown:
            self._find(shown[0])
        elif side == "in" and not self._seems:
            self.settle()

    def _find(self, protocol: str) -> None:
        self.found = (protocol, self._framing)


def _decoders(framing: str) -> dict[Side, Decoder]:
    return {"in": FRAMINGS[framing].decoder(), "out": FRAMINGS[framing].decoder()}


def framing_of(data: bytes) -> str:
    """Return the framing of a stream by its first message; "" if it is not clear yet.

    Args:
        data: the stream from its beginning.
    """
    if data[:1] == b"\0":  # no text begins so; a length below 16 MiB does
        length = int.from_bytes(data[:4], "big")
        return "uint32" if len(data) >= 5 and 0 < length <= UINT32_LIMIT_BYTES else ""
    for line in data.split(b"\n")[:-1]:
        if line[:15].lower() == b"content-length:":
            return "content-length"
        if line.lstrip()[:1] in {b"{", b"["} and _is_json(line):
            return "ndjson"
    return ""


def _is_text(data: bytes) -> bool:
    """Does a host begin with a line that is neither a message nor a header? Hosts write no logs to their child."""
    lines = [line for line in data.split(b"\n")[:-1] if line.strip()]
    return bool(lines) and b":" not in lines[0]


def _is_json(line: bytes) -> bool:
    try:
        loads(line.decode("utf-8", "surrogateescape"))
    except MessageError:
        return False
    return True


_NETWORKS = ("unix", "tcp")


def redirected_address(payload: bytes) -> str:
    """Return the address that a session moves to, as "unix:/tmp/plugin123"; "" for any other line.

    Args:
        payload: what a child has written: a line, or the bytes that begin with it.
    """
    fields = payload.partition(b"\n")[0].decode("utf-8", "replace").strip().split("|")
    if len(fields) < 4 or not fields[0].isdigit() or not fields[1].isdigit() or fields[2] not in _NETWORKS:
        return ""
    return f"{fields[2]}:{fields[3]}" if fields[3] else ""
