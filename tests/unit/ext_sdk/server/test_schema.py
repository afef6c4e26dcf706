"""JSON Schema of arguments: what a host is told about them."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  (msgspec reads it)
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import pytest
from msgspec import UNSET, UnsetType

from ext_sdk import Args, Computed, Duration, Meta, Verbatim
from ext_sdk.server.schema import DURATION_SCHEMA, branches_of, object_schema, params_schema, properties_of

if TYPE_CHECKING:
    from ext_sdk.args import Schema


class Inner(Args):
    depth: int = 0


class Every(Args):
    text: str
    limited: Annotated[str, Meta(min_length=1, max_length=9, pattern="^a")] = "a"
    number: int = 3
    positive: Annotated[int, Meta(ge=1, le=9)] = 1
    real: Annotated[float, Meta(gt=0, lt=1.5, multiple_of=0.5)] = 0.5
    flag: bool = False
    choice: Literal["a", "b"] = "a"
    duration: Duration = Duration.parse("90s")
    numeric: int | float | None = None
    anything: Any = None
    texts: list[str] = msgspec.field(default_factory=list)
    pair: Annotated[list[int], Meta(min_length=1, max_length=2)] = msgspec.field(default_factory=list)
    table: dict[str, int] = msgspec.field(default_factory=dict)
    inner: Inner = Inner(depth=2)
    optional: str | None = None
    unset: str | UnsetType = UNSET
    several: str | list[str] | None = None
    snake_case: Annotated[str, Meta(description="In camel case for users", examples=["x"])] = ""
    script: Annotated[str, Verbatim, Meta(description="As it is")] = ""


EXPECTED: Schema = {
    "text": {"type": "string"},
    "limited": {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a", "default": "a"},
    "number": {"type": "integer", "default": 3},
    "positive": {"type": "integer", "minimum": 1, "maximum": 9, "default": 1},
    "real": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1.5, "multipleOf": 0.5, "default": 0.5},
    "flag": {"type": "boolean", "default": False},
    "choice": {"enum": ["a", "b"], "default": "a"},
    "duration": DURATION_SCHEMA | {"default": "1m30s"},
    "numeric": {"type": "number"},
    "anything": {},
    "texts": {"type": "array", "items": {"type": "string"}},
    "pair": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2},
    "table": {"type": "object", "additionalProperties": {"type": "integer"}},
    "inner": {
        "type": "object",
        "properties": {"depth": {"type": "integer", "default": 0}},
        "additionalProperties": False,
        "default": {"depth": 2},
    },
    "optional": {"type": "string"},
    "unset": {"type": "string"},
    "several": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    "snakeCase": {"type": "string", "description": "In camel case for users", "examples": ["x"], "default": ""},
    "script": {"type": "string", "description": "As it is", "default": ""},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_field_has_its_schema(name: str) -> None:
    assert properties_of(object_schema(Every))[name] == EXPECTED[name]


def test_every_field_is_there_and_required_where_it_has_no_default() -> None:
    schema = object_schema(Every)
    assert set(properties_of(schema)) == set(EXPECTED)
    assert {name: value for name, value in schema.items() if name != "properties"} == {
        "type": "object",
        "required": ["text"],
        "additionalProperties": False,
    }


def test_every_operation_has_the_common_arguments() -> None:
    schema = params_schema(Inner)
    assert set(properties_of(schema)) == {"depth", "as", "scope", "verbatim"}
    assert "required" not in schema
    assert set(properties_of(object_schema(Inner))) == {"depth"}


class Rounds(Args):
    interval: Duration = Duration.parse("1s")


class Retry(Args):
    retry: Rounds = Rounds(interval=Duration.parse("90s"))


def test_a_default_may_hold_a_duration_in_any_depth() -> None:
    assert properties_of(object_schema(Retry))["retry"]["default"] == {"interval": "1m30s"}


class Tree(Args):
    name: str
    children: list[Tree] = msgspec.field(default_factory=list)


def test_a_class_that_contains_itself_is_told_once() -> None:
    assert properties_of(object_schema(Tree)) == {
        "name": {"type": "string"},
        "children": {"type": "array", "items": {"type": "object"}},
    }


class References(Args):
    count: Annotated[int, Meta(ge=0), Computed] = 0
    mode: Annotated[str, Meta(pattern="^[0-7]+$"), Computed] = "0"
    port: Annotated[int, Computed] | Literal["auto"] = "auto"


def test_computed_arguments_accept_references() -> None:
    assert properties_of(object_schema(References)) == {
        "count": {"type": ["integer", "string"], "minimum": 0, "pattern": r"\$\{", "default": 0},
        "mode": {"type": "string", "pattern": r"^[0-7]+$|\$\{", "default": "0"},
        "port": {"anyOf": [{"type": ["integer", "string"], "pattern": r"\$\{"}, {"enum": ["auto"]}], "default": "auto"},
    }
    with pytest.raises(TypeError, match=r"WrongMark.text: Computed marks a number, or a string with a pattern"):
        object_schema(WrongMark)


class WrongMark(Args):
    text: Annotated[str, Computed] = ""


class Circle(Args, tag="circle", tag_field="shape"):
    radius: float


class Square(Args, tag="square", tag_field="shape"):
    side: float = 1.0


class Drawing(Args):
    shape: Circle | Square | None = None


def test_a_union_told_apart_by_a_tag_says_so() -> None:
    circle, square = branches_of(properties_of(object_schema(Drawing))["shape"])
    assert properties_of(circle)["shape"] == {"enum": ["circle"]}
    assert circle["required"] == ["shape", "radius"]
    assert square["required"] == ["shape"]
    assert set(properties_of(properties_of(object_schema(Drawing))["shape"])) == {"shape", "radius", "side"}


class Crashing(Args):
    status: Annotated[str, Meta(pattern="^a$")] | list[str] = "a"


def test_what_msgspec_can_not_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="a str with a pattern may also be a container"):
        params_schema(Crashing)


class Unfit(Args):
    when: datetime | None = None


def test_a_field_that_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Unfit\.when: a datetime cannot be an argument; write str"):
        object_schema(Unfit)


def test_branches_are_found_in_any_depth() -> None:
    nested: Schema = {"anyOf": [{"type": "string"}, {"anyOf": [{"type": "null"}, {"type": "integer"}]}]}
    assert branches_of(nested) == [{"type": "string"}, {"type": "null"}, {"type": "integer"}]
    assert branches_of({}) == [{}]
    assert properties_of({"type": "string"}) == {}
