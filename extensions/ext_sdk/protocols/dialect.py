"""Dialects: what a recorder has to know of a protocol, as data.

    bytes --framing--> payload --classify--> Classified: request | response | notification | other

A protocol of the JSON-RPC family is a row in `DIALECTS`. Another one brings its own `classify` and `refusal`.
"""

from __future__ import annotations

from ext_sdk.wire.errors import MessageError
from ext_sdk.wire.jsonrpc import scan

from . import gevals, jsonrpc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    from ext_sdk.wire.jsonrpc import Envelope

    Kind = Literal["request", "response", "notification", "other"]
    # The value of an id with its type: 1 and "1" are two ids, 1 and 1.0 are one, and true is not 1.
    IdKey = tuple[str, str | int | float | None]


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
        key: IdKey | None = None,
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

    __slots__ = ("bound", "calls", "final", "framing", "name", "references", "title", "volatile")

    def __init__(
        self,
        name: str,
        framing: str,
        title: str,
        *,
        bound: Mapping[str, Mapping[str, str]] | None = None,
        volatile: Mapping[str, tuple[str, ...]] | None = None,
        references: Mapping[str, tuple[str, ...]] | None = None,
        final: tuple[str, ...] = (),
        calls: bool = True,
    ) -> None:
        self.name = name
        self.framing = framing
        self.title = title
        self.bound = bound or {}
        self.volatile = volatile or {}
        self.references = references or {}
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
        """The payload that tells the host that there is no answer to its request; None where nothing can tell
        it.

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


def id_key(value: object, spelling: str) -> IdKey:
    """The identity of an id: its JSON value with its JSON type."""
    if isinstance(value, str):
        return "string", value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "number", value
    return "other", spelling


DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            "gevals",
            gevals.FRAMING,
            "the gevals extension protocol",
            bound=gevals.BOUND,
            volatile=gevals.VOLATILE,
            references=jsonrpc.REFERENCES,
            final=gevals.FINAL,
        ),
        Dialect(
            "jsonrpc",
            jsonrpc.FRAMING,
            "any JSON-RPC 2.0: MCP, LSP, ACP, …",
            volatile=jsonrpc.VOLATILE,
            references=jsonrpc.REFERENCES,
            final=jsonrpc.FINAL,
        ),
        Dialect("raw", "ndjson", "lines without any further meaning", calls=False),
    )
}
