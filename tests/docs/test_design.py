"""docs/design.md draws the tree as it is: no folder of the source is missing in it, and none is made up."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT, blocks

SOURCES = (ROOT / "extensions", ROOT / "recorder")


def tree() -> str:
    return next(block.text for block in blocks() if block.page == "docs/design.md")


def folders() -> set[str]:
    return set(re.findall(r"\b([a-z][\w-]+)/", tree())) - {"src"}


def packages() -> set[str]:
    found = [
        path.parent for source in SOURCES for pattern in ("*", "*/*") for path in source.glob(f"{pattern}/__init__.py")
    ]
    return {path.name for path in found}


def test_every_package_is_in_the_tree() -> None:
    assert packages() - folders() == set()


def test_what_the_tree_names_is_there() -> None:
    known = packages() | {path.stem for source in SOURCES for path in source.rglob("*.py")}
    known |= {path.name for path in [*ROOT.iterdir(), *(ROOT / "docs").iterdir(), *(ROOT / "tests").iterdir()]}
    modules = set(re.findall(r"^ {4}(\w+(?:  \w+)+)", tree(), re.MULTILINE))
    assert folders() - known == set()
    assert {name for line in modules for name in line.split()} - known == set()
