"""docs/writing-extensions.md describes all that an author of an extension gets."""

from __future__ import annotations

import re

import ext_sdk
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "writing-extensions.md").read_text()


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_every_attribute_of_the_context_is_told() -> None:
    told = set(re.findall(r"^\| `(\w+)", section("Context"), re.MULTILINE))
    assert told == {name for name in dir(ext_sdk.Context) if not name.startswith("_")}


def test_every_exception_that_ends_an_operation_is_told() -> None:
    told = set(re.findall(r"^\| `(\w+)", section("Results"), re.MULTILINE))
    exported = {name for name in ext_sdk.__all__ if isinstance(getattr(ext_sdk, name), type)}
    assert told == {name for name in exported if issubclass(getattr(ext_sdk, name), Exception)}
