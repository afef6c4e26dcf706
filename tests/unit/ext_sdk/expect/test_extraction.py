"""Documents in texts: in fenced blocks, and the first value in prose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import ValidationError, convert

from ext_sdk.expect import Searcher, SearchFailed, TextExpectation, check_text, failure_text, passed
from ext_sdk.expect.documents import LONGEST, NotDocument
from ext_sdk.expect.extraction import extracted, read_document
from ext_sdk.polling import Deadline

if TYPE_CHECKING:
    from ext_sdk.expect.documents import Format

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


@pytest.mark.parametrize(
    ("form", "text", "reason"),
    [
        (
            "json",
            'Result:\n{"error": "x",} as in {"a": 1}',
            "the first JSON in the text can't be read: it begins in line 2",
        ),
        ("json", 'As in [1] and [2, 3]: [{"a": oops}] {}', "it begins in line 1: Expecting value"),
        ("json", '[["a"} {"a": 1}', "can't be read"),
        ("jsonLines", '{"error": 1,}\n{"a": 1}', "it begins in line 1"),
        ("jsonLines", '{"a": 1}\n{"error": 1,}', "it begins in line 2"),
    ],
)
def test_what_begins_like_json_and_is_not_valid_is_never_skipped(form: Format, text: str, reason: str) -> None:
    with pytest.raises(NotDocument, match=reason):
        read_document(text, form, "first")


def test_citations_are_not_values() -> None:
    assert read_document('As in [1] and [2, 3]: {"error": "x"}', "json", "first") == {"error": "x"}
    assert read_document("the [matrix] is [[1, 2], [3]]", "json", "first") == [[1, 2], [3]]
    with pytest.raises(NotDocument, match="found none; arrays of integers only are ignored"):
        read_document("As in [1].", "json", "first")


PROSE = """Here is the manifest:

apiVersion: v1
Max surge: 1
metadata:
  name: web

  labels: {a: b}
list:
- one

Note that it runs: yes.
"""
MANIFEST = {"apiVersion": "v1", "Max surge": 1, "metadata": {"name": "web", "labels": {"a": "b"}}, "list": ["one"]}


@pytest.mark.parametrize(
    ("form", "text", "value"),
    [
        ("yaml", PROSE, MANIFEST),
        ("yaml", PROSE.replace("\n", "\r\n"), MANIFEST),
        ("yaml", "Steps\n\n  - a: 1\n    b: 2\n  - c\n\nDone: yes", [{"a": 1, "b": 2}, "c"]),
        ("yaml", "---\na: 1\n---\nb: 2", {"a": 1}),
        ("yaml", "Note: a: b\n\nThe port:\n```\nport: 80\n```\n", {"port": 80}),
        ("yaml", "see\n{a: [1,\n  2]}\nend", {"a": [1, 2]}),
        (
            "toml",
            'The file [docs]\nis:\n\n[tool."a"]\n b.c = 2\nd = """\nx = 1\n"""\nc = [\n  1,\n]\n\nSo it is.',
            {"tool": {"a": {"b": {"c": 2}, "d": "x = 1\n", "c": [1]}}},
        ),
        ("toml", "[docs]\n\nIt is x = that.\n\nx = 1 # one\n", {"x": 1}),
        (
            "xml",
            "Use <name> so:\n<?xml version='1.0'?>\n<pod ready='>'><name>\u00e4</name></pod> and </pod>",
            {"pod": {"@ready": ">", "name": "\u00e4"}},
        ),
        ("xml", "1 < 2 <a/>", {"a": None}),
    ],
)
def test_the_first_value_of_a_format_is_found_in_prose(form: Format, text: str, value: object) -> None:
    assert read_document(text, form, "first") == value


@pytest.mark.parametrize(
    ("form", "text", "reason"),
    [
        ("yaml", "Here is the file: none", "expected a mapping or a list of YAML in the text, found none$"),
        ("yaml", "kind: [Pod\nspec: 1", "the first lines that look like it are not: line 2.*from line 1 of the text"),
        ("yaml", "Note: a: b\n\nkind: Pod", "mapping values are not allowed.*counted from line 1 of the text"),
        ("toml", "[docs] are here", "expected keys of TOML in the text, found none$"),
        ("toml", "a = 1\nb = oops\n", r"Invalid value \(at line 2, column 5\), counted from line 1"),  # not a alone
        ("toml", "a." * 500_000, "found none$"),  # in linear time
        ("toml", "a = [", "counted from line 1 of the text"),
        ("xml", "a <b> c", "expected an element of XML in the text, found none; .*no element found"),
        ("xml", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "entities are disabled"),
        ("xml", "<a>" + "<a" * LONGEST, "found no XML in the 4,194,304 characters that were tried"),
    ],
)
def test_lines_that_only_look_like_a_value_are_no_value(form: Format, text: str, reason: str) -> None:
    with pytest.raises(NotDocument, match=reason):
        read_document(text, form, "first")


@pytest.mark.parametrize("form", ["yaml", "toml", "xml"])
def test_the_search_for_the_first_value_ends_at_the_deadline(form: Format) -> None:
    with Searcher(deadline=Deadline(0)) as searcher, pytest.raises(SearchFailed):
        read_document("- a\nb = 1\n<a>", form, "first", searcher)


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
    assert check(
        "a:\n```\nkind: b\n```", json=[{"path": "$.kin", "exists": True}], format="yaml", extract="fenced"
    ) == ('the answer at $.kin: expected to exist, got nothing, in the extracted part "kind: b"')
    assert "the answer: expected to contain TOML" in check(ANSWER, json=paths, format="toml", extract="fenced")
    assert "the answer: expected to be YAML" in check("a: [", json=paths, format="yaml")


@pytest.mark.parametrize(
    ("expectation", "told"),
    [
        ({"contains": "a", "extract": "fenced"}, "`format` and `extract` apply to json"),
        ({"jsonSchema": {"propertys": {}}}, "unknown keyword 'propertys'"),
    ],
)
def test_what_can_not_be_checked_is_refused(expectation: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        convert(expectation, TextExpectation)
