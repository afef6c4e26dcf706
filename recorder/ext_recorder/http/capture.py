"""Capture of a child's traffic: from frames of its agent to interactions, and the host's call that each one served."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.cassette.reader import Reader
from ext_recorder.errors import RecorderError
from ext_recorder.messages.call_tracker import CallTracker
from ext_recorder.protocols.dialect import DIALECTS
from ext_sdk.core.wire.json_codec import loads

from .http1_observer import Http1Observer, Unreadable
from .interaction import CONNECT, Interaction, call_id
from .library import TCP, TLS, place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from .interaction import Call
    from .sanitizer import Sanitizer
    from .writer import Writer

    Told = Mapping[str, object]
    Peer = int

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


MOST_PROBLEMS = 20  # listed individually


class TrafficCapture:
    """Capture of one session.

    Args:
        writer: of the file.
        cleaner: removes secrets and paths.
        started: start of the file's clock, on the monotonic clock.
    """

    def __init__(self, writer: Writer, cleaner: Sanitizer, started: float) -> None:
        self._writer = writer
        self._cleaner = cleaner
        self._started = started
        self._observers: dict[tuple[Peer, object], Http1Observer] = {}
        self._latest = started
        self.hosts: dict[str, object] = {}
        self.servers: dict[str, dict[str, str]] = {}  # TLS properties by host and port
        self.clock: dict[tuple[Call, str], list[list[int]]] = {}  # by call and thread: after each step, moments
        self.readings: dict[str, list[int]] = {}  # of the wall clock, by place
        self.problems: list[str] = []
        self.programs: list[str] = []  # run by the child, without the agent
        self.addresses: set[str] = set()  # hosts and ports that were used
        self._kinds: dict[str, Callable[[Peer, Told, bytes], None]] = {
            "open": self._open,
            "refused": self._refused,
            "resolved": self._resolved,
            "tls": self._tls,
            "tls-refused": self._tls_refused,
            "out": self._out,
            "in": self._in,
            "error": self._error,
            "close": self._close,
            "forget": self._forget,
            "problem": self._problem,
            "program": self._program,
        }

    def take(self, peer: Peer, told: Told, data: bytes) -> None:
        """Process a frame of a child.

        Args:
            peer: process of the child.
            told: event.
            data: bytes of the event.
        """
        moment = told.get("t")
        if isinstance(moment, float):
            self._latest = moment
        self._read_clock(told.get("ns"))
        wall = told.get("wall")
        for place, moments in wall.items() if isinstance(wall, dict) else ():
            self.readings.setdefault(self._cleaner.text(str(place)), []).extend(moments)
        act = self._kinds.get(str(told.get("k")))
        if act is None:
            return
        try:
            act(peer, told, data)
        except Unreadable as reason:
            observer = self._observers.pop((peer, told.get("c")), None)
            self.problem(f"{observer.host if observer else 'a connection'}: {reason}")

    def gone(self, peer: Peer) -> None:
        """Close the connections of a process that has ended."""
        for key in [key for key in self._observers if key[0] == peer]:
            self._observers.pop(key).closed(self._latest - self._started)

    def problem(self, text: str) -> None:
        """Report traffic that can't be recorded."""
        if text not in self.problems:
            self.problems.append(self._cleaner.text(text))

    def _read_clock(self, kept: object) -> None:
        since = int(self._started * 1e9)
        for call, thread, moments in kept if isinstance(kept, list) else ():
            groups = self.clock.setdefault((call, thread), [])
            for steps, moment in moments:
                groups += [[] for _ in range(steps + 1 - len(groups))]
                groups[steps].append(moment - since)

    def _done(self, each: Interaction) -> None:
        try:
            self._cleaner.interaction(each)
        except ValueError as error:
            self.problem(f"{each.method} {each.uri}: {error}")
            return
        if each.tls:
            self.servers.setdefault(place_of(each), each.tls)
        self._writer.append(each)
        for body in (each.request_body, each.body):
            if body is not None:
                body.close()

    # --- Frames ------------------------------------------------------------------------------------------------------

    def _open(self, peer: Peer, told: Told, data: bytes) -> None:
        address = told["address"]
        place = list(address) if isinstance(address, list) else str(address)
        self._note_address(str(told["host"]), place)
        self._observers[peer, told["c"]] = Http1Observer(self._done, str(told["host"]), place)

    def _out(self, peer: Peer, told: Told, data: bytes) -> None:
        if observer := self._observers.get((peer, told["c"])):
            observer.sent(data, self._latest - self._started, call_id(told.get("call")))

    def _in(self, peer: Peer, told: Told, data: bytes) -> None:
        if observer := self._observers.get((peer, told["c"])):
            observer.received(data, self._latest - self._started)

    def _tls(self, peer: Peer, told: Told, data: bytes) -> None:
        if observer := self._observers.get((peer, told["c"])):
            observer.tls = {key: str(told[key]) for key in ("version", "alpn", "certificate") if told.get(key)}

    def _error(self, peer: Peer, told: Told, data: bytes) -> None:
        error = told["error"]
        if (observer := self._observers.get((peer, told["c"]))) and isinstance(error, dict):
            observer.failed(error, self._latest - self._started)

    def _close(self, peer: Peer, told: Told, data: bytes) -> None:
        if observer := self._observers.pop((peer, told["c"]), None):
            observer.closed(self._latest - self._started)

    def _forget(self, peer: Peer, told: Told, data: bytes) -> None:
        self._observers.pop((peer, told["c"]), None)

    def _resolved(self, peer: Peer, told: Told, data: bytes) -> None:
        self.hosts.setdefault(str(told["host"]), told["addresses"])

    def _problem(self, peer: Peer, told: Told, data: bytes) -> None:
        self.problem(str(told["text"]))

    def _program(self, peer: Peer, told: Told, data: bytes) -> None:
        name = self._cleaner.text(str(told["name"]))
        if name not in self.programs:
            self.programs.append(name)

    def _refused(self, peer: Peer, told: Told, data: bytes) -> None:
        self._connection(TCP, str(told["host"]), told["address"], told)

    def _tls_refused(self, peer: Peer, told: Told, data: bytes) -> None:
        observer = self._observers.pop((peer, told["c"]), None)
        if observer is not None:
            self._connection(TLS, observer.host, observer.address, told)

    def _connection(self, kind: str, host: str, address: object, told: Told) -> None:
        """Record a failed connection."""
        error = told["error"]
        self._note_address(host, address)
        place = f"{host}:{address[1]}" if isinstance(address, list) and len(address) > 1 else host
        now = self._latest - self._started
        made = Interaction(CONNECT, kind + place, call=call_id(told.get("call")), time=now)
        made.error = dict(error) if isinstance(error, dict) else None
        made.peer = ":".join(map(str, address)) if isinstance(address, list) else ""
        self._done(made)

    def _note_address(self, host: str, address: object) -> None:
        if isinstance(address, list) and len(address) > 1:
            self.addresses |= {f"{host}:{address[1]}", f"{address[0]}:{address[1]}"}
