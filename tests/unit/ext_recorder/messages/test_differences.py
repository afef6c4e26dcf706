"""Differences of sessions, as text and as data."""

from __future__ import annotations

from ext_recorder.messages.differences import (
    AROUND_CHARS,
    KEPT,
    VALUE_CHARS,
    Differences,
    around,
    describe,
    excerpt,
    json_value,
    plain,
    shown,
)
from ext_recorder.messages.json_values import MISSING
from ext_recorder.messages.matcher import Difference
from ext_recorder.protocols.dialect import DIALECTS

GEVALS = DIALECTS["gevals"]


def test_messages_are_described_by_kind_method_and_id() -> None:
    assert describe(GEVALS.classify(b'{"id":1,"method":"m"}')) == "the request m (id 1)"
    assert describe(GEVALS.classify(b'{"method":"m"}')) == "the notification m"
    assert describe(GEVALS.classify(b'{"id":1,"result":2}'), "the request m") == "the answer to the request m (id 1)"
    assert describe(GEVALS.classify(b'{"id":1,"result":2}')) == "the answer to nothing (id 1)"
    assert describe(GEVALS.classify(b"oops")) == 'the line "oops"'


def test_texts_are_one_line_and_limited() -> None:
    assert shown(MISSING) == "nothing"
    assert shown("a\nb\ud800") == '"a\\nb?"'
    assert shown("x" * 1_000) == '"' + "x" * (VALUE_CHARS - 1) + "…"
    assert excerpt(GEVALS.classify(b"a\x1b[0m")) == "a\\e[0m"
    assert json_value(GEVALS.classify(b"[1]")) == [1]
    assert json_value(GEVALS.classify(b"[1")) == "[1"


def test_values_in_reports_are_json() -> None:
    assert plain(MISSING) is None
    assert plain({"a": [MISSING, 1]}) == {"a": [None, 1]}
    assert plain("x" * 1_000) == shown("x" * 1_000)


def test_the_object_around_a_difference_is_cut_around_it() -> None:
    live = {"a": {"before": "x" * 1_000, "b": 2, "after": "y" * 1_000}}
    text = around(Difference("/a/b", 1, 2), {"a": {"b": 1}}, live)
    assert text.startswith("…x")
    assert len(text.strip("…")) == AROUND_CHARS
    assert around(Difference("/a/b", 1, MISSING), {"a": {"b": 1}}, {}) == '{"b":1}'


def test_a_difference_has_its_line_and_both_values() -> None:
    found = Differences("x.yaml")
    found.exit(0, None, "it did not exit")
    found.differs(7, "the request m", [Difference("/params/a", 1, 2)], {"params": {"a": 1}}, {"params": {"a": 2}})
    first, second = found.problems()
    assert first.text == ('x.yaml:7: the request m: /params/a\n  expected  1\n  found     2\n  around    {"a":2}')
    assert first.data == {"line": 7, "message": "the request m", "pointer": "/params/a", "expected": 1, "found": 2}
    assert second.text == "x.yaml: the exit\n  expected  0\n  found     it did not exit"


def test_most_differences_are_kept_and_the_others_counted() -> None:
    found = Differences("x.yaml")
    for line in range(KEPT + 5, 0, -1):
        found.add("order", "text", line)
    assert (len(found.problems()), found.more, found.at(3), found.at(0)) == (KEPT, 5, "x.yaml:3", "x.yaml")
    assert found.problems()[0].data == {"line": 6, "text": "text"}
