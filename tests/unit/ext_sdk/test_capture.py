"""Captures: names, values, secrets, and texts that cannot be shown."""

from __future__ import annotations

import pytest
from msgspec import ValidationError, convert

from ext_sdk import InvalidArgs, Secrets
from ext_sdk.capture import CaptureArgs, Captured, NotFound, capture_all, check_names, find_in_text
from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.expect import Searcher

TEXT = '{"id": 7, "token": "opensesame-77", "pin": "x1"}'


def capture(texts: dict[str, str] | None = None, **captures: dict[str, object]) -> Captured:
    """Capture from JSON texts, which are redacted by secrets alone."""
    sources = {"body": TEXT} if texts is None else texts
    wanted = {name: convert({"from": "body"} | given, CaptureArgs) for name, given in captures.items()}
    with Searcher() as searcher:
        return capture_all(
            wanted,
            lambda one: find_in_text(one, sources.get(one.from_, TEXT), searcher),
            sources,
            Secrets(Redactor({})),
            searcher,
        )


def test_values_are_captured_by_path_by_pattern_and_whole() -> None:
    captured = capture(id={"json": "$.id"}, pin={"regex": '"pin": "(.*)"'}, all={})
    assert captured.values == {"id": "7", "pin": "x1", "all": TEXT}
    assert (captured.secrets, captured.failures, captured.withheld) == ({}, [], set())


def test_a_default_replaces_a_value_that_is_not_found() -> None:
    captured = capture(id={"json": "$.no", "default": "none"})
    assert (captured.values, captured.failures) == ({"id": "none"}, [])


def test_a_default_does_not_hide_a_value_that_can_not_be_read() -> None:
    texts = {"body": '{"t": "%%%"} and {"u": "1,2"}'}
    first: dict[str, object] = {"extract": "first", "json": "$.t", "default": "none"}
    for part in ({"decode": "base64"}, {"date": "http"}, {"json": "$.a"}):
        (failed,) = capture(texts, t=first | {"filters": [part]}).failures
        assert "a value that filters[0] does not apply to" in str(failed)
    (failed,) = capture({"body": '{"t": "x",} {"u": 1}'}, t=first).failures
    assert "the first JSON in the text can't be read" in str(failed)
    assert capture(texts, t=first | {"filters": [{"regex": "a"}]}).values == {"t": "none"}
    assert capture(texts, t=first | {"filters": [{"split": ",", "index": 1}]}).values == {"t": "none"}


def test_a_value_that_is_not_found_is_a_failed_check() -> None:
    captured = capture(id={"json": "$.no"})
    assert [str(check) for check in captured.failures] == [
        "capture id: expected to be found, got 0 values at '$.no' in body, where one is expected"
    ]
    assert captured.values == {}


def test_a_secret_is_not_among_the_values() -> None:
    captured = capture(token={"json": "$.token", "secret": True})
    assert (captured.values, captured.secrets, captured.withheld) == ({}, {"token": "opensesame-77"}, set())


def test_a_text_with_a_secret_that_is_too_short_to_be_redacted_is_withheld() -> None:
    captured = capture({"body": TEXT, "other": "x2"}, pin={"json": "$.pin", "secret": True})
    assert (captured.secrets, captured.withheld) == ({"pin": "x1"}, {"body"})


@pytest.mark.parametrize(("source", "withheld"), [("body", {"body"}), ("header", {"body", "other"})])
def test_a_text_that_may_contain_a_secret_is_withheld(source: str, withheld: set[str]) -> None:
    texts = {"body": TEXT, "other": "x2"}
    assert capture(texts, key={"from": source, "json": "$.no", "secret": True}).withheld == withheld


def test_a_value_of_another_type_is_not_found() -> None:
    wanted = convert({"from": "body", "json": "$.id"}, CaptureArgs)
    with Searcher() as searcher:
        assert find_in_text(wanted, TEXT, searcher, kind="integer") == "7"
        with pytest.raises(NotFound, match=r"a value of type integer .* where string is expected"):
            find_in_text(wanted, TEXT, searcher, kind="string")


@pytest.mark.parametrize(
    ("names", "said"), [(["status"], "another output has this name"), (["a.b"], "without dots"), (["x" * 101], "1 to")]
)
def test_names_that_cannot_be_outputs_are_refused(names: list[str], said: str) -> None:
    with pytest.raises(InvalidArgs, match=said):
        check_names(names, {"status"})
    check_names(["id", "Status"], {"status"})


@pytest.mark.parametrize(
    ("given", "said"),
    [({"group": 1}, "`group` requires `regex`"), ({"regex": "("}, "regular expression"), ({"json": "n"}, "JSONPath")],
)
def test_captures_that_contradict_themselves_are_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        convert(given, CaptureArgs)
