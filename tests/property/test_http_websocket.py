"""Frames that a server may send: none of them raises, whatever their division into pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hypothesis import given
from hypothesis import strategies as st
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, Pong, TextMessage

from ext_http.operations.websocket import Frames
from ext_sdk import Deadline

if TYPE_CHECKING:
    from ext_http.client.network import Upgraded

Message = list[TextMessage] | list[BytesMessage] | list[Ping] | list[Pong]


def texts(parts: list[str]) -> list[TextMessage]:
    return [TextMessage(part, message_finished=at == len(parts)) for at, part in enumerate(parts, 1)]


def binaries(parts: list[bytes]) -> list[BytesMessage]:
    return [BytesMessage(part, message_finished=at == len(parts)) for at, part in enumerate(parts, 1)]


MESSAGES = st.one_of(
    st.builds(texts, st.lists(st.text(max_size=20), min_size=1, max_size=3)),
    st.builds(binaries, st.lists(st.binary(max_size=100), min_size=1, max_size=3)),
    st.builds(lambda payload: [Ping(payload)], st.binary(max_size=125)),
    st.builds(lambda payload: [Pong(payload)], st.binary(max_size=125)),
)
CLOSES = st.builds(CloseConnection, st.sampled_from([1000, 1011, 4003]), st.sampled_from(["", "over"]))


CONTENT = (TextMessage, BytesMessage)


class Pieces:
    """Connection that reads pieces up to their end."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    def read(self, _: Deadline) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""

    def write(self, data: bytes, _: Deadline) -> None:
        assert data


def frames_of(data: bytes, sizes: list[int], *, closing: bool) -> Frames:
    """Return all that was read from data in pieces of these sizes."""
    pieces, start = [], 0
    for size in sizes:
        pieces.append(data[start : start + size])
        start += size
    frames = Frames(100, Deadline())
    frames.connection = cast("Upgraded", Pieces([piece for piece in [*pieces, data[start:]] if piece]))
    if closing:
        frames.close(wait=True)
    else:
        while frames.read(Deadline()):
            pass
    return frames


@given(st.lists(MESSAGES, max_size=6), st.none() | CLOSES, st.binary(max_size=20), st.lists(st.integers(1, 50)))
def test_frames_are_read_alike_in_all_pieces_and_never_raise(
    messages: list[Message], close: CloseConnection | None, rest: bytes, sizes: list[int]
) -> None:
    server = Connection(ConnectionType.SERVER)
    events = [event for message in messages for event in message]
    data = b"".join(bytes(server.send(event)) for event in [*events, *([close] if close else [])]) + rest
    whole = frames_of(data, [], closing=False)
    parts = frames_of(data, sizes, closing=False)
    assert whole.closed is not None
    assert (parts.closed, parts.received) == (whole.closed, whole.received)
    if close:
        assert whole.closed.code in {close.code, 1006}  # 1006: a message was too large
    if close and whole.closed.code != 1006:
        assert len(whole.received) == len([message for message in messages if isinstance(message[0], CONTENT)])
    assert frames_of(data, sizes, closing=True).closed is not None
