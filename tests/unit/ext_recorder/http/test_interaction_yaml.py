"""The parser by lines has the results of the YAML library, or none."""

from __future__ import annotations

import pytest
import yaml

from ext_recorder.http.interaction import Body
from ext_recorder.http.interaction_yaml import parse_interaction

ITEM = """\
- request:
    body: BODY
    headers:
      Accept:
      - '*/*'
    method: GET
    uri: http://h/a
  response:
    body:
      string: ''
    headers: {}
    status:
      code: 200
      message: OK
  call: null
  t: 0.5
  elapsed: 1.0e-05
"""
WRITTEN = [
    "null",
    "plain text, with:no colon",
    "'it''s'",
    '\'{"a": 1,\n\n      "b":\n      2}\'',
    "'\n\n\n      '",
    '"\\xE9\\t\\\n      \\ more\\n"',
    "!!binary |\n      /wD/\n      AA==",
    "'12'",
    "2026-11-23 text",
    "a text that is\n      folded",
]
EDITED = [
    "12",
    "yes",
    "1e5",
    "0x1F",
    "2026-11-23",
    "|\n      two\n      lines",
    ">-\n      two\n      lines",
    "{a: [1, 2]}",
    "[]",
    "[yes, Null, on]",
    "~",
    "a # comment",
    "a text",
]


@pytest.mark.parametrize("body", [*WRITTEN, *EDITED])
def test_a_value_is_what_the_library_reads(body: str) -> None:
    text = ITEM.replace("BODY", body)
    assert parse_interaction(text.encode()) == yaml.safe_load(text)[0]


@pytest.mark.parametrize(
    "change",
    [
        ("    method: GET\n", "    method: GET\n    # comment\n"),
        ("  t: 0.5\n", "   t: 0.5\n"),
        ("  t: 0.5\n", "  'on': 0.5\n"),
        ("  t: 0.5\n", "  <<: {}\n"),
        ("  t: 0.5\n", "  on: 0.5\n"),
        ("BODY", "'a\n      b"),
        ("BODY", "'it's'"),
        ("BODY", "*alias"),
        ("BODY", "!!python/tuple [1]"),
        ("BODY", "!!binary |\n      /wD"),
        ("BODY", "!!binary |"),
        ("BODY", "é"),
        ("BODY", "a\tb"),
        ("BODY", "a: b"),
        ("- request", "-   request"),
    ],
)
def test_another_form_is_left_to_the_library(change: tuple[str, str]) -> None:
    text = ITEM.replace(*change).replace("BODY", "null")
    assert parse_interaction(text.encode()) is None


def test_a_body_that_was_removed_is_put_in_its_place() -> None:
    body = Body(b"long")
    item = parse_interaction(ITEM.replace("BODY", "!!binary |").encode(), [body])
    assert item is not None
    assert item["request"]["body"] is body  # type: ignore[index]
    assert parse_interaction(ITEM.replace("BODY", "null").encode(), [body]) is None
