"""The scribe's transcript: what is written depends on the bytes, not on how they came."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from ext_recorder.cassette.events import Data
from ext_recorder.cassette.fast_parser import parse_line
from ext_recorder.messages.path_bindings import RecordBindings as Bindings
from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.record import event_encoder as module
from ext_recorder.record import note_queue
from ext_recorder.record.event_encoder import EventEncoder
from ext_recorder.record.note_queue import Journal, pack
from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.core.wire.framing import FRAMINGS

if TYPE_CHECKING:
    import pytest

    from ext_recorder.record.note_queue import Note

SECRET = b"correct-horse-battery"

pieces = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([b"\n", b'{"a":1}\n', SECRET, b"Content-Length: 2\r\n\r\n{}", b"\0\0\0\2{}", b"/home/me/task/x"]),
)
streams = st.lists(pieces, max_size=30).map(b"".join)
framings = st.sampled_from(list(FRAMINGS))


def transcript(framing: str) -> EventEncoder:
    dialect = DIALECTS["jsonrpc"]
    bindings = Bindings(dialect, {}, "/home/me")
    redactor = Redactor({"env.SECRET": SECRET.decode()})
    return EventEncoder(FRAMINGS[framing], lambda data: bindings.clean(redactor.redact(data)), bindings)


def written(lines: list[bytes]) -> bytes:
    """The bytes that these lines give back on a stream without framing of its own."""
    found = [parse_line(line) for line in lines]
    assert None not in found
    return b"".join(event.payload for event in found if isinstance(event, Data))


@given(streams, st.data(), framings)
def test_any_chunks_give_the_same_events(data: bytes, draw: st.DataObject, framing: str) -> None:
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(data)), max_size=8)))
    bounds = [0, *cuts, len(data)]
    whole: list[Note] = [(0.0, "out", data), (0.0, "out", b""), (0.0, "exit", 0)]
    chunks = [data[start:end] for start, end in pairwise(bounds) if start < end]
    cut: list[Note] = [*((0.0, "out", chunk) for chunk in chunks), (0.0, "out", b""), (0.0, "exit", 0)]
    if not data:
        del whole[0]
    assert transcript(framing).lines(whole) == transcript(framing).lines(cut)


@given(streams, st.data(), framings)
def test_no_secret_is_written_however_it_is_cut(data: bytes, draw: st.DataObject, framing: str) -> None:
    data = data + SECRET + data
    at = draw.draw(st.integers(len(data) // 2 - 10, len(data) // 2 + 10))
    subject = transcript(framing)
    lines = subject.lines([(0.0, "in", data[:at] or b"\n"), (0.1, "in", data[at:])])
    lines += subject.close()
    assert SECRET not in written(lines)


@given(st.binary(min_size=1, max_size=2_000), st.integers(1, 64))
def test_no_secret_is_written_among_bytes_without_any_framing(data: bytes, size: int) -> None:
    # A length that can't be: all that follows is no message, and comes in pieces.
    data = b"\xff\xff\xff\xff" + data + SECRET + data
    subject = transcript("uint32")
    lines: list[bytes] = []
    for start in range(0, len(data), size):
        lines += subject.lines([(0.0, "out", data[start : start + size])])
    lines += subject.close()
    assert SECRET not in written(lines)


def test_a_secret_that_lies_across_two_written_pieces_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOSE_BYTES", 100_000)
    for offset in range(0, 70_000, 1_009):
        data = b"\xff\xff\xff\xff" + b"." * (100_000 + offset) + SECRET + b"." * 200_000
        subject = transcript("uint32")
        lines: list[bytes] = []
        for start in range(0, len(data), 65_536):
            lines += subject.lines([(0.0, "out", data[start : start + 65_536])])
        lines += subject.close()
        assert len(lines) > 1
        assert written(lines) == data.replace(SECRET, b"[redacted:env.SECRET#1]")


notes_of_any_kind = st.one_of(
    st.tuples(st.floats(0, 1e6), st.sampled_from(["in", "out", "err", "in:12"]), st.binary(max_size=50)),
    st.tuples(st.floats(0, 1e6), st.sampled_from(["exit", "signal:0"]), st.one_of(st.integers(-1, 255), st.text())),
)


@given(st.lists(notes_of_any_kind, max_size=20))
def test_a_batch_survives_its_way_through_the_pipe(notes: list[Note]) -> None:
    import marshal

    packed = pack(notes)
    assert int.from_bytes(packed[:4], "little") == len(packed) - 4
    assert marshal.loads(packed[4:]) == notes


@given(st.lists(st.lists(notes_of_any_kind, max_size=8), max_size=6), st.integers(0, 60), st.integers(64, 400))
def test_a_journal_has_the_notes_since_it_was_begun_as_far_as_they_fit(
    rounds: list[list[Note]], known: int, size: int
) -> None:
    journal = Journal(size)
    count = 0
    for notes in rounds:
        journal.begin(count)
        for time, name, what in notes:
            if isinstance(what, bytes):
                journal.add(time, name.encode(), what)
            else:
                journal.add_value(time, name, what)
        every = list(journal.after(0))
        assert every == notes[: len(every)]
        assert journal.full or len(every) == len(notes)
        assert list(journal.after(known)) == every[max(0, known - count) :]
        count += len(notes)


def test_a_note_that_was_not_written_to_its_end_is_none() -> None:
    journal = Journal(200)
    for _ in range(3):  # what is left of older notes is none either
        journal.begin(0)
        journal.add(1.0, b"in", b"first")
        journal.add(2.0, b"out", b"second")
    journal.begin(0)
    journal.add(1.0, b"in", b"first")
    start = journal._at + note_queue._HEAD_BYTES
    journal._memory[start : start + 3] = b"sec"  # the content is written first
    assert list(journal.after(0)) == [(1.0, "in", b"first")]
