"""Documents of all formats as JSON values."""

from __future__ import annotations

import pytest

from ext_sdk.expect.documents import NotDocument, parse_document


@pytest.mark.parametrize(
    ("form", "text", "value"),
    [
        ("json", '{"a": 9007199254740993}', {"a": 9007199254740993}),
        ("jsonLines", '{"a": 1}\n\n[2]\r\n3\n', [{"a": 1}, [2], 3]),
        ("yaml", "day: 2026-11-22\non: yes\n1: !!binary aGk=\n", {"day": "2026-11-22", "on": True, "1": "aGk="}),
        ("yaml", "a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
        ("toml", 'day = 2026-11-22\n[a]\nb = [1.5, "x"]', {"day": "2026-11-22", "a": {"b": [1.5, "x"]}}),
        (
            "xml",
            "<r a='1'><i>x</i><i>y</i><t b='2'>z</t></r>",
            {"r": {"@a": "1", "i": ["x", "y"], "t": {"@b": "2", "#text": "z"}}},
        ),
    ],
)
def test_all_formats_give_json_values(form: str, text: str, value: object) -> None:
    assert parse_document(text, form) == value  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("form", "text", "told"),
    [
        ("json", "soup", "Expecting value"),
        ("json", "[" * 100_000, "nested too deeply"),
        ("jsonLines", '{"a": 1}\nsoup', "line 2: Expecting value"),
        ("jsonLines", "\n", "found none"),
        ("yaml", "a: [", "line 2"),
        ("yaml", "", "empty text"),
        ("yaml", "a: .nan", "nan has no value in JSON"),
        ("yaml", "a: &a [*a]", "aliases expand"),
        ("yaml", "!!python/name:os.system x", "could not determine a constructor"),
        ("yaml", "x" * 5_000_000, "at most 4,194,304 characters"),
        ("toml", "a = ", "Invalid value"),
        ("xml", "<a><b></a>", "mismatched tag"),
        ("xml", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "entities are disabled"),
        ("xml", '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>', "entities are disabled"),
    ],
)
def test_what_is_not_a_document_has_a_reason(form: str, text: str, told: str) -> None:
    with pytest.raises(NotDocument, match=told):
        parse_document(text, form)  # type: ignore[arg-type]
