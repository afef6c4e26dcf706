"""Messages to and from a child: bytes are moved, messages told apart, and all that was said is noted."""

from __future__ import annotations

import select
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, TypeAlias

from ext_recorder.cassette.events import Data
from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.json_codec import dumps, loads
from ext_sdk.core.wire.json_pointer import MISSING
from ext_sdk.protocols.dialect import DIALECTS

if TYPE_CHECKING:
    from ext_recorder.cassette.events import Event
    from ext_sdk.core.wire.framing import Decoder
    from ext_sdk.protocols.dialect import Classified

    from .links import Link, Place

Call: TypeAlias = tuple[int, bytes | None]  # a request: the number of its client, and what its id is known by
_HEAD_BYTES = 40  # of a frame, in a message for people


@dataclass
class Client:
    """One way to the child.

    Args:
        number: from 1.
        link: the bytes.
        decoder: of what comes.
        is_open: the child may say more.
    """

    number: int
    link: Link
    decoder: Decoder
    is_open: bool = True


@dataclass(frozen=True)
class Heard:
    """A message of the child: to which client, what it is, and its JSON value."""

    client: int
    message: Classified
    value: object

    @property
    def call(self) -> Call | None:
        """The request that it answers; None for what is no answer."""
        return (self.client, self.message.key) if self.message.kind == "response" else None


class Exchange:
    """The messages of one session.

    Args:
        place: where the child is.
        protocol: of its messages.

    Attributes:
        events: what was said, by both.
        heard: the child's messages.
        said: the host's requests by their ids.
        open: those without their last answer; `failed`, those that were answered by a failure.
        unframed: the beginnings of frames whose header lines do not end as they should.
    """

    def __init__(self, place: Place, protocol: str) -> None:
        self.events: list[Event] = []
        self.heard: list[Heard] = []
        self.said: dict[object, Call] = {}
        self.open: set[Call] = set()
        self.failed: set[Call] = set()
        self.unframed: list[bytes] = []
        self.dialect = DIALECTS[protocol]
        self._place = place
        self._framing = FRAMINGS[self.dialect.framing]
        self._clients: list[Client] = []
        self._started = monotonic()

    def client(self, number: int) -> Client:
        """A client. A child on its standard files has only one, who is all of them. Raises RecorderError."""
        while len(self._clients) < number:
            link = self._place.link()
            if self._clients and link is self._clients[0].link:
                return self._clients[0]
            self._clients.append(Client(len(self._clients) + 1, link, self._framing.decoder()))
        return self._clients[number - 1]

    # --- Saying -------------------------------------------------------------------------------------------------------

    def say(self, client: Client, message: object, patience: float) -> Call | None:
        """Say a JSON value; see `send`."""
        return self.send(client, dumps(message).encode(), patience)

    def send(self, client: Client, payload: bytes, patience: float) -> Call | None:
        """Send one frame; what the child does not take in that many seconds is left.

        Returns:
            The request, where it is one.
        """
        message = self.dialect.classify(payload)
        call = None
        if message.kind == "request" and message.key is not None:
            call = (client.number, message.key)
            self.said[loads(message.id)] = call
            self.open.add(call)
        self.events.append(Data("in", monotonic() - self._started, payload, conn=client.number))
        rest = memoryview(self._framing.encode(payload))
        until = monotonic() + patience
        while rest and monotonic() < until:
            try:
                rest = rest[client.link.write(rest) :]
            except BlockingIOError:
                self.hear(until - monotonic(), writing=client)
            except OSError:  # it does not listen any more; what it still says is heard
                break
        return call

    def end_input(self) -> None:
        """The host has nothing more to say."""
        for client in self._clients:
            client.link.end()

    # --- Hearing ------------------------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """May the child say more?"""
        return any(client.is_open for client in self._clients)

    def hear(self, seconds: float, writing: Client | None = None) -> bool:
        """Take what comes. Returns whether anything did, or there is room to write to that client."""
        listening = {client.link.source: client for client in self._clients if client.is_open}
        if seconds <= 0 or not (listening or writing):
            return False
        poll = select.poll()
        for source in listening:
            poll.register(source, select.POLLIN)
        if writing:
            both = select.POLLIN if writing.link.sink in listening else 0
            poll.register(writing.link.sink, select.POLLOUT | both)
        ready = poll.poll(seconds * 1_000 + 1)
        for fd, event in ready:
            if fd in listening and event != select.POLLOUT:
                self._read(listening[fd])
        return bool(ready)

    def _read(self, client: Client) -> None:
        with suppress(BlockingIOError):
            data = client.link.read()
            client.decoder.receive_data(data)
            if not data:
                client.is_open = False
                client.decoder.receive_eof()
        while item := client.decoder.next_event():
            is_frame = isinstance(item, Frame)
            data = item.payload if isinstance(item, Frame) else item.wire
            self.events.append(Data("out", monotonic() - self._started, data, raw=not is_frame, conn=client.number))
            if isinstance(item, Frame):
                self._take(client, item)

    def _take(self, client: Client, frame: Frame) -> None:
        if frame.wire != self._framing.encode(frame.payload, frame.head):
            self.unframed.append(frame.wire[:_HEAD_BYTES])
        message = self.dialect.classify(frame.payload)
        try:
            heard = Heard(client.number, message, loads(message.text))
        except MessageError:
            return  # what is wrong with it, the rules tell
        self.heard.append(heard)
        if heard.call and self.dialect.is_last(message):
            self.open.discard(heard.call)
            if self.dialect.has_failed(message) or message.at("/error") is not MISSING:
                self.failed.add(heard.call)
