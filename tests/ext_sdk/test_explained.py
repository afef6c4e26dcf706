"""What a person reads about operations; the same by `--help` and `--describe` of real programs is in test_cli."""

from __future__ import annotations

from ext_sdk import Args, Context, Extension, Operation, Result
from ext_sdk.explained import operations_text


def greet(args: Args, context: Context) -> Result:
    """Say hello.

    To everybody.
    """
    return Result.ok()


def test_other_names_stand_apart_with_what_they_are_names_of() -> None:
    extension = Extension("greeter", version="1.0.0")
    extension.add(Operation("sayHello", greet, {}, same_as="greet"))
    extension.add(Operation("greet", greet, {"as": "said"}))
    lines = operations_text(extension, "greeter").splitlines()
    assert lines[:6] == ["operations:", "  greet     Say hello.", "", "other names:", "  sayHello  greet", ""]
    assert """  greeter call greet '{"as":"said"}'""" in lines


def test_without_other_names_nothing_is_said_of_them() -> None:
    extension = Extension("greeter", version="1.0.0")
    extension.add(Operation("greet", greet))
    assert "other names" not in operations_text(extension, "greeter")
