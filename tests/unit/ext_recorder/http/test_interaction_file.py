"""Interactions are read one by one, and long bodies when they are sent."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest

from ext_recorder.errors import CassetteError
from ext_recorder.http.interaction import TEXT_LIMIT, Body, Interaction
from ext_recorder.http.interaction_file import InteractionFile
from ext_recorder.http.interaction_store import InteractionStore
from ext_recorder.http.request_matching import Subject
from ext_recorder.http.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MB = 1024 * 1024


def asked(number: int) -> Interaction:
    return Interaction("GET", f"http://h/{number}")


def recording(path: Path, times: Sequence[float], bodies: Sequence[Body] = ()) -> Path:
    """A file of requests for /0, /1, and so on, in the order in which they ended."""
    writer = Writer(path / "session.http.yaml")
    writer.head({"seed": "x"})
    for number, time in enumerate(times):
        item = asked(number)
        item.time, item.status, item.peer = time, 200, "192.0.2.1:80"
        item.body = bodies[number] if bodies else Body(b"content")
        writer.append(item)
        item.body.close()
    writer.finish({"redacted": []}, [None] * writer.count)
    return path / "session.http.yaml"


def test_the_order_is_that_in_which_requests_began(tmp_path: Path) -> None:
    with InteractionFile(recording(tmp_path, [1, 3, 2, 3, 0, 9, 3])) as file:
        assert [item.uri[-1] for _, item in file] == ["4", "0", "2", "1", "3", "6", "5"]
        assert [file.load(place).uri for place, _ in file] == [item.uri for _, item in file]


def test_a_file_without_interactions_is_read_like_any_other(tmp_path: Path) -> None:
    """Otherwise it is left to the YAML library, with vcrpy, whose import takes a second."""
    with InteractionFile(recording(tmp_path, [])) as file:
        assert file.frame.values == {"http": 1, "seed": "x", "redacted": [], "version": 1}
        assert list(file) == []


def test_a_store_reads_as_far_as_it_must(tmp_path: Path) -> None:
    """The last interaction is damaged, which is only found when it is reached."""
    path = recording(tmp_path, range(20))
    path.write_bytes(path.read_bytes().replace(b"http://h/19\n", b"'ttp://h/19\n"))
    with InteractionFile(path) as file:
        file.prepare()
        store = InteractionStore(file, {}, {})
        assert store.serves("h:80")
        for number in (2, 0, 1, *range(3, 19)):
            assert store.refusal("tcp://", "192.0.2.1:80") is None
            assert isinstance(store.take(Subject(asked(number)), None), Interaction)
        with pytest.raises(CassetteError, match="is not valid"):
            store.take(Subject(asked(19)), None)


def test_a_request_that_was_not_recorded_is_compared_with_all_of_the_file(tmp_path: Path) -> None:
    with InteractionFile(recording(tmp_path, [3, 2, 1])) as file:
        store = InteractionStore(file, {}, {})
        live = Interaction("GET", "http://h/1?a=b")
        assert "differs from recorded interaction 2: /query/a" in str(store.take(Subject(live), None))
        assert store.never_played()[0] == "3 recorded requests were never sent:"


def test_a_long_body_is_not_in_memory(tmp_path: Path) -> None:
    body = Body()
    for number in range(20):
        body.write(bytes([number]) * MB)
    path = recording(tmp_path, [0, 1], [body, Body(b"short")])
    tracemalloc.start()
    try:
        with InteractionFile(path) as file:
            store = InteractionStore(file, {}, {})
            played = store.take(Subject(asked(0)), None)
            assert isinstance(played, Interaction)
            assert played.body is not None
            assert played.body.size == 20 * MB
            assert sum(piece.count(b"\x07") for piece in played.body.pieces()) == MB
            assert isinstance(store.take(Subject(asked(1)), None), Interaction)
            assert store.never_played() == []
        assert tracemalloc.get_traced_memory()[1] < 4 * MB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [TEXT_LIMIT + 1, TEXT_LIMIT + 2, TEXT_LIMIT // 57 * 57 + 57, 3 * TEXT_LIMIT])
def test_a_long_body_has_its_bytes_or_an_error(tmp_path: Path, size: int) -> None:
    data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    path = recording(tmp_path, [0], [Body(data)])
    with InteractionFile(path) as file:
        ((_, item),) = file
        assert item.body is not None
        assert item.body.whole() == data
        path.write_bytes(path.read_bytes().replace(b"AAECAwQF", b"AAEC!wQF", 1))
        with pytest.raises(CassetteError, match=f"expected base64 of {min(size, 65493)} bytes"):
            item.body.whole()
