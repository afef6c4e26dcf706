"""Filters of captures."""

from __future__ import annotations

import base64

import pytest
from msgspec import ValidationError, convert

from ext_sdk import Secrets
from ext_sdk.capture import CaptureArgs, Captured, capture_all, find_in_text
from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.expect import Searcher


def capture(text: str, **given: object) -> Captured:
    wanted = {"x": convert({"from": "body"} | given, CaptureArgs)}
    with Searcher() as searcher:
        return capture_all(
            wanted, lambda one: find_in_text(one, text, searcher), {"body": text}, Secrets(Redactor({})), searcher
        )


def filtered(text: str, *filters: dict[str, object]) -> str:
    captured = capture(text, filters=list(filters))
    return captured.values["x"] if captured.values else str(captured.failures[0])


CLAIMS = base64.urlsafe_b64encode(b'{"sub": "ada", "roles": ["a", "b"]}').decode().rstrip("=")


@pytest.mark.parametrize(
    ("text", "filters", "result"),
    [
        ("a, b,c", [{"split": ",", "index": 1}], "b"),
        ("a/b/c", [{"split": "/", "index": -1}], "c"),
        ("a=1; Path=/", [{"split": ";"}, {"split": "=", "index": 1}], "1"),
        ("aGk=\n", [{"decode": "base64"}], "hi"),
        ("w7w_", [{"decode": "base64url"}], "ü?"),
        ("a%20b+%C3%BC", [{"decode": "url"}], "a b ü"),
        ("6869", [{"decode": "hex"}], "hi"),
        ("a &lt; b", [{"decode": "html"}], "a < b"),
        (f"e30.{CLAIMS}.sig", [{"decode": "jwt"}, {"json": "$.roles[1]"}], "b"),
        ("Sun, 22 Nov 2026 10:00:00 GMT", [{"date": "http"}], "2026-11-22T10:00:00Z"),
        ("2026-11-22T12:00:00+02:00", [{"date": "rfc3339", "to": "http"}], "Sun, 22 Nov 2026 10:00:00 GMT"),
        ("22.11.2026", [{"date": "%d.%m.%Y", "to": "unix"}], "1795305600"),
        ("1795305600123", [{"date": "unixMs", "to": "%Y-%m-%d"}], "2026-11-22"),
        ("id: 7 ", [{"regex": "id: (.*)"}, {"trim": True}], "7"),
    ],
)
def test_filters_apply_in_their_order(text: str, filters: list[dict[str, object]], result: str) -> None:
    assert filtered(text, *filters) == result


@pytest.mark.parametrize(
    ("text", "filters", "told"),
    [
        ("a,b", [{"split": ",", "index": 2}], "filters[0] does not apply to: split ',': found 2 parts, no part 2"),
        ("%", [{"trim": True}, {"decode": "hex"}], "filters[1] does not apply to: decode hex: "),
        ("a!b=", [{"decode": "base64"}], "decode base64: "),
        ("a+b=", [{"decode": "base64url"}], "'+' is not a character of base64url"),
        ("/w==", [{"decode": "base64"}], "decode base64: 'utf-8' codec"),
        ("a.b", [{"decode": "jwt"}], "expected three parts between dots, found 2"),
        ("soon", [{"date": "rfc3339"}], "'soon' is not a date of this format"),
        ("1e400", [{"date": "unix"}], "is not a date of this format"),
        ("{}", [{"json": "$.a"}], "0 values at '$.a'"),
        ("b", [{"regex": "a"}], "nothing in the value that matches 'a'"),
    ],
)
def test_a_value_that_does_not_fit_has_a_reason(text: str, filters: list[dict[str, object]], told: str) -> None:
    assert told in filtered(text, *filters)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"filters": [{}]}, "expected one of split, decode, date, json, regex and trim, found none"),
        ({"filters": [{"split": ",", "trim": True}]}, "found split and trim"),
        ({"filters": [{"decode": "hex", "index": 1}]}, "`index` requires `split`"),
        ({"filters": [{"decode": "hex", "to": "unix"}]}, "`to` requires `date`"),
        ({"filters": [{"regex": "("}]}, "not a regular expression"),
        ({"filters": [{"json": "a"}]}, "must begin with"),
        ({"format": "yaml"}, "`format` requires `json` or `extract`"),
    ],
)
def test_filters_that_can_not_apply_are_refused(given: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError, match=told.replace("(", r"\(")):
        convert({"from": "body"} | given, CaptureArgs)


def test_a_capture_is_of_a_document_of_any_format_in_the_text() -> None:
    text = "Done:\n```yaml\npods: [a, b]\n```\n"
    assert capture(text, json="$.pods[1]", format="yaml", extract="fenced").values == {"x": "b"}
    assert capture(text, format="yaml", extract="fenced").values == {"x": "pods: [a, b]"}
    assert "no fenced block" in str(capture("pods", json="$.a", extract="fenced").failures[0])
    assert "body is not YAML" in str(capture("a: [", json="$.a", format="yaml").failures[0])
    assert capture("x", json="$.a", extract="first", default="none").values == {"x": "none"}


def test_a_secret_is_redacted_in_both_forms() -> None:
    secrets = Secrets(Redactor({}))
    wanted = {"x": convert({"from": "body", "secret": True, "filters": [{"split": ":", "index": 1}]}, CaptureArgs)}
    with Searcher() as searcher:
        captured = capture_all(wanted, lambda _: "user77:opensesame77", {}, secrets, searcher)
    assert (captured.values, captured.secrets) == ({}, {"x": "opensesame77"})
    assert "opensesame77" not in secrets.redact("user77:opensesame77 and opensesame77")
