"""Request matcher: compare a live message with a recorded one, from the cheapest comparison to the complete one.

1. Compare bytes: the recorded message with the paths of this machine, except for the id of a request, which `scan_id`
   finds.
2. Parse the message, bind its paths, redact it, and compare values (see `messages.matcher`).

The first step only accepts messages that the second would accept as well, and never rejects one. Nearly all messages of
a session that repeats the recorded one need no second step.
"""

from __future__ import annotations

from ext_recorder.cassette.events import Data
from ext_recorder.messages.path_bindings import path_in
from ext_recorder.protocols.dialect import id_key, pointers_of
from ext_recorder.protocols.fast_id import FIRST_BYTES, is_simple_id, scan_id
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.json_pointer import locate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ext_recorder.cassette.events import Event
    from ext_recorder.messages.matcher import Matcher
    from ext_recorder.messages.open_calls import IdMap
    from ext_recorder.messages.path_bindings import ReplayBindings
    from ext_recorder.protocols.dialect import ClassifiedMessage, Dialect
    from ext_sdk.core.wire.framing import Framing

    Redact = Callable[[bytes], bytes]

UNTERMINATED = "unterminated line"  # reason of junk at the end of the input, a message to most children


class RecordedRequest:
    """A recorded message of the host.

    Attributes:
        payload: without its framing.
        line: of the cassette.
        is_message: False for bytes outside of frames.
    """

    __slots__ = ("_message", "is_message", "line", "payload")

    def __init__(self, payload: bytes, line: int, *, is_message: bool = True) -> None:
        self.payload = payload
        self.line = line
        self.is_message = is_message
        self._message: ClassifiedMessage | None = None

    def message(self, dialect: Dialect) -> ClassifiedMessage:
        """Return the classified message; parsed once."""
        if self._message is None:
            self._message = dialect.classify(self.payload)
        return self._message


def recorded_requests(event: Event, line: int, framing: Framing) -> list[RecordedRequest]:
    """Return the messages in an event of the host, and the bytes between them; [] for any other event."""
    if not isinstance(event, Data) or event.kind != "in":
        return []
    if not event.raw:
        return [RecordedRequest(event.payload, line)]
    return [
        RecordedRequest(item.payload, line)
        if isinstance(item, Frame)
        else RecordedRequest(item.wire, line, is_message=item.reason == UNTERMINATED)
        for item in event.items(framing)
    ]


