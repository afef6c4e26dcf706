"""Links between the pages, and the paths that docs/design.md names, exist."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?P<target>[^)#\s]*)(?:#(?P<part>[^)\s]*))?\)")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub names them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_and_headings_lead_somewhere(page: Path) -> None:
    for match in LINK.finditer(page.read_text()):
        if match["target"].startswith(("http:", "https:", "mailto:")):
            continue
        target = page.parent / match["target"] if match["target"] else page
        assert target.exists(), match[0]
        if match["part"] and target.suffix == ".md":
            assert match["part"] in anchors(target), match[0]


def test_paths_in_the_description_of_the_architecture_exist() -> None:
    paths = set(re.findall(r"`(ext_\w+/[\w/.]*)`", (ROOT / "docs" / "design.md").read_text()))
    assert {
        path for path in paths if not any((ROOT / root / path).exists() for root in ("extensions", "recorder"))
    } == set()
