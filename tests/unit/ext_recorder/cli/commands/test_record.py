"""`ext-recorder record`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.recorder_process import ECHO, run

if TYPE_CHECKING:
    from pathlib import Path


def test_a_recorded_session_plays_without_its_command(cassette: Path) -> None:
    first = run(cassette, ECHO, stdin=b'{"jsonrpc":"2.0","id":1,"method":"a"}\n')
    moved = ["/no/such/place/python3", *ECHO[1:]]
    again = run(cassette, moved, stdin=b'{"jsonrpc":"2.0","id":1,"method":"a"}\n')  # --mode once
    assert (again.out, again.code) == (first.out, 0)
