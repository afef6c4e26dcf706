"""Store of recorded interactions: found by their request, each replayed once, in recorded order.

Selection
---------
Of the recorded interactions with the same request, those of the same call come first. The recorded counterpart of a
live call is the one with the same id, else the next recorded call that made this request.

A request that a call sent several times is a poll: its responses are replayed in order. On replay, a poll may have more
requests than were recorded, because the time between them varies; then the last response repeats. No other request is
answered twice, and none by the response to a different request, except while rules are learned (`run --learn`).

Of telemetry (see known_apis.yaml), neither the number nor the content of requests counts.
"""

from __future__ import annotations

from collections import deque
from hashlib import sha256
from itertools import islice
from shlex import quote
from sys import intern
from typing import TYPE_CHECKING, Protocol

from ext_recorder.messages.comparison_rules import preset_of
from ext_sdk.core.wire.json_pointer import MISSING

from .interaction import TCP, TLS, addresses_of, place_of
from .interaction_file import InteractionFile
from .request_matching import Subject, different, distance_of_texts
from .traffic_counts import Traffic, endpoint_of, is_model_call, traffic_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from .interaction import Call, Interaction
    from .request_matching import Difference, PathPairs, RequestRules

SAFE = frozenset({"GET", "HEAD"})  # methods of polls
LISTED = 5  # interactions without a request, listed individually
SHOWN = 4  # differences
COMPARED = 50  # recorded requests, when a live one has no match
DIFFERS = "differs from recorded interaction"  # in the message about a live request without a match
PATHS = 2000  # recorded paths, when the path of a live request has no match


class Learner(Protocol):
    """Receiver of requests without a match.

    Attributes:
        paths: gets patterns of paths, which apply to responses at once.
    """

    paths: PathPairs

    def learn(self, number: int, recorded: Subject, live: Subject, differences: Sequence[Difference], /) -> bool:
        """Return True if the recorded request differs only in what looks volatile: its response is replayed."""


class Source(Protocol):
    """Interactions that are read one by one.

    Attributes:
        addresses: of all servers.
        failures: number of failed connections.
    """

    @property
    def addresses(self) -> AbstractSet[str]: ...

    @property
    def failures(self) -> int: ...

    def __iter__(self) -> Iterator[tuple[int, Interaction]]:
        """Yield places and interactions, in the order in which their requests began."""

    def load(self, place: int) -> Interaction:
        """Return the interaction at a place."""


class _Loaded:
    """Interactions in memory."""

    def __init__(self, interactions: Iterable[Interaction]) -> None:
        self._interactions = list(interactions)
        self.addresses = {address for each in self._interactions for address in addresses_of(each)}
        self.failures = sum(each.uri.startswith((TCP, TLS)) for each in self._interactions)

    def __iter__(self) -> Iterator[tuple[int, Interaction]]:
        return enumerate(self._interactions)

    def load(self, place: int) -> Interaction:
        return self._interactions[place]


class Entry:
    """Recorded interaction without its content, and a mark if it was replayed.

    Attributes:
        endpoint: of the server.
        is_call: of a model.
        number: of the interaction, counted from 1.
        place: by which its source finds it.
        kind: TCP or TLS for a failed connection, else "".
        repeats: the number of such requests varies from run to run.
        turns: of its request and call; None for a failed connection.
    """

    __slots__ = (
        "call", "client", "endpoint", "is_call", "kind", "method", "number", "place", "played", "repeats", "status",
        "turns",
    )  # fmt: skip

    def __init__(self, number: int, place: int, interaction: Interaction) -> None:
        self.number = number
        self.place = place
        self.kind = next((kind for kind in (TCP, TLS) if interaction.uri.startswith(kind)), "")
        self.method = interaction.method
        self.status = interaction.status
        self.call = interaction.call
        self.client = intern(interaction.client)
        self.endpoint = intern(endpoint_of(interaction))
        self.is_call = is_model_call(interaction)
        self.repeats = False
        self.turns: Turns | None = None
        self.played = False


class Turns:
    """Interactions of one request and one call, which are replayed in order."""

    __slots__ = ("entries", "played")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.played = 0  # entries that were replayed

    @property
    def next(self) -> Entry | None:
        """Return the next entry to replay."""
        return self.entries[self.played] if self.played < len(self.entries) else None


