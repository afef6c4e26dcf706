"""Dialects: the properties of protocols that record and replay depend on, as data; and messages classified by them."""

from __future__ import annotations

from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.json_codec import dumps, quote, scan
from ext_sdk.core.wire.json_pointer import MISSING, locate, resolve

from . import NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ext_sdk.core.wire.json_codec import Envelope

    from .fast_id import Kind

    Pointers = Mapping[str, tuple[str, ...]]


class Form:
    """Form of messages with one tag: their kind, and pointers to their parts.

    Attributes:
        kind: "request" (which has a response), "response", "notification" or "other".
        method: JSON pointer to the name of the method; "" if the message has none.
        id: JSON pointer to the id of the call, which a request and its responses share; "" if the message has none.
        content: the members with the parameters or the result.
    """

    __slots__ = ("content", "id", "kind", "method")

    def __init__(self, kind: Kind, method: str = "", id: str = "", content: tuple[str, ...] = ()) -> None:
        self.kind: Kind = kind
        self.method = method
        self.id = id
        self.content = content


# JSON-RPC 2.0, sections 4 and 5: the members of a message determine its form.
REQUEST = Form("request", "/method", "/id", ("params",))
NOTIFICATION = Form("notification", "/method", "", ("params",))
RESPONSE = Form("response", "", "/id", ("result", "error"))
OTHER = Form("other")


