"""Streams keep what a peer does not read, send pieces apart, and end as they are asked to."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, cast

import pytest
import trustme

from ext_recorder.http.proxy.streams import MOST_PENDING_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_recorder.http.proxy.streams import Stream

    from .conftest import Loop, Receiver

    Pair = tuple[Stream, Stream]


def receiver(stream: Stream) -> Receiver:
    return cast("Receiver", stream.handler)


def test_a_peer_that_does_not_read_fills_the_stream_until_it_reads(loop: Loop, pair: Pair) -> None:
    near, far = pair
    far.pause()
    sent = b""
    while not near.is_full:
        piece = bytes([len(sent) % 251]) * MOST_PENDING_BYTES
        near.write(piece)
        sent += piece
    assert receiver(near).drains == 0
    far.resume()
    loop.until(lambda: len(receiver(far).data) == len(sent))
    assert receiver(far).data == sent
    assert receiver(near).drains == 1


def test_queued_pieces_keep_their_order_and_are_taken_only_when_the_peer_reads(loop: Loop, pair: Pair) -> None:
    near, far = pair
    taken: list[bytes] = []

    def pieces() -> Iterator[bytes]:
        for number in range(20):
            taken.append(bytes([65 + number]) * MOST_PENDING_BYTES)
            yield taken[-1]

    far.pause()
    near.stream(pieces(), end=False)
    near.write(b"last")
    loop.turn(0)
    assert len(taken) < 20
    far.resume()
    loop.until(lambda: receiver(far).data.endswith(b"last"))
    assert receiver(far).data == b"".join(taken) + b"last"


def test_pieces_that_are_sent_apart_are_not_read_as_one(loop: Loop, pair: Pair) -> None:
    near, far = pair
    near.stream(iter([b"one", b"", b"two", b"three"]), end=True, apart=True)
    loop.until(lambda: receiver(far).ends)
    assert receiver(far).pieces == [b"one", b"two", b"three"]


@pytest.mark.parametrize("resets", [False, True])
def test_the_peer_gets_everything_before_the_end(loop: Loop, pair: Pair, *, resets: bool) -> None:
    near, far = pair
    near.write(b"all")
    near.reset_at_end() if resets else near.end()
    loop.until(lambda: receiver(far).ends)
    assert receiver(far).data == b"all"
    assert isinstance(receiver(far).ends[0], ConnectionResetError) is resets
    if not resets:
        assert near.is_ended
        loop.until(lambda: near.closed)  # the peer has closed its side
        assert receiver(near).ends == []


def test_data_of_both_sides_passes_through_tls(loop: Loop, pair: Pair) -> None:
    near, far = pair
    authority = trustme.CA()
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.issue_cert("here").configure_cert(server)
    authority.configure_trust(client)
    near.start_tls(client, server=False, name="here")
    near.write(b"early")
    far.start_tls(server, server=True)
    loop.until(lambda: receiver(far).data == b"early")
    far.write(b"x" * 3 * MOST_PENDING_BYTES)
    far.end()
    loop.until(lambda: receiver(near).ends)
    assert receiver(near).handshakes == receiver(far).handshakes == [None]
    assert len(receiver(near).data) == 3 * MOST_PENDING_BYTES


def test_a_refused_certificate_ends_both_sides(loop: Loop, pair: Pair) -> None:
    near, far = pair
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("here").configure_cert(server)
    far.start_tls(server, server=True)
    near.start_tls(ssl.create_default_context(), server=False, name="here")
    loop.until(lambda: receiver(near).handshakes and (receiver(far).handshakes or receiver(far).ends))
    assert isinstance(receiver(near).handshakes[0], ssl.SSLCertVerificationError)
    assert near.closed