class RequestMatcher:
    """Matcher of live messages of the host with recorded ones; stores the ids, paths and names of those that match.

    Args:
        matcher: compares messages that differ in their bytes.
        bindings: filled from requests.
        calls: opened by requests.
        redact: returns bytes as a recorder would have redacted them.
        client_generated: names that the host generates for one call, by their recorded keys; filled here.
        names: persistent names, in the same form; those of the host are filled in here.
    """

    def __init__(
        self,
        dialect: Dialect,
        matcher: Matcher,
        bindings: ReplayBindings,
        calls: IdMap,
        *,
        redact: Redact,
        client_generated: dict[bytes, bytes],
        names: dict[bytes, bytes],
    ) -> None:
        self.dialect = dialect
        self.matcher = matcher
        self.bindings = bindings
        self._calls = calls
        self.redact = redact
        self._client_generated = client_generated
        self._names = names
        self._scans_ids = dialect.calls and dialect.fast_scannable
        # Methods whose id the child repeats in notifications, in quotation marks as in a request.
        self._echoed_ids = [
            b'"' + name.encode() + b'"' for name, places in dialect.client_generated.items() if "/id" in places
        ]
        self._renamed = False  # a persistent name of the live host differs from the recorded one

    def accepts(self, recorded: RecordedRequest, payload: bytes) -> bool:
        """Return True if this payload is the recorded message; store its id, its paths and its names."""
        expected = recorded.payload
        if not self._scans_ids or not recorded.is_message:
            return self._accepts_unscanned(recorded, payload)
        if self._client_generated or self._renamed:
            return self._accepts_by_value(recorded, payload)
        seen = scan_id(expected)
        if seen is None or seen[0] != "request":
            if payload != expected:
                return self._accepts_by_value(recorded, payload)
            return seen is not None or b'"id"' not in payload or self._store(recorded, payload)
        _, start, end = seen
        here = self.bindings.here
        before, after = expected[:start], here(expected[end:])
        if start > FIRST_BYTES:
            before = here(before)
        if payload.startswith(before) and payload.endswith(after):
            id = payload[len(before) : len(payload) - len(after)]
            if is_simple_id(id) and not (id != expected[start:end] and self.id_is_echoed(expected)):
                self._calls.begin(expected[start:end], id)
                return True
        return self._accepts_by_value(recorded, payload)

    @property
    def renames(self) -> bool:
        """Return True if a name that the live host generated differs, so that bytes cannot be compared."""
        return bool(self._client_generated) or self._renamed

    def id_is_echoed(self, requests: bytes) -> bool:
        """Return True if notifications of the child may repeat the id of one of these requests."""
        return any(method in requests for method in self._echoed_ids)

    def matches(self, recorded: RecordedRequest, payload: bytes) -> bool:
        """Return True if `accepts` would be true, without storing anything."""
        if not self.dialect.calls or not recorded.is_message:
            return self._accepts_unscanned(recorded, payload)
        method = recorded.message(self.dialect).method
        if method.isalnum() and method.encode() not in payload:  # nearly always, and cheap
            return False
        bound = self._learn(recorded, payload)
        same = self._same(recorded, payload)
        for placeholder in bound:
            self.bindings.unbind(placeholder)
        return same

    def _accepts_unscanned(self, recorded: RecordedRequest, payload: bytes) -> bool:
        if self.dialect.calls and recorded.is_message:
            return self._accepts_by_value(recorded, payload)
        if payload == recorded.payload:
            return True
        clean = self._clean(payload)
        if clean == recorded.payload or self.matcher.same_line(recorded.payload, clean):
            return True
        if b"[redacted:" not in clean:
            return False
        from ext_sdk.core.redaction.patterns import same_but_for_numbers

        live, expected = (line.decode("utf-8", "surrogateescape") for line in (clean, recorded.payload))
        return same_but_for_numbers(live, expected)

    def as_recorded(self, payload: bytes) -> ClassifiedMessage:
        """Return a live message as a recorder would have written it: without secrets and paths of this machine."""
        return self.dialect.classify(self._clean(payload))

    def _clean(self, payload: bytes) -> bytes:
        return self.bindings.to_placeholders(self.redact(payload))

    def _accepts_by_value(self, recorded: RecordedRequest, payload: bytes) -> bool:
        bound = self._learn(recorded, payload)
        if self._same(recorded, payload):
            return self._store(recorded, payload)
        for placeholder in bound:
            self.bindings.unbind(placeholder)
        return False

    def _same(self, recorded: RecordedRequest, payload: bytes) -> bool:
        message = recorded.message(self.dialect)
        if self._has_value(message, payload):
            return True
        canonical = self.bindings.canonical(recorded.payload)
        return canonical != recorded.payload and self._has_value(self.dialect.classify(canonical), payload)

    def _has_value(self, message: ClassifiedMessage, payload: bytes) -> bool:
        unredacted = self.bindings.to_placeholders(payload)
        if self.matcher.same(message, self.dialect.classify(unredacted)):
            return True
        # Redacted only now: a cassette that was recorded without redaction contains the live secrets.
        cleaned = self._clean(payload)
        return cleaned != unredacted and self.matcher.same(message, self.dialect.classify(cleaned))

    def unbound(self, payload: bytes) -> Iterator[tuple[str, str]]:
        """Yield the names and live values that this request would bind, except for values that are bound already."""
        message = self.dialect.classify(payload)
        for name, pointer in self.dialect.bound.get(message.method, {}).items():
            path = path_in(message.at(pointer))
            if path and not self.bindings.is_live(path):
                yield name, path

    def _learn(self, recorded: RecordedRequest, payload: bytes) -> list[str]:
        """Bind the paths of a live request as if it were the recorded one. Return the new placeholders."""
        message = recorded.message(self.dialect)
        places = self.dialect.bound.get(message.method, {})
        live = self.dialect.classify(payload) if places else message
        if not places or live.envelope is None or message.envelope is None:
            return []
        bound = []
        for name, pointer in places.items():
            placeholder, path = path_in(message.at(pointer)), path_in(live.at(pointer))
            if path and self.bindings.is_placeholder(name, placeholder) and self.bindings.live(placeholder) is None:
                self.bindings.bind(placeholder, path)
                bound.append(placeholder)
        return bound

    def _store(self, recorded: RecordedRequest, payload: bytes) -> bool:
        """Store the ids and names of a request that was accepted."""
        message, live = recorded.message(self.dialect), self.dialect.classify(payload)
        if message.kind == "request" and message.key is not None:
            start, end = live.span
            self._calls.begin(message.key, live.text[start:end].encode("utf-8", "surrogateescape"))
            echoes = self.dialect.echoes.get(message.method, {})
            self._calls.expect(
                message.key,
                {answer: pair for place, answer in echoes.items() for pair in _pairs(message, live, place)},
            )
        for pointer in pointers_of(self.dialect.client_generated, message.method):
            is_persistent = pointer in pointers_of(self.dialect.names, message.method)
            for key, live_text in _pairs(message, live, pointer):
                if is_persistent:
                    self._renamed = self._names.setdefault(key, live_text) != key or self._renamed
                elif live_text != key or key in self._client_generated:
                    self._client_generated[key] = live_text
        return True


def _pairs(message: ClassifiedMessage, live: ClassifiedMessage, pointer: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield a recorded name, as a key, with its live counterpart as JSON text; nothing if either is missing."""
    for start, end, value in locate(message.text, [pointer]):
        for live_start, live_end, _ in locate(live.text, [pointer]):
            yield (
                id_key(value, message.text[start:end]),
                live.text[live_start:live_end].encode("utf-8", "surrogateescape"),
            )


class LenientRequestMatcher(RequestMatcher):
    """Request matcher for dialects with messages whose id is optional.

    Attributes:
        reply: sends the response to a request that was recorded without an id; None: such requests get no response.
    """

    reply: Callable[[bytes], None] | None = None

    def _store(self, recorded: RecordedRequest, payload: bytes) -> bool:
        message, live = recorded.message(self.dialect), self.dialect.classify(payload)
        if message.kind == live.kind:
            return super()._store(recorded, payload)
        if message.key is not None:
            self._calls.spared.add(message.key)
        answer = self.dialect.acknowledgement(live)
        if answer is not None and self.reply is not None:
            self.reply(answer)
        return True
