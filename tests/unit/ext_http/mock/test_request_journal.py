"""Journal of a mock: memory, file, limits, redaction."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ext_http.mock.request import MAX_PROBLEMS, Call, Journal, Miss, ReceivedRequest
from tests.support.http_contexts import context_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    context = context_in(tmp_path, {"token": "token-of-the-task"})
    journal = Journal(tmp_path / "journal.ndjson", context.secrets, max_calls=1)
    yield journal
    journal.close()


def call(target: str = "/a", body: bytes = b"", route: str = "a", miss: Miss | None = None) -> Call:
    return Call(ReceivedRequest("POST", target, [("X", "1"), ("X", "2")], body), route, "200", miss=miss)


def test_a_line_of_the_file_is_a_call_without_secrets(journal: Journal) -> None:
    journal.add(call(body=b"it is token-of-the-task"))
    journal.add_problem("not HTTP")
    first, second = map(json.loads, journal.path.read_text().splitlines())
    assert (first["n"], first["target"], first["headers"], first["route"]) == (1, "/a", {"X": ["1", "2"]}, "a")
    assert "token-of-the-task" not in first["body"]
    assert second["problem"] == "not HTTP"


def test_calls_over_the_limit_are_counted_only(journal: Journal) -> None:
    journal.add(call())
    assert journal.complete
    journal.add(call(route=""))
    assert (len(journal.calls), journal.count, journal.unmatched, journal.complete) == (1, 2, 1, False)


def test_a_wait_ends_when_a_call_has_been_added(journal: Journal) -> None:
    assert not journal.wait(0, 0.0)
    journal.add(call())
    assert journal.wait(0, 60.0)


def test_a_description_has_the_reasons_and_the_body(journal: Journal) -> None:
    unmatched = call(route="", body=b"hello", miss=Miss("b", ["path: expected /b"]))
    journal.add(unmatched)
    assert journal.describe(unmatched, unmatched.miss_reasons).splitlines() == [
        "  #1 POST /a got 200 from no route",
        "    nearest route: b",
        "    path: expected /b",
        '    body: "hello"',
    ]


def test_the_latest_problems_are_kept(journal: Journal) -> None:
    for number in range(MAX_PROBLEMS + 2):
        journal.add_problem(str(number))
    assert journal.problems == [str(number) for number in range(2, MAX_PROBLEMS + 2)]
