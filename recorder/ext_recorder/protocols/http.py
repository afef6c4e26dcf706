"""HTTP/1.1 between a client and a socket server: requests and responses in order, without ids.

A payload is what `core.wire.http_framing` makes of a message: `POST /mcp {…}`, `200 {…}`, or a chunk of a streamed
body, which is no call.
"""

from __future__ import annotations

from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.json_codec import dumps, loads
from ext_sdk.core.wire.json_pointer import MISSING, resolve

from .dialect import OTHER, ClassifiedMessage, Dialect, Form

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_REQUEST = Form("request", "/request", "", ("body",))
_RESPONSE = Form("response", "/status", "", ("status", "body"))
# Responses come in the order of their requests, so that all calls of a connection have one id.
_KEY = b"1"
# The status of a request that nothing answers: of the client's errors, one that no server sends.
_STATUS = 499
# As in the dialect `mcp`: what `initialize` says of a client.
_CLIENT = ("clientInfo", "capabilities", "protocolVersion")


class HttpMessage(ClassifiedMessage):
    """A request or a response; its members are `body`, JSON or text, and of a response `status`."""

    __slots__ = ("_members",)

    def __init__(self, form: Form, text: str, method: str, members: dict[str, object]) -> None:
        super().__init__(form, text, method, _KEY)
        self._members = members

    @property
    def members(self) -> dict[str, object]:
        """The parts of the message."""
        return self._members

    def at(self, pointer: str) -> object:
        """Return the value at a JSON pointer, or MISSING."""
        first, slash, rest = pointer[1:].partition("/")
        return resolve(self._members[first], slash + rest) if first in self._members else MISSING


class HttpDialect(Dialect):
    """The one protocol whose messages are not JSON."""

    __slots__ = ()

    def classify(self, payload: bytes) -> ClassifiedMessage:
        """Return a payload as a message. Raises nothing, whatever the bytes are."""
        text = payload.decode("utf-8", "surrogateescape")
        word, _, rest = text.partition(" ")
        if len(word) == 3 and word.isascii() and word.isdigit():
            return HttpMessage(_RESPONSE, text, "", {"status": int(word), **_body(rest)})
        target, _, body = rest.partition(" ")
        if word.isascii() and word.isupper() and target[:1] in {"/", "*", "h", "["}:
            return HttpMessage(_REQUEST, text, f"{word} {target}", _body(body))
        return ClassifiedMessage(OTHER, text)

    def is_last(self, answer: ClassifiedMessage) -> bool:
        """Return True for a final response."""
        return not answer.text.startswith("1")

    def is_failure(self, answer: ClassifiedMessage) -> bool:
        """Return True for a status of an error."""
        status = answer.at("/status")
        return isinstance(status, int) and status >= 400

    def refusal(self, request: ClassifiedMessage, message: str, data: Mapping[str, object]) -> bytes | None:
        """Return the response to a request that nothing answers."""
        return f"{_STATUS} {dumps({'error': message, **data})}".encode("utf-8", "backslashreplace")


def _body(text: str) -> dict[str, object]:
    if not text:
        return {}
    try:
        return {"body": _without_volatile(loads(text))}
    except MessageError:
        return {"body": text}


def _without_volatile(body: object) -> object:
    """Return a JSON body without what differs between clients and runs of the Model Context Protocol."""
    params = body.get("params") if isinstance(body, dict) and "jsonrpc" in body else None
    if not isinstance(body, dict) or not isinstance(params, dict):
        return body
    volatile = {"_meta", *(_CLIENT if body.get("method") == "initialize" else ())}
    return {**body, "params": {name: value for name, value in params.items() if name not in volatile}}


DIALECT = HttpDialect("http", "http", "HTTP/1.1 of a socket server", tag="")
DIALECT.id_only = DIALECT.by_id = False
