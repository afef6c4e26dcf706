"""A body is read as far as the child reads it, and memory stays bounded: of the child, and of the recorder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.http_child import document, record, replay, script
from tests.support.http_site import bomb, serving

if TYPE_CHECKING:
    from pathlib import Path

CAP = 10 * 1024 * 1024  # bytes
MOST_RESIDENT = 80 * 1024  # KiB
READING = """
import httpx2, resource
with httpx2.Client() as client, client.stream("GET", {url!r}) as answer:
    read = 0
    for piece in answer.iter_bytes():
        read += len(piece)
        if read >= {cap}: break
print(read >= {cap}, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.parametrize("kind", ["big", "bomb"])
def test_a_capped_body_stays_capped(kind: str, tmp_path: Path) -> None:
    cassette = tmp_path / "session.yaml"
    bomb()
    with serving() as server:
        child = script(READING.format(url=f"{server.origin}/{kind}", cap=CAP))
        plain = record(cassette, child)
    capped, resident = plain.out.split()
    assert (capped, plain.err, plain.code) == (b"True", b"", 0)
    assert int(resident) < MOST_RESIDENT
    assert (tmp_path / "session.http.yaml").stat().st_size < 3 * CAP
    again = replay(cassette, child)
    capped, resident = again.out.split()
    assert (capped, again.err, again.code) == (b"True", b"", 0)
    assert int(resident) < MOST_RESIDENT


def test_what_a_child_does_not_read_is_not_recorded(tmp_path: Path) -> None:
    cassette = tmp_path / "session.yaml"
    with serving() as server:
        child = script(READING.format(url=f"{server.origin}/big", cap=1))
        assert record(cassette, child).code == 0
    assert document(cassette)["interactions"][0]["cut"] is True
    assert (tmp_path / "session.http.yaml").stat().st_size < 2 * 1024 * 1024
