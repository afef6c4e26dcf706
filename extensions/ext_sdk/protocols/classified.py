"""A payload, and what it is: the result of looking at a message through a dialect."""

from __future__ import annotations

from ext_sdk.core.wire.json_codec import quote
from ext_sdk.core.wire.json_pointer import MISSING, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_sdk.core.wire.json_object import Envelope

    from .glance import Kind


class Form:
    """One sort of message: what it is, and where its parts stand.

    Attributes:
        kind: "request" (wants an answer), "response" or "notification".
        method: JSON pointer to the name of what is asked for, answered or told; "" where the message has none.
        id: JSON pointer to the id of the call: its own in a request, that of the answered one in a response; ""
            where there is none.
        content: the members that say what is asked for, or what came of it.
    """

    __slots__ = ("content", "id", "kind", "method")

    def __init__(self, kind: Kind, method: str = "", id: str = "", content: tuple[str, ...] = ()) -> None:
        self.kind: Kind = kind
        self.method = method
        self.id = id
        self.content = content


# JSON-RPC 2.0, sections 4 and 5: which of these a message is shows in the members that it has.
REQUEST = Form("request", "/method", "/id", ("params",))
NOTIFICATION = Form("notification", "/method", "", ("params",))
RESPONSE = Form("response", "", "/id", ("result", "error"))
OTHER = Form("other")


class Classified:
    """A payload, and what it is.

    Attributes:
        form: which sort of message; `kind`, its kind: "request", "response", "notification", or "other": not JSON,
        or no single message. text: the payload as text. method: what it is about; "" where it does not say. key:
        the id of the call, to be kept apart by direction; None where there is none. span: where the id is spelled,
        `text[start:end]`; (0, 0) where it is not. envelope: the members; None for what is no JSON object.
    """

    __slots__ = ("envelope", "form", "key", "kind", "method", "span", "text")

    def __init__(
        self,
        form: Form,
        text: str,
        method: str = "",
        key: bytes | None = None,
        span: tuple[int, int] = (0, 0),
        *,
        envelope: Envelope | None = None,
    ) -> None:
        self.form = form
        self.kind = form.kind
        self.text = text
        self.method = method
        self.key = key
        self.span = span
        self.envelope = envelope

    def __repr__(self) -> str:
        return f"Classified({self.kind!r}, {self.text!r})"

    @property
    def id(self) -> str:
        """The id of the call as it is spelled; "" where there is none."""
        return self.text[slice(*self.span)]

    @property
    def members(self) -> dict[str, object]:
        """The outermost members and their values; none of what is no JSON object."""
        return {name: member.value for name, member in self.envelope.members.items()} if self.envelope else {}

    def at(self, pointer: str) -> object:
        """The value at a JSON pointer, or MISSING."""
        first, slash, rest = pointer[1:].partition("/")
        member = self.envelope.members.get(first) if self.envelope else None
        return resolve(member.value, slash + rest) if member else MISSING


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
