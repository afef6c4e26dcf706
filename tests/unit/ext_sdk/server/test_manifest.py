"""The manifest: all of spec 0's fields, on a line that fits."""

from __future__ import annotations

from types import new_class
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import pytest

from ext_sdk import Args, Context, Extension, Meta, Operation, Result
from ext_sdk.core.wire.json_codec import dumps
from ext_sdk.server.manifest import LIMIT_BYTES

MEDIUM = "A description of medium length, of which there are many. More."
LONG = "It is the first sentence. " + "And there is more to say about it. " * 40


class Described(Args):
    description: Annotated[str, Meta(description=LONG, examples=["description"])] = "description. Of itself"
    list_of: list[Annotated[str, Meta(description=LONG)]] = msgspec.field(default_factory=list)
    choice: Annotated[str, Meta(description="Short")] = "x"


def operation(name: str, args_type: type[Args] = Described) -> Operation:
    def function(args: Args, context: Context) -> Result:
        """Do it. At length."""
        return Result.ok()

    function.__annotations__["args"] = args_type
    return Operation(name, function)


class Inner(Args):
    inner: Annotated[str, Meta(description=MEDIUM)] = ""


class Middle(Args):
    middle: Annotated[Inner, Meta(description=MEDIUM)] = msgspec.field(default_factory=Inner)


class Outer(Args):
    outer: Annotated[Middle, Meta(description=MEDIUM)] = msgspec.field(default_factory=Middle)


Choice = Literal["one of many that are long enough", "another of them"] | list[Literal["or a list of these"]]


class Choices(Args):
    one: Annotated[Choice, Meta(description=MEDIUM)]
    other: Annotated[Choice, Meta(description=MEDIUM)]


def numbered(kind: Any, at: int) -> Any:
    """Return a type of arguments whose descriptions have a number, so that each operation has its own."""
    if isinstance(kind, type) and issubclass(kind, Args):
        namespace: dict[str, object] = {"__annotations__": {}}
        for name, hint in get_type_hints(kind, include_extras=True).items():
            if name in kind.__struct_fields__:
                namespace["__annotations__"][name] = numbered(hint, at)  # type: ignore[index]
        for field in msgspec.structs.fields(kind):
            if field.default_factory is not msgspec.NODEFAULT:
                namespace[field.name] = msgspec.field(default_factory=numbered(field.default_factory, at))
            elif field.default is not msgspec.NODEFAULT:
                namespace[field.name] = field.default
        return new_class(kind.__name__, (Args,), {}, lambda body: body.update(namespace))
    if get_origin(kind) is Annotated:
        base, meta = get_args(kind)
        description = str(meta.description).replace(".", f" {at:03}.", 1)
        return Annotated[numbered(base, at), Meta(description=description, examples=meta.examples)]
    return list[numbered(get_args(kind)[0], at)] if get_origin(kind) is list else kind  # type: ignore[misc]


def extension_of(count: int, args_type: type[Args] = Described) -> Extension:
    extension = Extension("probe", version="1.2.3", description="Says things", requires=["sh", "git"])
    for at in range(count):
        extension.add(operation(f"operation-{at}", numbered(args_type, at) if at else args_type))
    return extension


def params(manifest: dict[str, object]) -> dict[str, dict[str, object]]:
    operations = manifest["operations"]
    assert isinstance(operations, dict)
    properties = operations["operation-0"]["params"]["properties"]
    assert isinstance(properties, dict)
    return properties


def params_of(extension: Extension) -> dict[str, dict[str, object]]:
    operations = extension.manifest()["operations"]
    assert isinstance(operations, dict)
    found: dict[str, dict[str, object]] = operations["operation-0"]["params"]
    return found


def test_a_manifest_has_every_field_of_the_protocol() -> None:
    manifest = extension_of(1).manifest()
    assert {name: value for name, value in manifest.items() if name != "operations"} == {
        "name": "probe",
        "version": "1.2.3",
        "protocolVersion": "0.0.1",
        "description": "Says things",
        "requires": [{"command": "sh"}, {"command": "git"}],
    }
    operations = manifest["operations"]
    assert isinstance(operations, dict)
    assert operations["operation-0"]["description"] == "Do it. At length."
    assert operations["operation-0"]["params"]["type"] == "object"


def test_what_there_is_not_is_left_out() -> None:
    bare = Extension("bare", version="0.0.1")
    with pytest.raises(ValueError, match=r"extension 'bare' has no operations; add one with @extension.operation\(\)"):
        bare.manifest()
    bare.add(operation("do"))
    assert bare.manifest().keys() == {"name", "version", "protocolVersion", "operations"}


