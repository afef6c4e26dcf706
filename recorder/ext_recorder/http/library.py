"""Store of recorded interactions: found by their request, each replayed once, in recorded order.

Selection
---------
Of the recorded interactions with the same request, those of the same call come first. The recorded counterpart of a
live call is the one with the same id, else the next recorded call that made this request.

A request that a call sent several times is a poll: its responses are replayed in order. On replay, a poll may have more
requests than were recorded, because the time between them varies; then the last response repeats. No other request is
answered twice, and none by the response to a different request.
"""

from __future__ import annotations

from collections import deque
from shlex import quote
from typing import TYPE_CHECKING

from .interaction import CONNECT
from .request_matching import Subject, different

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .interaction import Call, Interaction
    from .request_matching import RequestRules

SAFE = frozenset({"GET", "HEAD"})  # methods of polls
LISTED = 5  # interactions without a request, listed individually
SHOWN = 4  # differences
COMPARED = 50  # recorded requests, when a live one has no match
TCP, TLS = "tcp://", "tls://"  # before the address of a failed connection


class Entry:
    """Recorded interaction, and a mark if it was replayed."""

    __slots__ = ("call", "interaction", "key", "number", "played", "subject")

    def __init__(self, number: int, interaction: Interaction, matching: RequestRules | None) -> None:
        self.number = number
        self.interaction = interaction
        self.subject = Subject(interaction, matching)
        self.key = self.subject.key()
        self.call = interaction.call
        self.played = False


class InteractionQueue:
    """Interactions of one request, by call."""

    __slots__ = ("all", "by_call")

    def __init__(self) -> None:
        self.all: list[Entry] = []
        self.by_call: dict[Call, deque[Entry]] = {}


