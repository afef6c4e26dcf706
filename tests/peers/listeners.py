"""The reference peers that listen, each with the conversation that is held with it."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import pytest

from tests.peers import conversations
from tests.support.host import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]

# The name of its module, which is that of its protocol; where it listens, below a folder; its framing; what is said.
every_listener = pytest.mark.parametrize(
    ("peer", "address", "framing", "conversation"),
    [
        ("waza", "tcp:127.0.0.1:0", "ndjson", conversations.waza),
        ("waza_go", "tcp:127.0.0.1:0", "ndjson", conversations.waza_go),
        ("kaiak", "unix:{folder}/kaiak.sock", "content-length", conversations.kaiak),
        ("kaiak_head", "unix:{folder}/kaiak.sock", "content-length", conversations.kaiak_head),
    ],
)


@contextmanager
def listening(peer: str, address: str) -> Iterator[str]:
    """A peer that listens; where it does."""
    program = [sys.executable, "-m", f"tests.peers.{peer}", "--listen", address]
    with subprocess.Popen(program, stderr=subprocess.PIPE, cwd=ROOT) as process:
        try:
            yield cast("IO[bytes]", process.stderr).readline().decode().split()[-1]
        finally:
            process.kill()


@contextmanager
def recorder(*words: str) -> Iterator[str]:
    """`ext-recorder` that listens: where; it is ended by a signal, and has to be content."""
    command = [sys.executable, "-P", "-m", "ext_recorder", words[0], "--listen=tcp:127.0.0.1:0", *words[1:]]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            said = cast("IO[bytes]", process.stderr).readline().decode()
            yield said.partition("listening on ")[2].partition(",")[0].strip()
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=PATIENCE_S)
            assert b"no match" not in err, err
        finally:
            process.kill()
