"""Capture of a child's traffic: from frames of its agent to interactions, and the host's call that each one served."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ext_recorder.cassette.reader import Reader
from ext_recorder.errors import RecorderError
from ext_recorder.messages.open_calls import CallTracker
from ext_recorder.protocols.dialect import DIALECTS
from ext_sdk.core.wire.json_codec import loads

from .http1_observer import Http1Observer, Unreadable
from .interaction import BODY_PIECE, CONNECT, INTERACTION, TCP, TLS, Arrivals, Interaction, call_id, place_of
from .traffic_counts import Traffic, endpoint_of, traffic_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .interaction import Call
    from .sanitizer import Sanitizer
    from .server import ChildConnection
    from .writer import Writer

    Event = Mapping[str, object]

NEVER = float("inf")


def attribute_calls(cassette: Path, moments: list[float], offset: float) -> list[Call]:
    """Return the host's call that was open at each moment; None if there was none, or several.

    Args:
        cassette: recording of stdio.
        moments: in seconds, on the clock of the HTTP file.
        offset: seconds from the start of that clock to the start of the cassette.
    """
    spans: list[tuple[Call, float, float]] = []  # id, begin and end of each call
    try:
        with Reader(cassette) as reader:
            dialect = DIALECTS.get(reader.header.protocol) or DIALECTS["raw"]
            calls: CallTracker[tuple[Call, float]] = CallTracker(dialect)
            for event, payload in reader.messages() if dialect.calls else ():
                message = dialect.classify(payload)
                if event.kind == "out":
                    call = calls.response(event, message)
                    if call and dialect.is_last(message):
                        spans.append((*call, event.time))
                elif message.kind == "request" and message.key is not None:
                    calls.request(event, message, (call_id(loads(message.text[slice(*message.span)])), event.time))
            spans += [(*call, NEVER) for unanswered in calls.values() for call in unanswered]
    except (RecorderError, OSError):  # no cassette; the cause is reported elsewhere
        spans = []
    attributed: list[Call] = []
    for moment in moments:
        ids = [id for id, begin, end in spans if begin <= moment - offset <= end]
        attributed.append(ids[0] if len(ids) == 1 else None)
    return attributed


class TrafficCapture:
    """Capture of one session: the message handler of a recording.

    Args:
        started: start of the file's clock, on the monotonic clock.
    """

    def __init__(self, writer: Writer, cleaner: Sanitizer, started: float) -> None:
        self._writer = writer
        self._cleaner = cleaner
        self._started = started
        self._observers: dict[tuple[int, object], Http1Observer] = {}  # by number of the process, and connection
        self._arrivals = Arrivals()
        self._latest = started
        self.hosts: dict[str, object] = {}
        self.servers: dict[str, dict[str, str]] = {}  # TLS properties by host and port
        self.clock: dict[tuple[Call, str], list[list[int]]] = {}  # by call and thread: after each step, moments
        self.readings: dict[str, list[int]] = {}  # of the wall clock, by place
        self.problems: list[str] = []
        self.programs: list[str] = []  # run by the child, without the agent
        self.passed: Counter[str] = Counter()  # connections to servers that were passed through
        self.addresses: set[str] = set()  # hosts and ports that were used
        self.traffic: dict[str, Traffic] = {}  # by endpoint
        self.failed: dict[str, Counter[str]] = {}  # reasons of failed connections, by host and port

    def frame(self, peer: ChildConnection, event: dict[str, object], data: bytes) -> None:
        """Process an event of a child, and its bytes."""
        moment = event.get("t")
        if isinstance(moment, float):
            self._latest = moment
        since, kept = int(self._started * 1e9), event.get("ns")
        for call, thread, moments in kept if isinstance(kept, list) else ():
            groups = self.clock.setdefault((call, thread), [])
            for steps, reading in moments:
                groups += [[] for _ in range(steps + 1 - len(groups))]
                groups[steps].append(reading - since)
        wall = event.get("wall")
        for place, moments in wall.items() if isinstance(wall, dict) else ():
            self.readings.setdefault(self._cleaner.text(str(place)), []).extend(moments)
        if event.get("k") in {INTERACTION, BODY_PIECE, "server", "passed"}:
            self._from_proxy(event, data)
            return
        key = (peer.number, event.get("c"))
        observer = self._observers.get(key)
        try:
            if observer and event.get("k") != "open":
                self._observe(observer, event, data)
            else:
                self._process(key, event)
        except Unreadable as reason:
            self._observers.pop(key, None)
            self.problem(f"{observer.host if observer else 'a connection'}: {reason}")
        if event.get("k") in {"close", "forget", "tls-refused"}:
            self._observers.pop(key, None)

    def _from_proxy(self, event: Event, data: bytes) -> None:
        """Process what the proxy has recorded."""
        if event["k"] == BODY_PIECE:
            self._arrivals.piece(event, data)
        elif event["k"] == INTERACTION:
            interaction = self._arrivals.interaction(event, data)
            self.addresses |= {place_of(interaction), interaction.peer}
            self.add(interaction)
        elif event["k"] == "passed":
            self.passed[str(event["place"])] += 1
        elif isinstance(properties := event["properties"], dict):
            self.servers.setdefault(str(event["place"]), properties)

    def data(self, peer: ChildConnection, data: bytes) -> None:
        """Do nothing: on recording, children send only frames."""

    def gone(self, peer: ChildConnection) -> None:
        """Close the connections of a process that has ended."""
        for key in [key for key in self._observers if key[0] == peer.number]:
            self._observers.pop(key).closed(self._latest - self._started)

    def problem(self, text: str) -> None:
        """Report traffic that cannot be recorded."""
        if text not in self.problems:
            self.problems.append(self._cleaner.text(text))

    def _observe(self, observer: Http1Observer, event: Event, data: bytes) -> None:
        """Process an event on a connection."""
        kind, error, now = event.get("k"), event.get("error"), self._latest - self._started
        if kind == "out":
            observer.sent(data, now, call_id(event.get("call")))
        elif kind == "in":
            observer.received(data, now)
        elif kind == "tls":
            observer.tls = {key: str(event[key]) for key in ("version", "alpn", "certificate") if event.get(key)}
        elif kind == "error" and isinstance(error, dict):
            observer.failed(error, now)
        elif kind == "close":
            observer.closed(now)
        elif kind == "tls-refused":
            self._refused(TLS, observer.host, observer.address, event)

    def _process(self, key: tuple[int, object], event: Event) -> None:
        """Process an event that is not about an observed connection."""
        kind = event.get("k")
        if kind == "open":
            host, address = str(event["host"]), event["address"]
            place = list(address) if isinstance(address, list) else str(address)
            self._note_address(host, place)
            self._observers[key] = Http1Observer(self.add, host, place)
        elif kind == "refused":
            self._refused(TCP, str(event["host"]), event["address"], event)
        elif kind == "resolved":
            self.hosts.setdefault(str(event["host"]), event["addresses"])
        elif kind == "problem":
            self.problem(str(event["text"]))
        elif kind == "program":
            name = self._cleaner.text(str(event["name"]))
            if name not in self.programs:
                self.programs.append(name)

    def _refused(self, kind: str, host: str, address: object, event: Event) -> None:
        """Record a failed connection."""
        error = event["error"]
        self._note_address(host, address)
        place = f"{host}:{address[1]}" if isinstance(address, list) and len(address) > 1 else host
        now = self._latest - self._started
        interaction = Interaction(CONNECT, kind + place, call=call_id(event.get("call")), time=now)
        interaction.error = dict(error) if isinstance(error, dict) else None
        interaction.peer = ":".join(map(str, address)) if isinstance(address, list) else ""
        self.add(interaction)

    def _note_address(self, host: str, address: object) -> None:
        if isinstance(address, list) and len(address) > 1:
            self.addresses |= {f"{host}:{address[1]}", f"{address[0]}:{address[1]}"}

    def add(self, interaction: Interaction) -> None:
        """Write a complete interaction."""
        try:
            self._cleaner.interaction(interaction)
        except ValueError as error:
            self.problem(f"{interaction.method} {interaction.uri}: {error}")
            return
        if interaction.method != CONNECT:
            endpoint = endpoint_of(interaction)
            self.traffic[endpoint] = self.traffic.get(endpoint, Traffic()) + traffic_of(interaction)
        elif interaction.uri.startswith((TCP, TLS)):
            reason = str((interaction.error or {}).get("message") or "no reason")
            self.failed.setdefault(place_of(interaction), Counter())[reason] += 1
        if interaction.tls:
            self.servers.setdefault(place_of(interaction), interaction.tls)
        self._writer.append(interaction)
        for body in (interaction.request_body, interaction.body):
            if body is not None:
                body.close()
