"""The wire as descriptors. What claiming does to a process is seen from outside, in test_server."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from ext_sdk.core.stdio import CHUNK_BYTES, PeerGone, Stdio

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE_SECONDS = 30.0


class Wire:
    """Both ends of a child's wire."""

    def __init__(self) -> None:
        self.child_in, self.host_out = os.pipe()
        self.host_in, self.child_out = os.pipe()
        self.stdio = Stdio(self.child_in, self.child_out)
        self.open = {self.child_in, self.host_out, self.host_in, self.child_out}

    def close(self, *descriptors: int) -> None:
        for descriptor in descriptors or tuple(self.open):
            os.close(descriptor)
            self.open.remove(descriptor)


@pytest.fixture
def wire() -> Iterator[Wire]:
    wire = Wire()
    yield wire
    wire.close()


def test_what_is_there_is_read_without_waiting_for_more(wire: Wire) -> None:
    os.write(wire.host_out, b"abc")
    assert wire.stdio.read() == b"abc"


def test_a_read_is_bounded(wire: Wire) -> None:
    sender = threading.Thread(target=lambda: wire_write(wire.host_out, b"x" * (CHUNK_BYTES + 1)), daemon=True)
    sender.start()
    received = b""
    while len(received) <= CHUNK_BYTES:
        data = wire.stdio.read()
        assert 0 < len(data) <= CHUNK_BYTES
        received += data
    sender.join(PATIENCE_SECONDS)


def wire_write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def test_the_end_is_no_bytes(wire: Wire) -> None:
    wire.close(wire.host_out)
    assert wire.stdio.read() == b""


def test_a_wire_that_was_torn_away_is_at_its_end(wire: Wire) -> None:
    wire.close(wire.child_in)
    assert Stdio(wire.child_in, wire.child_out).read() == b""


def test_all_of_a_long_message_is_written(wire: Wire) -> None:
    data = bytes(range(256)) * 4096  # a megabyte; a pipe holds 64 KiB
    sender = threading.Thread(target=wire.stdio.write, args=(data,), daemon=True)
    sender.start()
    received = b""
    while len(received) < len(data):
        received += os.read(wire.host_in, 1 << 16)
    sender.join(PATIENCE_SECONDS)
    assert received == data


def test_writing_to_nobody_says_so(wire: Wire) -> None:
    wire.close(wire.host_in)
    with pytest.raises(PeerGone, match="the host reads no more"):
        wire.stdio.write(b"x")
    wire.stdio.write(b"")  # nothing is nothing


def test_non_blocking_ends_are_waited_for(wire: Wire) -> None:
    os.set_blocking(wire.child_in, False)
    os.set_blocking(wire.child_out, False)
    data = b"x" * 300_000
    echoed: list[bytes] = []

    def child() -> None:
        wire.stdio.write(data)
        echoed.append(wire.stdio.read())

    runs = threading.Thread(target=child, daemon=True)
    runs.start()
    received = b""
    while len(received) < len(data):
        received += os.read(wire.host_in, 1 << 16)
    os.write(wire.host_out, b"back")
    runs.join(PATIENCE_SECONDS)
    assert echoed == [b"back"]


def test_a_peer_that_goes_while_a_non_blocking_end_is_full_is_noticed(wire: Wire) -> None:
    os.set_blocking(wire.child_out, False)
    failed: list[BaseException] = []

    def child() -> None:
        try:
            wire.stdio.write(b"x" * 300_000)
        except PeerGone as error:
            failed.append(error)

    runs = threading.Thread(target=child, daemon=True)
    runs.start()
    os.read(wire.host_in, 1)
    wire.close(wire.host_in)
    runs.join(PATIENCE_SECONDS)
    assert len(failed) == 1


def test_claiming_leaves_no_way_to_the_wire_but_its_own() -> None:
    program = (
        "import os, sys\n"
        "from ext_sdk.core.stdio import Stdio\n"
        "wire = Stdio.claim()\n"
        "print('printed'); sys.stdout.flush()\n"
        "os.write(1, b'written\\n')\n"
        "assert os.read(0, 10) == b''\n"
        "assert wire.read() == b'from the host'\n"
        "assert not os.get_inheritable(wire.input) and not os.get_inheritable(wire.output)\n"
        "assert all(os.get_inheritable(number) for number in (0, 1, 2))\n"
        "assert min(wire.input, wire.output) > 2\n"
        "wire.write(b'to the host')\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        input=b"from the host",
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"to the host", b"printed\nwritten\n")


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="pipes cannot be enlarged on this system")
def test_a_long_message_is_written_before_the_host_reads(wire: Wire) -> None:
    data = b"x" * (CHUNK_BYTES * 2)
    wire.stdio.write(data)  # never returns if the pipe is not enlarged
    assert os.read(wire.host_in, 2 * len(data)) == data


def test_a_file_cannot_be_enlarged(tmp_path: Path) -> None:
    with (tmp_path / "output").open("wb") as file:
        Stdio(0, file.fileno()).write(b"x" * (CHUNK_BYTES + 1))
    assert (tmp_path / "output").stat().st_size == CHUNK_BYTES + 1
