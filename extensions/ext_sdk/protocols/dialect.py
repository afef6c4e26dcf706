"""Dialects: what a recorder has to know of a protocol, as data.

    bytes --framing--> payload --classify--> Classified: request | response | notification | other

A protocol of the JSON-RPC family is a row in `DIALECTS`. Another one brings its own `classify` and `refusal`.
"""

from __future__ import annotations

from ext_sdk.wire.errors import MessageError
from ext_sdk.wire.json_text import quote
from ext_sdk.wire.jsonrpc import scan

from . import gevals, jsonrpc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ext_sdk.wire.jsonrpc import Envelope

    from .glance import Kind


class Classified:
    """A payload, and what it is.

    Attributes:
        kind: "request" (wants an answer), "response", "notification", or "other": not JSON, or no single
        message. text: the payload as text. method: of requests and notifications, else "". key: the id of the
        call, to be kept apart by direction; None where there is none. span: where the id is spelled,
        `text[start:end]`; (0, 0) where it is not. envelope: the members; None for "other".
    """

    __slots__ = ("envelope", "key", "kind", "method", "span", "text")

    def __init__(
        self,
        kind: Kind,
        text: str,
        method: str = "",
        key: bytes | None = None,
        span: tuple[int, int] = (0, 0),
        *,
        envelope: Envelope | None = None,
    ) -> None:
        self.kind = kind
        self.text = text
        self.method = method
        self.key = key
        self.span = span
        self.envelope = envelope

    def __repr__(self) -> str:
        return f"Classified({self.kind!r}, {self.text!r})"


class Dialect:
    """One protocol.

    Attributes:
        name: what a cassette says under `protocol`.
        framing: the usual framing.
        title: one line for people.
        bound: {method: {binding: JSON pointer}}: where requests name paths of the machine they were sent on.
        volatile: {method: JSON pointers}: what differs from run to run without meaning anything; "*": every
        method. references: {method: JSON pointers}: where a message names the id of another call of its own
        side. final: methods after whose answer (or, for a notification, at whose arrival) the child ends by
        itself. calls: whether messages are calls with ids. Without, every payload stands for itself.
    """

    __slots__ = (
        "bound", "calls", "echoed", "final", "framing", "minted", "name", "references", "title", "volatile",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        framing: str,
        title: str,
        *,
        bound: Mapping[str, Mapping[str, str]] | None = None,
        volatile: Mapping[str, tuple[str, ...]] | None = None,
        references: Mapping[str, tuple[str, ...]] | None = None,
        minted: Mapping[str, tuple[str, ...]] | None = None,
        echoed: Mapping[str, tuple[str, ...]] | None = None,
        final: tuple[str, ...] = (),
        calls: bool = True,
    ) -> None:
        self.name = name
        self.framing = framing
        self.title = title
        self.bound = bound or {}
        self.volatile = volatile or {}
        self.references = references or {}
        self.minted = minted or {}
        self.echoed = echoed or {}
        self.final = final
        self.calls = calls

    def classify(self, payload: bytes) -> Classified:
        """What a payload is. Raises nothing, whatever the bytes are."""
        text = payload.decode("utf-8", "surrogateescape")
        if not self.calls:
            return Classified("other", text)
        try:
            envelope = scan(text)
        except MessageError:
            return Classified("other", text)
        return _classified(envelope)

    def refusal(self, request: Classified, message: str, data: Mapping[str, object]) -> bytes | None:
        """The payload that tells the host that nothing answers its request; None where nothing can.

        Args:
            request: what the host sent.
            message: one line for a person.
            data: the same for a program: JSON values.
        """
        if not self.calls:
            return None
        return jsonrpc.refusal(request.text[slice(*request.span)] or "null", message, data)


def _classified(envelope: Envelope) -> Classified:
    members, text = envelope.members, envelope.text
    method = envelope.value("method")
    member = members.get("id")
    key = id_key(member.value, text[member.start : member.end]) if member else None
    span = (member.start, member.end) if member else (0, 0)
    if isinstance(method, str):
        kind: Kind = "request" if member else "notification"
        return Classified(kind, text, method, key, span, envelope=envelope)
    if "result" in members or "error" in members:
        return Classified("response", text, "", key, span, envelope=envelope)
    return Classified("other", text, envelope=envelope)


def id_key(value: object, spelling: str) -> bytes:
    """The identity of an id, in its plainest spelling: 1 and 1.0 are one id, "1" and true are others.

    Args:
        value: the id as a JSON value.
        spelling: how it is written, for what should be no id: an object, an array, a literal.
    """
    if isinstance(value, str):
        return quote(value).encode("utf-8", "surrogateescape")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return spelling.encode("utf-8", "surrogateescape")
    return str(int(value) if value == value // 1 else value).encode()


DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            "gevals",
            gevals.FRAMING,
            "the gevals extension protocol",
            bound=gevals.BOUND,
            volatile=gevals.VOLATILE,
            final=gevals.FINAL,
        ),
        Dialect(
            "jsonrpc",
            jsonrpc.FRAMING,
            "any JSON-RPC 2.0: MCP, LSP, ACP, …",
            volatile=jsonrpc.VOLATILE,
            references=jsonrpc.REFERENCES,
            minted=jsonrpc.MINTED,
            echoed=jsonrpc.ECHOED,
            final=jsonrpc.FINAL,
        ),
        Dialect("raw", "ndjson", "lines without any further meaning", calls=False),
    )
}