class InteractionStore:
    """All interactions of a file.

    Args:
        interactions: in recorded order.
        clocks: recorded readings by call and thread, in the order of the first reading.
        servers: TLS properties by host and port.
        matching: the user's rules for equal requests.
    """

    def __init__(
        self,
        interactions: Iterable[Interaction],
        clocks: Mapping[tuple[Call, str], list[list[int]]],
        servers: Mapping[str, object],
        matching: RequestRules | None = None,
    ) -> None:
        self._entries: list[Entry] = []
        self._shelves: dict[bytes, InteractionQueue] = {}
        self._by_place: dict[tuple[str, str], list[Entry]] = {}
        self._refusals: dict[str, deque[Entry]] = {}
        self._at: dict[str, deque[Entry]] = {}  # everything at one address, in order
        self._clocks = clocks
        self._bound: dict[Call, Call] = {}  # live call to recorded one
        self._servers = servers
        self.matching = matching
        self.addresses: set[str] = set()
        self.extra = 0  # polls beyond the recorded ones
        for number, interaction in enumerate(interactions, 1):
            self._add(Entry(number, interaction, matching))

    def _add(self, entry: Entry) -> None:
        self._entries.append(entry)
        each = entry.interaction
        place = place_of(each)
        self.addresses |= {place, each.peer, each.socket} - {""}
        for address in {place, each.peer or place}:
            self._at.setdefault(address, deque()).append(entry)
        if each.uri.startswith((TCP, TLS)):
            return
        shelf = self._shelves.setdefault(entry.key, InteractionQueue())
        shelf.all.append(entry)
        shelf.by_call.setdefault(entry.call, deque()).append(entry)
        self._by_place.setdefault((entry.subject.method, entry.subject.path), []).append(entry)

    # --- Calls -------------------------------------------------------------------------------------------------------

    def clock(self, call: Call, thread: str) -> tuple[Call, list[list[int]]]:
        """Return the recorded call of a live one, and the clock readings of one of its threads."""
        if call not in self._bound:
            taken = set(self._bound.values())
            free = [one for one in dict.fromkeys(recorded for recorded, _ in self._clocks) if one not in taken]
            if free:
                self._bound[call] = call if call in free else free[0]
        recorded = self._bound.get(call, call)
        return recorded, self._clocks.get((recorded, thread), [])

    def serves(self, *addresses: str) -> bool:
        """Return True if something is recorded of a server, by any of its addresses."""
        loose = self.matching is not None and self.matching.any_server
        return loose or not self.addresses.isdisjoint(addresses)

    # --- Connections -------------------------------------------------------------------------------------------------

    def refusal(self, kind: str, address: str) -> Interaction | None:
        """Return the recorded failure of a connection, once, if the connection failed at this point.

        Args:
            kind: TCP or TLS.
            address: host and port.
        """
        line = self._at.get(address)
        while line and line[0].played:
            line.popleft()
        if not line or not line[0].interaction.uri.startswith(kind):
            return None
        line[0].played = True
        return line.popleft().interaction

    def tls(self, address: str) -> dict[str, object]:
        """Return the TLS properties of a server."""
        known = self._servers.get(address)
        return {str(key): str(value) for key, value in known.items()} if isinstance(known, dict) else {}

    # --- Requests ----------------------------------------------------------------------------------------------------

    def take(self, live: Subject, call: Call) -> Interaction | str:
        """Return the interaction to replay for a request, or the reason why there is none."""
        shelf = self._shelves.get(live.key())
        if shelf is None:
            return self._unknown(live)
        for one in self._calls(shelf, call):
            line = shelf.by_call.get(one)
            while line and line[0].played:
                line.popleft()
            if line:
                if call is not None and one is not None:
                    self._bound.setdefault(call, one)
                return self._played(line.popleft())
        return self._again(shelf, live, call)

    def _calls(self, shelf: InteractionQueue, call: Call) -> list[Call]:
        """Return the recorded calls that may have the response to a live call's request, best first."""
        if call in self._bound:
            return [self._bound[call], None]
        taken = set(self._bound.values())
        free = [one for one in shelf.by_call if one not in taken]
        return sorted(free, key=lambda one: (one != call, one is None))

    def _played(self, entry: Entry) -> Interaction:
        entry.played = True
        return entry.interaction

    def _again(self, shelf: InteractionQueue, live: Subject, call: Call) -> Interaction | str:
        recorded = self._bound.get(call, call)
        own = [entry for entry in shelf.all if call is None or entry.call == recorded]
        if live.method in SAFE and len(own) > 1:
            self.extra += 1
            return own[-1].interaction
        left = [entry for entry in shelf.all if not entry.played]
        if left:
            calls = ", ".join(sorted({str(entry.call) for entry in left}))
            return f"{live}: recorded for another call ({calls}), and this one has had all of its own"
        times = "once" if len(shelf.all) == 1 else f"{len(shelf.all)} times"
        return f"{live}: used up: it is recorded {times}, and has been played as often"

    def _unknown(self, live: Subject) -> str:
        near = self._by_place.get((live.method, live.path), [])
        if not near:
            paths = sorted({entry.subject.method for entry in self._entries if entry.subject.path == live.path})
            hint = f"; with this path there are {', '.join(paths)}" if paths else ""
            return f"{live}: never recorded{hint}"
        entry, found = min(
            ((entry, different(entry.subject, live)) for entry in near[-COMPARED:]), key=lambda pair: len(pair[1])
        )
        text = "; ".join(text for _, text in found[:SHOWN]) + (
            f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        )
        pointers = list(dict.fromkeys(pointer for pointer, _ in found[:SHOWN]))
        ignored = " ".join(f"--ignore {quote(pointer)}" for pointer in pointers)
        remedy = f"record it again, or set aside what may differ ({ignored})"
        return f"{live}: differs from recorded interaction {entry.number}: {text}; {remedy}"

    # --- The end -----------------------------------------------------------------------------------------------------

    def never_played(self) -> list[str]:
        """Return a description of the interactions that were not requested: the first few, and their number.

        Polls that were left out do not count if their response equals that of the last poll replayed.
        """
        left = [entry for entry in self._entries if not entry.played and not self._is_spare(entry)]
        if not left:
            return []
        what = "one recorded request was" if len(left) == 1 else f"{len(left)} recorded requests were"
        lines = [f"{what} never sent:"]
        calls = [f" (call {entry.call})" if entry.call is not None else "" for entry in left[:LISTED]]
        lines += [f"  {entry.subject}{call}" for entry, call in zip(left, calls, strict=False)]
        return lines + ([f"  and {len(left) - LISTED} more"] if len(left) > LISTED else [])

    def _is_spare(self, entry: Entry) -> bool:
        each = entry.interaction
        if each.uri.startswith((TCP, TLS)):
            return True  # the number of attempts to reach a server depends on time
        if each.method not in SAFE:
            return False
        played = [one for one in self._shelves[entry.key].all if one.played and one.call == entry.call]
        return bool(played) and _same_answer(played[-1].interaction, each)


def place_of(each: Interaction) -> str:
    """Return host and port of an interaction."""
    scheme, _, rest = each.uri.partition("://")
    host = rest.partition("/")[0].partition("?")[0].rpartition("@")[2].lower()
    name, _, port = host.rpartition(":")
    if name and port.isdigit() and not name.endswith(":"):
        return host
    return f"{host}:{'443' if scheme == 'https' else '80'}"


def is_failed_connection(each: Interaction) -> bool:
    """Return True if an interaction records a failed connection."""
    return each.method == CONNECT and each.uri.startswith((TCP, TLS))


def _same_answer(one: Interaction, other: Interaction) -> bool:
    def content(each: Interaction) -> bytes:
        return each.body.whole() if each.body is not None else b""

    return one.status == other.status and content(one) == content(other)
