"""The manifest: all of spec 0's fields, on a line that fits."""

from __future__ import annotations

from typing import Annotated

import msgspec
import pytest

from ext_sdk import Args, Context, Extension, Meta, Operation, Result
from ext_sdk.manifest import LIMIT_BYTES
from ext_sdk.wire import dumps

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


def extension_of(count: int) -> Extension:
    extension = Extension("probe", version="1.2.3", description="Says things", requires=["sh", "git"])
    for at in range(count):
        extension.add(operation(f"operation-{at}"))
    return extension


def params(manifest: dict[str, object]) -> dict[str, dict[str, object]]:
    operations = manifest["operations"]
    assert isinstance(operations, dict)
    properties = operations["operation-0"]["params"]["properties"]
    assert isinstance(properties, dict)
    return properties


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
    assert Extension("bare", version="0.0.1").manifest() == {
        "name": "bare",
        "version": "0.0.1",
        "protocolVersion": "0.0.1",
        "operations": {},
    }


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


def test_descriptions_are_left_out_where_there_is_none() -> None:
    manifest = extension_of(150).manifest()
    assert len(dumps(manifest).encode()) <= LIMIT_BYTES
    found = params(manifest)
    assert found["description"] == {
        "type": "string",
        "examples": ["description"],
        "default": "description. Of itself",
    }
    assert set(found) == {"description", "listOf", "choice", "as"}


def test_more_operations_than_a_line_holds_are_told() -> None:
    with pytest.raises(ValueError, match="manifest of 'probe' does not fit a line of 61440 bytes: too many operations"):
        extension_of(400).manifest()
