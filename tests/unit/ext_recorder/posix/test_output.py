"""Writing without ever waiting, whatever kind of file the host gave."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from ext_recorder.posix import output
from ext_recorder.posix.output import OutputSink, host_outlet, write_message

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHUNK = b"x" * 65_536


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    readable, writable = os.pipe()
    yield readable, writable
    for fd in (readable, writable):
        os.close(fd)


def fill(outlet: OutputSink) -> int:
    """Write until there is no room. Returns how many bytes went."""
    count = 0
    while True:
        try:
            count += outlet.send(CHUNK)
        except BlockingIOError:
            return count


def test_a_full_pipe_takes_nothing_more_and_its_flags_stay(pipe: tuple[int, int]) -> None:
    readable, writable = pipe
    outlet = host_outlet(writable)
    count = fill(outlet)
    assert count >= 65_536
    assert os.get_blocking(writable)
    assert len(os.read(readable, 1 << 20)) == count
    assert outlet.send(b"again") == 5
    outlet.close()
    os.read(readable, 5)


def test_a_pipe_that_cannot_be_opened_anew_does_not_make_us_wait_either(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object) -> int:
        raise PermissionError

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)  # as for a pipe of another user
        outlet = host_outlet(pipe[1])
    count = fill(outlet)
    assert len(os.read(pipe[0], 1 << 20)) == count
    assert outlet.fd == pipe[1]


def test_a_pipe_without_reader_is_an_error() -> None:
    readable, writable = os.pipe()
    os.close(readable)
    with pytest.raises(BrokenPipeError):
        host_outlet(writable).send(b"x")
    os.close(writable)


def test_a_full_socket_takes_nothing_more_and_its_flags_stay() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        outlet = host_outlet(ours.fileno())
        assert fill(outlet) > 0
        assert ours.getblocking()
        outlet.close()


def test_a_file_is_written_at_its_own_position(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb", buffering=0) as file:
        file.write(b"one\n")
        outlet = host_outlet(file.fileno())
        assert outlet.send(b"two\n") == 4
        file.write(b"three\n")
    assert (tmp_path / "log").read_bytes() == b"one\ntwo\nthree\n"


def test_a_closed_outlet_ends_the_stream_and_leaves_dev_null_in_its_place() -> None:
    readable, writable = os.pipe()
    host_outlet(writable).close()
    assert os.read(readable, 1) == b""
    assert os.write(writable, b"nowhere") == 7
    os.close(readable)
    os.close(writable)


def test_a_message_that_nobody_reads_is_given_up(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "TELL_MS", 1)
    outlet = host_outlet(pipe[1])
    fill(outlet)
    write_message(outlet, "too late")
    outlet.close()


def test_a_message_is_one_line_that_says_who_speaks(pipe: tuple[int, int]) -> None:
    outlet = host_outlet(pipe[1])
    write_message(outlet, "a message with \udcff")
    write_message(outlet, "")
    assert os.read(pipe[0], 99) == b"ext-recorder: a message with \\udcff\n"
    outlet.close()
