"""Playback: responds to a child's requests with the recorded bytes, or explains a missing response."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import h11

from .interaction import call_id
from .library import TCP, TLS
from .request_matching import Subject
from .responses import PlayedConnection, asks_to_close, is_tunnel, refusal, response

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .interaction import Call, Interaction
    from .library import InteractionStore
    from .responses import Live
    from .sanitizer import Sanitizer
    from .server import ChildConnection

    Told = Mapping[str, object]

EXPLAINED = 10  # misses listed individually
NOT_RECORDED = "NotRecorded"  # see the agent's errors
SILENT = frozenset({"GaveUp"})  # the child gave up waiting, so it is left to wait


class Playback:
    """Message handler of a replay.

    Args:
        library: the interactions.
        hosts: addresses of hosts.
        cleaner: cleans live requests as the recorder has cleaned the recorded ones.
        live: replaces placeholders in recorded paths by paths of this machine.
    """

    def __init__(self, library: InteractionStore, hosts: Mapping[str, object], cleaner: Sanitizer, live: Live) -> None:
        self._library = library
        self._hosts = hosts
        self._cleaner = cleaner
        self._live = live
        self._lines: dict[int, PlayedConnection] = {}
        self._ended: dict[int, dict[str, object]] = {}  # reasons why connections were closed
        self.misses: list[str] = []
        self.programs: set[str] = set()  # run by the child, without the agent
        self.count = 0
        self.readings: Mapping[str, list[int]] = {}  # of the wall clock, by place
        self._kinds: dict[str, Callable[[Told], dict[str, object]]] = {
            "call": self._call,
            "why": self._why,
            "tls": self._tls,
            "times": self._times,
            "readings": lambda told: {"readings": self.readings},
            "resolve": self._resolve,
            "refused": self._refused,
        }

    # --- Questions ---------------------------------------------------------------------------------------------------

    def frame(self, peer: ChildConnection, told: dict[str, object], data: bytes) -> None:
        """Respond to a question of a child."""
        kind = str(told.get("k"))
        if kind == "connect":
            self._connect(peer, told)
        elif kind == "program":
            self.programs |= {str(told["name"])}
        elif kind in self._kinds:
            peer.answer(self._kinds[kind](told))

    def gone(self, peer: ChildConnection) -> None:
        line = self._lines.pop(peer.number, None)
        if line is not None and line.why:
            self._ended[peer.number] = line.why

    def _connect(self, peer: ChildConnection, told: Told) -> None:
        address = told["address"]
        local = not isinstance(address, list)
        host = str(told["host"])
        place = str(address) if not isinstance(address, list) else f"{host.lower()}:{address[1]}"
        numeric = place if not isinstance(address, list) else ":".join(map(str, address))
        call = call_id(told.get("call"))
        failure = self._library.refusal(TCP, place) or self._library.refusal(TCP, numeric)
        if failure is not None:
            self.count += 1
            peer.answer({"error": failure.error or {}})
        elif not self._library.serves(place, numeric):
            peer.answer({"error": self._miss(f"a connection to {place}: never recorded", call)})
        else:
            self._lines[peer.number] = PlayedConnection(place, call, local=local)
            peer.raw = True
            peer.answer({"c": peer.number})

    def _miss(self, text: str, call: Call) -> dict[str, object]:
        """Record a request without a response; return its error."""
        whose = f" (call {call})" if call is not None else ""
        self.misses.append(text + whose)
        return {"type": NOT_RECORDED, "errno": None, "message": text + whose}

    def _line(self, told: Told) -> PlayedConnection | None:
        number = told.get("c")
        return self._lines.get(number) if isinstance(number, int) else None

    def _call(self, told: Told) -> dict[str, object]:
        if line := self._line(told):
            line.call = call_id(told.get("call"))
        return {}

    def _why(self, told: Told) -> dict[str, object]:
        line, number = self._line(told), told.get("c")
        why = line.why if line else self._ended.get(number) if isinstance(number, int) else None
        return {"error": why} if why else {}

    def _tls(self, told: Told) -> dict[str, object]:
        line = self._line(told)
        if line is None:
            return {}
        place = line.tunnel or line.address
        failure = self._library.refusal(TLS, place)
        if failure is not None:
            self.count += 1
            line.silent = (failure.error or {}).get("type") in SILENT
            return {"error": failure.error or {}}
        line.tls = True
        return self._library.tls(place) or self._library.tls(f"{told.get('name')}:{place.rpartition(':')[2]}")

    def _times(self, told: Told) -> dict[str, object]:
        call, moments = self._library.clock(call_id(told.get("call")), str(told.get("thread") or ""))
        return {"call": call, "ns": moments}

    def _resolve(self, told: Told) -> dict[str, object]:
        host = str(told["host"])
        found = self._hosts.get(host)
        if isinstance(found, list):
            return {"addresses": [str(each) for each in found]}
        names = {each.rpartition(":")[0] for each in self._library.addresses}
        if host.lower() in names or self._library.serves():
            failures = [each for each in self._library.addresses if each.rpartition(":")[0] == host.lower()]
            for place in failures:
                if failure := self._library.refusal(TCP, place):
                    self.count += 1
                    return {"error": failure.error or {}}
            return {"addresses": ["192.0.2.1"]}  # a file of vcrpy has none; this one is reserved (RFC 5737)
        return {"error": self._miss(f"the name {host}: never looked up in the recording", call_id(told.get("call")))}

    def _refused(self, told: Told) -> dict[str, object]:
        text = f"{told['what']}: not recorded, and the network is not used on replay"
        self._miss(text, call_id(told.get("call")))
        return {"text": text}

    # --- Requests ----------------------------------------------------------------------------------------------------

    def data(self, peer: ChildConnection, data: bytes) -> None:
        """Process bytes of requests."""
        line = self._lines[peer.number]
        try:
            peer.write(line.receive_data(data))
            while (event := line.next_event()) is not None:
                if isinstance(event, bytes):
                    peer.write(event)
                else:
                    self._answer(peer, line, event)
        except h11.RemoteProtocolError as error:
            line.why = self._miss(f"to {line.address}: what the child sends is no HTTP/1.1 ({error})", line.call)
            peer.stream(iter(()), end=True)

    def _answer(self, peer: ChildConnection, line: PlayedConnection, request: Interaction) -> None:
        with contextlib.suppress(ValueError):  # unchanged if it can not be sanitized
            self._cleaner.interaction(request)
        found = self._library.take(Subject(request, self._library.matching), line.call)
        if isinstance(found, str):
            self._miss(found, line.call)
            peer.stream(iter([refusal(found, request.method)]), end=False)
            return
        self.count += 1
        if is_tunnel(found, request.method):
            line.tunnel = request.uri.partition("://")[2].removesuffix(":443")
        self._play(peer, line, found, request)

    def _play(self, peer: ChildConnection, line: PlayedConnection, found: Interaction, request: Interaction) -> None:
        error = dict(found.error) if found.error else None
        if error and error.get("type") in SILENT and not found.status:
            return
        if found.cut:
            size = found.body.size if found.body is not None else 0
            text = f"the recording has the first {size} bytes of this body: the child read no more of it then"
            error = {"type": NOT_RECORDED, "errno": None, "message": text}
        line.why = error if error and error.get("type") != "ServerClosed" else None
        if not found.status:
            peer.stream(iter(()), end=True)
            return
        answer = response(found, request.method, self._live, failed=bool(error))
        end = answer.end or asks_to_close(request.request_headers)
        peer.stream(answer.pieces, end=end, piecewise=answer.piecewise)
