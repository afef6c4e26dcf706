"""Byte channels: nothing blocks, whatever the other side does."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from ext_recorder.posix.channel import ByteChannel, wait

if TYPE_CHECKING:
    from collections.abc import Iterator

MUCH = b"x" * 1_000_000


@pytest.fixture
def pair() -> Iterator[tuple[ByteChannel, socket.socket]]:
    """A channel, and the socket of its child."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ByteChannel(ours.fileno(), ours.fileno(), lambda: ours.shutdown(socket.SHUT_WR)), theirs


def test_what_the_child_does_not_read_yet_is_written_by_waiting(pair: tuple[ByteChannel, socket.socket]) -> None:
    channel, child = pair
    channel.send(MUCH)
    channel.send(b"the end")
    assert channel.unsent
    received = b""
    while len(received) < len(MUCH) + 7:
        received += child.recv(len(MUCH))
        wait([channel], 10)
    assert received == MUCH + b"the end"
    assert not channel.unsent


def test_output_is_readable_while_input_is_written(pair: tuple[ByteChannel, socket.socket]) -> None:
    channel, child = pair
    channel.send(MUCH)
    assert channel.read() is None
    child.sendall(b"answer")
    assert wait([channel], 10) == {channel.source}
    assert channel.read() == b"answer"


def test_the_end_of_the_output_shows_who_ended_first(pair: tuple[ByteChannel, socket.socket]) -> None:
    channel, child = pair
    channel.end()
    channel.end()
    child.close()
    assert channel.read() == b""
    assert (channel.is_open, channel.was_left) == (False, False)
    assert wait([channel], 0) == set()


def test_a_child_that_has_closed_its_input_is_an_error_and_drops_the_rest() -> None:
    (read, write), (source, output) = os.pipe(), os.pipe()
    channel = ByteChannel(source, write, lambda: os.close(write))
    os.close(read)
    channel.send(b"a")
    channel.send(b"b")
    assert isinstance(channel.error, BrokenPipeError)
    assert not channel.unsent
    os.close(output)
    assert channel.read() == b""
    assert channel.was_left
    channel.end()
    os.close(source)


def test_another_file_ends_the_wait(pair: tuple[ByteChannel, socket.socket]) -> None:
    channel, _ = pair
    read, write = os.pipe()
    os.write(write, b"!")
    assert wait([channel], 10, [read]) == {read}
    os.close(read)
    os.close(write)
