"""Which arguments go together: one declaration for the JSON Schema and the validation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from jsonschema import Draft202012Validator
from msgspec import UNSET, UnsetType

import ext_sdk
from ext_sdk import Args, InvalidArgs
from ext_sdk.args import rules_text
from ext_sdk.server.schema import object_schema, params_schema, properties_of
from ext_sdk.server.validation import check_types, validate
from ext_sdk.testing import call

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Source(Args, one_of=("file_name", "text", "items", "none")):
    file_name: str = ""
    text: str | UnsetType = UNSET
    items: list[str] = msgspec.field(default_factory=list)
    none: bool = False


class Wish(Source, any_of=("count", "text")):
    count: int = 0
    least: int = 0

    def __post_init__(self) -> None:
        if self.least > self.count:
            raise ValueError("least: more than count")


FITTING: list[dict[str, object]] = [
    {"fileName": "a", "count": 1},
    {"text": "", "count": 1},
    {"text": ""},
    {"items": ["a"], "count": 2, "least": 1},
    {"none": True, "count": 1},
    {"fileName": "", "items": [], "none": True, "count": 1},  # what is its default is not given
]
REFUSED: list[tuple[dict[str, object], str]] = [
    ({}, "expected one of fileName, text, items and none, found none"),
    ({"count": 1}, "expected one of fileName, text, items and none, found none"),
    ({"fileName": "", "count": 1}, "expected one of fileName, text, items and none, found none"),
    ({"none": False, "items": [], "count": 1}, "found none"),
    ({"fileName": "a", "text": "", "count": 1}, "found fileName and text"),
    ({"fileName": "a", "text": "b", "none": True}, "found fileName and text and none"),
    ({"fileName": "a"}, "expected at least one of count and text, found none"),
    ({"fileName": "a", "count": 0}, "expected at least one of count and text, found none"),
    ({"fileName": "a", "text": "", "least": 1}, "found fileName and text"),  # before what no schema can say
]


@pytest.mark.parametrize("args", FITTING, ids=str)
def test_what_follows_the_rules_is_taken(args: dict[str, object]) -> None:
    check_types(Wish, args)
    validate(Wish, args)
    Draft202012Validator(params_schema(Wish)).validate(args)


@pytest.mark.parametrize(("args", "says"), REFUSED, ids=str)
def test_what_does_not_is_refused_by_the_schema_and_by_the_types_alone(args: dict[str, object], says: str) -> None:
    for check in (check_types, validate):
        with pytest.raises(InvalidArgs) as caught:
            check(Wish, args)
        assert says in caught.value.message
    assert not Draft202012Validator(params_schema(Wish)).is_valid(args)


def test_a_semantic_check_is_made_as_well_but_not_by_the_types_alone() -> None:
    args = {"text": "a", "least": 1}
    check_types(Wish, args)
    with pytest.raises(InvalidArgs, match="least: more than count"):
        validate(Wish, args)


def test_an_alternative_does_not_change_what_the_properties_are() -> None:
    assert set(properties_of(object_schema(Wish))) == {"fileName", "text", "items", "none", "count", "least"}


def test_a_host_that_names_schemas_by_their_anchors_can_say_which_are_expected() -> None:
    branches = params_schema(Source)["oneOf"]
    assert isinstance(branches, list)
    assert [branch["$anchor"] for branch in branches] == ["fileName", "text", "items", "none"]


def test_the_rules_can_be_read() -> None:
    assert rules_text(Wish) == "one of fileName, text, items and none; at least one of count and text"
    assert rules_text(Args) == ""


def test_a_rule_on_what_is_no_field_is_refused() -> None:
    with pytest.raises(TypeError, match="Wrong: oneOf names nothing, which is not a field"):

        class Wrong(Args, one_of=("text", "nothing")):
            text: str = ""


def test_two_rules_of_a_kind_are_refused() -> None:
    with pytest.raises(TypeError, match="expected one rule of each kind"):

        class Twice(Source, one_of=("a", "b")):
            a: str = ""
            b: str = ""


class Expecting(ext_sdk.Args):
    refused: bool = False

    def run_operation(self, run: Callable[[], ext_sdk.Result]) -> ext_sdk.Result:
        try:
            return run()
        except ext_sdk.OperationFailed as failure:
            if not self.refused:
                raise
            return ext_sdk.Result.ok(f"refused: {failure}")


def test_a_class_of_arguments_may_evaluate_the_failure_of_its_operation(tmp_path: Path) -> None:
    extension = ext_sdk.Extension("some", version="1.0.0")

    @extension.operation()
    def act(args: Expecting, context: ext_sdk.Context) -> ext_sdk.Result:
        """Fail."""
        raise ext_sdk.OperationFailed("no")

    assert call(extension, "act", {"refused": True}, workdir=tmp_path).message == "refused: no"
    assert call(extension, "act", {}, workdir=tmp_path).error == "no"
