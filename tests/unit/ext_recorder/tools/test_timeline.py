"""Timeline of a cassette: entries, calls and durations."""

from __future__ import annotations

import pytest

from ext_recorder.cassette.events import Data, Mark
from ext_recorder.cassette.header import Header
from ext_recorder.tools.timeline import Entry, Timeline, without_colors


def entries(*events: Data | Mark) -> list[Entry]:
    timeline = Timeline(Header("jsonrpc", "ndjson"), lambda data: data.replace(b"hunter2", b"[redacted]"))
    return [entry for event in events for entry in timeline.entries(event)]


def test_responses_belong_to_the_requests_of_the_other_side() -> None:
    asked, other, answered, failed = entries(
        Data("in", 1.0, b'{"id":1,"method":"a"}'),
        Data("out", 1.25, b'{"id":1,"method":"b"}'),
        Data("out", 1.5, b'{"id":1,"result":"hunter2"}'),
        Data("in", 1.75, b'{"id":1,"error":{"code":-1,"message":"no"}}'),
    )
    assert [entry.label for entry in (asked, other, answered, failed)] == ["a #1", "b #1", "a #1", "b #1"]
    assert (answered.kind, answered.text, answered.took, answered.call) == ("response", '"[redacted]"', 0.5, 0)
    assert (failed.kind, failed.text, failed.took, failed.call) == ("error", "error -1: no", 0.5, 1)


def test_raw_bytes_hold_messages_and_other_bytes() -> None:
    first, second = entries(Data("out", 0.0, b'{"id":7,"result":1}\nnoise\n', raw=True))
    assert (first.label, first.call) == ("an answer to nothing #7", None)
    assert (second.kind, second.text) == ("junk", "noise")


@pytest.mark.parametrize(
    ("kind", "value", "label", "stream"),
    [
        ("eof", "in", "end of input", "in"),
        ("eof", "err", "end of stderr", "err"),
        ("exit", 3, "exit 3", ""),
        ("signal", "SIGTERM", "signal SIGTERM", ""),
        ("omitted", "900 bytes of out", "a message of 900 bytes, left out", "out"),
    ],
)
def test_marks_have_a_label(kind: str, value: int | str, label: str, stream: str) -> None:
    (entry,) = entries(Mark(kind, 0.0, value))  # type: ignore[arg-type]
    assert (entry.label, entry.stream) == (label, stream)


def test_colors_are_removed() -> None:
    assert without_colors("\x1b[1;31mred\x1b[0m\r") == "red"
