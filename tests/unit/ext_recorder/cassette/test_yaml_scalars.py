"""Scalars and one-line collections: the same text for every YAML loader."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ext_recorder.cassette.yaml_scalars import (
    escaped,
    flow_list,
    flow_map,
    holds,
    parse_flow,
    scalar,
    unescaped,
    visible,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXTS)
def test_an_escaped_text_is_read_as_itself(text: str) -> None:
    written = escaped(text)
    assert unescaped(written[1:-1]) == text
    assert yaml.safe_load(written) == text
    assert "\n" not in written


@pytest.mark.parametrize("body", ["\\q", "\\x1", "\\uD800", "\\U00110000", "\\", "\\x_1"])
def test_an_escape_that_is_never_written_is_not_read(body: str) -> None:
    assert unescaped(body) is None


@given(TEXTS)
def test_a_scalar_is_read_as_the_same_text_without_what_yaml_cannot_represent(text: str) -> None:
    expected = "".join(char if holds(char) else "\ufffd" for char in text)
    assert yaml.safe_load(scalar(text)) == parse_flow(scalar(text)) == expected


@given(st.lists(TEXTS.filter(holds)), st.dictionaries(TEXTS.filter(holds), TEXTS.filter(holds)))
def test_collections_are_read_by_both_parsers(items: list[str], pairs: dict[str, str]) -> None:
    assert parse_flow(flow_list(items)) == yaml.safe_load(flow_list(items)) == items
    assert parse_flow(flow_map(pairs)) == yaml.safe_load(flow_map(pairs)) == pairs


@pytest.mark.parametrize("text", ["", "-", "@a", "['a' 'b']", "['a", "{'a' 'b'}", "{a: b, a: c}", "a b: c"])
def test_other_forms_are_left_to_yaml(text: str) -> None:
    assert parse_flow(text) is None


def test_a_plain_scalar_may_have_colons() -> None:
    assert parse_flow("[a:b, http://x:1]") == ["a:b", "http://x:1"]


def test_control_characters_are_visible() -> None:
    assert visible("\x1b[31mred\ttab\n") == "\\e[31mred\\ttab\\n"
