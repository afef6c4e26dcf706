"""Exchanges: requests followed by their response alone, prepared so that a replay compares and copies bytes.

Most messages of a session form such pairs. For each pair, `strict` creates two events, reads both messages and replaces
their paths. This module does so for a block of lines at once, and keeps the bytes before and after each id. It responds
to a request only if `RequestMatcher.accepts` would accept it by its bytes; `strict` handles all other messages.
"""

from __future__ import annotations

from ext_recorder.cassette.fast_parser import IN, OUT
from ext_recorder.protocols.fast_id import is_simple_id, scan_id

from .request_matcher import RecordedRequest, RequestMatcher
from .response_writer import ResponseWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from ext_recorder.cassette.fast_parser import Block
    from ext_sdk.core.wire.framing import Framing

    from .actions import ActionBuffer

    # Of the request: the bytes before its id, the byte after it, all bytes after it, and the recorded id; of the
    # response: the bytes before and after its id.
    Exchange: TypeAlias = tuple[bytes, bytes, bytes, bytes, bytes, bytes]

_PAIR = IN + OUT + IN  # only the response comes before the next message of the host
_ZERO = ord("0")


class PreparedExchanges:
    """Exchanges of the current block of a cassette.

    Attributes:
        at: index in the block of the recorded request that is next; -1 while `strict` plays.
        block: the block.
        since: index of the first request that was played here.
    """

    __slots__ = ("_actions", "_here", "_live", "_prepared", "_requests", "at", "block", "since")

    def __init__(self, requests: RequestMatcher, actions: ActionBuffer) -> None:
        self._requests = requests
        self._actions = actions
        self._here: Callable[[bytes], bytes] | None = None
        self._prepared: dict[int, Exchange | None] = {}
        self._live: list[tuple[bytes, bytes]] = []
        self.block: Block | None = None
        self.at = self.since = -1

    def enter(self, block: Block | None, due: RecordedRequest) -> bool:
        """Return True if the recorded message that is next begins an exchange of this block."""
        requests = self._requests
        at = block.position - 1 if block else -1
        if block is None or at < 0 or block.payloads[at] is not due.payload or requests.renames:
            return False
        here = requests.bindings.here
        if block is not self.block or here is not self._here:
            self.block, self._here = block, here
            self._prepared = prepared = {}
            text = b"\n".join(block.payloads[at:])
            if requests.id_is_echoed(text):
                return False
            lines = here(text).split(b"\n")
            pair = block.kinds.find(_PAIR, at)
            while pair >= 0:
                prepared[pair] = _exchange(lines[pair - at], lines[pair - at + 1])
                pair = block.kinds.find(_PAIR, pair + 2)
        if self._prepared.get(at) is None:
            return False
        self.at = self.since = at
        return True

    def play(self, data: bytes, position: int) -> int:
        """Respond to the lines from a position on that repeat the recorded requests. Return the position after them.

        A block is small, so the output is, too.
        """
        prepared, at, live = self._prepared, self.at, self._live
        output: list[bytes] = []
        while (exchange := prepared.get(at)) is not None:
            before, mark, after, recorded, begin, end = exchange
            start = position + len(before)
            stop = data.find(mark, start)
            if stop < 0 or not data.startswith(before, position) or not data.startswith(after, stop):
                break
            id = data[start:stop]
            if not (id.isdigit() and id[0] != _ZERO) and not is_simple_id(id):
                break
            output += (begin, id, end)
            live.append((recorded, id))
            position = stop + len(after)
            at += 2
        self.at = at
        if output:
            self._actions.out(b"".join(output), answers=True)
        return position

    def leave(self) -> list[tuple[bytes, bytes]]:
        """Stop: `strict` plays next. Return the recorded and live ids of the calls that got their response here."""
        self.at = -1
        live, self._live = self._live, []
        return live


def _exchange(request: bytes, response: bytes) -> Exchange | None:
    asked, answered = scan_id(request), scan_id(response)
    if asked is None or answered is None or asked[0] != "request" or answered[0] != "response":
        return None
    _, start, end = asked
    _, first, last = answered
    id = request[start:end]
    if response[first:last] != id:
        return None
    return request[:start], request[end : end + 1], request[end:] + b"\n", id, response[:first], response[last:] + b"\n"


def exchanges(
    requests: RequestMatcher, responses: ResponseWriter, actions: ActionBuffer, framing: Framing
) -> PreparedExchanges | None:
    """Return the exchanges of a session; None if its messages or its pace need more than comparing bytes."""
    plain = requests.dialect.id_only and requests.dialect.calls and framing.name == "ndjson"
    usual = type(requests) is RequestMatcher and type(responses) is ResponseWriter and actions.plain
    return PreparedExchanges(requests, actions) if plain and usual else None
