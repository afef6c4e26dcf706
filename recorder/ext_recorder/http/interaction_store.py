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
    """

    def __init__(
        self,
        interactions: Iterable[Interaction],
        clocks: Mapping[tuple[Call, str], list[list[int]]],
        servers: Mapping[str, object],
        matching: RequestRules | None = None,
    ) -> None:
        self._entries: list[Entry] = []
        self._queues: dict[bytes, InteractionQueue] = {}
        self._by_place: dict[tuple[str, str], list[Entry]] = {}
        self._at: dict[str, deque[Entry]] = {}  # everything at one address, in order
        self._clocks = clocks
        self._bound: dict[Call, Call] = {}  # live call to recorded one
        self._servers = servers
        self.matching = matching
        self.addresses: set[str] = set()
        self.extra = 0  # polls beyond the recorded ones
        for number, interaction in enumerate(interactions, 1):
            entry = Entry(number, interaction, matching)
            self._entries.append(entry)
            place = place_of(interaction)
            self.addresses |= {place, interaction.peer, interaction.socket} - {""}
            for address in {place, interaction.peer or place}:
                self._at.setdefault(address, deque()).append(entry)
            if not interaction.uri.startswith((TCP, TLS)):
                queue = self._queues.setdefault(entry.key, InteractionQueue())
                queue.all.append(entry)
                queue.by_call.setdefault(entry.call, deque()).append(entry)
                self._by_place.setdefault((entry.subject.method, entry.subject.path), []).append(entry)

    # --- Calls -------------------------------------------------------------------------------------------------------

    def clock(self, call: Call, thread: str) -> tuple[Call, list[list[int]]]:
        """Return the recorded call of a live one, and the clock readings of one of its threads."""
        if call not in self._bound:
            taken = set(self._bound.values())
            free = [recorded for recorded in dict.fromkeys(key[0] for key in self._clocks) if recorded not in taken]
            if free:
                self._bound[call] = call if call in free else free[0]
        recorded = self._bound.get(call, call)
        return recorded, self._clocks.get((recorded, thread), [])

    def serves(self, *addresses: str) -> bool:
        """Return True if traffic with a server is recorded, under any of its addresses."""
        loose = self.matching is not None and self.matching.any_server
        return loose or not self.addresses.isdisjoint(addresses)

    # --- Connections -------------------------------------------------------------------------------------------------

    def refusal(self, kind: str, address: str) -> Interaction | None:
        """Return the recorded failure of a connection, once, if the connection failed at this point.

        Args:
            kind: TCP or TLS.
            address: host and port.
        """
        entries = self._at.get(address)
        while entries and entries[0].played:
            entries.popleft()
        if not entries or not entries[0].interaction.uri.startswith(kind):
            return None
        entries[0].played = True
        return entries.popleft().interaction

    def tls(self, address: str) -> dict[str, object]:
        """Return the TLS properties of a server."""
        known = self._servers.get(address)
        return {str(key): str(value) for key, value in known.items()} if isinstance(known, dict) else {}

    # --- Requests ----------------------------------------------------------------------------------------------------

    def take(self, live: Subject, call: Call) -> Interaction | str:
        """Return the interaction to replay for a request, or the reason why there is none."""
        queue = self._queues.get(live.key())
        if queue is None:
            return self._unknown(live)
        taken = set(self._bound.values())
        # The recorded calls that may have the response, best first.
        calls = [recorded for recorded in queue.by_call if recorded not in taken]
        calls.sort(key=lambda recorded: (recorded != call, recorded is None))
        for recorded in [self._bound[call], None] if call in self._bound else calls:
            entries = queue.by_call.get(recorded)
            while entries and entries[0].played:
                entries.popleft()
            if entries:
                if call is not None and recorded is not None:
                    self._bound.setdefault(call, recorded)
                entry = entries.popleft()
                entry.played = True
                return entry.interaction
        recorded = self._bound.get(call, call)
        own = [entry for entry in queue.all if call is None or entry.call == recorded]
        if live.method in SAFE and len(own) > 1:
            self.extra += 1
            return own[-1].interaction
        others = sorted({str(entry.call) for entry in queue.all if not entry.played})
        if others:
            return f"{live}: recorded for another call ({', '.join(others)}), and this one has had all of its own"
        times = "once" if len(queue.all) == 1 else f"{len(queue.all)} times"
        return f"{live}: used up: it is recorded {times}, and has been played as often"

    def _unknown(self, live: Subject) -> str:
        """Explain that a request was not recorded, with the closest recorded one."""
        near = self._by_place.get((live.method, live.path), [])
        if not near:
            paths = sorted({entry.subject.method for entry in self._entries if entry.subject.path == live.path})
            hint = f"; with this path there are {', '.join(paths)}" if paths else ""
            return f"{live}: never recorded{hint}"
        entry, differences = min(
            ((entry, different(entry.subject, live)) for entry in near[-COMPARED:]), key=lambda pair: len(pair[1])
        )
        text = "; ".join(text for _, text in differences[:SHOWN])
        text += f"; and {len(differences) - SHOWN} more" if len(differences) > SHOWN else ""
        pointers = list(dict.fromkeys(pointer for pointer, _ in differences[:SHOWN]))
        ignored = " ".join(f"--ignore {quote(pointer)}" for pointer in pointers)
        remedy = f"record it again, or set aside what may differ ({ignored})"
        return f"{live}: differs from recorded interaction {entry.number}: {text}; {remedy}"

    # --- End of the session ------------------------------------------------------------------------------------------

    def never_played(self) -> list[str]:
        """Return lines about the interactions that were not requested: their number, and the first few.

        Polls that were not repeated do not count if their response equals that of the last poll replayed.
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
        """Return True if an interaction need not be requested."""
        own = entry.interaction
        if own.uri.startswith((TCP, TLS)):
            return True  # the number of attempts to reach a server depends on time
        if own.method not in SAFE:
            return False
        queue = self._queues[entry.key].all
        played = [other.interaction for other in queue if other.played and other.call == entry.call]
        if not played or played[-1].status != own.status:
            return False
        contents = [body.whole() if body is not None else b"" for body in (played[-1].body, own.body)]
        return contents[0] == contents[1]


def place_of(interaction: Interaction) -> str:
    """Return host and port of an interaction."""
    scheme, _, rest = interaction.uri.partition("://")
    host = rest.partition("/")[0].partition("?")[0].rpartition("@")[2].lower()
    name, _, port = host.rpartition(":")
    if name and port.isdigit() and not name.endswith(":"):
        return host
    return f"{host}:{'443' if scheme == 'https' else '80'}"
