"""The summary of a run, and the end of its command."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from ext_recorder.errors import UsageError
from ext_recorder.http.traffic_counts import Traffic
from ext_recorder.run.session import SHOWN, RunOptions, Traffics, endpoint_lines, run

if TYPE_CHECKING:
    from pathlib import Path


def test_endpoints_are_listed_by_their_number_of_requests() -> None:
    traffic = {
        "http://a": Traffics(Traffic(1)),
        "http://c": Traffics(Traffic(1), Traffic(), Traffic(1)),
        "https://b": Traffics(Traffic(1200, 2, 30, 4), Traffic(600, 1, 15, 2), Traffic(200)),
    }
    plain = {endpoint: Traffics(counts.recorded) for endpoint, counts in traffic.items()}
    assert endpoint_lines(plain, replayed=False) == [
        "https://b: 1,200 requests, 2 model calls with 30 + 4 tokens (input + output)",
        "http://a: 1 request",
        "http://c: 1 request",
    ]
    assert endpoint_lines(traffic, replayed=True) == [
        (
            "https://b: 600 of 1,000 requests, 1 model call with 15 + 2 tokens (input + output), "
            "200 requests by replayed children"
        ),
        "http://a: 0 of 1 request",
        "http://c: 1 request by replayed children",
    ]


def test_a_long_list_of_endpoints_is_cut() -> None:
    traffic = {f"http://{number}": Traffics(Traffic(1)) for number in range(SHOWN + 3)}
    assert endpoint_lines(traffic, replayed=False)[SHOWN:] == ["and 3 more endpoints"]
    del traffic["http://0"], traffic["http://1"], traffic["http://2"]
    assert len(endpoint_lines(traffic, replayed=False)) == SHOWN


def test_a_recording_is_neither_invented_nor_overwritten(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no recording, and `--mode none` makes none"):
        run(str(tmp_path / "new"), [sys.executable], RunOptions(mode="none"))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").touch()
    with pytest.raises(UsageError, match="expected the folder of a recording"):
        run(str(tmp_path / "notes"), [sys.executable], RunOptions())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes"]
