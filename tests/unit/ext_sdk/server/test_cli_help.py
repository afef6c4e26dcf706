"""What a person reads about operations; the same by `--help` and `--describe` of real programs is in test_cli."""

from __future__ import annotations

from ext_sdk import Args, Context, Extension, Operation, Result
from ext_sdk.server.cli import operation_text, operations_text


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


class Guest(Args):
    name: str
    seat: int = 0


class Invite(Args):
    guests: list[Guest | str]
    host: Guest
    tables: dict[str, Guest]
    colours: dict[str, str]
    loud: bool = False


def invite(args: Invite, context: Context) -> Result:
    """Invite guests."""
    return Result.ok()


def test_the_members_of_objects_and_of_lists_and_maps_of_objects_are_named() -> None:
    lines = operation_text(Operation("invite", invite), "greeter").splitlines()
    at = lines.index("  guests (array, required)")
    assert lines[at + 1 : at + 7] == [
        "      members: name, seat",
        "  host (object, required)",
        "      members: name, seat",
        "  tables (object, required)",
        "      members: name, seat",
        "  colours (object, required)",
    ]
    assert "members" not in lines[lines.index("  loud (boolean, default false)") + 1]