class ClassifiedMessage:
    """Message classified by a dialect.

    Attributes:
        kind: kind of the form; "other" if the payload is not JSON, or not a single message.
        text: the payload as text.
        method: name of the method; "" if the message does not name it.
        key: id of the call, see `id_key`; None if the message has none. Both directions may use the same ids.
        span: position of the id, `text[start:end]`; (0, 0) if the message has none.
        envelope: the members; None if the payload is not a JSON object.
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
        return f"ClassifiedMessage({self.kind!r}, {self.text!r})"

    @property
    def id(self) -> str:
        """Return the id of the call as JSON text; "" if it has none."""
        return self.text[slice(*self.span)]

    @property
    def members(self) -> dict[str, object]:
        """Return the outermost members and their values; {} if the payload is not a JSON object."""
        return {name: member.value for name, member in self.envelope.members.items()} if self.envelope else {}

    def at(self, pointer: str) -> object:
        """Return the value at a JSON pointer, or MISSING."""
        first, slash, rest = pointer[1:].partition("/")
        member = self.envelope.members.get(first) if self.envelope else None
        return resolve(member.value, slash + rest) if member else MISSING


def id_key(value: object, text: str) -> bytes:
    """Return the key of an id: 1 and 1.0 are one id, "1" and true are others.

    Args:
        value: the id as a JSON value.
        text: the id as JSON text, which is the key of a value that is not a valid id: an object, an array, a literal.
    """
    if isinstance(value, str):
        return quote(value).encode("utf-8", "surrogateescape")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return text.encode("utf-8", "surrogateescape")
    return str(int(value) if value == value // 1 else value).encode()


# Error code in the range of JSON-RPC for servers (-32000 to -32099) that none of the supported protocols uses.
NOT_RECORDED = -32099

# Error response of JSON-RPC to a request without a recorded response. `%(/id)s` is the text of the request's id.
REFUSAL = (
    '{"jsonrpc":"2.0","id":%(/id)s,"error":{"code":' + str(NOT_RECORDED) + ',"message":%(message)s,"data":%(data)s}}'
)


class Dialect:
    """Properties of one protocol that record, replay and the tools depend on.

    Tables are by method; "*" is every method, "" a response that names no method. Pointers are JSON pointers.

    Attributes:
        name: value of `protocol` in cassettes.
        framing: usual framing.
        title: one line for users.
        tag: member whose value selects an entry of `forms`.
        forms: forms of messages by that value. A message with any other value is read as JSON-RPC if the tag is
            `method`, and is not a message otherwise.
        bound: {method: {binding: pointer}}: paths of the machine in requests.
        volatile: values that differ from run to run without meaning: of requests, notifications, and, by the method of
            the request, of responses.
        references: id of another call of the same side.
        mentions: id of a call of the other side.
        client_generated: names that the host generates for one call (a progress token).
        echoed_names: where the child's notifications repeat these names.
        echoes: {method: {pointer in the request: pointer in the response}}: values of the request that its response
            repeats.
        names: names of runs, sessions and the like in messages of either side. The side that sends a name first has
            generated it; later messages with that name refer to the same object. Names that the host generates are in
            `client_generated` as well.
        handed: values that the other side sends back in later messages: a cursor, a token. Responses are listed by the
            method of their request. Replay does not use this table.
        session_scoped: name of the session that a request of the host works on: messages of the child with that name
            belong to the request until its response.
        controls: name of the run or the child's request that a message of the host controls: what follows there waits
            for the message.
        unblocks: {method: methods}: requests of the host that open calls of these methods wait for.
        keepalives: methods of the host that have no effect but their response: a ping.
        unfinished: {pointer: value}: a response with one of these values is not the last one to its request.
        failed: {pointer: value}: a response with one of these values reports a failure.
        subject: {method: pointer}: subject of a call, for users: a tool, an operation.
        refusals: {method: template}: response to a request that has no recorded response, see REFUSAL.
        optional_id: {method: template}: messages that some hosts send with an id and some without; the template is the
            response to one with an id that was recorded without, see REFUSAL.
        cancellations: {method: template}: response to a request that cancels a call, see REFUSAL.
        probes: {method: template}: requests by which a client finds out whether the child supports a later revision,
            and the response of a child that does not, see REFUSAL.
        final: methods after whose response (or, for a notification, after which) the child exits by itself.
        timeouts: {method: seconds}: time limit of the specification for a response.
        calls: messages are calls with ids. If False, each payload is independent.
        id_only: a message of the child repeats nothing that the host generated but the id of its request, and a
            response ends its call. So replay only scans for the id, and does not parse the message.
        by_id: the id alone identifies the call that a message belongs to.
        fast_scannable: `fast_id.scan_id` applies to messages.
    """

    __slots__ = (
        "bound", "by_id", "calls", "cancellations", "client_generated", "controls", "echoed_names", "echoes",
        "failed", "fast_scannable", "final", "forms", "framing", "handed", "id_only", "keepalives", "mentions",
        "name", "names", "optional_id", "probes", "references", "refusals", "session_scoped", "subject", "tag",
        "timeouts", "title", "unblocks", "unfinished", "volatile",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        framing: str,
        title: str,
        *,
        tag: str = "method",
        forms: Mapping[str, Form] | None = None,
        bound: Mapping[str, Mapping[str, str]] | None = None,
        volatile: Pointers | None = None,
        references: Pointers | None = None,
        mentions: Pointers | None = None,
        client_generated: Pointers | None = None,
        echoed_names: Pointers | None = None,
        echoes: Mapping[str, Mapping[str, str]] | None = None,
        names: Pointers | None = None,
        handed: Pointers | None = None,
        session_scoped: Pointers | None = None,
        controls: Pointers | None = None,
        unblocks: Mapping[str, tuple[str, ...]] | None = None,
        keepalives: tuple[str, ...] = (),
        unfinished: Mapping[str, object] | None = None,
        failed: Mapping[str, object] | None = None,
        subject: Mapping[str, str] | None = None,
        refusals: Mapping[str, str] | None = None,
        optional_id: Mapping[str, str] | None = None,
        cancellations: Mapping[str, str] | None = None,
        probes: Mapping[str, str] | None = None,
        final: tuple[str, ...] = (),
        timeouts: Mapping[str, float] | None = None,
        calls: bool = True,
    ) -> None:
        self.name = name
        self.framing = framing
        self.title = title
        self.tag = tag
        self.forms = forms or {}
        self.bound = bound or {}
        self.volatile = volatile or {}
        self.references = references or {}
        self.mentions = mentions or {}
        self.client_generated = client_generated or {}
        self.echoed_names = echoed_names or {}
        self.echoes = echoes or {}
        self.names = names or {}
        self.handed = handed or {}
        self.session_scoped = session_scoped or {}
        self.controls = controls or {}
        self.unblocks = unblocks or {}
        self.keepalives = keepalives
        self.unfinished = unfinished or {}
        self.failed = failed or {}
        self.subject = subject or {}
        self.refusals = refusals or {"*": REFUSAL}
        self.optional_id = optional_id or {}
        self.cancellations = cancellations or {}
        self.probes = probes or {}
        self.final = final
        self.timeouts = timeouts or {}
        self.calls = calls
        lasting = bool(self.names and self.client_generated)  # names that the child generates are replayed unchanged
        self.id_only = not (self.forms or self.mentions or self.echoes or self.unfinished or lasting)
        self.by_id = not (self.forms or self.mentions or self.unfinished or self.names)
        self.fast_scannable = calls and tag == "method"

    def classify(self, payload: bytes) -> ClassifiedMessage:
        """Classify a payload. Raises nothing, for any bytes."""
        text = payload.decode("utf-8", "surrogateescape")
        if not self.calls:
            return ClassifiedMessage(OTHER, text)
        try:
            envelope = scan(text)
        except MessageError:
            return ClassifiedMessage(OTHER, text)
        if self.forms:
            tag = envelope.value(self.tag)
            form = self.forms.get(tag) if isinstance(tag, str) else None
            if form is not None:
                message = ClassifiedMessage(form, text, envelope=envelope)
                method = message.at(form.method) if form.method else MISSING
                message.method = method if isinstance(method, str) else ""
                for start, end, value in locate(text, [form.id] if form.id else []):
                    message.key = id_key(value, text[start:end])
                    message.span = (start, end)
                return message
        if self.tag != "method":
            return ClassifiedMessage(OTHER, text, envelope=envelope)
        # In JSON-RPC, the members of a message determine its form.
        members, method = envelope.members, envelope.value("method")
        member = members.get("id")
        key = id_key(member.value, text[member.start : member.end]) if member else None
        span = (member.start, member.end) if member else (0, 0)
        if isinstance(method, str):
            return ClassifiedMessage(REQUEST if member else NOTIFICATION, text, method, key, span, envelope=envelope)
        if "result" in members or "error" in members:
            return ClassifiedMessage(RESPONSE, text, "", key, span, envelope=envelope)
        return ClassifiedMessage(OTHER, text, envelope=envelope)

    def is_last(self, answer: ClassifiedMessage) -> bool:
        """Return True if a response is the last one to its request."""
        return all(answer.at(pointer) != value for pointer, value in self.unfinished.items())

    def has_failed(self, answer: ClassifiedMessage) -> bool:
        """Return True if a response reports a failure by a value of the protocol."""
        return any(answer.at(pointer) == value for pointer, value in self.failed.items())

    def is_failure(self, answer: ClassifiedMessage) -> bool:
        """Return True if a response reports a failure, by a value of the protocol or as a JSON-RPC error."""
        return self.has_failed(answer) or answer.at("/error") not in (MISSING, None)

    def about(self, message: ClassifiedMessage) -> str:
        """Return the subject of a call, or ""."""
        found = message.at(self.subject[message.method]) if message.method in self.subject else ""
        return found if isinstance(found, str) else ""

    def refusal(self, request: ClassifiedMessage, message: str, data: Mapping[str, object]) -> bytes | None:
        """Return the error response to a request without a recorded response; None if the protocol has none.

        Args:
            message: one line for users.
            data: the same for programs, as JSON values.
        """
        template = self.refusals.get(request.method) or self.refusals.get("*")
        if not self.calls or template is None:
            return None
        return _filled(template, request, message=dumps(message), data=dumps(dict(data)))

    def acknowledgement(self, message: ClassifiedMessage) -> bytes | None:
        """Return the response to a message whose id is optional, if it has one; None otherwise."""
        template = self.optional_id.get(message.method)
        return None if template is None or message.kind != "request" else _filled(template, message)

    def cancellation(self, message: ClassifiedMessage) -> bytes | None:
        """Return the response to a request that cancels a call; None if it has none."""
        template = self.cancellations.get(message.method)
        return None if template is None or message.kind != "request" else _filled(template, message)

    def probe_answer(self, message: ClassifiedMessage) -> bytes | None:
        """Return the response of a child of an earlier revision to a probe; None if the message is not a probe."""
        template = self.probes.get(message.method)
        return None if template is None or message.kind != "request" else _filled(template, message)


def _filled(template: str, request: ClassifiedMessage, **texts: str) -> bytes:
    return (template % _TemplateValues(request, **texts)).encode("utf-8", "backslashreplace")


class _TemplateValues(dict[str, str]):
    """Values for a template: texts by name, and parts of the request by pointer."""

    def __init__(self, request: ClassifiedMessage, **texts: str) -> None:
        super().__init__(texts)
        self._text = request.text

    def __missing__(self, pointer: str) -> str:
        return next((self._text[start:end] for start, end, _ in locate(self._text, [pointer])), "null")


def pointers_of(table: Pointers, method: str) -> tuple[str, ...]:
    """Return the pointers of a table for a method."""
    return table.get("*", ()) + table.get(method, ()) if method != "*" else table.get("*", ())


# Protocols of socket servers only: available by name, and not listed among the protocols of child processes.
_OF_SOCKETS = ("http",)


class Dialects:
    """Dialects by name, imported on first use."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made = {"raw": Dialect("raw", "ndjson", "lines without any further meaning", calls=False)}

    def __getitem__(self, name: str) -> Dialect:
        if name not in self:
            raise KeyError(name)
        if name not in self._made:
            base, _, variant = name.partition("-")
            module = __import__(f"ext_recorder.protocols.{base}", fromlist=["DIALECT"])
            self._made[name] = getattr(module, f"{variant.upper()}_DIALECT" if variant else "DIALECT")
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in NAMES or name in _OF_SOCKETS

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)

    def get(self, name: str) -> Dialect | None:
        """Return the dialect of that name; None if it does not exist."""
        return self[name] if name in self else None  # noqa: SIM401 - this is that method

    def values(self) -> list[Dialect]:
        """Return all dialects."""
        return [self[name] for name in NAMES]


DIALECTS = Dialects()