class InteractionQueue:
    """Interactions of one request, by call.

    Attributes:
        count: of all calls.
        last: of all calls.
        free: calls that other calls may replay, in the order of their first interaction, or None; those at the front
            may be used up.
    """

    __slots__ = ("by_call", "count", "free", "last")

    def __init__(self) -> None:
        self.by_call: dict[Call, Turns] = {}
        self.count = 0
        self.last: Entry | None = None
        self.free: deque[Call] | None = None

    def append(self, entry: Entry) -> None:
        """Append an entry."""
        turns = self.by_call.get(entry.call)
        if turns is None:
            turns = self.by_call[entry.call] = Turns()
            if entry.call is not None:
                self.free = deque() if self.free is None else self.free
                self.free.append(entry.call)
        turns.entries.append(entry)
        entry.turns = turns
        self.count += 1
        self.last = entry


class InteractionStore:
    """All interactions of a file. They are read as far as a decision requires it.

    Args:
        interactions: in recorded order.
        clocks: recorded readings by call and thread, in the order of the first reading.
        servers: TLS properties by host and port.

    Attributes:
        addresses: of all recorded servers.
        learner: receives requests without a match; None: they have no response.
    """

    def __init__(
        self,
        interactions: Iterable[Interaction] | InteractionFile,
        clocks: Mapping[tuple[Call, str], list[list[int]]],
        servers: Mapping[str, object],
        matching: RequestRules | None = None,
    ) -> None:
        self._source: Source = interactions if isinstance(interactions, InteractionFile) else _Loaded(interactions)
        self._unread = iter(self._source)
        self._entries: list[Entry] = []
        self._queues: dict[bytes, InteractionQueue] = {}
        self._by_place: dict[tuple[str, str], list[Entry]] = {}
        self._methods: dict[str, set[str]] = {}  # by path
        self._at: dict[str, deque[Entry]] = {}  # everything at one address, in order
        self._clocks = clocks
        self._timed = dict.fromkeys(key[0] for key in clocks)  # recorded calls with readings
        self._unbound = deque(self._timed)  # those at the front may be bound
        self._bound: dict[Call, Call] = {}  # live call to recorded one
        self._taken: set[Call] = set()  # recorded calls that are bound
        self._servers = servers
        self.matching = matching
        self.learner: Learner | None = None
        self.addresses = self._source.addresses
        self.extra = 0  # polls beyond the recorded ones

    # --- Reading -----------------------------------------------------------------------------------------------------

    def _read(self) -> Entry | None:
        """Read the next interaction; None if there are no more."""
        place, interaction = next(self._unread, (0, None))
        if interaction is None:
            return None
        entry = Entry(len(self._entries) + 1, place, interaction)
        self._entries.append(entry)
        server = place_of(interaction)
        for address in {server, interaction.peer or server}:
            self._at.setdefault(address, deque()).append(entry)
        subject = Subject(interaction, self.matching)
        entry.repeats = subject.repeats
        self._methods.setdefault(subject.path, set()).add(subject.method)
        if not entry.kind:
            self._queues.setdefault(subject.key(), InteractionQueue()).append(entry)
            self._by_place.setdefault((subject.method, subject.path), []).append(entry)
        return entry

    def _read_all(self) -> None:
        while self._read() is not None:
            pass

    # --- Calls -------------------------------------------------------------------------------------------------------

    def clock(self, call: Call, thread: str) -> tuple[Call, list[list[int]]]:
        """Return the recorded call of a live one, and the clock readings of one of its threads."""
        if call not in self._bound:
            while self._unbound and self._unbound[0] in self._taken:
                self._unbound.popleft()
            if self._unbound:
                is_known = call not in self._taken and call in self._timed
                self._bind(call, call if is_known else self._unbound[0])
        recorded = self._bound.get(call, call)
        return recorded, self._clocks.get((recorded, thread), [])

    def _bind(self, call: Call, recorded: Call) -> None:
        self._bound[call] = recorded
        self._taken.add(recorded)

    def serves(self, *addresses: str) -> bool:
        """Return True if traffic with a server is recorded, under any of its addresses."""
        loose = self.matching is not None and self.matching.any_server
        return loose or not self.addresses.isdisjoint(addresses) or not self._servers.keys().isdisjoint(addresses)

    # --- Connections -------------------------------------------------------------------------------------------------

    def refusal(self, kind: str, address: str) -> Interaction | None:
        """Return the recorded failure of a connection, if the connection failed at this point.

        The last one at an address is repeated: the number of attempts to reach a server depends on time.

        Args:
            kind: TCP or TLS.
            address: host and port.
        """
        if not self._source.failures or address not in self.addresses:
            return None
        entry = self._first_at(address)
        while entry is None and self._read() is not None:
            entry = self._first_at(address)
        entry = entry or next(reversed(self._at.get(address, ())), None)
        if entry is None or entry.kind != kind:
            return None
        entry.played = True
        return self._source.load(entry.place)

    def _first_at(self, address: str) -> Entry | None:
        """Return the first entry at an address that was not replayed, of those that were read."""
        entries = self._at.get(address)
        while entries and len(entries) > 1 and entries[0].played:
            entries.popleft()
        return entries[0] if entries and not entries[0].played else None

    def tls(self, address: str) -> dict[str, object]:
        """Return the TLS properties of a server."""
        known = self._servers.get(address)
        return {str(key): str(value) for key, value in known.items()} if isinstance(known, dict) else {}

    # --- Requests ----------------------------------------------------------------------------------------------------

    def take(self, live: Subject, call: Call) -> Interaction | str:
        """Return the interaction to replay for a request, or the reason why there is none."""
        key = live.key()
        entry = self._own(key, call)
        queue = self._queues.get(key)
        if queue is None:
            return self._unknown(live)
        entry = entry or self._free(queue, call)
        if entry is not None and entry.turns is not None:
            if call is not None and entry.call is not None and call not in self._bound:
                self._bind(call, entry.call)
            entry.turns.played += 1
            entry.played = True
            return self._source.load(entry.place)
        turns = queue.by_call.get(self._bound.get(call, call)) if call is not None else None
        polls = turns.entries if turns is not None else []  # of a request that was repeated within a call
        last = polls[-1] if len(polls) > 1 else queue.last if call is None and queue.count > 1 else None
        if (live.method in SAFE and last is not None) or live.repeats:
            self.extra += 1
            last = queue.last if live.repeats else last
            assert last is not None
            return self._source.load(last.place)
        others = sorted({str(recorded) for recorded, turns in queue.by_call.items() if turns.next})
        if others:
            return f"{live}: recorded for another call ({', '.join(others)}), and this one has had all of its own"
        times = "once" if queue.count == 1 else f"{queue.count} times"
        return f"{live}: used up: it is recorded {times}, and has been played as often"

    def _own(self, key: bytes, call: Call) -> Entry | None:
        """Return the next entry of the recorded call that a live one is; None if the complete file has none.

        A live call that is not bound is the recorded call with its id, unless another one is.
        """
        recorded = self._bound.get(call, call)
        if call not in self._bound and call in self._taken:
            self._read_all()
            return None
        while True:
            queue = self._queues.get(key)
            turns = queue.by_call.get(recorded) if queue is not None else None
            if turns is not None and turns.next is not None:
                return turns.next
            if self._read() is None:
                return None

    def _free(self, queue: InteractionQueue, call: Call) -> Entry | None:
        """Return the next entry of the best other call: interactions outside of calls are the last choice."""
        if call not in self._bound:
            free = queue.free
            while free and (free[0] in self._taken or queue.by_call[free[0]].next is None):
                free.popleft()
            if free:
                return queue.by_call[free[0]].next
            if None in self._taken:
                return None
        outside = queue.by_call.get(None)
        return outside.next if outside is not None else None

    def _unknown(self, live: Subject) -> Interaction | str:
        """Explain that a request was not recorded, with the closest recorded one; or return its response to learn."""
        entry, differences = self._closest(live)
        if entry is None:
            paths = sorted(self._methods.get(live.path, ()))
            hint = f"; with this path there are {', '.join(paths)}" if paths else ""
            return f"{live}: never recorded{hint}"
        recorded = self._subject(entry)
        following = entry.turns.next if entry.turns is not None else None
        if self.learner is not None and following and self.learner.learn(entry.number, recorded, live, differences):
            assert following.turns is not None
            following.turns.played += 1
            following.played = True
            return self._source.load(following.place)
        text = "; ".join(difference.text for difference in differences[:SHOWN])
        text += f"; and {len(differences) - SHOWN} more" if len(differences) > SHOWN else ""
        name = f"{entry.number} ({recorded})" if recorded.path != live.path else str(entry.number)
        shown = differences[:SHOWN]
        presets = [preset_of((difference.recorded, difference.live) for difference in shown)]
        if not presets[0]:
            presets = [preset_of([(difference.recorded, difference.live)]) for difference in shown]
        options = dict.fromkeys(
            f"--mask {preset}" if preset else f"--ignore {quote(difference.pointer)}"
            for preset, difference in zip(presets, shown, strict=False)
        )
        remedy = f"record it again, or set aside what may differ ({' '.join(options)})"
        return f"{live}: {DIFFERS} {name}: {text}; {remedy}"

    def _closest(self, live: Subject) -> tuple[Entry | None, list[Difference]]:
        """Return the closest recorded request with the method of a live one, and its path, or else a similar path.

        The one with the fewest differences is returned. A value that only one of two requests has counts most. Of
        several, requests that were not replayed come first, then those with the most similar texts, in recorded order.
        """
        near = self._by_place.get((live.method, live.path), [])
        segments = live.path.split("/")
        fewest = (len(segments) - 1) // 2  # different segments: at most half of them
        for (method, path), entries in islice(self._by_place.items(), 0 if near else PATHS):
            others = path.split("/")
            count = sum(one != other for one, other in zip(segments, others, strict=False))
            if method == live.method and len(others) == len(segments) and 0 < count <= fewest:
                near = [*(near if count == fewest else ()), *entries]
                fewest = count
        candidates = sorted(near, key=lambda entry: entry.played)[:COMPARED]
        compared = [(entry, different(self._subject(entry), live)) for entry in candidates]

        def distance(pair: tuple[Entry, Sequence[Difference]]) -> tuple[int, bool]:
            missing = sum(MISSING in (difference.recorded, difference.live) for difference in pair[1])
            return len(pair[1]) + 3 * missing, pair[0].played

        least = min(map(distance, compared), default=None)
        nearest = [pair for pair in compared if distance(pair) == least]
        if len(nearest) == 1:
            return nearest[0]
        return min(nearest, key=lambda pair: sum(map(distance_of_texts, pair[1])), default=(None, []))

    # --- End of the session ------------------------------------------------------------------------------------------

    def never_played(self, absent: Collection[str] = ()) -> list[str]:
        """Return lines about the interactions that were not requested: their number, and the first few.

        Polls that were not repeated do not count if their response equals that of the last poll replayed.

        Args:
            absent: names of clients that did not run, so their requests do not count.
        """
        self._read_all()
        left = [
            entry
            for entry in self._entries
            if not entry.played and entry.client not in absent and not self._is_spare(entry)
        ]
        if not left:
            return []
        what = "one recorded request was" if len(left) == 1 else f"{len(left)} recorded requests were"
        lines = [f"{what} never sent:"]
        for entry in left[:LISTED]:
            origin = f" (by {entry.client})" if entry.client else ""
            origin = f" (call {entry.call})" if entry.call is not None else origin
            lines.append(f"  {self._subject(entry)}{origin}")
        return lines + ([f"  and {len(left) - LISTED} more"] if len(left) > LISTED else [])

    def traffic(self, absent: Collection[str] = ()) -> dict[str, tuple[Traffic, Traffic, Traffic]]:
        """Return the traffic with each endpoint: all that is recorded, what was replayed, and that of absent clients.

        Args:
            absent: names of clients that did not run.
        """
        self._read_all()
        found: dict[str, tuple[Traffic, Traffic, Traffic]] = {}
        nothing = Traffic()
        for entry in self._entries:
            if not entry.kind:
                counted = traffic_of(self._source.load(entry.place)) if entry.is_call else Traffic(1)
                recorded, played, missing = found.get(entry.endpoint, (nothing, nothing, nothing))
                if entry.played:
                    played += counted
                elif entry.client in absent:
                    missing += counted
                found[entry.endpoint] = recorded + counted, played, missing
        return found

    def _subject(self, entry: Entry) -> Subject:
        return Subject(self._source.load(entry.place), self.matching)

    def _is_spare(self, entry: Entry) -> bool:
        """Return True if an interaction need not be requested."""
        turns = entry.turns
        if turns is None or entry.repeats:
            return True  # the number of attempts to reach a server depends on time
        if entry.method not in SAFE or not turns.played:
            return False
        played = turns.entries[turns.played - 1]
        return played.status == entry.status and self._content(played) == self._content(entry)

    def _content(self, entry: Entry) -> bytes:
        """Return a digest of the body of a response."""
        body, digest = self._source.load(entry.place).body, sha256()
        for piece in body.pieces() if body is not None else ():
            digest.update(piece)
        return digest.digest()
