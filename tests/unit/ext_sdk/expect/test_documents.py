"""Documents of all formats, and where they are in a text."""

from __future__ import annotations

import pytest
from msgspec import ValidationError, convert

from ext_sdk.expect import Searcher, SearchFailed, TextExpectation, check_text, failure_text, passed
from ext_sdk.expect.documents import NotDocument, extracted, read_document
from ext_sdk.polling import Deadline

ANSWER = """I ran it:

```sh
echo '{"no": 1}'
```

1. The result:

   ```json
   {"pods": ["a"],
    "ok": true}
   ```

~~~yaml title=x
pods: [b]
~~~
"""


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
    assert read_document(text, form) == value  # type: ignore[arg-type]


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
        read_document(text, form)  # type: ignore[arg-type]


def test_the_first_fenced_block_of_the_format_is_taken() -> None:
    assert read_document(ANSWER, "json", "fenced") == {"pods": ["a"], "ok": True}
    assert read_document(ANSWER, "yaml", "fenced") == {"pods": ["b"]}
    assert read_document("```\n[1]\n```\n```json\n[2]\n```", "json", "fenced") == [2]
    assert read_document("> ```\n> [1]\n> ```", "json", "fenced") == [1]
    assert extracted("```json\n[1]", "json", "fenced") == "[1]"
    with pytest.raises(NotDocument, match=r"found 3 blocks of other languages \(sh, json, yaml\)"):
        read_document(ANSWER, "toml", "fenced")
    with pytest.raises(NotDocument, match="found no fenced block"):
        read_document("[1]", "json", "fenced")
    with pytest.raises(NotDocument, match="in the extracted part"):
        read_document("x\n```json\nsoup\n```", "json", "fenced")


def test_the_first_value_is_found_in_prose() -> None:
    assert read_document('See [the docs](x) for {pods}: {"a": [1]} and {"b": 2}', "json", "first") == {"a": [1]}
    assert read_document('log\n{"a": 1}\n{"a": 2}\nend\n{"a": 3}', "jsonLines", "first") == [{"a": 1}, {"a": 2}]
    for form in ("json", "jsonLines"):
        with pytest.raises(NotDocument, match="found none"):
            read_document("no values 1 true", form, "first")
    with Searcher(deadline=Deadline(0)) as searcher, pytest.raises(SearchFailed):
        read_document("{" * 10, "json", "first", searcher)


def check(text: str, **expectation: object) -> str:
    checks = check_text(convert(expectation, TextExpectation), text, where="the answer")
    assert checks
    return "" if passed(checks) else failure_text(checks)


def test_documents_of_all_formats_are_checked_alike() -> None:
    paths = [{"path": "$.pods[0]", "equals": "b"}]
    assert not check(ANSWER, json=paths, format="yaml", extract="fenced")
    assert not check("pods: [b, c]", jsonContains={"pods": ["c"]}, lists="subset", format="yaml")
    assert not check("[a]\nb = 1", jsonEquals={"a": {"b": 1}}, format="toml")
    schema = {"type": "object", "required": ["pods"], "properties": {"pods": {"items": {"type": "string"}}}}
    assert not check(ANSWER, jsonSchema=schema, extract="fenced")
    assert check("{}", jsonSchema=schema) == (
        'the answer at $: expected to have the required member "pods", got {} (object)'
    )
    assert "the answer at $.pods[0]: expected to equal" in check(ANSWER, json=[paths[0]], extract="fenced")
    assert "the answer: expected to contain TOML" in check(ANSWER, json=paths, format="toml", extract="fenced")
    assert "the answer: expected to be YAML" in check("a: [", json=paths, format="yaml")


@pytest.mark.parametrize(
    ("expectation", "told"),
    [
        ({"contains": "a", "extract": "fenced"}, "`format` and `extract` apply to json"),
        ({"jsonEquals": 1, "format": "xml", "extract": "first"}, "use `extract: fenced` for xml"),
        ({"jsonSchema": {"propertys": {}}}, "unknown keyword 'propertys'"),
    ],
)
def test_what_can_not_be_checked_is_refused(expectation: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        convert(expectation, TextExpectation)
