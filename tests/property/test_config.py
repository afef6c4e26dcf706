"""What the early check of a configuration accepts, the complete validation accepts: the manifest is never too early."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.prepare import config_schema
from ext_sdk.server.config_check import certainly_valid
from ext_sdk.server.session import Session

if TYPE_CHECKING:
    from ext_sdk.extension import Extension

EXTENSIONS = ["ext_http", "ext_kubernetes", "ext_shell"]

DURATIONS = ["0s", "-1s", "1s", "1h30m", "1 s", "9" * 30 + "s", ".s", "0"]
HOSTS = ["a.test:80", "a.test:80\n", "*.test", "*", "*a", "::1", "[::1]:80", "a:b", ":", "[", "http://a", "${a.b}"]
FILES = [__file__, "~", str(Path(__file__).parent), "/none", f"{__file__}:/none", f":{__file__}"]
OTHERS = ["", "64KiB", "1GB\n", "sh", "bash", "\ud800", "\0"]
texts = st.text(max_size=6) | st.sampled_from(DURATIONS + HOSTS + FILES + OTHERS)
numbers = st.integers() | st.sampled_from([0, 1, 2**31, 2**62, 2**62 + 1, 2**64, 10**30])
values = st.recursive(
    st.none() | st.booleans() | numbers | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)


def extension_of(package: str) -> Extension:
    extension: Extension = import_module(f"{package}.extension").extension
    return extension


def fitting(schema: object) -> st.SearchStrategy[object]:
    """Return values of the types of a schema, and objects with a member that it has not."""
    if not isinstance(schema, dict):
        return values
    if "anyOf" in schema:
        return st.one_of(*map(fitting, schema["anyOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema["type"] == "array":
        return st.lists(fitting(schema["items"]), max_size=3)
    if schema["type"] == "object" and "properties" in schema:
        members = {name: fitting(inner) for name, inner in schema["properties"].items()}
        return st.fixed_dictionaries({}, optional=members) | st.fixed_dictionaries({}, optional=members | {"a": values})
    if schema["type"] == "object":
        return st.dictionaries(texts, fitting(schema["additionalProperties"]), max_size=3)
    return {"string": texts, "boolean": st.booleans(), "integer": numbers}[schema["type"]]


@pytest.mark.parametrize("package", EXTENSIONS)
@given(data=st.data())
def test_what_the_early_check_accepts_is_valid(package: str, data: st.DataObject) -> None:
    extension = extension_of(package)
    schema = config_schema(extension.config_type)
    config = data.draw(fitting(schema))
    if certainly_valid(config, schema):
        Session(extension, Redactor({})).initialize({"protocolVersion": "0.0.1", "config": config})


@pytest.mark.parametrize("package", EXTENSIONS)
@given(value=values)
def test_each_member_of_the_configuration_is_checked_as_it_is_validated(package: str, value: object) -> None:
    extension = extension_of(package)
    schema = config_schema(extension.config_type)
    assert isinstance(schema, dict)
    properties = schema["properties"]
    assert isinstance(properties, dict)
    for name in properties:
        if certainly_valid({name: value}, schema):
            Session(extension, Redactor({})).initialize({"protocolVersion": "0.0.1", "config": {name: value}})
