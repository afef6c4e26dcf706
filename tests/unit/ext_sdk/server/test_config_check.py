"""The early check of a configuration: what it is certain of, and what it leaves to the complete validation."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import pytest
from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_sdk.prepare import config_schema
from ext_sdk.server.config_check import certainly_valid


class Inner(ext_sdk.Args):
    number: Annotated[int, Meta(ge=1, le=5)] = 1
    needed: str


class Checked(ext_sdk.Args):
    """Refuses nothing that its early check accepts."""

    early_check: ClassVar[str] = f"{__name__}:refuse_bad"
    text: str = ""

    def __post_init__(self) -> None:
        refuse_bad({"text": self.text})


def refuse_bad(members: dict[str, object]) -> None:
    if members.get("text") == "bad":
        raise ValueError("text: expected anything but bad")


class Unchecked(ext_sdk.Args):
    text: str = ""

    def __post_init__(self) -> None:
        """Might refuse anything."""


class Probe(ext_sdk.Config):
    text: str = ""
    flag: bool = False
    word: Literal["a", "b"] = "a"
    several: list[str] = field(default_factory=list)
    table: dict[str, bool] = field(default_factory=dict)
    size: Annotated[int, Meta(ge=1)] | Annotated[str, Meta(pattern="^[0-9]+k$")] = 1
    inner: Inner | UnsetType = UNSET
    checked: Checked | UnsetType = UNSET
    unchecked: Unchecked | UnsetType = UNSET
    ratio: float = 0.0
    short: Annotated[str, Meta(max_length=3)] = ""


SCHEMA = config_schema(Probe)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"text": "ä", "flag": True, "word": "b", "several": ["a", ""], "table": {"a": False}},
        {"size": 3},
        {"size": "10k"},
        {"inner": {"number": 5, "needed": "a"}},
        {"checked": {"text": "good"}},
        {"maxOperationTime": "1h"},
    ],
)
def test_a_valid_configuration_is_certain(config: dict[str, object]) -> None:
    assert certainly_valid(config, SCHEMA)


@pytest.mark.parametrize(
    "config",
    [
        None,
        [],
        "text",
        {"text": 1},
        {"text": "\ud800"},
        {"flag": 1},
        {"word": "c"},
        {"several": [1]},
        {"several": {}},
        {"table": {"a": 1}},
        {"table": {"\ud800": True}},
        {"size": 0},
        {"size": True},
        {"size": "k"},
        {"size": "1k\n"},
        {"inner": {"number": 6, "needed": "a"}},
        {"inner": {"number": 5}},
        {"inner": {"needed": "a", "other": 1}},
        {"inner": None},
        {"checked": {"text": "bad"}},
        {"maxOperationTime": "0s"},
        {"maxOperationTime": "soon"},
        {"maxOperationTime": 1},
        {"max_operation_time": "1s"},
    ],
)
def test_what_is_not_valid_is_not_certain(config: object) -> None:
    assert not certainly_valid(config, SCHEMA)


@pytest.mark.parametrize("config", [{"unchecked": {}}, {"ratio": 1.0}, {"short": "a"}])
def test_what_the_types_do_not_show_is_left_to_the_complete_validation(config: dict[str, object]) -> None:
    assert not certainly_valid(config, SCHEMA)


def test_a_class_that_extends_a_checked_one_needs_a_check_for_a_post_init_of_its_own() -> None:
    class Extended(Checked):
        def __post_init__(self) -> None:
            """Might refuse anything."""

    class Config(ext_sdk.Config):
        inner: Checked | UnsetType = UNSET
        extended: Extended | UnsetType = UNSET

    globals()["Checked"], globals()["Extended"] = Checked, Extended
    schema = config_schema(Config)
    assert certainly_valid({"inner": {"text": "a"}}, schema)
    assert not certainly_valid({"inner": {"text": "bad"}}, schema)
    assert not certainly_valid({"extended": {"text": "a"}}, schema)


@pytest.mark.parametrize("schema", [False, True, None, [], {"unknown": 1}, {"type": "number"}, {"type": []}])
def test_a_schema_that_is_not_understood_accepts_nothing(schema: object) -> None:
    values: list[object] = [{}, [], "", 1, 1.0, True, None]
    assert not any(certainly_valid(value, schema) for value in values)
