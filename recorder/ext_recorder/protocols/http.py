"""HTTP/1.1 between a client and a socket server: requests and responses in order, without ids.

The payloads are those of `ext_sdk.core.wire.http_framing`: `POST /mcp {…}`, `200 {…}`, or a chunk of a streamed body,
which does not belong to a call.
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
# All calls of a connection have the same id, because responses are in the order of their requests.
_KEY = b"1"
# The status of the response to a request without a recorded one: an error of the client that no server sends.
_STATUS = 499
# Members of `initialize` that describe a client, as in the dialect `mcp`.
_CLIENT = ("clientInfo", "capabilities", "protocolVersion")


class HttpMessage(ClassifiedMessage):
    """Request or response with the members `body`, JSON or text, and `status` of a response."""

    __slots__ = ("_members",)

    def __init__(self, form: Form, text: str, method: str, members: dict[str, object]) -> None:
        super().__init__(form, text, method, _KEY)
        self._members = members

    @property
    def members(self) -> dict[str, object]:
        """Return the members of the message."""
        return self._members

    def at(self, pointer: str) -> object:
        """Return the value at a JSON pointer, or MISSING."""
        first, slash, rest = pointer[1:].partition("/")
        return resolve(self._members[first], slash + rest) if first in self._members else MISSING


class HttpDialect(Dialect):
    """Dialect of HTTP, whose messages are not JSON."""

    __slots__ = ()

    def classify(self, payload: bytes) -> ClassifiedMessage:
        """Classify a payload. Raises nothing, for any bytes."""
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
        """Return the error response to a request without a recorded response."""
        return f"{_STATUS} {dumps({'error': message, **data})}".encode("utf-8", "backslashreplace")


def _body(text: str) -> dict[str, object]:
    if not text:
        return {}
    try:
        body = loads(text)
    except MessageError:
        return {"body": text}
    params = body.get("params") if isinstance(body, dict) and "jsonrpc" in body else None
    if not isinstance(body, dict) or not isinstance(params, dict):
        return {"body": body}
    # Members that differ between clients and runs of the Model Context Protocol are not compared.
    volatile = {"_meta", *(_CLIENT if body.get("method") == "initialize" else ())}
    return {"body": {**body, "params": {name: value for name, value in params.items() if name not in volatile}}}


DIALECT = HttpDialect("http", "http", "HTTP/1.1 of a socket server", tag="")
DIALECT.id_only = DIALECT.by_id = False
