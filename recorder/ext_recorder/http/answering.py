"""What children ask on replay, and what they are told: the recorded answer, byte for byte, or why there is none."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import h11

from .body import Body
from .interaction import Interaction
from .keys import Subject
from .library import TCP, TLS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from .cleaning import Cleaner
    from .interaction import Call, Headers
    from .library import Library
    from .service import Peer

    Told = Mapping[str, object]
    Live = Callable[[bytes], bytes]

HEAD_LIMIT = 1024 * 1024  # bytes of the lines before a body
PIECE = 65_536
MISS_STATUS, MISS_REASON = 499, "Not Recorded"  # a status that no server gives, and that nobody takes for success
NO_BODY = frozenset({204, 304})
EXPLAINED = 10  # misses that are told one by one
NOT_RECORDED = "NotRecorded"  # see the agent's errors
SILENT = frozenset({"GaveUp"})  # the child gave up waiting, so it is left to wait


class Line:
    """One connection of the child, as the server's end of it.

    Attributes:
        address: host and port, or the path of a unix socket.
        call: for which call it is used.
        tls: it stands for one in TLS.
        tunnel: where it leads behind a proxy.
        why: what it was ended by, where that was not the server's wish.
    """

    def __init__(self, address: str, call: Call, *, local: bool) -> None:
        self.address = address
        self.call = call
        self.local = local
        self.tls = False
        self.tunnel = ""
        self.why: dict[str, object] | None = None
        self.begin(b"")

    def begin(self, rest: bytes) -> None:
        """Be ready for a request."""
        self.reader = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_LIMIT)
        self.request: Interaction | None = None
        if rest:
            self.reader.receive_data(rest)


class Answers:
    """The desk of a replay.

    Args:
        library: the interactions.
        hosts: addresses of hosts.
        cleaner: cleans live requests as the recorder has cleaned the recorded ones.
        live: puts paths of this machine where the recording has neutral ones.
    """

    def __init__(self, library: Library, hosts: Mapping[str, object], cleaner: Cleaner, live: Live) -> None:
        self._library = library
        self._hosts = hosts
        self._cleaner = cleaner
        self._live = live
        self._lines: dict[int, Line] = {}
        self._ended: dict[int, dict[str, object]] = {}  # what lines were ended by that are not there any more
        self.misses: list[str] = []
        self.programs: set[str] = set()  # that the child ran, and nothing was seen of
        self.count = 0
        self._kinds: dict[str, Callable[[Told], dict[str, object]]] = {
            "call": self._call,
            "why": self._why,
            "tls": self._tls,
            "times": self._times,
            "resolve": self._resolve,
            "refused": self._refused,
        }

    # --- Questions ---------------------------------------------------------------------------------------------------

    def frame(self, peer: Peer, told: dict[str, object], data: bytes) -> None:
        """A question of a child."""
        kind = str(told.get("k"))
        if kind == "connect":
            self._connect(peer, told)
        elif kind == "program":
            self.programs |= {str(told["name"])}
        elif kind in self._kinds:
            peer.answer(self._kinds[kind](told))

    def gone(self, peer: Peer) -> None:
        line = self._lines.pop(peer.number, None)
        if line is not None and line.why:
            self._ended[peer.number] = line.why

    def _connect(self, peer: Peer, told: Told) -> None:
        address = told["address"]
        local = not isinstance(address, list)
        host = str(told["host"])
        place = str(address) if not isinstance(address, list) else f"{host.lower()}:{address[1]}"
        numeric = place if not isinstance(address, list) else ":".join(map(str, address))
        call = _id(told)
        failure = self._library.refusal(TCP, place) or self._library.refusal(TCP, numeric)
        if failure is not None:
            self.count += 1
            peer.answer({"error": failure.error or {}})
        elif not {place, numeric} & self._library.addresses:
            peer.answer(self._miss(f"a connection to {place}: never recorded", call))
        else:
            self._lines[peer.number] = Line(place, call, local=local)
            peer.raw = True
            peer.answer({"c": peer.number})

    def _miss(self, text: str, call: Call) -> dict[str, object]:
        whose = f" (call {call})" if call is not None else ""
        self.misses.append(text + whose)
        return {"error": {"type": NOT_RECORDED, "errno": None, "message": text + whose}}

    def _line(self, told: Told) -> Line | None:
        number = told.get("c")
        return self._lines.get(number) if isinstance(number, int) else None

    def _call(self, told: Told) -> dict[str, object]:
        if line := self._line(told):
            line.call = _id(told)
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
            return {"error": failure.error or {}}
        line.tls = True
        return self._library.tls(place) or self._library.tls(f"{told.get('name')}:{place.rpartition(':')[2]}")

    def _times(self, told: Told) -> dict[str, object]:
        call, moments = self._library.clock(_id(told), str(told.get("thread") or ""))
        return {"call": call, "ns": moments}

    def _resolve(self, told: Told) -> dict[str, object]:
        host = str(told["host"])
        found = self._hosts.get(host)
        if isinstance(found, list):
            return {"addresses": [str(each) for each in found]}
        names = {each.rpartition(":")[0] for each in self._library.addresses}
        if host.lower() in names:
            failures = [each for each in self._library.addresses if each.rpartition(":")[0] == host.lower()]
            for place in failures:
                if failure := self._library.refusal(TCP, place):
                    self.count += 1
                    return {"error": failure.error or {}}
            return {"addresses": ["192.0.2.1"]}  # a file of vcrpy's own has none; this one is nobody's (RFC 5737)
        return self._miss(f"the name {host}: never looked up in the recording", _id(told))

    def _refused(self, told: Told) -> dict[str, object]:
        text = f"{told['what']}: not recorded, and the network is not used on replay"
        self._miss(text, _id(told))
        return {"text": text}

    # --- Requests ----------------------------------------------------------------------------------------------------

    def data(self, peer: Peer, data: bytes) -> None:
        """Bytes of a request."""
        line = self._lines[peer.number]
        try:
            line.reader.receive_data(data)
            while self._take(peer, line):
                pass
        except h11.RemoteProtocolError as error:
            line.why = self._miss(f"to {line.address}: what the child sends is no HTTP/1.1 ({error})", line.call)[
                "error"
            ]  # type: ignore[assignment]
            peer.stream(iter(()), end=True)

    def _take(self, peer: Peer, line: Line) -> bool:
        event = line.reader.next_event()
        if isinstance(event, h11.Request):
            line.request = self._begun(line, event)
            if line.reader.they_are_waiting_for_100_continue:
                peer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        elif isinstance(event, h11.Data):
            if line.request is not None and line.request.request_body is not None:
                line.request.request_body.write(event.data)
        elif isinstance(event, h11.EndOfMessage):
            self._answer(peer, line)
        else:
            return False
        return True

    def _begun(self, line: Line, event: h11.Request) -> Interaction:
        made = Interaction(event.method.decode("ascii", "replace"), call=line.call)
        made.request_headers = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in event.headers.raw_items()
        ]
        target = event.target.decode("ascii", "replace")
        scheme = "https" if line.tls else "http"
        if made.method == "CONNECT":
            made.uri = f"{scheme}://{target}"
        elif "://" in target.partition("?")[0]:
            made.uri = target
        else:
            host = next((value.decode() for name, value in event.headers if name == b"host"), line.address)
            made.uri = f"{scheme}://{line.tunnel or host}{target if target.startswith('/') else '/' + target}"
        made.socket = line.address if line.local else ""
        made.request_body = Body()
        return made

    def _answer(self, peer: Peer, line: Line) -> None:
        request = line.request
        if request is None:
            return
        rest, _ = line.reader.trailing_data
        line.begin(rest)
        with contextlib.suppress(ValueError):  # it stays as it is, and will be found or not
            self._cleaner.interaction(request)
        found = self._library.take(Subject(request), line.call)
        if isinstance(found, str):
            self._miss(found, line.call)
            peer.stream(iter([_refusal(found, request.method)]), end=False)
            return
        self.count += 1
        if request.method == "CONNECT" and 200 <= found.status < 300:
            line.tunnel = request.uri.partition("://")[2].removesuffix(":443")
        self._play(peer, line, found, request.method)

    def _play(self, peer: Peer, line: Line, found: Interaction, method: str) -> None:
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
        headers, body = self._made_live(found)
        framing = {name.lower(): value.lower() for name, value in headers}
        has_body = method != "HEAD" and found.status not in NO_BODY
        open_ended = (
            has_body and "content-length" not in framing and "chunked" not in framing.get("transfer-encoding", "")
        )
        tunnel = method == "CONNECT" and 200 <= found.status < 300
        end = bool(error) or (open_ended and not tunnel) or "close" in framing.get("connection", "")
        end = end or (found.http_version == "1.0" and "keep-alive" not in framing.get("connection", ""))
        response = _response(found, headers, body if has_body else None, whole=not error)
        if found.reads:
            peer.stream(_pieces(b"".join(response), found.reads), end=end, piecewise=True)
        elif body.size <= PIECE:  # it was read at once
            peer.stream(iter([b"".join(response)]), end=end)
        else:
            peer.stream(response, end=end)

    def _made_live(self, found: Interaction) -> tuple[Headers, Body]:
        """Headers and body with the paths of this machine."""
        body = found.body or Body()
        headers = [(name, self._live(value.encode()).decode()) for name, value in found.headers]
        if body.size > HEAD_LIMIT:
            return headers, body
        data = body.whole()
        changed = self._live(data)
        if changed == data:
            return headers, body
        lengths = {"content-length"}
        return [(n, str(len(changed)) if n.lower() in lengths else v) for n, v in headers], Body(changed)


def _response(found: Interaction, headers: Headers, body: Body | None, *, whole: bool) -> Iterator[bytes]:
    """An answer as bytes."""
    lines = [
        f"HTTP/{found.http_version} {found.status} {found.reason}",
        *(f"{name}: {value}" for name, value in headers),
    ]
    yield ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
    if body is None:
        return
    if not any(name.lower() == "transfer-encoding" and "chunked" in value.lower() for name, value in headers):
        yield from body.pieces()
        return
    for chunk in _chunks(body, found.chunks):
        yield b"%x\r\n%b\r\n" % (len(chunk), chunk)
    if whole:
        yield b"0\r\n\r\n"


def _chunks(body: Body, sizes: list[int]) -> Iterator[bytes]:
    """The pieces of a body as they were sent; of a file that does not tell, some."""
    if sum(sizes) != body.size:
        yield from body.pieces()
        return
    held = b""
    pieces = body.pieces()
    for size in sizes:
        while len(held) < size:
            held += next(pieces)
        yield held[:size]
        held = held[size:]


def _pieces(response: bytes, sizes: list[int]) -> Iterator[bytes]:
    """An answer in the pieces in which it was read. What it is longer or shorter by now is so in the first one."""
    at = max(0, sizes[0] + len(response) - sum(sizes))
    yield response[:at]
    for size in sizes[1:]:
        yield response[at : at + size]
        at += size


def _refusal(text: str, method: str) -> bytes:
    """The answer to a request that has none: for people, for programs, and for clients of Kubernetes."""
    told = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotRecorded", "code": MISS_STATUS}
    body = json.dumps(told | {"message": f"ext-recorder: {text}"}).encode()
    head = (
        f"HTTP/1.1 {MISS_STATUS} {MISS_REASON}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + (b"" if method == "HEAD" else body)


def _id(told: Told) -> Call:
    call = told.get("call")
    return call if isinstance(call, (int, str, float)) else None
