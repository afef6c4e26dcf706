"""From JSON to typed arguments, and what a user is told where it does not fit."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest

from ext_sdk import Args, Computed, Duration, InvalidArgs, Meta
from ext_sdk.server.validation import validate


class Leaf(Args):
    exit_code: int = 0
    pattern: Annotated[str, Meta(pattern="^a")] = "a"
    mode: Literal["all", "any"] = "all"


class Circle(Args, tag="circle", tag_field="shape"):
    radius: float


class Square(Args, tag="square", tag_field="shape"):
    side: float


class Everything(Args):
    command: list[str] = msgspec.field(default_factory=list)
    expect: Leaf | None = None
    either: str | Leaf | list[Leaf] | None = None
    leaves: list[Leaf] = msgspec.field(default_factory=list)
    table: dict[str, list[dict[str, Leaf]]] = msgspec.field(default_factory=dict)
    timeout: Duration = Duration.parse("1m")
    number: Annotated[int, Meta(ge=0, le=100)] = 0
    real: float = 0.0
    flag: bool = False
    text: Annotated[str, Meta(min_length=1)] = "x"
    level: Literal[1, 2] = 1
    count: int | list[int] | Literal["many"] = 0
    drawing: Circle | Square | None = None
    any_value: Any = None
    port: Annotated[int, Meta(ge=1, le=65535), Computed] | Literal["auto"] = 1


class Required(Args):
    file_name: str
    inner: Leaf


def message(value: object, args_type: type[Args] = Everything, extra: tuple[str, ...] = ()) -> tuple[str, str]:
    with pytest.raises(InvalidArgs) as caught:
        validate(args_type, value, extra=extra)
    return caught.value.field, caught.value.message


def test_json_becomes_typed_arguments() -> None:
    args = validate(
        Everything,
        {
            "command": ["a"],
            "expect": {"exitCode": 1},
            "timeout": "1h",
            "table": {"a": [{"b": {"mode": "any"}}]},
            "real": 1,
            "anyValue": {"a": [None]},
        },
    )
    assert args.command == ["a"]
    assert args.expect == Leaf(exit_code=1)
    assert args.timeout == Duration.parse("1h")
    assert args.table == {"a": [{"b": Leaf(mode="any")}]}
    assert args.real == 1.0
    assert args.any_value == {"a": [None]}
    assert args.number == 0


@pytest.mark.parametrize(
    ("value", "field", "says"),
    [
        # The nearest name, at every depth.
        ({"comand": []}, "", "unknown argument 'comand'; did you mean 'command'?"),
        ({"ass": "x"}, "", "unknown argument 'ass'; did you mean 'as'?"),
        ({"zzz": 1}, "", "unknown argument 'zzz'; known are command, expect, either, leaves, table, "),
        ({"expect": {"exitcode": 1}}, "expect", "unknown argument 'exitcode'; did you mean 'exitCode'?"),
        ({"expect": {"exit_code": 1}}, "expect", "did you mean 'exitCode'?"),
        ({"expect": {"as": 1}}, "expect", "known are exitCode, pattern, mode"),
        ({"either": {"exitcode": 1}}, "either", "did you mean 'exitCode'?"),
        ({"either": [{"exitcode": 1}]}, "either[0]", "did you mean 'exitCode'?"),
        ({"leaves": [{}, {"paturn": "a"}]}, "leaves[1]", "did you mean 'pattern'?"),
        ({"table": {"a": [{"b": {"exitcode": 1}}]}}, "table.a[0].b", "did you mean 'exitCode'?"),
        ({"drawing": {"shape": "circle", "radus": 1}}, "drawing", "did you mean 'radius'?"),
        ({"x" * 1_000_000: 1}, "", f"unknown argument '{'x' * 80}'; known are"),
        # Another type, or a value out of bounds.
        ({"command": "ls"}, "command", 'expected an array, found a string; write a list, as in ["a", "b"]'),
        ({"command": [1]}, "command[0]", "expected a string, found an integer"),
        ({"command": None}, "command", "expected an array, found null"),
        ({"number": "1"}, "number", "expected an integer, found a string"),
        ({"number": True}, "number", "expected an integer, found true or false"),
        ({"number": 1.5}, "number", "expected an integer, found a number"),
        ({"number": 101}, "number", "expected an integer <= 100, found 101"),
        ({"flag": 1}, "flag", "expected true or false, found an integer"),
        ({"flag": "true"}, "flag", "expected true or false, found a string"),
        ({"text": ""}, "text", "expected a string of length >= 1"),
        ({"expect": {"pattern": "b"}}, "expect.pattern", "expected a string matching regex '^a'"),
        ({"table": {"a": {}}}, "table.a", "expected an array, found an object"),
        # The keys of maps, as they would be written.
        (
            {"table": {"a": [], "b.c": [{"d": {}}, {"e f": {"mode": "x"}}]}},
            'table["b.c"][1]["e f"].mode',
            "expected one of",
        ),
        (
            {"table": {"a": [{"b": {}}], "x" * 1_000: 1}},
            f"table.{'x' * 80}…".replace(".x", '["x') + '"]',
            "expected an array",
        ),
        ({"table": {str(number): [] for number in range(2_000)} | {"a": 1}}, "table[...]", "expected an array"),
        # What YAML reads as a number or a truth value.
        ({"command": [1]}, "command[0]", "expected a string, found an integer; quote it"),
        ({"text": True}, "text", "found true or false; quote it"),
        ({"text": 1.5}, "text", "found a number; quote it"),
        ({"either": 1}, "either", "expected a string, an object, an array or null, found an integer; quote it"),
        # One of some values.
        ({"expect": {"mode": "al"}}, "expect.mode", """expected one of "all", "any"; found 'al'"""),
        ({"leaves": [{"mode": "x"}]}, "leaves[0].mode", """expected one of "all", "any"; found 'x'"""),
        ({"level": 3}, "level", "expected one of 1, 2; found 3"),
        ({"drawing": {"shape": "cube"}}, "drawing.shape", """expected one of "circle", "square"; found 'cube'"""),
        ({"count": "1"}, "count", """expected an integer, an array or "many"; found '1'"""),
        ({"port": "atuo"}, "port", """expected an integer or "auto"; found 'atuo'"""),
        ({"port": 99999}, "port", "expected an integer <= 65535, found 99999"),
        ({"drawing": {"radius": 1}}, "drawing.shape", "this argument is required and was not given"),
        # Durations.
        ({"timeout": "1d"}, "timeout", "invalid duration '1d': unknown unit 'd'"),
        ({"timeout": 60}, "timeout", 'expected a duration such as "30s" or "1m30s", found 60'),
        ({"timeout": None}, "timeout", "expected a duration"),
        # Half a character, of which msgspec makes nothing.
        ({"\ud800": 1}, "", r"found half of a character: '\ud800', a lone surrogate"),
        ({"expect": {"mode": "a\udfff"}}, "", r"'\udfff'"),
        # No object at all.
        ([], "", "expected an object, found an array"),
        ("x", "", "expected an object, found a string"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_what_does_not_fit_is_named_with_its_place(value: object, field: str, says: str) -> None:
    found, text = message(value, extra=("as",))
    assert found == field
    assert says in text
    assert len(text) < 500


@pytest.mark.parametrize(
    ("value", "field"),
    [({}, "fileName"), ({"fileName": "x"}, "inner"), ({"inner": {}}, "fileName")],
)
def test_what_is_missing_is_named(value: object, field: str) -> None:
    assert message(value, Required) == (field, "this argument is required and was not given")


class Outer(Args):
    things: list[Required]


def test_what_is_missing_within_is_named_with_its_place() -> None:
    assert message({"things": [{"fileName": "x"}]}, Outer)[0] == "things[0].inner"


class Chain(Args):
    next_one: Chain | None = None


def test_where_the_schema_ends_the_error_guesses_nothing() -> None:
    assert message({"nextOne": {"nextOne": {"nextOn": {}}}}, Chain) == ("nextOne.nextOne", "unknown argument 'nextOn'")


@pytest.mark.parametrize("name", ["a` - at `$.b", "$.a", "`", "", "a.b[0]"])
def test_a_name_that_looks_like_a_place_is_still_refused(name: str) -> None:
    assert "unknown argument" in message({name: 1})[1]


class Unfit(Args):
    kind: object = None


def test_a_field_that_json_cannot_fill_is_a_fault_of_the_class() -> None:
    with pytest.raises(NotImplementedError, match="object can't be converted from JSON"):
        validate(Unfit, {"kind": 1})
