"""Playback: responds to a child's requests with the recorded bytes, or explains a missing response."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import TYPE_CHECKING

import h11

from .http1_observer import SWITCHING
from .inject.ext_recorder_agent.errors import NOT_RECORDED
from .interaction import TCP, TLS, call_id
from .proxy.websocket import is_websocket, other_protocol
from .request_matching import Subject
from .responses import PlayedConnection, PlayedResponse, asks_to_close, is_tunnel, refusal, response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .interaction import Call, Interaction
    from .interaction_store import InteractionStore
    from .request_matching import PathPairs
    from .sanitizer import Sanitizer
    from .server import ChildConnection

EXPLAINED = 10  # misses listed individually
SILENT = frozenset({"GaveUp"})  # the child gave up waiting, so it waits again


class Playback:
    """Message handler of a replay.

    Args:
        cleaner: cleans live requests as the recorder has cleaned the recorded ones.
        live: replaces recorded paths, and placeholders, by paths of this machine.
        paths: those that are found in requests.
    """

    def __init__(
        self,
        store: InteractionStore,
        hosts: Mapping[str, object],
        cleaner: Sanitizer,
        live: Sanitizer,
        paths: PathPairs | None = None,
    ) -> None:
        self._store = store
        self._hosts = hosts
        self.cleaner = cleaner
        self._live = live
        self._paths = paths
        self._connections: dict[int, PlayedConnection] = {}
        self._ended: dict[int, dict[str, object]] = {}  # reasons why connections were closed
        self.misses: list[str] = []
        self.programs: set[str] = set()  # run by the child, without the agent
        self.passed: Counter[str] = Counter()  # connections to servers that are passed through
        self.count = 0
        self.readings: Mapping[str, list[int]] = {}  # of the wall clock, by place

    # --- Questions ---------------------------------------------------------------------------------------------------

    def frame(self, peer: ChildConnection, question: dict[str, object], data: bytes) -> None:
        """Respond to a question of a child."""
        kind, call = question.get("k"), call_id(question.get("call"))
        if kind == "connect":
            self._connect(peer, question)
        elif kind == "program":
            self.programs |= {str(question["name"])}
        elif kind == "times":
            recorded, moments = self._store.clock(call, str(question.get("thread") or ""))
            peer.answer({"call": recorded, "ns": moments})
        elif kind == "readings":
            peer.answer({"readings": self.readings})
        elif kind == "resolve":
            peer.answer(self._resolve(str(question["host"]), call))
        elif kind == "refused":
            text = f"{question['what']}: not recorded, and the network is not used on replay"
            self._miss(text, call)
            peer.answer({"text": text})
        elif kind in {"call", "why", "tls"}:
            peer.answer(self._about_connection(question))

    def gone(self, peer: ChildConnection) -> None:
        """Remove a connection that was closed."""
        connection = self._connections.pop(peer.number, None)
        if connection is not None and connection.why:
            self._ended[peer.number] = connection.why

    def _connect(self, peer: ChildConnection, question: Mapping[str, object]) -> None:
        address, call = question["address"], call_id(question.get("call"))
        local = not isinstance(address, list)
        place = numeric = str(address)
        if isinstance(address, list):
            place, numeric = f"{str(question['host']).lower()}:{address[1]}", ":".join(map(str, address))
        failure = self._store.refusal(TCP, place) or self._store.refusal(TCP, numeric)
        if failure is not None:
            self.count += 1
            peer.answer({"error": failure.error or {}})
        elif not self._store.serves(place, numeric):
            peer.answer({"error": self._miss(f"a connection to {place}: never recorded", call)})
        else:
            self._connections[peer.number] = PlayedConnection(place, call, local=local)
            peer.raw = True
            peer.answer({"c": peer.number})

    def _miss(self, text: str, call: Call) -> dict[str, object]:
        """Record a request without a response; return its error."""
        text += f" (call {call})" if call is not None else ""
        self.misses.append(text)
        return {"type": NOT_RECORDED, "errno": None, "message": text}

    def _about_connection(self, question: Mapping[str, object]) -> dict[str, object]:
        """Return the response to a question about a connection."""
        kind, number = question["k"], question.get("c")
        connection = self._connections.get(number) if isinstance(number, int) else None
        if kind == "why":
            why = connection.why if connection else self._ended.get(number) if isinstance(number, int) else None
            return {"error": why} if why else {}
        if connection is None:
            return {}
        if kind == "call":
            connection.call = call_id(question.get("call"))
            return {}
        # TLS: the properties of the server, or the recorded error.
        place = connection.tunnel or connection.address
        failure = self._store.refusal(TLS, place)
        if failure is not None:
            self.count += 1
            connection.silent = (failure.error or {}).get("type") in SILENT
            return {"error": failure.error or {}}
        connection.tls = True
        return self._store.tls(place) or self._store.tls(f"{question.get('name')}:{place.rpartition(':')[2]}")

    def _resolve(self, host: str, call: Call) -> dict[str, object]:
        """Return the addresses of a host, or an error."""
        addresses = self._hosts.get(host)
        if isinstance(addresses, list):
            return {"addresses": [str(address) for address in addresses]}
        places = [place for place in self._store.addresses if place.rpartition(":")[0] == host.lower()]
        if not places and not self._store.serves():
            return {"error": self._miss(f"the name {host}: never looked up in the recording", call)}
        for place in places:
            if failure := self._store.refusal(TCP, place):
                self.count += 1
                return {"error": failure.error or {}}
        return {"addresses": ["192.0.2.1"]}  # a file of vcrpy has none; this one is reserved (RFC 5737)

    # --- Requests ----------------------------------------------------------------------------------------------------

    def data(self, peer: ChildConnection, data: bytes) -> None:
        """Process bytes of requests."""
        connection = self._connections[peer.number]
        try:
            peer.write(connection.receive_data(data))
            while (event := connection.next_event()) is not None:
                if isinstance(event, bytes):
                    peer.write(event)
                    continue
                played = self.respond(event, connection.call)
                if played.tunnel:
                    connection.tunnel = event.uri.partition("://")[2].removesuffix(":443")
                connection.why = played.error
                peer.stream(played.pieces, end=played.end, piecewise=played.piecewise)
        except h11.RemoteProtocolError as error:
            problem = f"to {connection.address}: the child sends invalid HTTP/1.1 ({error})"
            connection.why = self._miss(problem, connection.call)
            peer.stream(iter(()), end=True)

    def respond(self, request: Interaction, call: Call) -> PlayedResponse:
        """Return the response to a request."""
        recorded = self.find(request, call)
        if isinstance(recorded, str):
            self._miss(recorded, call)
            return PlayedResponse(iter([refusal(recorded, request.method)]), end=False)
        if recorded.status == SWITCHING and not is_websocket(recorded):
            name = other_protocol(recorded)
            text = f"{request.method} {request.uri}: the connection became one of {name}, which was not recorded"
            self._miss(text, call)
            return PlayedResponse(iter([refusal(text, request.method)]), end=False)
        return self.played(request, recorded)

    def find(self, request: Interaction, call: Call) -> Interaction | str:
        """Return the recorded interaction of a request, which is sanitized; or the reason why there is none."""
        with contextlib.suppress(ValueError):  # unchanged if it can not be sanitized
            self.cleaner.interaction(request)
        return self._store.take(Subject(request, self._store.matching), call)

    def played(self, request: Interaction, recorded: Interaction) -> PlayedResponse:
        """Return the response of a recorded interaction."""
        self.count += 1
        if self._paths is not None:
            self._paths.observe(recorded, request)
        error = dict(recorded.error) if recorded.error else None
        is_silent = error is not None and error.get("type") in SILENT
        missing = ""
        if is_silent and not recorded.status:
            missing = "the recording has no response to this request: the program did not wait for it then"
        elif is_silent or recorded.cut:
            size = recorded.body.size if recorded.body is not None else 0
            missing = f"the recording has the first {size} bytes of this body: the program read no more of it then"
        if is_silent:
            played = PlayedResponse(iter(()), end=False)
            if recorded.status:
                played = response(recorded, request.method, self._live, failed=True)
            return played._replace(end=False, missing=missing, elapsed=recorded.elapsed)
        if missing:
            error = {"type": NOT_RECORDED, "errno": None, "message": missing}
        why = error if error and error.get("type") != "ServerClosed" else None
        if not recorded.status:
            return PlayedResponse(iter(()), end=True, error=why)
        if is_websocket(recorded):
            return PlayedResponse(iter(()), end=False, recorded=recorded)
        played = response(recorded, request.method, self._live, failed=bool(error))
        end = played.end or asks_to_close(request.request_headers)
        tunnel = is_tunnel(recorded, request.method)
        return played._replace(end=end, error=why, tunnel=tunnel, missing=missing, elapsed=recorded.elapsed)
