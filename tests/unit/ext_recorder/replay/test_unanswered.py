"""Requests without a response, and whether a recording is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.reader import Reader
from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.replay.unanswered import CompletenessCheck, interruption, unanswered
from ext_sdk.core.wire.framing import FRAMINGS
from tests.support.player_host import cassette

if TYPE_CHECKING:
    from pathlib import Path

CALL = '- {t: 0.1, in: \'{"jsonrpc":"2.0","id":1,"method":"execute"}\'}'
SECOND = '- {t: 0.2, in: \'{"jsonrpc":"2.0","id":2,"method":"execute"}\'}'
RESPONSE = '- {t: 0.3, out: \'{"jsonrpc":"2.0","id":1,"result":{}}\'}'
ECHO = CALL.replace("in:", "out:")
CANCEL = '- {t: 0.3, in: \'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\'}'
SHUTDOWN = '- {t: 0.4, in: \'{"jsonrpc":"2.0","id":9,"method":"shutdown"}\'}'
REQUEST, RESULT = b'{"jsonrpc":"2.0","id":1,"method":"execute"}', b'{"jsonrpc":"2.0","id":1,"result":{}}'
KILLED, EXIT, SIGNAL = "- {t: 0.9, exit: SIGTERM}", "- {t: 0.9, exit: 0}", "- {t: 0.8, signal: SIGTERM}"


def lines_without_response(path: Path, *events: str, protocol: str = "gevals") -> list[int]:
    with Reader(cassette(path, "\n".join(events), protocol=protocol)) as reader:
        start = reader.line
        left = unanswered(reader, DIALECTS[protocol], FRAMINGS["ndjson"])
    return [item.line - start for item in left]


@pytest.mark.parametrize(
    ("events", "lines"),
    [
        ((CALL, RESPONSE, SIGNAL), []),
        ((CALL, SECOND, RESPONSE, SIGNAL), [2]),
        ((CALL, CALL, RESPONSE, SIGNAL), [2]),
        ((CALL, ECHO, SIGNAL), []),
        ((CALL, EXIT), []),
        ((CALL, "- {t: 0.5, eof: out}", SIGNAL), []),
        ((CALL, "- {t: 0.5, eof: in}", EXIT), [1]),
        ((SHUTDOWN, SIGNAL), []),
    ],
)
def test_calls_end_by_a_response_or_by_the_child(tmp_path: Path, events: tuple[str, ...], lines: list[int]) -> None:
    assert lines_without_response(tmp_path / "x.yaml", *events) == lines


def test_a_cancelled_call_needs_no_response(tmp_path: Path) -> None:
    assert lines_without_response(tmp_path / "x.yaml", CALL, SECOND, CANCEL, SIGNAL, protocol="mcp") == [2]


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ((CALL, RESPONSE, EXIT), ""),
        ((CALL, SECOND, SIGNAL, EXIT), "it was ended by SIGTERM"),
        ((CALL, RESPONSE, KILLED), "it was ended by SIGTERM"),
        ((CALL, RESPONSE, SHUTDOWN, SIGNAL, KILLED), ""),
        ((CALL, SECOND, "- {t: 0.5, eof: in}", EXIT), "request execute (line {}) has no response, and 1 more"),
        ((CALL, "- {t: 0.4, omitted: 70000000 bytes of out}", "- {t: 0.5, eof: in}", EXIT), ""),
    ],
)
def test_an_interruption_has_a_reason(tmp_path: Path, events: tuple[str, ...], reason: str) -> None:
    with Reader(cassette(tmp_path / "x.yaml", "\n".join(events))) as reader:
        expected = reason.format(reader.line + 1)
        assert interruption(reader, DIALECTS["gevals"], FRAMINGS["ndjson"]) == expected


def test_a_server_may_be_ended_by_a_signal_and_a_script_may_not(tmp_path: Path) -> None:
    with Reader(cassette(tmp_path / "x.yaml", KILLED)) as reader:
        assert interruption(reader, DIALECTS["gevals"], FRAMINGS["ndjson"], server=True) == ""
        with reader.again() as again:
            assert interruption(again, DIALECTS["raw"], FRAMINGS["ndjson"], script=True) == "it was ended by SIGTERM"


@pytest.mark.parametrize(
    ("messages", "mark", "complete"),
    [
        ([(1, "in", REQUEST)], "", False),
        ([(1, "in", REQUEST), (1, "out", RESULT)], "", True),
        ([(1, "in", REQUEST), (2, "out", RESULT)], "", False),
        ([(2, "in", REQUEST), (2, "out", RESULT)], "", True),
        ([(1, "in", REQUEST), (1, "out", REQUEST)], "", True),
        ([(1, "in", REQUEST), (1, "out", RESULT)], "signal", False),
        ([(1, "in", b'{"method":"m", "id" : 1}')], "", False),
    ],
)
def test_completeness_is_checked_without_the_cassette(
    messages: list[tuple[int, str, bytes]], mark: str, complete: bool
) -> None:
    check = CompletenessCheck(DIALECTS["gevals"])
    for conn, stream, payload in messages:
        check.add_message(conn, stream, payload)
    if mark:
        check.add_mark(mark, "SIGTERM")
    assert check.is_complete is complete
