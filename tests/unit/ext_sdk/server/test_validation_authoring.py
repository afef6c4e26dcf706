"""Mistakes in classes of arguments are errors that name the class, the field and the remedy."""

from __future__ import annotations

import re
from pathlib import Path  # noqa: TC003 - msgspec reads it
from typing import Annotated

import pytest

import ext_sdk
from ext_http.extension import extension as http
from ext_kubernetes.extension import extension as kubernetes
from ext_sdk import Args, Context, Extension, Meta, Result
from ext_sdk.server.validation import check_class, check_operation, pattern_problem
from ext_shell.extension import extension as shell


class Lookahead(Args):
    name: Annotated[str, Meta(pattern="^(?=x)")]


class Inner(Args):
    of: list[Lookahead]


class WrongDefault(Args):
    count: int = "1"  # type: ignore[assignment]


class NoneDefault(Args):
    count: int = None  # type: ignore[assignment]


class Limited(Args):
    count: Annotated[int | None, Meta(ge=1)] = None


class Unordered(Args):
    names: set[str]


class File(Args):
    path: Path


class Binary(Args):
    data: bytes


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (Lookahead, "Lookahead.name: hosts check '^(?=x)' by RE2, which has no lookahead and lookbehind"),
        (Inner, "Inner.of.name: hosts check"),
        (WrongDefault, "WrongDefault.count: default '1': Expected `int`, got `str`; change the type or the default"),
        (NoneDefault, "NoneDefault.count: default None: Expected `int`, got `null`"),
        (Limited, "Limited.count: Can only set `ge` on a numeric type"),
        (Limited, "as in Annotated[int, Meta(ge=1)] | None"),
        (Unordered, "Unordered.names: a set cannot be an argument; write list"),
        (File, "File.path: a Path cannot be an argument; write str, or a subclass of ext_sdk.Args"),
        (Binary, "Binary.data: a bytes cannot be an argument; write str"),
    ],
)
def test_a_wrong_field_is_named_with_the_remedy(kind: type[Args], error: str) -> None:
    with pytest.raises(TypeError, match=re.escape(error)):
        check_class(kind)


def test_a_wrong_example_is_refused_when_the_operation_is_registered() -> None:
    extension = Extension("probe", version="1.0.0")
    with pytest.raises(TypeError, match="operation 'do': example: unknown argument 'nam'; did you mean 'name'"):

        @extension.operation(example={"nam": "Ada", "as": "x"})
        def do(name: str, context: Context) -> Result:
            """Do."""
            return Result.ok()

    assert extension.operations == {}


@pytest.mark.parametrize("pattern", ["^[(?=]$", r"\\+", r"a\++", "(?P<a>x)+?", r"[\]+]+", r"\$\{\d{1,3}"])
def test_what_re2_has_is_accepted(pattern: str) -> None:
    assert pattern_problem(pattern) == ""


@pytest.mark.parametrize("pattern", ["(?<!a)b", r"(a)\1", "a++", "a{2}+", "(?>a)", r"a\Z", "(?P<a>x)(?P=a)", "(?#a)"])
def test_what_re2_lacks_is_refused(pattern: str) -> None:
    assert pattern_problem(pattern)


@pytest.mark.parametrize("extension", [http, kubernetes, shell], ids=lambda extension: extension.name)
def test_our_operations_have_no_mistakes(extension: ext_sdk.Extension) -> None:
    check_class(extension.config_type)
    for operation in extension.operations.values():
        check_operation(operation)