def test_descriptions_are_whole_while_there_is_room() -> None:
    found = params(extension_of(1).manifest())
    assert found["description"]["description"] == LONG


def test_descriptions_are_their_first_sentence_where_there_is_little() -> None:
    manifest = extension_of(60).manifest()
    assert len(dumps(manifest).encode()) <= LIMIT_BYTES
    found = params(manifest)
    assert found["description"] == {
        "type": "string",
        "description": "It is the first sentence",
        "examples": ["description"],
        "default": "description. Of itself",
    }
    items = found["listOf"]["items"]
    assert isinstance(items, dict)
    assert items["description"] == "It is the first sentence"
    assert found["choice"]["description"] == "Short"


@pytest.mark.parametrize(("count", "depth"), [(100, 3), (120, 2), (130, 1), (145, 0)])
def test_descriptions_of_what_is_deep_within_go_first(count: int, depth: int) -> None:
    manifest = extension_of(count, Outer).manifest()
    assert len(dumps(manifest).encode()) <= LIMIT_BYTES
    said = "A description of medium length, of which there are many"
    outer = params(manifest)["outer"]
    middle = outer["properties"]["middle"]  # type: ignore[index]
    inner = middle["properties"]["inner"]
    assert [level.get("description") for level in (outer, middle, inner)] == [said] * depth + [None] * (3 - depth)


def test_a_description_that_operations_share_is_repeated_only_if_there_is_room() -> None:
    extension = Extension("probe", version="1.2.3")
    for at in range(100):
        extension.add(operation(f"operation-{at}", Outer))
    operations = extension.manifest()["operations"]
    assert isinstance(operations, dict)
    described = {name: str(one).count("A description of") for name, one in operations.items()}
    assert set(described.values()) == {3, 0}
    assert (described["operation-0"], described["operation-1"]) == (3, 0)


def test_descriptions_are_shortened_in_one_operation_after_the_other() -> None:
    """One argument more does not cost all operations their descriptions."""
    extension = extension_of(18)
    extension.add(Operation("large", operation("large", Choices).function))
    extension.add(Operation("other-name", operation("operation-0").function, same_as="operation-0"))
    manifest = extension.manifest()
    assert len(dumps(manifest).encode()) <= LIMIT_BYTES
    operations = manifest["operations"]
    assert isinstance(operations, dict)
    short = [name for name, one in operations.items() if LONG[-200:] not in str(one) and name != "large"]
    assert short == ["operation-0", "other-name"]
    assert operations["large"]["params"]["properties"]["one"]["description"] == MEDIUM


def test_alternatives_that_are_repeated_are_told_once_where_that_makes_room() -> None:
    assert "$defs" not in params_of(extension_of(10, Choices))
    assert params_of(extension_of(97, Choices))["$defs"].keys() == {"one"}


def test_descriptions_are_left_out_where_there_is_none() -> None:
    manifest = extension_of(140).manifest()
    assert len(dumps(manifest).encode()) <= LIMIT_BYTES
    found = params(manifest)
    assert found["description"] == {"type": "string", "default": "description. Of itself"}
    assert set(found) == {"description", "listOf", "choice", "as", "scope", "verbatim"}


def test_defaults_are_omitted_before_a_manifest_is_refused() -> None:
    found = params(extension_of(170).manifest())
    assert found["description"] == {"type": "string"}


def test_empty_defaults_and_later_paragraphs_are_left_out_last() -> None:
    extension = extension_of(150, Outer)
    for name in extension.operations:
        extension.operations[name].description = "Do it.\n\nAt length."
    operations = extension.manifest()["operations"]
    assert isinstance(operations, dict)
    assert {operation["description"] for operation in operations.values()} == {"Do it."}
    assert not any("default" in operation["params"]["properties"]["outer"] for operation in operations.values())


def test_several_types_of_an_argument_are_one_list_where_there_is_little_room() -> None:
    class Values(Args):
        value: Annotated[int | str | bool, Meta(description=LONG)]
        values: Annotated[str | int | list[str], Meta(description=LONG)]

    assert "anyOf" in dumps(params_of(extension_of(10, Values)))
    properties = params_of(extension_of(145, Values))["properties"]
    assert properties["value"] == {"type": ["integer", "string", "boolean"]}
    strings = {"type": "array", "items": {"type": "string"}}
    assert properties["values"] == {"anyOf": [{"type": ["string", "integer"]}, strings]}


def test_more_operations_than_a_line_holds_are_told() -> None:
    with pytest.raises(ValueError, match="'probe' does not fit on a line of 64447 bytes: too many operations"):
        extension_of(400).manifest()
