"""JSON pointers into values and texts."""

from __future__ import annotations

import json

import pytest

from ext_sdk.core.wire.json_pointer import MISSING, locate, parts, resolve

DOCUMENT = {"a/b": {"m~n": [10, {"": "empty"}]}, "list": [1, 2], "text": "1"}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", DOCUMENT),
        ("/a~1b/m~0n/0", 10),
        ("/a~1b/m~0n/1/", "empty"),
        ("/list/1", 2),
        ("/list/2", MISSING),
        ("/list/-", MISSING),
        ("/list/²", MISSING),
        ("/text/0", MISSING),
        ("/a", MISSING),
    ],
)
def test_a_pointer_refers_to_a_value_or_to_nothing(pointer: str, value: object) -> None:
    assert resolve(DOCUMENT, pointer) == value


def test_a_text_without_a_slash_is_not_a_pointer() -> None:
    with pytest.raises(ValueError, match="'list' is not a JSON pointer: it must begin with a slash"):
        parts("list")


@pytest.mark.parametrize("indent", [None, 2])
def test_values_are_located_in_the_text(indent: int | None) -> None:
    text = json.dumps(DOCUMENT, indent=indent)
    pointers = ["/a~1b/m~0n/1/", "/list", "/list/1", "/missing", "/list/7", "/text/x"]
    located = [(json.loads(text[start:end]), value) for start, end, value in locate(text, pointers)]
    assert located == [("empty", "empty"), ([1, 2], [1, 2]), (2, 2)]
