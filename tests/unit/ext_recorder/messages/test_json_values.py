"""Parts of JSON values by pointer, and the differences of two values."""

from __future__ import annotations

import pytest

from ext_recorder.messages.json_values import MISSING, differences, join, places, without

VALUE = {"a": {"b/c": [1, {"d": 2}, {"d": 3}]}, "e": None}


def test_a_token_is_appended_with_its_escapes() -> None:
    assert join(join("/a", "b/c~"), 0) == "/a/b~1c~0/0"


@pytest.mark.parametrize(
    ("pointer", "left"),
    [
        ("/e", {"a": VALUE["a"]}),
        ("/a/b~1c/1/d", {"a": {"b/c": [1, {}, {"d": 3}]}, "e": None}),
        ("/a/b~1c/*/d", {"a": {"b/c": [1, {}, {}]}, "e": None}),
        ("/a/b~1c/0", {"a": {"b/c": [MISSING, {"d": 2}, {"d": 3}]}, "e": None}),
        ("/*", {}),
        ("/none/x", VALUE),
        ("", None),
    ],
)
def test_the_values_at_a_pointer_are_removed(pointer: str, left: object) -> None:
    assert without(VALUE, [pointer]) == left


def test_the_pointers_that_a_value_has_are_listed() -> None:
    assert list(places(VALUE, ["/a/b~1c/*/d", "/e", "/none"])) == ["/a/b~1c/1/d", "/a/b~1c/2/d", "/e"]


@pytest.mark.parametrize(
    ("left", "right", "pointers"),
    [
        ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}, []),
        ({"a": True}, {"a": 1}, ["/a"]),
        ({"a": "1"}, {"a": 1}, ["/a"]),
        ({"b": 1, "a": 1}, {"a": 2, "c": 3}, ["/b", "/a", "/c"]),
        ([1, 2], [1], ["/1"]),
        ({"a": {}}, {"a": []}, ["/a"]),
        ("x", None, [""]),
    ],
)
def test_differences_are_listed_in_the_order_of_the_left_value(
    left: object, right: object, pointers: list[str]
) -> None:
    assert list(differences(left, right)) == pointers
